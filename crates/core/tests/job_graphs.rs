//! The graphs of flows: of templates and of runs, in layers, as pictures and as data, whatever stands in their names.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use tidewheel_core::job::template::{Source, Template};
use tidewheel_core::job::{Brief, JobId, Record, RunId};
use tidewheel_core::policy::Rules;
use tidewheel_core::view::jobs::{FlowAsk, FlowPart, FlowView};
use tidewheel_core::view::steers;

const RELEASE: &str = r#"
id = "template.release"
version = "v1"
[[artifact_contracts]]
id = "package"
version = "v1"
[[nodes]]
id = "fetch"
uses = "cap.env.shell.command.run"
kind = "shell"
args = { script = "true" }
needs = [{ custom = { type_id = "package", key = "seed" } }]
[[nodes]]
id = "build"
name = "build \"it\" [all]"
uses = "cap.env.shell.command.run"
kind = "shell"
args = { script = "true" }
after = [{ node_id = "fetch" }]
locks = [{ key = "cargo", mode = "exclusive" }]
produces.succeeded = [{ custom = { type_id = "package", key = "app" } }]
[[nodes]]
id = "lint"
uses = "cap.env.shell.command.run"
kind = "shell"
args = { script = "true" }
after = [{ node_id = "fetch" }]
[[nodes]]
id = "sign_off"
uses = "control.gate.approval"
kind = "gate"
after = [{ node_id = "lint", policy = "completion" }]
needs = [{ custom = { type_id = "package", key = "app" } }]
[[nodes]]
id = "ship"
uses = "cap.env.shell.command.run"
kind = "shell"
args = { script = "true" }
after = [{ node_id = "sign_off" }]
on.failed = ["page", "build"]
retry = { mode = "on_failure", budget = 2 }
[[nodes]]
id = "page"
uses = "cap.env.shell.command.run"
kind = "shell"
args = { script = "true" }
"#;

fn of_template(text: &str) -> FlowView {
    let source = Source { file: "flow.toml".to_owned(), text: text.to_owned() };
    let template = Template::load(source, |_, _| Err("nothing else is there".to_owned())).unwrap();
    let expanded = template.expand(&BTreeMap::new(), &Rules::default()).unwrap();
    FlowView::of_template(&expanded).unwrap()
}

#[test]
fn a_tree_has_its_layers_its_gates_and_each_edge_once() {
    let tree = of_template(RELEASE).tree().join("\n");
    assert_eq!(
        tree,
        r#"template.release@v1: 6 nodes in 5 layers, 8 edges

Layer 1
  fetch [command.run]
  `-- needs custom:package:seed -> [from outside]

Layer 2
  build [build "it" [all]] [command.run] [locks: cargo:exclusive] [produces: custom:package:app]
  `-- after:success -> fetch
  lint [command.run]
  `-- after:success -> fetch

Layer 3
  sign_off [gate.approval] [approval: required]
  |-- after:completion -> lint
  `-- needs custom:package:app -> build

Layer 4
  ship [command.run]
  |-- after:success -> sign_off
  `-- on.failed -> build [goes back, at most 2 times]

Layer 5
  page [command.run]
  `-- after:failed -> ship"#
    );
}

#[test]
fn a_flowchart_of_a_template_is_as_mermaid_reads_it() {
    assert_eq!(
        of_template(RELEASE).to_mermaid(),
        r#"flowchart TD
    n0["fetch"]
    n1["build<br/>build #34;it#34; #91;all#93;<br/>locks: cargo:exclusive"]
    n2["lint"]
    n3{{"sign_off<br/>approval: required"}}
    n4["ship"]
    n5["page"]
    n6[("custom:package:seed")]:::outside
    n6 -->|"needs custom:package:seed"| n0
    n0 --> n1
    n0 --> n2
    n2 -.->|"after:completion"| n3
    n1 -->|"needs custom:package:app"| n3
    n3 --> n4
    n4 -.->|"on.failed goes back, at most 2 times"| n1
    n4 -.->|"after:failed"| n5
    classDef outside fill:#ffffff,stroke:#8c959f,color:#1b1f24,stroke-dasharray:4 3
"#
    );
}

#[test]
fn a_graph_for_graphviz_has_the_same() {
    assert_eq!(
        of_template(RELEASE).to_dot(),
        r##"digraph "template.release@v1" {
    n0 [label="fetch", shape=box];
    n1 [label="build\nbuild \"it\" [all]\nlocks: cargo:exclusive", shape=box];
    n2 [label="lint", shape=box];
    n3 [label="sign_off\napproval: required", shape=hexagon];
    n4 [label="ship", shape=box];
    n5 [label="page", shape=box];
    n6 [label="custom:package:seed", shape=cylinder, style="filled,dashed", fillcolor="#ffffff", color="#8c959f", fontcolor="#1b1f24"];
    n6 -> n0 [label="needs custom:package:seed"];
    n0 -> n1;
    n0 -> n2;
    n2 -> n3 [label="after:completion", style=dashed];
    n1 -> n3 [label="needs custom:package:app"];
    n3 -> n4;
    n4 -> n1 [label="on.failed goes back, at most 2 times", style=dashed, constraint=false];
    n4 -> n5 [label="after:failed", style=dashed];
}
"##
    );
}

#[test]
fn the_graph_as_data_has_its_version_and_what_each_edge_means() {
    let view = serde_json::to_value(of_template(RELEASE)).unwrap();
    assert_eq!((&view["version"], &view["run"]), (&json!(1), &Value::Null));
    let node = &view["nodes"][1];
    assert_eq!(
        [&node["id"], &node["status"], &node["locks"][0]["key"]],
        [&json!("build"), &Value::Null, &json!("cargo")]
    );
    let edges = view["edges"].as_array().unwrap();
    let has = |edge: Value| assert!(edges.contains(&edge), "{edge} in {edges:#?}");
    has(json!({"from": "fetch", "to": "build", "kind": "after", "policy": "success"}));
    has(json!({"from": "build", "to": "sign_off", "kind": "artifact", "artifact": "custom:package:app"}));
    has(json!({"from": "ship", "to": "build", "kind": "loop", "on": "failed", "budget": 2}));
    has(
        json!({"from": "artifact:custom:package:seed", "to": "fetch", "kind": "artifact", "artifact": "custom:package:seed"}),
    );
}

/// The run of all jobs that are written here.
fn run() -> RunId {
    RunId::of_bits(7)
}

/// Returns the record of a job of the run, with a name, after others and with locks.
fn job(id: &str, status: &str, name: &str, schedule: Value) -> Record {
    let record = json!({
        "id": id, "version": 1, "status": status, "created_at": "2026-02-01T12:00:00Z",
        "metadata": {
            "workflow_run_id": run().as_str(), "workflow_node_id": id, "workflow_node_name": name,
        },
        "schedule": schedule,
    });
    Record::parse(&record.to_string()).unwrap()
}

fn after(ids: &[&str]) -> Value {
    let after: Vec<Value> = ids.iter().map(|id| json!({"job_id": id})).collect();
    json!({ "after": after })
}

fn of_run(records: &[Record]) -> FlowView {
    let briefs: BTreeMap<JobId, Brief> =
        records.iter().map(|record| (record.id.clone(), Brief::from(record))).collect();
    FlowView::of(&FlowAsk { briefs: &briefs, run: &run(), manifest: None }, &|_| false)
}

#[test]
fn a_run_shows_where_its_jobs_stand_and_what_is_outside_of_it() {
    let mut other = job("other", "failed", "", json!({}));
    other.metadata.clear("workflow_run_id");
    let needs = json!({
        "after": [{"job_id": "other", "policy": "failure"}, {"job_id": "gone"}],
        "dependencies": [{"artifact": {"custom": {"type_id": "t", "key": "k"}}}],
    });
    let view = of_run(&[
        other,
        job("one", "succeeded", "", needs),
        job("two", "blocked_by_dependency", "", after(&["one"])),
        job("three", "skipped", "", after(&["two"])),
    ]);
    let tree = view.tree().join("\n");
    assert_eq!(
        tree,
        "\
run_00000000000000000000000000000007: 3 nodes in 3 layers, 5 edges

Layer 1
  one succeeded
  |-- after:success -> gone missing
  |-- after:failure -> other failed [outside]
  `-- needs custom:t:k -> [missing]

Layer 2
  two blocked_by_dependency
  `-- after:success -> one succeeded

Layer 3
  three skipped
  `-- after:success -> two blocked_by_dependency"
    );
    let mermaid = view.to_mermaid();
    for line in [
        "    n0[\"one<br/>succeeded\"]:::succeeded\n",
        "    n1[\"two<br/>blocked_by_dependency\"]:::blocked\n",
        "    classDef blocked fill:#ffe2c2,stroke:#bc4c00,color:#1b1f24\n",
        "[\"gone<br/>missing\"]:::outside\n",
    ] {
        assert!(mermaid.contains(line), "{line} in {mermaid}");
    }
}

#[test]
fn an_id_outside_that_a_node_has_already_is_told_apart() {
    // Ids of jobs have no colon, ids of nodes may.
    let mut first = job("a", "queued", "", json!({}));
    first.metadata.set("workflow_node_id", "job:gone");
    let view = of_run(&[first, job("b", "queued", "", after(&["gone"]))]);
    let ids: BTreeSet<&str> = view.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids.len(), view.nodes.len(), "{ids:?}");
    let edge = &view.edges[0];
    let from = view.nodes.iter().find(|node| node.id == edge.from).unwrap();
    assert_eq!(from.is, FlowPart::Missing);
}

#[test]
fn jobs_that_wait_for_each_other_are_drawn_all_the_same() {
    let view = of_run(&[
        job("a", "waiting_on_deps", "", after(&["b", "a"])),
        job("b", "waiting_on_deps", "", after(&["a"])),
    ]);
    assert_eq!((view.nodes.len(), view.edges.len()), (2, 3));
    assert_eq!(view.tree().iter().filter(|line| line.contains("after:success")).count(), 3);
}

#[test]
fn a_run_without_jobs_is_an_empty_picture() {
    let view = of_run(&[]);
    assert_eq!(view.tree(), ["run_00000000000000000000000000000007: 0 nodes in 0 layers, 0 edges"]);
    assert_eq!(view.to_mermaid(), "flowchart TD\n");
    dot_labels(&view.to_dot());
}

#[test]
fn four_layers_of_forty_have_each_edge_once() {
    let mut text = String::from("id = \"template.wide\"\nversion = \"v1\"\n");
    for layer in 0..4 {
        for node in 0..40 {
            let before: Vec<String> = (0..40)
                .filter(|_| layer > 0)
                .map(|other| format!("{{ node_id = \"l{}_{other}\" }}", layer - 1))
                .collect();
            let node = format!(
                "[[nodes]]\nid = \"l{layer}_{node}\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
                 args = {{ script = \"true\" }}\nafter = [{}]\n",
                before.join(", ")
            );
            text.push_str(&node);
        }
    }
    let view = of_template(&text);
    assert_eq!((view.nodes.len(), view.edges.len(), view.layers), (160, 4_800, 4));
    let tree = view.tree();
    assert_eq!(tree.iter().filter(|line| line.contains("-- ")).count(), 4_800);
    assert_eq!(view.to_mermaid().lines().filter(|line| line.contains(" --> ")).count(), 4_800);
    assert_eq!(view.to_dot().lines().filter(|line| line.contains(" -> ")).count(), 4_800);
}

#[test]
fn a_long_chain_costs_as_much_for_each_of_its_nodes() {
    let size = |count: usize| {
        let ids: Vec<String> = (0..count).map(|n| format!("n{n:05}")).collect();
        let records: Vec<Record> = ids
            .iter()
            .enumerate()
            .map(|(n, id)| {
                job(id, "queued", "", after(&if n == 0 { vec![] } else { vec![ids[n - 1].as_str()] }))
            })
            .collect();
        of_run(&records).tree().join("\n").len()
    };
    let (small, large) = (size(100), size(3_000));
    assert!(large < small * 40, "{small} {large}");
}

/// What people could write into a name to get out of it.
fn hostile() -> impl Strategy<Value = String> {
    let nasty = [
        "\"",
        "\\",
        "\n",
        "]",
        "[",
        "{",
        "}",
        ")",
        "(",
        "|",
        "#34;",
        "&quot;",
        "&#8238;",
        "<br/>",
        "-->",
        ":::x",
        ";",
        "%%",
        "`",
        "end",
        "1. x",
        "_a_",
        "**",
        "\u{1b}[31m",
        "\u{202e}",
        "\r",
        "\t",
        "\0",
        "\u{7f}",
        "订单",
        "🦀",
        "e\u{301}",
        "//",
        "</text>",
        "\\n",
        "\\\"",
        "http://x",
    ];
    let part = prop_oneof![
        4 => prop::sample::select(nasty.to_vec()).prop_map(str::to_owned),
        1 => "(?s).{0,6}",
        1 => "[a-z]{1,4}",
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

/// Reads DOT as Graphviz does, as far as we write it, and returns all labels as they are written.
fn dot_labels(text: &str) -> Vec<String> {
    let mut labels = Vec::new();
    let mut lines = text.split('\n');
    let string = r#""(?:[^"\\\x00-\x1f]|\\["\\n])*""#;
    let head = Regex::new(&format!("^digraph {string} \\{{$")).unwrap();
    let attribute = format!(r#"[a-z]+=(?:[a-z]+|{string})"#);
    let attributes = format!(r"(?: \[{attribute}(?:, {attribute})*\])?");
    let statement = Regex::new(&format!(r"^    [a-z]+[0-9]*(?: -> [a-z]+[0-9]*)?{attributes};$")).unwrap();
    let label = Regex::new(&format!("label=({string})")).unwrap();
    assert!(head.is_match(lines.next().unwrap()), "{text}");
    for line in lines.by_ref() {
        if line == "}" {
            assert_eq!((lines.next(), lines.next()), (Some(""), None), "{text}");
            return labels;
        }
        assert!(statement.is_match(line), "{line} in {text}");
        if !line.contains(" -> ") {
            labels.extend(label.captures(line).map(|found| found[1].to_owned()));
        }
    }
    panic!("no end: {text}");
}

/// Reads Mermaid, as far as we write it, and returns what stands in the nodes as people see it.
fn mermaid_labels(text: &str) -> Vec<String> {
    let said = r#"(?:[^\x00-\x1f\x7f-\x9f"<>#\[\]{}|;&`*\\\u{202a}-\u{202e}]|#[0-9]+;|<br/>)*"#;
    let shapes = [(r"\[", r"\]"), (r"\{", r"\}"), (r"\{\{", r"\}\}"), (r"\[\(", r"\)\]"), (r"\(\[", r"\]\)")];
    let nodes = shapes.map(|(open, close)| format!("{open}\"(?<l>{said})\"{close}"));
    let nodes = nodes.map(|node| Regex::new(&format!("^    n[0-9]+{node}(?::::[a-z]+)?$")).unwrap());
    let edge = Regex::new(&format!("^    n[0-9]+ (?:-->|-\\.->)(?:\\|\"{said}\"\\|)? n[0-9]+$")).unwrap();
    let class = Regex::new(r"^    classDef [a-z]+ fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}(,stroke-dasharray:4 3)?$").unwrap();
    let code = Regex::new("#([0-9]+);").unwrap();
    let mut labels = Vec::new();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("flowchart TD"));
    for line in lines {
        if let Some(found) = nodes.iter().find_map(|node| node.captures(line)) {
            let read = code.replace_all(&found["l"], |code: &regex::Captures<'_>| {
                char::from_u32(code[1].parse().unwrap()).unwrap().to_string()
            });
            labels.push(read.into_owned());
        } else {
            assert!(edge.is_match(line) || class.is_match(line), "{line} in {text}");
        }
    }
    labels
}

/// Returns a text as a picture may show it.
fn visible(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if steers(c) => '\u{fffd}',
            c => c,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn no_name_leaves_its_place_in_any_format(name in hostile(), lock in hostile(), artifact in hostile()) {
        let schedule = json!({
            "after": [{"job_id": "a"}],
            "locks": [{"key": lock, "mode": "shared"}],
            "dependencies": [{"artifact": {"custom": {"type_id": "t", "key": artifact}}}],
        });
        let view = of_run(&[job("a", "running", "", json!({})), job("b", "queued", &name, schedule)]);
        let trimmed = name.trim();
        let labels = mermaid_labels(&view.to_mermaid());
        prop_assert_eq!(labels.len(), view.nodes.len());
        if !trimmed.is_empty() && trimmed != "b" {
            let wanted = format!("b<br/>{}<br/>", visible(trimmed));
            // Two dollars would begin a formula, and are held apart by something that nobody sees.
            let label = labels[1].replace('\u{2060}', "");
            prop_assert!(label.starts_with(&wanted), "{:?} in {:?}", wanted, label);
        }
        let dot = view.to_dot();
        prop_assert_eq!(dot_labels(&dot).len(), view.nodes.len());
        let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        prop_assert!(!dot.contains(steers) && !view.to_mermaid().contains(steers));
        let form: Value = serde_json::from_str(&serde_json::to_string(&view).unwrap()).unwrap();
        prop_assert_eq!(form["nodes"][1]["locks"][0]["key"].as_str(), Some(lock.as_str()));
    }

    #[test]
    fn whatever_comes_before_something_stands_above_it(edges in prop::collection::vec((0_usize..12, 0_usize..12), 0..40)) {
        let ids: Vec<String> = (0..12).map(|n| format!("n{n:02}")).collect();
        let records: Vec<Record> = (0..12)
            .map(|node| {
                let before: BTreeSet<usize> =
                    edges.iter().filter(|(from, to)| from < to && *to == node).map(|(from, _)| *from).collect();
                let before: Vec<&str> = before.into_iter().map(|from| ids[from].as_str()).collect();
                job(&ids[node], "queued", "", after(&before))
            })
            .collect();
        let view = of_run(&records);
        let wanted: BTreeSet<&(usize, usize)> = edges.iter().filter(|(from, to)| from < to).collect();
        prop_assert_eq!(view.edges.len(), wanted.len());
        let layer = |id: &str| view.nodes.iter().find(|node| node.id == id).unwrap().layer;
        for edge in &view.edges {
            prop_assert!(layer(&edge.from) < layer(&edge.to));
        }
        // No node stands deeper than it has to.
        for node in &view.nodes {
            let above = view.edges.iter().filter(|edge| edge.to == node.id).map(|edge| layer(&edge.from)).max();
            prop_assert_eq!(node.layer, above.unwrap_or(0) + 1);
        }
        prop_assert_eq!(view.tree().iter().filter(|line| line.contains("-- ")).count(), wanted.len());
    }
}
