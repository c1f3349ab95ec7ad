//! The examples of the guides, of the README and of the pages of errors, each run as it stands.
//!
//! In a block marked `console`, a line with `$` in front is a command, `>` continues it, and the other lines
//! are what it prints. `cat FILE` makes the file: what it would print is put into it first.
//!
//! On pages with jobs time passes, and ids are drawn. What differs each time is compared as the same: see
//! [`crate::told_live`].

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tidewheel_core::policy::{Kind, Policy, Rules};

use crate::home::{Home, Ran};
use crate::shop;
use crate::told_live::Names;

/// One command of an example and what it prints.
#[derive(Debug, Default)]
struct Step {
    command: String,
    printed: String,
}

/// Pages with jobs that really run.
const LIVE: [&str; 6] = [
    "guides/jobs.md",
    "guides/git.md",
    "guides/agents.md",
    "guides/stages.md",
    "jobs-files.md",
    "../README.md",
];

fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = ["guides/decide.md", "guides/policies.md", "guides/runs.md"];
    let mut pages: Vec<PathBuf> = pages.iter().chain(&LIVE).map(|page| docs.join(page)).collect();
    let errors = std::fs::read_dir(docs.join("errors")).expect("there are pages");
    pages.extend(errors.map(|entry| entry.expect("there are pages").path()));
    pages
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (false, _) => {}
            (true, _) => match (line.strip_prefix("$ "), line.strip_prefix("> "), steps.last_mut()) {
                (Some(command), ..) => {
                    steps.push(Step { command: command.to_owned(), ..Step::default() });
                }
                (None, Some(more), Some(step)) => step.command.extend(["\n", more]),
                (None, _, Some(step)) => step.printed.extend([line, "\n"]),
                (None, _, None) => panic!("an example begins with a command, not with: {line}"),
            },
        }
    }
    steps
}

#[test]
fn every_example_prints_what_it_says() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("the page can be read");
        let steps = steps(&text);
        assert!(!steps.is_empty(), "{} has no example", page.display());
        let is_live = LIVE.iter().any(|live| page.ends_with(live));
        let home = if is_live { Home::new() } else { shop::home() };
        let mut names = Names::default();
        for step in steps {
            if let Some(file) = step.command.strip_prefix("cat ").filter(|file| !file.contains(' ')) {
                home.file(file, &step.printed);
                continue;
            }
            let (ran, wanted);
            if is_live {
                let found = in_shell(&home, &names.put_into(&step.command), None);
                (ran, wanted) = names.compared(&format!("{}{}", found.out, found.err), &step.printed);
            } else {
                let found = in_shell(&home, &step.command, Some(shop::NOW));
                (ran, wanted) = (format!("{}{}", found.out, found.err), step.printed);
            }
            assert_eq!(ran, wanted, "{}: {}", page.display(), step.command);
        }
    }
}

/// Returns the examples in the first column of the table in a part of the guide of policies.
fn table_of(part: &str) -> Vec<String> {
    let guide = std::fs::read_to_string(&pages()[1]).expect("the guide can be read");
    let (_, text) = guide.split_once(&format!("\n## {part}\n")).expect("the guide has this part");
    let text = text.split("\n## ").next().unwrap_or_default();
    let cells = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    cells.map(|(cell, _)| cell.to_owned()).collect()
}

#[test]
fn the_guide_has_every_field_of_a_policy_with_an_example_that_is_right() {
    let examples = table_of("The fields");
    let fields: Vec<&str> = examples.iter().map(|line| line.split(" =").next().unwrap_or_default()).collect();
    assert_eq!(fields, Policy::FIELDS);
    for example in &examples {
        // Some fields need retries or delays to act.
        let mut source = format!("{example}\n");
        for needed in ["max_retries = 3", "backoff = 'linear'"] {
            if !example.starts_with(&needed[..8]) {
                source.extend([needed, "\n"]);
            }
        }
        let policy = Policy::from_toml(&source).unwrap_or_else(|problems| panic!("{example}: {problems}"));
        assert!(policy.to_record().contains(example.split(" =").next().unwrap_or_default()), "{example}");
    }
}

#[test]
fn the_guide_has_every_form_of_a_match() {
    let forms = table_of("`match`");
    let words = ["name", "pattern", "kind", "kinds", "tag", "default"];
    assert_eq!(forms.len(), words.len());
    for (form, word) in forms.iter().zip(words) {
        assert!(form.starts_with(&format!("match = {{ {word} = ")), "{form}");
        Rules::from_toml(&format!("[[policies]]\n{form}\n"))
            .unwrap_or_else(|problems| panic!("{form}: {problems}"));
    }
    let guide = std::fs::read_to_string(&pages()[1]).expect("the guide can be read");
    for kind in Kind::ALL {
        assert!(guide.contains(&format!("`{kind}`")), "the guide does not name the kind {kind}");
    }
}

/// Runs a command as a shell does that finds our binary.
fn in_shell(home: &Home, command: &str, now: Option<&str>) -> Ran {
    let binary = Path::new(env!("CARGO_BIN_EXE_tidewheel"));
    let folder = binary.parent().expect("the binary lies in a folder").display();
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).env_clear().current_dir(home.path());
    shell.env("PATH", format!("{folder}:/usr/bin:/bin")).envs(now.map(|now| ("TIDEWHEEL_NOW", now)));
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ran::of(shell, b"")
}
