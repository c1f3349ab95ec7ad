//! The code of the guide about schedulers stands in the examples, which are compiled and tested.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::fs;
use std::path::Path;

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
        "examples/schedulers/supervised.rs",
    ]
    .map(text);
    let blocks: Vec<&str> = guide
        .split("```rust")
        .skip(1)
        .map(|rest| rest.split_once('\n').unwrap().1.split("```").next().unwrap())
        .collect();
    assert!(blocks.len() >= 7, "the code of the guide was not found");
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
    use tidewheel::prelude::*;

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
