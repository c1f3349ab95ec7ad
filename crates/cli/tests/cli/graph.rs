//! `tidewheel graph`: what comes after what, of flows and runs. More is told in `tests/scenarios/graphs.rs`.

use std::fs;

use insta::assert_snapshot;

use crate::home::Home;
use crate::yard::{FLOW, Yard};

#[test]
fn a_flow_is_drawn_where_nothing_was_ever_enqueued_and_nothing_is_left() {
    let home = Home::new();
    home.file("two.toml", FLOW);
    assert_snapshot!(home.run(&["graph", "two.toml", "hi", "--where", "there"]).succeeded(), @"
    template.two@v1: 2 nodes in 2 layers, 1 edge

    Layer 1
      one [command.run]

    Layer 2
      two [command.run]
      `-- after:success -> one
    ");
    assert_eq!(fs::read_dir(home.path()).expect("the home is there").count(), 1);
}

#[test]
fn the_same_flow_is_the_same_text_each_time() {
    let yard = Yard::with_flows(&[]);
    for format in ["tree", "mermaid", "dot", "json"] {
        let drawn = || yard.run(&["graph", "two.toml", "--format", format]).succeeded().out;
        assert_eq!(drawn(), drawn(), "{format}");
    }
}

#[test]
fn a_parameter_that_is_not_declared_is_refused() {
    let yard = Yard::with_flows(&[]);
    for arguments in [&["--set", "x=1"][..], &["a", "b"], &["--where"], &["--set", "x"]] {
        let ran = yard.run(&[&["graph", "two.toml"], arguments].concat());
        assert!(matches!(ran.code, Some(1 | 2)), "{arguments:?}: {ran}");
        assert!(ran.out.is_empty() && ran.err.contains("[TW00"), "{arguments:?}: {ran}");
    }
}

#[test]
fn colours_are_no_part_of_pictures() {
    let yard = Yard::with_flows(&[]);
    for format in ["tree", "mermaid", "dot", "json"] {
        let arguments = ["graph", "two.toml", "--format", format];
        let ran = yard.home.run_under(&[("CLICOLOR_FORCE", "1")], &arguments).succeeded();
        assert!(!ran.out.contains('\u{1b}'), "{ran}");
    }
}
