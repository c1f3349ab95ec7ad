//! Every block of the README and of docs/, run as it stands, or checked in the way of its kind.
//!
//! In a block marked `console`, a line with `$` in front is a command, `>` continues it, and the other lines
//! are what it prints; what may be left out of it is in [`crate::elision`]. `cat FILE` makes the file, if no command
//! made it: what it would print is put into it first. The blocks of a page share a directory, unless
//! `<!-- a new directory -->` stands above one.
//!
//! On most pages time passes, and ids are drawn. What differs each time is compared as the same: see
//! [`crate::told_live`].

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tidewheel_core::policy::{Kind, Policy, Rules};

use crate::elision;
use crate::home::{Home, Ran};
use crate::pages::{self, Block, Page};
use crate::shop;
use crate::told_live::Names;

/// One command of an example and what it prints.
#[derive(Debug, Default)]
struct Step {
    command: String,
    printed: String,
    /// The line of its block.
    line: usize,
    is_fresh: bool,
}

/// Pages about policies, decisions and the runs of `orders.db`, on which no time passes: compared to the letter.
const AT_REST: [&str; 4] =
    ["docs/errors/", "docs/guides/decide.md", "docs/guides/policies.md", "docs/guides/runs.md"];

/// Commands of blocks marked `sh`, by how they begin, and why they are not run here.
///
/// Such blocks are for what changes the machine of a person or takes a toolchain; what can be run is `console`.
const NOT_HERE: [(&str, &str); 9] = [
    ("cargo run --bin tidewheel -- demo", "it needs a build; `demo.rs` runs the command"),
    ("cargo xtask ", "it runs these tests, or much more than they may take"),
    ("cargo build", "it needs the toolchain, and was done to get here"),
    ("cargo install ", "it changes the machine"),
    ("cargo new ", "it needs the toolchain"),
    ("cargo add ", "it needs the toolchain and the network"),
    ("cargo run", "it needs the toolchain; what is run is compiled and run with the doc tests"),
    ("cd ", "it goes with the commands around it"),
    ("git clone ", "it needs the network"),
];

/// What is checked by other tests, by its language and its page.
const ELSEWHERE: [(&str, &str, &str); 4] = [
    ("rust", "", "compiled and run with the doc tests of the facade, which lists the pages"),
    ("rust,no_run", "", "compiled with them, and not run"),
    ("rust,ignore", "docs/guides/schedulers.md", "compared with the examples by the tests of the facade"),
    ("sql", "docs/store.md", "run by the tests of the store"),
];

fn steps(page: &Page) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for block in page.blocks() {
        if block.language != "console" || block.not_run.is_some() {
            continue;
        }
        let mut is_first = true;
        for line in block.text.lines() {
            match (line.strip_prefix("$ "), line.strip_prefix("> "), steps.last_mut()) {
                (Some(command), ..) => {
                    let command = command.to_owned();
                    let is_fresh = is_first && block.is_fresh;
                    steps.push(Step { command, line: block.line, is_fresh, ..Step::default() });
                }
                (None, _, _) if is_first => {
                    panic!("{}:{}: an example begins with a command, not with: {line}", page.name, block.line)
                }
                (None, Some(more), Some(step)) if step.printed.is_empty() => {
                    step.command.extend(["\n", more]);
                }
                (None, _, Some(step)) => step.printed.extend([line, "\n"]),
                (None, _, None) => unreachable!("the first line of a block is a command"),
            }
            is_first = false;
        }
    }
    steps
}

/// Runs the examples of a page, up to the first that prints something else.
fn check(page: &Page) -> Result<(), String> {
    let is_live = !AT_REST.iter().any(|place| page.name.starts_with(place));
    let new_home = || if is_live { Home::new() } else { shop::home() };
    let (mut home, mut names, mut written) = (new_home(), Names::default(), BTreeSet::new());
    for step in steps(page) {
        if step.is_fresh {
            (home, names, written) = (new_home(), Names::default(), BTreeSet::new());
        }
        let file = step.command.strip_prefix("cat ").filter(|file| !file.contains([' ', '|', '*', '<']));
        if let Some(file) = file
            && (written.contains(file) || !home.path().join(file).exists())
        {
            home.file(file, &step.printed);
            written.insert(file.to_owned());
            continue;
        }
        let (said, wanted);
        if is_live {
            let found = in_shell(&home, &names.put_into(&step.command), None);
            (said, wanted) = names.compared(&format!("{}{}", found.out, found.err), &step.printed);
        } else {
            let found = in_shell(&home, &step.command, Some(shop::NOW));
            (said, wanted) = (format!("{}{}", found.out, found.err), step.printed.clone());
        }
        let fits = |said: &str, wanted: &str| match elision::is_elided(wanted) {
            true => elision::fits(said, wanted),
            false => said == wanted,
        };
        // Sentences are broken where the ages in them let them, and those differ each time.
        let is_prose = is_live && step.command.contains(" explain ");
        let is_right = fits(&said, &wanted)
            || (is_prose && fits(&elision::one_line(&said), &elision::one_line(&wanted)));
        if !is_right {
            let Step { command, line, .. } = &step;
            // What jobs said in the end is often the reason.
            let ends = in_shell(&home, "grep -h summary .tidewheel/jobs/*/outcome.json", None).out;
            return Err(format!(
                "{}, block at line {line}\n$ {command}\n--- it prints\n{said}--- the page says\n{wanted}--- jobs\n{ends}",
                page.name
            ));
        }
    }
    Ok(())
}

#[test]
fn every_example_prints_what_it_says() {
    let pages: VecDeque<Page> = pages::all().into_iter().filter(|page| !steps(page).is_empty()).collect();
    assert!(pages.len() > 35, "only {} pages have examples", pages.len());
    let waiting = Mutex::new(pages);
    let wrong = Mutex::new(Vec::new());
    let work = || {
        loop {
            let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some(page) = next else { return };
            let began = Instant::now();
            if let Err(problem) = check(&page) {
                wrong.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
            }
            println!("{}: {:.1} s", page.name, began.elapsed().as_secs_f64());
        }
    };
    // Each page has a directory of its own, so that they do not meet.
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from).min(4) {
            scope.spawn(work);
        }
    });
    let wrong = wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_an_error_has_an_example() {
    for page in pages::all().iter().filter(|page| page.name.starts_with("docs/errors/TW")) {
        assert!(!steps(page).is_empty(), "{} has no example", page.name);
    }
}

#[test]
fn every_block_is_checked_or_says_why_not() {
    let (mut problems, mut not_run) = (String::new(), String::new());
    let mut count = 0;
    for page in pages::all().iter().filter(|page| !page.is_generated()) {
        for block in page.blocks() {
            let at = format!("{}:{}", page.name, block.line);
            if let Some(reason) = block.not_run {
                count += 1;
                writeln!(not_run, "{at} ({}): {reason}", block.language).expect("a text takes all");
                if reason.len() < 10 {
                    writeln!(problems, "{at}: say why it is not run").expect("a text takes all");
                }
            } else if let Err(problem) = check_block(page, &block) {
                writeln!(problems, "{at}: {problem}").expect("a text takes all");
            }
        }
    }
    println!("{count} blocks are not run:\n{not_run}");
    assert!(problems.is_empty(), "{problems}");
    assert!(count <= MOST_NOT_RUN, "{count} blocks are not run, which are too many:\n{not_run}");
}

/// Screens of a terminal and the languages of others are not run; more of them should not come unnoticed.
const MOST_NOT_RUN: usize = 24;

fn check_block(page: &Page, block: &Block<'_>) -> Result<(), String> {
    match block.language {
        "console" => Ok(()),
        "json" => serde_json::from_str::<serde_json::Value>(&block.text).map(drop).map_err(|e| e.to_string()),
        "toml" => check_toml(&block.text),
        "mermaid" => {
            let is_known = ["flowchart ", "stateDiagram-v2", "sequenceDiagram"].iter();
            let is_known = is_known.into_iter().any(|kind| block.text.starts_with(kind));
            is_known.then_some(()).ok_or_else(|| "this is no diagram that is drawn everywhere".to_owned())
        }
        "sh" => {
            let lines = block.text.lines().filter(|line| !line.is_empty() && !line.starts_with([' ', '#']));
            let mut unknown = lines.filter(|line| !NOT_HERE.iter().any(|(begin, _)| line.starts_with(begin)));
            let hint = "make it `console`, or list it in NOT_HERE with the reason";
            unknown.next().map_or(Ok(()), |line| Err(format!("nobody runs `{line}`: {hint}")))
        }
        language => {
            let is_elsewhere =
                ELSEWHERE.iter().any(|(kind, place, _)| *kind == language && page.name.starts_with(place));
            let hint = "<!-- not run: REASON --> above it says why";
            is_elsewhere.then_some(()).ok_or_else(|| format!("nobody checks `{language}`: {hint}"))
        }
    }
}

/// Checks a file, or a part of one, as what it is: a template, a configuration, rules, or the manifest of a crate.
fn check_toml(text: &str) -> Result<(), String> {
    let home = Home::new();
    let has = |word: &str| text.lines().any(|line| line.starts_with(word));
    let ran = if has("[dependencies]") || has("[package]") {
        // What cargo reads is compared with a crate that exists by the doc tests; here it has to name us.
        return if text.contains("tidewheel") { Ok(()) } else { Err("whose manifest is this?".to_owned()) };
    } else if has("[[nodes]]") || has("id = ") {
        let head = if has("id = \"template.") { "" } else { "id = \"template.part\"\nversion = \"v1\"\n" };
        home.file("part.toml", format!("{head}{text}"));
        home.run(&["run", "part.toml", "--check"])
    } else if text.lines().any(|line| line.starts_with('[') && line != "[[policies]]") {
        home.file(".tidewheel/config.toml", text);
        home.run(&["jobs", "list"])
    } else {
        home.file("rules.toml", text);
        home.run(&["policy", "check", "rules.toml"])
    };
    if ran.code == Some(0) { Ok(()) } else { Err(ran.to_string()) }
}

fn guide_of_policies() -> String {
    std::fs::read_to_string(pages::root().join("docs/guides/policies.md")).expect("the guide can be read")
}

/// Returns the examples in the first column of the table in a part of the guide of policies.
fn table_of(part: &str) -> Vec<String> {
    let guide = guide_of_policies();
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
    let guide = guide_of_policies();
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
