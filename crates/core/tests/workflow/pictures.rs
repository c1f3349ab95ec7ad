//! Pictures of workflows and runs.

use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, rule, step};

use crate::{double, inc, ran};

fn workflow() -> Workflow {
    Workflow::new("a \"quoted\"\nname")
        .add(step("list", |n: i64| (0..n).collect::<Vec<_>>()))
        .add(map("item", inc).after("list"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(rule("big [\"x\"];").when(|x: &i64| *x > 1).then(double).after("sum"))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total + x).after("sum"))
        .add(step("both", |a: i64, b: i64| a + b).after(["big [\"x\"];", "total"]))
        .build()
        .unwrap()
}

#[test]
fn a_flowchart_has_every_node_and_edge_with_escaped_names() {
    assert_eq!(
        workflow().to_mermaid(),
        "\
flowchart TD
    input((input))
    n0[\"list\"]
    n1[/\"map\"/]
    n2[/\"item\"/]
    n3[\\\"sum\"\\]
    n4{\"big #91;#34;x#34;#93;#59;\"}
    n5[(\"total\")]
    n6((\"join\"))
    n7[\"both\"]
    input --> n0
    n0 --> n1
    n1 --> n2
    n2 --> n3
    n3 --> n4
    n3 --> n5
    n4 --> n6
    n5 --> n6
    n6 --> n7
"
    );
}

#[test]
fn dot_escapes_quotes_and_line_ends() {
    let dot = workflow().to_dot();
    assert!(dot.starts_with("digraph \"a \\\"quoted\\\"\\nname\" {\n    input [shape=circle];\n"));
    assert!(dot.contains("    n4 [label=\"big [\\\"x\\\"];\", shape=diamond];\n"), "{dot}");
    assert!(dot.ends_with("    n6 -> n7;\n}\n"));
}

#[test]
fn j3_the_graph_as_data_has_its_version_and_its_edges() {
    let chain = Workflow::new("w")
        .pipeline([step("add", inc), step("double", double), step("sub", inc)])
        .build()
        .unwrap();
    let view = serde_json::to_value(chain.graph()).unwrap();
    assert_eq!(view["version"], 1);
    assert_eq!(view["edges"].as_array().unwrap().len(), 3, "one from the input and two between components");
    assert_eq!(view["nodes"][1]["name"], "double");
    assert_eq!(view["nodes"][1]["kind"], "step");
}

#[test]
fn a_sequence_shows_who_gave_what_to_whom() {
    let chain = Workflow::new("w").pipeline([step("a", inc), step("b", double)]).build().unwrap();
    assert_eq!(
        ran(&chain, 20_i64).to_mermaid_sequence(),
        "\
sequenceDiagram
    participant input
    participant n0 as a
    participant n1 as b
    input->>n0: 20
    n0->>n1: 21
"
    );
}
