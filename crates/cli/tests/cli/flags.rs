//! Flags: each acts, or is refused by its name. `--top` was once accepted without `--watch`, and did nothing.

use std::collections::BTreeSet;
use std::path::Path;

use crate::home::Home;

/// Every flag, with the command lines on which it would have no effect: each is refused, and names it.
const FLAGS: &[(&str, &[&str])] = &[
    ("after", &["run x --check --after y"]),
    (
        "all",
        &[
            "runs show x --all",
            "runs show x --all --format json",
            "runs show x --store s.db --all --format json",
        ],
    ),
    ("check", &[]),
    ("cleanup-worktree", &["runs cancel x --store s.db --cleanup-worktree"]),
    ("code", &[]),
    ("days", &["runs gc --store s.db --days 3"]),
    ("dir", &["runs list --store s.db --dir ."]),
    // Of the two `--all` is the stronger one.
    ("dismiss-failures", &[]),
    ("dry-run", &[]),
    ("exit-code", &[]),
    ("fix", &[]),
    ("follow", &["run x --check --follow"]),
    ("format", &[]),
    ("from", &[]),
    ("help", &[]),
    (
        "ids",
        &[
            "jobs list --format json --ids short",
            "jobs schedule --format json --ids short",
            "runs list --format json --ids short",
            "runs list --store s.db --ids short",
            "runs show x --format json --ids short",
            "runs show x --store s.db --ids short",
        ],
    ),
    ("interval-ms", &["jobs schedule --interval-ms 200"]),
    ("job", &[]),
    ("keep", &["demo --no-crash --keep here"]),
    ("kind", &[]),
    ("limit", &["runs list --all --limit 3"]),
    ("lines", &[]),
    ("max-depth", &["jobs schedule --max-depth 2"]),
    ("name", &[]),
    ("no-ansi", &["jobs schedule --no-ansi --format json", "jobs schedule --no-ansi --format dag"]),
    ("no-cleanup-worktree", &["runs cancel x --store s.db --no-cleanup-worktree"]),
    ("no-crash", &[]),
    ("no-wait", &["runs cancel x --no-wait", "runs retry x --no-wait", "runs cancel x --no-wait --wait 1s"]),
    ("non-retryable", &[]),
    ("older-than", &["runs gc --older-than 3d"]),
    ("pin", &["run x --check --pin main"]),
    ("prefix", &[]),
    ("quiet", &[]),
    ("raw", &[]),
    ("reason", &[]),
    ("repeat", &["run x --check --repeat 2"]),
    ("require-approval", &["run x --check --require-approval"]),
    ("set", &[]),
    ("since-attempt", &[]),
    ("stages", &[]),
    ("status", &["runs gc --status failed"]),
    ("store", &[]),
    ("stream", &[]),
    ("tag", &[]),
    ("timeout", &[]),
    ("times", &["jobs list --format json --times relative", "runs list --format json --times relative"]),
    ("token", &[]),
    ("top", &["jobs schedule --top 3"]),
    ("until-idle", &[]),
    ("utc", &["runs list --utc --times relative"]),
    ("value", &[]),
    ("version", &[]),
    ("wait", &["runs cancel x --wait 1s", "runs retry x --wait 1s"]),
    ("watch", &[]),
    ("width", &["runs timeline x --format svg --width 80", "runs timeline x --format json --width 80"]),
    ("workflow", &[]),
    (
        "yes",
        &["demo --no-crash --yes", "runs gc --yes", "runs gc --store s.db --older-than 3d --yes --dry-run"],
    ),
];

/// Returns the flags of all commands, as their help has them.
fn flags() -> BTreeSet<String> {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let text = std::fs::read_to_string(reference).expect("the reference can be read");
    let options = text.lines().filter_map(|line| {
        let line = line.strip_prefix("      ").or_else(|| line.strip_prefix("  "))?;
        let line = line.strip_prefix("--").or_else(|| line.split_once(", --").map(|(_, flag)| flag))?;
        let flag: String = line.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        (line.len() < 60 && !flag.is_empty()).then_some(flag)
    });
    options.collect()
}

#[test]
fn it_is_known_of_every_flag_where_it_acts() {
    let known: BTreeSet<String> = FLAGS.iter().map(|(flag, _)| (*flag).to_owned()).collect();
    assert_eq!(flags(), known);
}

#[test]
fn a_flag_without_effect_is_refused_by_its_name() {
    let home = Home::new();
    for (flag, lines) in FLAGS {
        for line in *lines {
            let arguments: Vec<&str> = line.split(' ').collect();
            let ran = home.run(&arguments);
            assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{line}: {ran}");
            assert!(ran.err.contains(&format!("--{flag}")), "{line}: {ran}");
        }
    }
}
