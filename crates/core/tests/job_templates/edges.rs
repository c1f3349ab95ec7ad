//! Edges between nodes: joins, handlers, loops and circles.

use proptest::prelude::*;
use tidewheel_core::job::{NodeId, NodeOutcome};

use super::world::{Find, expand, id, load, node, problems, run, whole};

fn loops(run: &tidewheel_core::job::template::Run, of: &str) -> Vec<(NodeOutcome, String)> {
    let kept = &run.manifest.nodes[&NodeId::new(of).expect("it is an id")];
    kept.loops.iter().map(|back| (back.on, back.to.to_string())).collect()
}

#[test]
fn an_edge_to_a_node_that_does_not_come_before_is_a_handler() {
    let text = node("a", "on.failed = ['fix']\non.blocked = ['ask']\non.cancelled = ['tidy']")
        + &node("fix", "")
        + &node("ask", "")
        + &node("tidy", "");
    let run = run(&text);
    assert_eq!(run.after("fix"), ["a:failed"]);
    assert_eq!(run.after("ask"), ["a:blocked"]);
    assert_eq!(run.after("tidy"), ["a:cancelled"]);
    assert_eq!(run.roots, [id("a")], "a handler does not run at the start");
    assert_eq!(run.sinks, [id("a")], "what runs only when something went wrong is no end");
    assert_eq!(loops(&run, "a"), []);
}

#[test]
fn an_edge_to_a_node_that_comes_before_is_a_loop() {
    let text = node("a", "on.succeeded = ['b']")
        + &node("b", "on.succeeded = ['c']\non.failed = ['a']")
        + &node("c", "on.blocked = ['b']\nretry = { budget = 3 }");
    let run = run(&text);
    assert_eq!(loops(&run, "b"), [(NodeOutcome::Failed, "a".to_owned())]);
    assert_eq!(loops(&run, "c"), [(NodeOutcome::Blocked, "b".to_owned())]);
    assert_eq!(run.after("a"), [] as [&str; 0]);
    let budget =
        |of: &str| run.manifest.nodes[&NodeId::new(of).unwrap()].retry.as_ref().map(|retry| retry.budget);
    assert_eq!((budget("a"), budget("b"), budget("c")), (None, Some(1), Some(3)));
}

#[test]
fn a_node_can_be_its_own_loop() {
    let run = run(&node("a", "on.failed = ['a']\nretry = { mode = 'never' }"));
    assert_eq!(loops(&run, "a"), [(NodeOutcome::Failed, "a".to_owned())]);
    let kept = run.manifest.nodes.values().next().unwrap();
    assert_eq!(kept.retry.as_ref().unwrap().budget, 0, "never is never");
}

#[test]
fn a_fix_that_leads_back_by_success_comes_first_and_is_looped_to() {
    let text = node("merge", "on.blocked = ['resolve']") + &node("resolve", "on.succeeded = ['merge']");
    let run = run(&text);
    assert_eq!(run.after("merge"), ["resolve:success"]);
    assert_eq!(loops(&run, "merge"), [(NodeOutcome::Blocked, "resolve".to_owned())]);
}

#[test]
fn of_two_nodes_that_handle_each_other_the_first_one_is_handled() {
    let run = run(&(node("a", "on.failed = ['b']") + &node("b", "on.failed = ['a']")));
    assert_eq!(run.after("b"), ["a:failed"]);
    assert_eq!(loops(&run, "b"), [(NodeOutcome::Failed, "a".to_owned())]);
    assert_eq!(run.roots, [id("a")]);
}

#[test]
fn a_loop_may_go_back_over_an_artifact() {
    let text = "[[artifact_contracts]]\nid = 'x'\nversion = 'v1'\n".to_owned()
        + &node("make", "produces.succeeded = [{ custom = { type_id = 'x', key = 'k' } }]")
        + &node("use", "needs = [{ custom = { type_id = 'x', key = 'k' } }]\non.failed = ['make']");
    assert_eq!(loops(&run(&text), "use"), [(NodeOutcome::Failed, "make".to_owned())]);
}

#[test]
fn a_handler_that_is_after_something_else_is_refused() {
    let text = node("a", "on.failed = ['h']") + &node("b", "") + &node("h", "after = ['b']");
    assert_eq!(
        problems(&text),
        ["template T@v1 node `a` has on.failed target `h`, which is an after target too"]
    );
    let text = node("a", "on.failed = ['h']") + &node("b", "on.succeeded = ['h']") + &node("h", "");
    assert_eq!(
        problems(&text),
        ["template T@v1 node `a` has on.failed target `h`, which is an after target too"]
    );
    let text = node("a", "on.failed = ['h']") + &node("h", "") + &node("c", "after = ['h']");
    assert_eq!(run(&text).after("c"), ["h:success"], "something may be after a handler");
}

#[test]
fn circles_are_named_whatever_they_lead_through() {
    let contract = "[[artifact_contracts]]\nid = 'x'\nversion = 'v1'\n";
    let makes =
        |key: &str| format!("produces.succeeded = [{{ custom = {{ type_id = 'x', key = '{key}' }} }}]\n");
    let needs = |key: &str| format!("needs = [{{ custom = {{ type_id = 'x', key = '{key}' }} }}]\n");
    let text = node("c", "on.succeeded = ['a']")
        + &node("a", "on.succeeded = ['b']")
        + &node("b", "on.succeeded = ['c']");
    assert_eq!(problems(&text), ["template T@v1 has a cycle: c -> a -> b -> c"]);
    let text = contract.to_owned()
        + &node("a", &(makes("1") + &needs("2")))
        + &node("b", &(makes("2") + &needs("1")));
    assert_eq!(problems(&text), ["template T@v1 has a cycle: a -> b -> a"]);
    let text = contract.to_owned() + &node("a", &makes("1")) + &node("b", &(makes("1") + &needs("1")));
    assert_eq!(run(&text).after("b"), [] as [&str; 0], "somebody else makes it, too");
    let text = contract.to_owned() + &node("a", &(makes("1") + &needs("1")));
    assert_eq!(problems(&text), ["template T@v1 has a cycle: a -> a"]);
    let text = node("free", "")
        + &node("a", "after = ['b', 'free']")
        + &node("b", "after = [{ node_id = 'a', policy = 'completion' }]");
    assert_eq!(problems(&text), ["template T@v1 has a cycle: a -> b -> a"]);
}

#[test]
fn the_policies_of_after_are_kept() {
    let text = node("a", "")
        + &node("b", "after = [{ node_id = 'a', policy = 'completion' }]")
        + &node("c", "after = [{ node_id = 'a', policy = 'failure' }]")
        + &node("d", "after = [{ node_id = 'c' }]");
    let run = run(&text);
    assert_eq!(run.after("b"), ["a:completion"]);
    assert_eq!(run.after("c"), ["a:failure"]);
    assert_eq!(run.sinks, [id("b")]);
    let twice = "after = [{ node_id = 'a' }, { node_id = 'a', policy = 'failed' }]";
    assert_eq!(
        problems(&(node("a", "") + &node("b", twice))),
        ["template T@v1 node `b` is after node `a` twice, once on success and once not"]
    );
    let either = "after = [{ node_id = 'a', policy = 'failed' }, { node_id = 'a', policy = 'blocked' }]";
    let run = super::world::run(&(node("a", "") + &node("b", either)));
    assert_eq!(run.after("b"), ["a:failed", "a:blocked"]);
    assert_eq!(
        problems(&(node("a", "") + &node("b", "after = [{ node_id = 'a', policy = 'sucess' }]"))),
        [
            "nodes[b].after[0].policy: must be one of success, failed, blocked, cancelled, failure, completion, got `sucess`"
        ]
    );
}

proptest! {
    #[test]
    fn handlers_and_loops_are_told_apart_as_by_a_naive_reading(
        after in prop::collection::vec((0..NODES, 0..NODES), 0..8),
        failed in prop::collection::vec((0..NODES, 0..NODES), 0..8),
    ) {
        let name = |node: usize| format!("n{node}");
        let of = |edges: &[(usize, usize)], node: usize| -> Vec<String> {
            let mut names: Vec<String> =
                edges.iter().filter(|(from, _)| *from == node).map(|(_, to)| format!("'n{to}'")).collect();
            let mut seen = std::collections::BTreeSet::new();
            names.retain(|name| seen.insert(name.clone()));
            names
        };
        let mut text = String::new();
        for number in 0..NODES {
            let (after, failed) = (of(&after, number).join(", "), of(&failed, number).join(", "));
            text += &node(&name(number), &format!("after = [{after}]\non.failed = [{failed}]"));
        }
        // What comes before what, by all ways there are.
        let close = |before: &mut [[bool; NODES]; NODES]| {
            for _ in 0..NODES {
                for a in 0..NODES {
                    for b in 0..NODES {
                        for c in 0..NODES {
                            before[a][c] |= before[a][b] && before[b][c];
                        }
                    }
                }
            }
        };
        let mut before = [[false; NODES]; NODES];
        for (node, first) in &after {
            before[*first][*node] = true;
        }
        close(&mut before);
        let found = super::world::expand(&text);
        if (0..NODES).any(|node| before[node][node]) {
            let found = found.expect_err("nodes wait for each other").to_string();
            prop_assert!(found.contains("has a cycle: "), "{}", found);
            return Ok(());
        }
        let has_after: Vec<bool> = (0..NODES).map(|node| after.iter().any(|(of, _)| *of == node)).collect();
        let mut expected: Vec<(usize, usize, bool)> = Vec::new();
        for from in 0..NODES {
            for to in of(&failed, from) {
                let to: usize = to.trim_matches(|c: char| !c.is_ascii_digit()).parse().expect("it is a number");
                let is_loop = from == to || before[to][from];
                if !is_loop {
                    before[from][to] = true;
                    close(&mut before);
                }
                expected.push((from, to, is_loop));
            }
        }
        if expected.iter().any(|(_, to, is_loop)| !is_loop && has_after[*to]) {
            let found = found.expect_err("a handler is after something").to_string();
            prop_assert!(found.contains("which is an after target too"), "{}", found);
            return Ok(());
        }
        let run = found.expect("nothing is wrong with it").materialise(&super::world::wish()).expect("it is whole");
        for (from, to, is_loop) in expected {
            let back = (NodeOutcome::Failed, name(to));
            prop_assert_eq!(loops(&run, &name(from)).contains(&back), is_loop);
            prop_assert_eq!(run.after(&name(to)).contains(&format!("n{from}:failed")), !is_loop);
        }
    }
}

/// Few enough that a random graph has circles as often as not.
const NODES: usize = 6;

#[test]
fn thousands_of_nodes_with_handlers_and_loops_are_checked_in_a_moment() {
    let mut text = String::new();
    for number in 0..4_000 {
        let next =
            if number < 3_999 { format!("on.succeeded = ['n{}']\n", number + 1) } else { String::new() };
        text += &node(
            &format!("n{number}"),
            &format!("{next}on.failed = ['n{}']\non.blocked = ['help']", number / 2),
        );
    }
    text += &node("help", "");
    let run = run(&text);
    assert_eq!(run.records.len(), 4_001);
    assert_eq!(run.job("help").schedule.after.len(), 4_000);
    assert_eq!(loops(&run, "n3999"), [(NodeOutcome::Failed, "n1999".to_owned())]);
}

#[test]
fn a_retry_that_bounds_no_loop_is_refused_with_its_place() {
    let text = whole(&node("a", "retry = { budget = 2 }"));
    let found = load(&[("main.toml", &text)])
        .unwrap()
        .expand(&std::collections::BTreeMap::new(), &tidewheel_core::policy::Rules::default())
        .unwrap_err();
    assert_eq!(
        found.to_string(),
        "main.toml, line 8, column 9: template T@v1 node `a` sets retry, but none of its edges is a loop \
         (`retry` is for loops: write on.failed with a node that comes before; for more attempts write max_retries \
         below [[policies]] with match = { name = \"a\" })"
    );
    // A handler comes after it, and is no loop.
    let handled = node("a", "retry = { mode = 'never' }\non.failed = ['b']") + &node("b", "");
    assert_eq!(problems(&handled), ["template T@v1 node `a` sets retry, but none of its edges is a loop"]);
    assert!(expand(&node("a", "retry = { budget = 2 }\non.failed = ['a']")).is_ok());
    // What cannot be read is one mistake.
    assert_eq!(
        problems(&node("a", "retry = { budget = 'many' }")),
        ["invalid u32 value `many` for nodes[a].retry.budget"]
    );
    assert_eq!(
        problems(&node("a", "retry = { mode = 'never', budget = 7 }\non.failed = ['a']")),
        ["nodes[a].retry.budget: has no effect with mode `never`, after which nothing comes back"]
    );
    let by_param = node("a", "retry = { mode = '${mode}', budget = 7 }\non.failed = ['a']");
    assert!(expand(&(by_param + "[params]\nmode = 'never'")).is_ok());
}

#[test]
fn until_gate_without_a_gate_is_refused() {
    let refused = ["template T@v1 node `a` has retry mode `until_gate`, but no gate that could open"];
    let until = "retry = { mode = 'until_gate', budget = 2 }\n";
    assert_eq!(problems(&node("a", &format!("{until}on.failed = ['a']"))), refused);
    let stop = |more: &str| {
        format!("[[nodes]]\nid = 'a'\nkind = 'gate'\nuses = 'control.gate.stop_condition'\n{until}{more}\n")
    };
    assert_eq!(problems(&stop("")), refused);
    // A stop condition counts its attempts, those of a person's retry included.
    assert!(expand(&stop("gates = [{ kind = 'script', script = 'x' }]")).is_ok());
}
