//! What the guides say and the doc tests of their code cannot see: tables, and code that stands in the examples.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::path::Path;

use tidewheel::driver::check_policy;
use tidewheel::prelude::*;

fn text(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn the_code_of_the_guide_stands_in_the_examples_word_for_word() {
    let guide = text("../../docs/guides/schedulers.md");
    let examples = [
        "examples/order_fulfillment/orders.rs",
        "examples/schedulers/serial.rs",
        "examples/schedulers/parallel.rs",
        "examples/schedulers/event_driven.rs",
        "examples/schedulers/with_policies.rs",
        "examples/schedulers/gated.rs",
        "examples/schedulers/supervised.rs",
    ]
    .map(text);
    let blocks: Vec<&str> = guide
        .split("```rust")
        .skip(1)
        .map(|rest| rest.split_once('\n').unwrap().1.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 11, "the code of the guide was not found");
    for block in blocks {
        assert!(examples.iter().any(|example| example.contains(block)), "no example has\n{block}");
    }
}

#[test]
fn the_first_program_of_the_readme_is_the_first_one_of_the_documentation() {
    let readme = text("../../README.md");
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let source = text("src/lib.rs");
    let block = source.split("//! ```\n").nth(1).unwrap();
    let visible = block.lines().map(|line| line.strip_prefix("//! ").unwrap_or(""));
    // Lines that begin with a hash are not shown; they run the program in a directory of its own.
    let visible: Vec<&str> = visible.filter(|line| !line.starts_with("# ") && *line != "#").collect();
    assert_eq!(shown.lines().collect::<Vec<_>>(), visible);
}

#[test]
fn the_calls_that_the_guide_names_exist() {
    let workflow = Workflow::new("calls").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let mut run = workflow.run("run");
    run.plan(1_i64);
    let lost = run.prepare().remove(0);
    run.release(lost.id());
    let executed = run.prepare().remove(0).execute();
    run.apply(executed);
    assert!(run.apply(lost.execute()).is_empty(), "it comes after another did the same");
    assert!(!run.is_runnable() && run.last_events().is_empty());
}

/// A row of the table of fields.
struct Field {
    name: String,
    in_a_file: String,
    in_rust: String,
    acts: String,
}

fn fields() -> Vec<Field> {
    let guide = text("../../docs/guides/policies.md");
    let (_, part) = guide.split_once("\n## The fields\n").unwrap();
    let table = part.split("\n\n").find(|block| block.starts_with("| in a file |")).unwrap();
    let code = |cell: &str| cell.trim().trim_matches('`').to_owned();
    let rows = table.lines().skip(2).map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [in_a_file, in_rust, _, _, acts] = cells[..] else { panic!("{line} has other columns") };
        let in_a_file = code(in_a_file);
        let name = in_a_file.split(" =").next().unwrap().to_owned();
        Field { name, in_a_file, in_rust: code(in_rust), acts: acts.trim().to_owned() }
    });
    rows.collect()
}

#[test]
fn the_table_of_policies_has_every_field_in_a_file_and_in_rust() {
    let names: Vec<String> = fields().into_iter().map(|field| field.name).collect();
    assert_eq!(names, Policy::FIELDS);
    let guide = text("../../docs/guides/policies.md");
    let all = guide.split("```rust").find(|block| block.contains("for field in Policy::FIELDS")).unwrap();
    for Field { in_rust, name, .. } in fields() {
        assert!(all.contains(&in_rust), "the policy with everything does not have {in_rust} for {name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_table_of_policies_says_where_each_field_acts() {
    for Field { name, in_a_file, acts, .. } in fields() {
        // Some fields need retries or delays to act.
        let mut source = format!("{in_a_file}\n");
        for needed in ["max_retries = 3", "backoff = 'linear'"] {
            if !in_a_file.starts_with(&needed[..7]) {
                source.extend([needed, "\n"]);
            }
        }
        let policy = Policy::from_toml(&source).unwrap();
        let workflow = Workflow::new("w")
            .add(step("work", |x: i64| async move { x }))
            .add(compensation("undo_booking", |_: i64| {}))
            .policy(tidewheel::policy::predicate(|_| false), policy.clone())
            .build()
            .unwrap();
        let alone = check_policy(&policy.resolved().unwrap()).is_ok();
        let in_memory =
            react_until_satisfied(&mut workflow.run("r"), 1_i64, ReactOptions::new()).await.is_ok();
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let with_a_runner = runner.start("r", &workflow).await.is_ok();
        // A compensation is refused nowhere: the rules of the run have it, or nobody.
        let expected = match acts.split([';', ':']).next().unwrap() {
            "everywhere" | "everywhere that has slots" => (true, true, true),
            "in a run" if name == "compensation" => (true, true, true),
            "in a run" => (false, true, true),
            "with a Runner" => (false, false, true),
            other => panic!("{name} acts {other}"),
        };
        assert_eq!((alone, in_memory, with_a_runner), expected, "{name}");
    }
}

/// Returns the pages in docs/, each with its place from there.
fn pages() -> Vec<(String, String)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut folders = vec![docs.clone()];
    let mut pages = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let name = path.strip_prefix(&docs).unwrap().to_str().unwrap().to_owned();
                pages.push((fs::read_to_string(&path).unwrap(), name));
            }
        }
    }
    pages
}

#[test]
fn the_code_of_every_page_is_compiled() {
    let compiled = text("src/guides.rs");
    let pages = pages();
    assert!(pages.len() > 40, "only {} pages were found", pages.len());
    for (page, name) in pages {
        // The one about schedulers is compared with the examples.
        let is_compiled = compiled.contains(&format!("docs/{name}\"")) || name == "guides/schedulers.md";
        assert!(
            is_compiled || !page.contains("\n```rust"),
            "nobody compiles the code of {name}: see src/guides.rs"
        );
    }
}
