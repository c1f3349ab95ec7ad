//! Templates that nobody wrote in good faith: they are refused, and nothing else happens.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidewheel_core::job::template::{MOST_BYTES, Source, Template};
use tidewheel_core::job::{Config, KnownFields};
use tidewheel_core::policy::Rules;

use super::world::{expand_with, load, messages, node, problems, whole, wish};

/// A template in which something of everything stands.
const EVERYTHING: &str = r#"id = "T"
version = "v1"
[cli]
positional = ["slug"]
named = { target = "branch" }
[params]
slug = "s"
branch = "main"
n = 2
[policy.dependencies]
missing_producer = "wait"
[[artifact_contracts]]
id = "x"
version = "v1"
[[imports]]
name = "in"
path = "inner.toml"
params = { slug = "${slug}" }
[[links]]
from = "in"
to = "a"
[[policies]]
match = { name = "a" }
max_retries = 2
backoff = "exponential"
idempotency_key = "${slug}-${run_id}"
[[nodes]]
id = "a"
name = "A ${n}"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { command = ["echo", "${slug}"] }
needs = [{ plan_doc = { slug = "${slug}", branch = "draft/${slug}" } }]
produces.succeeded = [{ custom = { type_id = "x", key = "${n}" } }]
locks = [{ key = "branch:${branch}", mode = "shared" }]
preconditions = [{ kind = "pinned_head", branch = "${branch}" }, { kind = "custom", id = "w", args = { a = "${n}" } }]
gates = [{ kind = "approval", required = "no" }]
retry = { mode = "on_failure", budget = "${n}" }
on.failed = ["b", "a"]
tags = ["t"]
[[nodes]]
id = "b"
kind = "gate"
uses = "control.gate.cicd"
args = { auto_resolve = "yes", auto_resolve_script = "true" }
gates = [{ kind = "cicd", script = "make", auto_resolve = true }]
on.succeeded = ["c"]
[[nodes]]
id = "c"
kind = "gate"
uses = "control.terminal"
"#;

/// Reads a template all the way, and says whether jobs came of it.
fn all_the_way(text: &str) -> bool {
    let main = Source { file: "main.toml".to_owned(), text: text.to_owned() };
    let template = Template::load(main, |path, _| {
        let inner = "id = 'I'\nversion = 'v1'\n[params]\nslug = ''\n[[nodes]]\nid = 'i'\nkind = 'gate'\nuses = 'control.terminal'";
        // What imports itself in ever new names has to come to an end, too.
        let text = if path == "inner.toml" { inner } else { text };
        Ok(Source { file: path.to_owned(), text: text.to_owned() })
    });
    let Ok(template) = template else { return false };
    let Ok(expanded) = template.expand(&BTreeMap::new(), &Rules::default()) else { return false };
    let mut wish = wish();
    for pin in expanded.pins() {
        let head = tidewheel_core::job::PinnedHead { branch: "main".to_owned(), oid: "1".to_owned() };
        wish.heads.insert(pin, head);
    }
    let Ok(run) = expanded.materialise(&wish) else { return false };
    for record in &run.records {
        let again =
            tidewheel_core::job::Record::parse(&record.to_json()).expect("a record can be read again");
        assert_eq!(again.schedule, record.schedule);
        assert!(record.run().is_some() && record.node().is_some());
    }
    let again = tidewheel_core::job::Manifest::parse(&run.manifest.to_json()).expect("a manifest, too");
    assert_eq!(again, run.manifest);
    for node in again.nodes.values() {
        node.policy().expect("a policy can be read again").resolved().expect("and is right");
    }
    true
}

#[test]
fn the_template_that_is_changed_is_right_itself() {
    assert!(all_the_way(EVERYTHING));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_template_with_anything_in_it_does_no_harm(text in "(?s).{0,400}") {
        all_the_way(&text);
        let _read = Config::parse(&text, KnownFields::default());
    }

    #[test]
    fn a_template_that_was_changed_anywhere_does_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..6_usize, "[\\PC\"'$\\{\\}\\[\\]=.\\n]{0,6}"), 1..4)
    ) {
        let mut text: Vec<char> = EVERYTHING.chars().collect();
        for (at, length, new) in changes {
            let at = at.index(text.len());
            let end = (at + length).min(text.len());
            text.splice(at..end, new.chars());
        }
        all_the_way(&text.into_iter().collect::<String>());
    }

    #[test]
    fn lines_in_any_order_do_no_harm(order in Just(EVERYTHING.lines().collect::<Vec<_>>()).prop_shuffle(), keep in 1..60_usize) {
        all_the_way(&order.into_iter().take(keep).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn values_of_parameters_stay_values(value in "\\PC{0,40}") {
        let text = "[params]\nx = ''\n[[nodes]]\nid = 'n'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs.command = ['echo', '${x}']";
        let run = expand_with(text, &[("x", &value)]).expect("any value is taken").materialise(&wish()).expect("it is whole");
        prop_assert_eq!(&run.records[0].command[1], &value);
    }
}

#[test]
fn names_that_could_leave_their_place_are_refused() {
    for bad in ["", "a b", "a\\u0000b", "\\u001b[2J", "é", "a\\nb"] {
        let text = format!("[[nodes]]\nid = \"{bad}\"\nkind = 'gate'\nuses = 'control.terminal'\n");
        let found = problems(&text);
        assert!(found[0].contains("is no node id"), "{bad}: {found:?}");
    }
}

#[test]
fn dots_and_slashes_of_a_node_never_reach_a_path() {
    let run = super::world::run(&node("../../x", ""));
    assert_eq!(run.records[0].id.as_str(), "wf-run_000000000000000000000000000000ab-x");
}

#[test]
fn a_template_that_is_too_large_is_refused() {
    let text = whole(&format!("# {}\n", "x".repeat(MOST_BYTES)));
    assert_eq!(messages(&load(&[("main.toml", &text)]).unwrap_err()), ["is larger than 1 MiB"]);
}

fn using_big(number: u32) -> String {
    format!(
        "[[nodes]]\nid = 'n{number}'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs.script = '${{big}}'\n"
    )
}

#[test]
fn large_files_that_are_imported_many_times_are_refused() {
    let inner = whole(&format!("[params]\nbig = '{}'\n{}", "x".repeat(900_000), node("n", "")));
    let main: String =
        (0..500).map(|number| format!("[[imports]]\nname = 'i{number}'\npath = 'inner.toml'\n")).collect();
    let template = load(&[("main.toml", &whole(&main)), ("inner.toml", &inner)]).unwrap();
    let found = template.expand(&BTreeMap::new(), &Rules::default()).unwrap_err();
    assert_eq!(messages(&found), ["expansion is too large at imports[i490]"]);
}

#[test]
fn an_expansion_that_never_ends_is_refused() {
    let big = "x".repeat(400_000);
    let mut text = format!("[params]\nbig = '{big}'\n");
    for number in 0..200 {
        text += &using_big(number);
    }
    let found = problems(&text);
    assert_eq!(found[0], "expansion is too large at nodes[n41].args.script");
}

#[test]
fn more_nodes_than_anybody_can_look_at_are_refused() {
    let inner: String = (0..1_500).map(|number| node(&format!("n{number}"), "")).collect();
    let main: String =
        (0..8).map(|number| format!("[[imports]]\nname = 'i{number}'\npath = 'inner.toml'\n")).collect();
    let template = load(&[("main.toml", &whole(&main)), ("inner.toml", &whole(&inner))]).unwrap();
    let found = template.expand(&BTreeMap::new(), &Rules::default()).unwrap_err();
    assert_eq!(messages(&found), ["template T@v1 has 12000 nodes, and at most 10000 are taken"]);
}

#[test]
fn nesting_without_end_is_refused() {
    let text = whole(&format!("x = {}{}", "[".repeat(5_000), "]".repeat(5_000)));
    assert!(load(&[("main.toml", &text)]).is_err());
}
