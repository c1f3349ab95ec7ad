//! What comes after what, drawn: of templates before they run, and of runs.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::by_hand::Desk;
use crate::runs::flow;
use crate::world::Ran;

/// A flow with every kind of edge, and a part that another file has.
fn put_ship(desk: &Desk) {
    desk.flow("pack", &flow(&[("zip", "true", ""), ("sum", "true", "after = [{ node_id = \"zip\" }]")]));
    let nodes = flow(&[
        ("build", "true", "locks = [{ key = \"cargo\", mode = \"exclusive\" }]"),
        ("ship", "exit 1", "after = [{ node_id = \"build\" }]\non.failed = [\"page\"]"),
        ("page", "true", ""),
    ]);
    let parts = "[cli]\npositional = [\"who\"]\nnamed = { to = \"where\" }\n[params]\nwho = \"\"\nwhere = \"here\"\n\
                 [[imports]]\nname = \"pack\"\npath = \"pack.toml\"\n[[links]]\nfrom = \"pack\"\nto = \"ship\"\n";
    let nodes = nodes.replace("version = \"v1\"\n", &format!("version = \"v1\"\n{parts}"));
    let nodes = nodes.replace("id = \"page\"\n", "id = \"page\"\nname = \"page ${who} in ${where}\"\n");
    desk.flow("ship", &nodes);
}

fn said(ran: &Ran) -> &str {
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    &ran.out
}

/// Returns all files of the jobs.
fn files(desk: &Desk) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut left = vec![desk.path(".tidewheel")];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            found.insert(path.display().to_string());
            if path.is_dir() {
                left.push(path);
            }
        }
    }
    found
}

#[test]
fn a_template_is_drawn_with_its_imports_and_parameters_and_nothing_is_written() {
    let desk = Desk::new();
    put_ship(&desk);
    let before = files(&desk);
    let ran = desk.run(&["graph", "ship", "Ada", "--to", "Bern"]);
    assert_eq!(
        said(&ran),
        "\
T@v1: 5 nodes in 4 layers, 4 edges

Layer 1
  pack__zip [command.run]
  build [command.run] [locks: cargo:exclusive]

Layer 2
  pack__sum [command.run]
  `-- after:success -> pack__zip

Layer 3
  ship [command.run]
  |-- after:success -> build
  `-- after:success -> pack__sum

Layer 4
  page [page Ada in Bern] [command.run]
  `-- after:failed -> ship
"
    );
    let set = desk.run(&["graph", "ship", "--set", "who=Bob"]);
    assert!(said(&set).contains("  page [page Bob in here] "), "{set:?}");
    for format in ["tree", "mermaid", "dot", "json"] {
        said(&desk.run(&["graph", "ship", "--format", format]));
    }
    assert_eq!(files(&desk), before);
}

#[test]
fn a_run_is_drawn_with_where_its_jobs_stand() {
    let desk = Desk::new();
    put_ship(&desk);
    let run = desk.enqueue(&["ship"]);
    desk.wait(&format!("run:{run}"));
    let tree = desk.run(&["graph", &format!("run:{run}")]);
    for line in ["  ship failed [command.run]\n", "  page succeeded [page  in here] [command.run]\n"] {
        assert!(said(&tree).contains(line), "{line} in {tree:?}");
    }
    assert!(tree.out.starts_with(&format!("{run} of T@v1: 5 nodes in 4 layers, 4 edges\n")), "{tree:?}");
    // A part of the id is enough, and names the same.
    for part in [&run[..12], &run[4..16], &run[24..]] {
        assert_eq!(desk.run(&["graph", part]).out, tree.out);
    }
    let graph = desk.json(&["graph", &run]);
    assert_eq!((&graph["version"], &graph["run"]), (&json!(1), &json!(run)));
    let status = |id: &str| {
        let nodes = graph["nodes"].as_array().unwrap();
        nodes.iter().find(|node| node["id"] == id).unwrap()["status"].clone()
    };
    assert_eq!([status("ship"), status("page")], [json!("failed"), json!("succeeded")]);
    let handler = json!({"from": "ship", "to": "page", "kind": "after", "policy": "failed"});
    assert!(graph["edges"].as_array().unwrap().contains(&handler), "{graph}");
    let mermaid = desk.run(&["graph", &run, "--format", "mermaid"]);
    assert!(said(&mermaid).contains("\"]:::failed\n"), "{mermaid:?}");
}

#[test]
fn what_comes_from_another_run_is_drawn_outside() {
    let desk = Desk::new();
    desk.flow("one", &flow(&[("one", "true", "")]));
    let first = desk.enqueue(&["one"]);
    desk.wait(&format!("run:{first}"));
    let second = desk.enqueue(&["one", "--after", &format!("run:{first}")]);
    desk.wait(&format!("run:{second}"));
    let tree = desk.run(&["graph", &second]);
    let line = format!("  `-- after:success -> wf-{first}-one succeeded [outside]\n");
    assert!(said(&tree).contains(&line), "{tree:?}");
    let graph = desk.json(&["graph", &second]);
    assert_eq!(graph["nodes"][1]["is"], "job");
    assert_eq!(graph["edges"][0]["from"], format!("job:wf-{first}-one"));
}

#[test]
fn four_layers_of_forty_have_four_thousand_eight_hundred_lines() {
    let desk = Desk::new();
    let names: Vec<String> = (0..4).flat_map(|layer| (0..40).map(move |n| format!("l{layer}_{n}"))).collect();
    let more: Vec<String> = (0_usize..160)
        .map(|place| {
            let above = (place / 40 * 40).saturating_sub(40)..place / 40 * 40;
            let after: Vec<String> =
                names[above].iter().map(|name| format!("{{ node_id = \"{name}\" }}")).collect();
            format!("after = [{}]", after.join(", "))
        })
        .collect();
    let nodes: Vec<(&str, &str, &str)> =
        names.iter().zip(&more).map(|(name, more)| (name.as_str(), "true", more.as_str())).collect();
    desk.flow("wide", &flow(&nodes));
    let tree = desk.run(&["graph", "wide"]);
    let edges: BTreeSet<(usize, &str)> =
        said(&tree).lines().enumerate().filter(|(_, line)| line.contains(" -> ")).collect();
    assert_eq!(edges.len(), 4_800);
    assert!(tree.out.starts_with("T@v1: 160 nodes in 4 layers, 4800 edges\n"), "{}", &tree.out[..99]);
    let graph = desk.json(&["graph", "wide"]);
    let edges: BTreeSet<String> = graph["edges"].as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(edges.len(), 4_800);
    // A drawing program that gives up is told of, beside the data.
    let mermaid = desk.run(&["graph", "wide", "--format", "mermaid"]);
    assert_eq!(mermaid.code, Some(0));
    assert!(mermaid.err.contains("Mermaid draws at most 500 edges"), "{}", mermaid.err);
    // Whoever has read enough goes away.
    let mut child = desk.command(&["graph", "wide"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut few = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_neither_a_flow_nor_a_run_is_refused() {
    let desk = Desk::new();
    desk.flow("one", &flow(&[("one", "true", "")]));
    let nothing = desk.run(&["graph", "nope"]);
    assert_eq!((nothing.code, nothing.out.as_str()), (Some(1), ""));
    assert!(nothing.err.contains("error[TW0025]") && nothing.err.contains("runs list"), "{nothing:?}");
    let no_run = desk.run(&["graph", "run:nope"]);
    assert_eq!(no_run.code, Some(1));
    assert!(no_run.err.contains("error[TW0013]"), "{no_run:?}");
    let run = desk.enqueue(&["one"]);
    desk.wait(&format!("run:{run}"));
    let given = desk.run(&["graph", &run, "--set", "a=b"]);
    assert_eq!(given.code, Some(2));
    assert!(given.err.contains("error[TW0027]"), "{given:?}");
    desk.flow("bad", "id = \"T\"\nversion = \"v1\"\nnodez = []\n");
    let bad = desk.run(&["graph", "bad"]);
    assert_eq!(bad.code, Some(1));
    assert!(bad.err.contains("error[TW0026]") && bad.err.contains("nodez"), "{bad:?}");
    assert_eq!(desk.run(&["graph"]).code, Some(2));
}

#[test]
fn names_that_steer_terminals_are_written_out() {
    let desk = Desk::new();
    let name = "name = \"a\\u001b[31m\\n\\\"]; -->\\u202e\"";
    desk.flow("evil", &flow(&[("one", "true", name)]));
    for format in ["tree", "mermaid", "dot", "json"] {
        let ran = desk.run(&["graph", "evil", "--format", format]);
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}' && format != "json";
        assert!(!said(&ran).contains(steers), "{format}: {ran:?}");
    }
    let tree = desk.run(&["graph", "evil"]);
    assert!(said(&tree).contains(r#"  one [a\u{1b}[31m\n"]; -->\u{202e}] [command.run]"#), "{tree:?}");
}
