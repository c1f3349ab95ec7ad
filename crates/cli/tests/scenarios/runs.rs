//! Templates that become jobs.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};
use crate::world::{Ran, eventually};

/// A template with one node that does nothing.
pub(crate) const ONE: &str = r#"
id = "template.one"
version = "v1"
[[nodes]]
id = "one"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "true" }
"#;

/// Returns a template with one node, `one`, that runs a script. More of the node may be written behind it.
pub(crate) fn flow_of(script: &str) -> String {
    ONE.replace("\"true\"", &format!("{script:?}"))
}

/// Returns a template `T@v1` with these nodes, each with its script and more of it.
pub(crate) fn flow(nodes: &[(&str, &str, &str)]) -> String {
    let node = |(id, script, more): &(&str, &str, &str)| {
        format!(
            "[[nodes]]\nid = \"{id}\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
             args = {{ script = {script:?} }}\n{more}\n"
        )
    };
    format!("id = \"T\"\nversion = \"v1\"\n{}", nodes.iter().map(node).collect::<String>())
}

/// Asserts that a template is refused with a message, and that nothing is written.
#[track_caller]
fn refused(desk: &Desk, text: &str, says: &str) -> Ran {
    desk.flow("bad", text);
    for arguments in [&["run", "bad"][..], &["run", "bad", "--check"]] {
        let ran = desk.run(arguments);
        assert!(matches!(ran.code, Some(1 | 2)), "{says}: {ran:?}");
        assert!(ran.err.contains(says), "{says}:\n{}\n{}", ran.err, ran.out);
        assert_eq!(desk.job_dirs(), [""; 0]);
        assert!(!desk.in_jobs("runs").exists() || fs::read_dir(desk.in_jobs("runs")).unwrap().count() == 0);
    }
    desk.run(&["run", "bad"])
}

#[test]
fn l_117_a_template_becomes_jobs_and_a_manifest() {
    let desk = Desk::new();
    desk.flow("pair", &flow(&[("one", "true", ""), ("two", "true", "after = [{ node_id = \"one\" }]")]));
    let enqueued = desk.json(&["run", "pair"]);
    assert!(enqueued["version"].is_u64(), "{enqueued}");
    assert_eq!(enqueued["outcome"], "workflow_run_enqueued");
    let run = enqueued["run_id"].as_str().unwrap();
    let digits = run.strip_prefix("run_").unwrap();
    assert!(
        digits.len() == 32 && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)),
        "{run}"
    );
    assert_eq!(desk.job_dirs(), [format!("wf-{run}-one"), format!("wf-{run}-two")]);
    assert!(desk.in_jobs(&format!("runs/{run}.json")).exists());
    assert_eq!(enqueued["root_job_ids"], json!([format!("wf-{run}-one")]));
    assert_eq!(enqueued["workflow_template_id"], "T");
    assert_eq!(enqueued["workflow_template_version"], "v1");
    assert_eq!(enqueued["workflow_template_selector"], "pair");
    for next in ["schedule", "show", "tail"] {
        assert!(enqueued["next"][next].as_str().unwrap().contains(next), "{enqueued}");
    }
    desk.wait(&format!("wf-{run}-two"));
    let record = desk.record(&format!("wf-{run}-two"));
    assert_eq!(record["status"], "succeeded");
    let metadata = &record["metadata"];
    for (name, value) in [
        ("workflow_run_id", json!(run)),
        ("workflow_node_id", json!("two")),
        ("workflow_node_attempt", json!(1)),
        ("workflow_node_outcome", json!("succeeded")),
        ("workflow_template_id", json!("T")),
        ("workflow_template_version", json!("v1")),
        ("workflow_template_selector", json!("pair")),
        ("workflow_executor_class", json!("environment_shell")),
        ("workflow_executor_operation", json!("command.run")),
    ] {
        assert_eq!(metadata[name], value, "{name}: {metadata}");
    }
    let hash = metadata["workflow_policy_snapshot_hash"].as_str().unwrap();
    assert!(hash.len() == 64, "{hash}");
}

#[test]
fn l_117_a_job_has_the_plain_name_of_its_node() {
    let desk = Desk::new();
    desk.flow("odd", &flow(&[("-a.b/c:", "true", ""), ("...", "true", ""), ("x_Y-9", "true", "")]));
    let run = desk.enqueue(&["odd"]);
    let mut expected = [format!("wf-{run}-a-b-c"), format!("wf-{run}-node"), format!("wf-{run}-x_Y-9")];
    expected.sort();
    assert_eq!(desk.job_dirs(), expected);
}

#[test]
fn l_117_a_template_is_found_as_a_file_an_alias_an_id_or_a_name() {
    let desk = Desk::new();
    desk.flow("bare", &ONE.replace("template.one", "template.bare"));
    desk.file("flows/other.toml", ONE);
    desk.file(
        ".tidewheel/config.toml",
        "[commands]\nship = \"file:flows/other.toml\"\n[scheduler]\ncapacity = 8\n",
    );
    for (name, id) in [
        ("bare", "template.bare"),
        ("template.bare", "template.bare"),
        ("ship", "template.one"),
        ("flows/other.toml", "template.one"),
        ("./flows/other.toml", "template.one"),
    ] {
        let enqueued = desk.json(&["run", name]);
        assert_eq!(enqueued["workflow_template_id"], id, "{name}");
        assert_eq!(enqueued["workflow_template_selector"], name);
    }
    let ran = desk.run(&["run", "no-such-flow"]);
    assert!(matches!(ran.code, Some(1 | 2)) && ran.err.contains("no-such-flow"), "{ran:?}");
}

#[test]
fn l_118_an_edge_of_success_is_a_dependency() {
    let desk = Desk::new();
    desk.flow("edge", &flow(&[("a", "true", "on.succeeded = [\"b\"]"), ("b", "true", "")]));
    let run = desk.enqueue(&["edge"]);
    let after = json!([{"job_id": format!("wf-{run}-a"), "policy": "success"}]);
    assert_eq!(desk.record(&format!("wf-{run}-b"))["schedule"]["after"], after);
    desk.wait(&format!("wf-{run}-b"));
}

#[test]
fn l_119_several_edges_of_success_are_a_join() {
    let desk = Desk::new();
    let edge = "on.succeeded = [\"c\"]";
    desk.flow(
        "join",
        &flow(&[("a", "echo a >>said", edge), ("b", "echo b >>said", edge), ("c", "cp said seen", "")]),
    );
    let ran = desk.run(&["run", "join", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let mut seen: Vec<String> =
        fs::read_to_string(desk.path("seen")).unwrap().lines().map(str::to_owned).collect();
    seen.sort();
    assert_eq!(seen, ["a", "b"]);
}

#[test]
fn l_120_a_handler_runs_only_after_its_outcome() {
    let desk = Desk::new();
    let nodes = |script: &str| {
        flow(&[
            ("a", script, "on.failed = [\"fix\"]\non.succeeded = [\"next\"]"),
            ("fix", "echo fixed >>log", ""),
            ("after-fix", "echo later >>log", "after = [\"fix\"]"),
            ("next", "echo next >>log", ""),
        ])
    };
    desk.flow("handled", &nodes("exit 3"));
    let ran = desk.run(&["run", "handled", "--follow", "--format", "json"]);
    // A run with a failed job has failed, even if somebody took care of it.
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let status = |run: &str, node: &str| desk.status(&format!("wf-{run}-{node}"));
    assert_eq!(status(&run, "a"), "failed");
    assert_eq!(status(&run, "fix"), "succeeded");
    assert_eq!(status(&run, "after-fix"), "succeeded");
    assert_eq!(status(&run, "next"), "blocked_by_dependency");
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "fixed\nlater\n");

    desk.flow("handled", &nodes("true"));
    let ran = desk.run(&["run", "handled", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(status(&run, "fix"), "skipped");
    assert_eq!(status(&run, "after-fix"), "skipped");
    assert_eq!(status(&run, "next"), "succeeded");
}

#[test]
fn l_120_an_edge_to_an_ancestor_goes_back_as_often_as_it_may() {
    let desk = Desk::new();
    let nodes = |limit: u32| {
        flow(&[
            ("draft", "echo draft >>log", ""),
            (
                "check",
                &format!("echo check >>log; test $(grep -c draft log) -ge {limit}"),
                "after = [\"draft\"]\non.failed = [\"draft\"]\nretry = { mode = \"on_failure\", budget = 2 }",
            ),
            ("ship", "echo ship >>log", "after = [\"check\"]"),
        ])
    };
    desk.flow("loop", &nodes(3));
    let ran = desk.run(&["run", "loop", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(
        fs::read_to_string(desk.path("log")).unwrap(),
        "draft\ncheck\ndraft\ncheck\ndraft\ncheck\nship\n"
    );
    // One time too many: the budget is used up.
    fs::remove_file(desk.path("log")).unwrap();
    desk.flow("loop", &nodes(4));
    let ran = desk.run(&["run", "loop", "--follow", "--format", "json"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "draft\ncheck\ndraft\ncheck\ndraft\ncheck\n");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let check = desk.record(&format!("wf-{run}-check"));
    assert_eq!(check["metadata"]["workflow_node_attempt"], 3);
    assert_eq!(
        (&check["status"], &check["exit_code"]),
        (&json!("blocked_by_dependency"), &json!(10)),
        "{check}"
    );
    assert_eq!(desk.status(&format!("wf-{run}-ship")), "blocked_by_dependency");
}

#[test]
fn l_120_a_loop_without_a_budget_goes_back_once() {
    let desk = Desk::new();
    desk.flow(
        "loop",
        &flow(&[
            ("draft", "echo draft >>log", ""),
            ("check", "false", "after = [\"draft\"]\non.failed = [\"draft\"]"),
        ]),
    );
    let ran = desk.run(&["run", "loop", "--follow"]);
    assert_ne!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "draft\ndraft\n");
}

#[test]
fn a_handler_that_is_waited_for_too_is_refused() {
    let desk = Desk::new();
    let text = flow(&[
        ("a", "true", "on.failed = [\"fix\"]"),
        ("b", "true", ""),
        ("fix", "true", "after = [\"b\"]"),
    ]);
    refused(&desk, &text, "fix");
}

#[test]
fn l_121_to_123_references_to_nothing_are_refused() {
    let desk = Desk::new();
    for outcome in ["succeeded", "failed", "blocked", "cancelled"] {
        refused(
            &desk,
            &flow(&[("a", "true", &format!("on.{outcome} = [\"zzz\"]"))]),
            &format!("template T@v1 node `a` references unknown on.{outcome} target `zzz`"),
        );
    }
    refused(
        &desk,
        &flow(&[("a", "true", "after = [{ node_id = \"zzz\" }]")]),
        "template T@v1 node `a` references unknown after node `zzz`",
    );
    for field in ["needs", "produces.succeeded"] {
        refused(
            &desk,
            &flow(&[(
                "a",
                "true",
                &format!("{field} = [{{ custom = {{ type_id = \"x\", key = \"k\" }} }}]"),
            )]),
            "template T@v1 node `a` references artifact `custom:x:k` without declared artifact contract `x`",
        );
    }
}

#[test]
fn l_124_to_126_a_node_must_be_what_it_says() {
    let desk = Desk::new();
    for label in ["vizier.merge.integrate", "cap.plan.persist", "command", "cap.env.builtin.nothing"] {
        refused(
            &desk,
            &format!("id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nuses = \"{label}\"\n"),
            &format!(
                "template T@v1 node `n` uses unknown label `{label}`; declare one of cap.env.builtin.*, \
                 cap.env.shell.*, cap.agent.invoke, or control.*"
            ),
        );
    }
    let text = flow(&[("n", "true", "")]);
    for text in [text.replace("\"shell\"", "\"builtin\""), text.replace("kind = \"shell\"\n", "")] {
        refused(
            &desk,
            &text,
            "template T@v1 node `n` declares executor class `environment_shell` but kind `Builtin` requires \
             `environment_builtin`",
        );
    }
    for arg in ["command", "script"] {
        refused(
            &desk,
            &format!(
                "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\nkind = \"gate\"\n\
                 uses = \"control.gate.cicd\"\nargs = {{ {arg} = \"true\" }}\n"
            ),
            "template T@v1 node `n` declares control policy `gate.cicd` but also sets command/script args",
        );
    }
}

#[test]
fn l_127_parameters_are_expanded_everywhere() {
    let desk = Desk::new();
    let text = r#"
id = "T"
version = "v1"
[cli]
positional = ["msg"]
named = { other = "word" }
[params]
msg = "hello"
word = "x"
budget = "1"
gated = "no"
[[artifact_contracts]]
id = "c-${word}"
version = "v1"
[[nodes]]
id = "one"
name = "Say ${msg}"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo ${msg} ${word}" }
produces.succeeded = [{ custom = { type_id = "c-${word}", key = "${msg}" } }]
locks = [{ key = "branch:${word}", mode = "exclusive" }]
gates = [{ kind = "approval", required = "${gated}" }]
retry = { mode = "on_failure", budget = "${budget}" }
on.failed = ["one"]
"#;
    desk.flow("say", text);
    let log = |run: &str| {
        let id = format!("wf-{run}-one");
        desk.wait(&id);
        (fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).unwrap(), desk.record(&id))
    };
    let (said, record) = log(&desk.enqueue(&["say"]));
    assert_eq!(said, "hello x\n");
    assert_eq!(record["metadata"]["workflow_node_name"], "Say hello");
    assert_eq!(record["schedule"]["locks"], json!([{"key": "branch:x", "mode": "exclusive"}]));
    assert_eq!(record["schedule"]["artifacts"], json!([{"custom": {"type_id": "c-x", "key": "hello"}}]));
    assert_eq!(log(&desk.enqueue(&["say", "bye", "--other", "y"])).0, "bye y\n");
    assert_eq!(log(&desk.enqueue(&["say", "--set", "msg=a=b", "--set", "word=z"])).0, "a=b z\n");
    for set in ["gated=yes", "gated=TRUE", "gated=1", "gated=on"] {
        let ran = desk.run(&["run", "say", "--set", set, "--format", "json"]);
        if set == "gated=TRUE" && ran.code != Some(0) {
            continue;
        }
        let run = ran.json()["run_id"].as_str().unwrap().to_owned();
        assert_eq!(desk.status(&format!("wf-{run}-one")), "waiting_on_approval", "{set}");
    }
    let fails = |set: &str, says: &str| {
        let before = desk.job_dirs();
        let ran = desk.run(&["run", "say", "--set", set]);
        assert!(matches!(ran.code, Some(1 | 2)) && ran.err.contains(says), "{says}: {ran:?}");
        assert_eq!(desk.job_dirs(), before);
    };
    fails("gated=maybe", "invalid bool value `maybe` for nodes[one].gates[0].approval.required");
    fails("budget=-1", "invalid u32 value `-1` for nodes[one].retry.budget");
    fails("nobody=x", "nobody");
    fails("msg", "msg");
    let ran = desk.run(&["run", "say", "a", "b"]);
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    let ran = desk.run(&["run", "say", "--nobody", "b"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

#[test]
fn l_127_placeholders_that_cannot_be_filled_are_refused() {
    let desk = Desk::new();
    let needs = |slug: &str| {
        flow(&[(
            "single",
            "true",
            &format!("needs = [{{ plan_doc = {{ slug = \"{slug}\", branch = \"b\" }} }}]"),
        )])
    };
    refused(
        &desk,
        &needs("${missing}"),
        "unresolved parameter `missing` in nodes[single].needs[0].plan_doc.slug",
    );
    refused(
        &desk,
        &needs("${missing"),
        "unclosed parameter placeholder in nodes[single].needs[0].plan_doc.slug",
    );
}

#[test]
fn l_128_what_is_not_known_is_refused_with_its_place() {
    let desk = Desk::new();
    for (text, says) in [
        (flow(&[("a", "true", "colour = \"red\"")]), "colour"),
        (format!("colour = 1\n{}", flow(&[("a", "true", "")])), "colour"),
        (flow(&[("a", "true", "locks = [{ key = \"k\", mode = \"sometimes\" }]")]), "sometimes"),
        (flow(&[("a", "true", "preconditions = [{ kind = \"weather\" }]")]), "weather"),
        (flow(&[("a", "true", "on.exploded = [\"a\"]")]), "exploded"),
        (flow(&[("a", "true", "after = [{ node_id = \"a\", policy = \"maybe\" }]")]), "maybe"),
        (flow(&[("a", "true", "retry = { mode = \"often\", budget = 1 }")]), "often"),
        (flow(&[("a", "true", "")]).replace("script", "skript"), "skript"),
        (flow(&[("a", "true", ""), ("a", "true", "")]), "a"),
    ] {
        let ran = refused(&desk, &text, says);
        assert!(ran.err.contains("bad.toml:") && ran.err.contains('^'), "{}", ran.err);
    }
    refused(&desk, "id = \"T\"\nversion = \"v1\"\n[[nodes]\n", "bad.toml");
}

#[test]
fn l_129_imports_are_linked_by_name() {
    let desk = Desk::new();
    desk.flow(
        "draft",
        &flow(&[("write", "echo draft >>log", ""), ("persist", "echo persist >>log", "after = [\"write\"]")]),
    );
    desk.flow("ship", &flow(&[("send", "echo send >>log", "")]));
    desk.flow(
        "release",
        r#"
id = "R"
version = "v1"
[[imports]]
name = "draft"
path = "draft.toml"
[[imports]]
name = "ship"
path = "ship.toml"
[[links]]
from = "draft"
to = "ship"
"#,
    );
    let run = desk.enqueue(&["release"]);
    desk.wait(&format!("wf-{run}-ship__send"));
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "draft\npersist\nsend\n");
    let after = json!([{"job_id": format!("wf-{run}-draft__persist"), "policy": "success"}]);
    assert_eq!(desk.record(&format!("wf-{run}-ship__send"))["schedule"]["after"], after);
}

#[test]
fn l_130_only_roots_wait_for_what_a_run_is_after() {
    let desk = Desk::new();
    desk.put(job("dep").status("running"));
    desk.flow("pair", &flow(&[("one", "true", ""), ("two", "true", "after = [\"one\"]")]));
    let run = desk.enqueue(&["pair", "--after", "dep"]);
    let after = |node: &str| desk.record(&format!("wf-{run}-{node}"))["schedule"]["after"].clone();
    assert_eq!(after("one"), json!([{"job_id": "dep", "policy": "success"}]));
    assert_eq!(after("two"), json!([{"job_id": format!("wf-{run}-one"), "policy": "success"}]));
    assert_eq!(
        desk.standing(&format!("wf-{run}-one")),
        standing("waiting_on_deps", "dependencies", "waiting on job dep")
    );
    // A whole run: its sinks.
    let next = desk.enqueue(&["pair", "--after", &format!("run:{run}")]);
    let after = desk.record(&format!("wf-{next}-one"))["schedule"]["after"].clone();
    assert_eq!(after, json!([{"job_id": format!("wf-{run}-two"), "policy": "success"}]));
    desk.end("dep", "succeeded").tick();
    desk.wait(&format!("wf-{next}-two"));
    assert_eq!(desk.status(&format!("wf-{next}-two")), "succeeded");
}

#[test]
fn l_131_roots_of_a_run_can_be_gated() {
    let desk = Desk::new();
    desk.flow("pair", &flow(&[("one", "true", ""), ("two", "true", "after = [\"one\"]")]));
    let run = desk.enqueue(&["pair", "--require-approval"]);
    let one = format!("wf-{run}-one");
    assert_eq!(desk.status(&one), "waiting_on_approval");
    let approval = desk.record(&one)["schedule"]["approval"].clone();
    assert_eq!((&approval["required"], &approval["state"]), (&json!(true), &json!("pending")));
    assert_eq!(approval["requested_by"], "ada");
    assert_eq!(at(&desk.record(&format!("wf-{run}-two")), "/schedule/approval"), &Value::Null);
    assert_eq!(desk.run(&["jobs", "approve", &one]).code, Some(0));
    desk.wait(&format!("wf-{run}-two"));
    assert_eq!(desk.status(&format!("wf-{run}-two")), "succeeded");
}

#[test]
fn l_132_following_a_run_ends_with_its_result() {
    let desk = Desk::new();
    let follow = |text: &str, code: i32, state: &str| {
        desk.flow("followed", text);
        let ran = desk.run(&["run", "followed", "--follow", "--format", "json"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let ended = ran.json();
        assert!(ended["version"].is_u64(), "{ended}");
        assert_eq!(ended["outcome"], "workflow_run_terminal");
        assert_eq!(ended["terminal_state"], state, "{ended}");
        let run = ended["run_id"].as_str().unwrap().to_owned();
        ["succeeded", "failed", "blocked", "cancelled"].map(|list| {
            let ids: Vec<String> = serde_json::from_value(ended[list].clone()).unwrap();
            ids.iter().map(|id| id.replace(&format!("wf-{run}-"), "")).collect::<Vec<_>>().join(" ")
        })
    };
    assert_eq!(
        follow(&flow(&[("a", "true", ""), ("b", "true", "after = [\"a\"]")]), 0, "succeeded"),
        ["a b", "", "", ""]
    );
    let failed = follow(&flow(&[("a", "exit 7", ""), ("b", "true", "after = [\"a\"]")]), 1, "failed");
    assert_eq!(failed, ["", "a", "b", ""]);
    let blocked =
        flow(&[("a", "true", ""), ("b", "true", "needs = [{ merge_sentinel = { slug = \"s\" } }]")]);
    assert_eq!(follow(&blocked, 10, "blocked"), ["a", "", "b", ""]);
    desk.flow("followed", ONE);
    let ran = desk.run(&["run", "followed", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn l_132_a_cancelled_run_has_failed() {
    let desk = Desk::new();
    desk.flow("long", &flow_of("touch begun; exec sleep 600"));
    let child = desk.command(&["run", "long", "--follow", "--format", "json"]).spawn().unwrap();
    eventually("the job has begun", || desk.path("begun").exists());
    let id = desk.job_dirs().remove(0);
    assert_eq!(desk.run(&["jobs", "cancel", &id]).code, Some(0));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{ended:?}");
    let ended: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(ended["cancelled"], json!([id]));
}

#[test]
fn l_133_waiting_gives_the_result_of_the_job() {
    let desk = Desk::new();
    desk.put(job("good").status("succeeded")).put(job("bad").status("failed"));
    desk.put(job("blocked").status("blocked_by_dependency"));
    for (id, code) in [("good", 0), ("bad", 1), ("blocked", 10)] {
        assert_eq!(desk.run(&["jobs", "wait", id]).code, Some(code), "{id}");
    }
    assert_eq!(desk.run(&["jobs", "wait", "nobody"]).code, Some(1));
}

#[test]
fn l_134_repeated_runs_come_one_after_the_other() {
    let desk = Desk::new();
    desk.flow(
        "again",
        &flow(&[("one", "echo one >>log", ""), ("two", "echo two >>log", "after = [\"one\"]")]),
    );
    let ran = desk.run(&["run", "again", "--repeat", "3", "--follow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "one\ntwo\none\ntwo\none\ntwo\n");
    assert_eq!(desk.job_dirs().len(), 6);
    // The first that does not succeed is the last.
    desk.flow("again", &flow(&[("one", "echo bad >>log; exit 1", "")]));
    let ran = desk.run(&["run", "again", "--repeat", "3", "--follow"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let log = fs::read_to_string(desk.path("log")).unwrap();
    assert_eq!(log.matches("bad").count(), 1, "{log}");
    for bad in ["0", "-1", "x"] {
        assert_eq!(desk.run(&["run", "again", "--repeat", bad]).code, Some(2), "{bad}");
    }
}

#[test]
fn runs_after_one_whose_optional_end_failed_run_and_after_another_skip_are_no_success() {
    let desk = Desk::new();
    let optional = "[[policies]]\nmatch = { name = \"extra\" }\non_failure = \"skip\"\n";
    // The last node of a run failed, and its policy says to skip that.
    let ends = [("one", "echo one >>log", ""), ("extra", "exit 3", "after = [\"one\"]")];
    desk.flow("optional", &(flow(&ends) + optional));
    let ran = desk.run(&["run", "optional", "--repeat", "3", "--follow"]);
    assert_eq!((ran.code, desk.lines("log").len()), (Some(0), 3), "{ran:?}");
    let first = desk.enqueue(&["optional"]);
    desk.wait(&format!("run:{first}"));
    desk.flow("next", &flow_of("echo next >>log"));
    let ran = desk.run(&["run", "next", "--after", &format!("run:{first}"), "--follow"]);
    assert_eq!((ran.code, desk.lines("log").last().map(String::as_str)), (Some(0), Some("next")), "{ran:?}");
    // The last node was skipped because of the one before it; nothing says that its work may be missing.
    let chain = [("extra", "exit 3", ""), ("last", "echo last >>log", "after = [\"extra\"]")];
    desk.flow("chain", &(flow(&chain) + optional));
    let ran = desk.run(&["run", "chain", "--repeat", "2", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(10), "{ran:?}");
    let second = ran.json()["runs"][1]["run_id"].as_str().unwrap().to_owned();
    let (status, _, detail) = desk.standing(&format!("wf-{second}-extra"));
    assert_eq!(status, "blocked_by_dependency");
    assert!(
        detail.starts_with("dependency failed for job wf-run_") && detail.ends_with("(skipped)"),
        "{detail}"
    );
}

#[test]
fn l_135_checking_writes_nothing() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    fs::remove_dir_all(desk.in_jobs("")).unwrap();
    let ran = desk.run(&["run", "one", "--check"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.out.contains("Workflow validation passed"), "{ran:?}");
    assert!(!desk.in_jobs("").exists());
    for with in [&["--follow"][..], &["--after", "x"], &["--require-approval"], &["--repeat", "2"]] {
        let ran = desk.run(&[&["run", "one", "--check"], with].concat());
        assert_eq!(ran.code, Some(2), "{with:?}: {ran:?}");
    }
}

#[test]
fn n_160_a_cycle_of_nodes_is_refused_by_name() {
    let desk = Desk::new();
    let two = flow(&[("a", "true", "after = [\"b\"]"), ("b", "true", "after = [\"a\"]")]);
    let ran = refused(&desk, &two, "a -> b -> a");
    assert!(ran.err.contains("bad.toml:"), "{}", ran.err);
    let mixed = flow(&[("a", "true", "on.succeeded = [\"b\"]"), ("b", "true", "on.succeeded = [\"a\"]")]);
    refused(&desk, &mixed, " -> ");
    refused(&desk, &flow(&[("a", "true", "after = [\"a\"]")]), "a -> a");
}

#[test]
fn n_161_nodes_that_would_be_one_job_are_refused() {
    let desk = Desk::new();
    for (a, b) in [("a.b", "a-b"), ("a/b", "a:b"), ("x", "x."), ("..", "node")] {
        let ran = refused(&desk, &flow(&[(a, "true", ""), (b, "true", "")]), a);
        assert!(ran.err.contains(b), "{}", ran.err);
    }
}

#[test]
fn policies_retry_and_say_why() {
    let desk = Desk::new();
    let text = flow(&[("one", "echo try >>log; test $(wc -l <log) -ge 3", "")])
        + "[[policies]]\nmatch = { name = \"one\" }\nmax_retries = 3\nbackoff = \"none\"\n";
    desk.flow("retried", &text);
    let ran = desk.run(&["run", "retried", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let id = format!("wf-{run}-one");
    assert_eq!(fs::read_to_string(desk.path("log")).unwrap(), "try\ntry\ntry\n");
    assert_eq!(desk.record(&id)["metadata"]["workflow_node_attempt"], 3);
    let events = fs::read_to_string(desk.in_jobs(&id).join("events.jsonl")).unwrap();
    assert_eq!(events.matches("attempt_failed").count(), 2, "{events}");
    assert_eq!(events.matches("dispatched").count(), 3, "{events}");
}

#[test]
fn between_attempts_a_job_is_queued_with_its_time() {
    let desk = Desk::new();
    let text = flow(&[("one", "exit 4", "locks = [{ key = \"k\", mode = \"exclusive\" }]")])
        + "[[policies]]\nmatch = { default = true }\nmax_retries = 2\nbackoff = \"fixed\"\nbase_delay = \"1h\"\nmax_delay = \"1h\"\n";
    desk.flow("patient", &text);
    let run = desk.enqueue(&["patient"]);
    let id = format!("wf-{run}-one");
    eventually("the retry is planned", || at(&desk.record(&id), "/schedule/not_before").is_string());
    let (status, kind, detail) = desk.standing(&id);
    let due = desk.record(&id)["schedule"]["not_before"].as_str().unwrap().to_owned();
    assert_eq!((status.as_str(), kind.as_str()), ("queued", "schedule"));
    assert!(detail.starts_with("retry 1 of 2 at ") && detail.contains(&due[..16]), "{detail} {due}");
    // Its lock is free in between.
    desk.flow("free", &(flow_of("true") + "locks = [{ key = \"k\", mode = \"exclusive\" }]\n"));
    let free = format!("wf-{}-one", desk.enqueue(&["free"]));
    desk.wait(&free);
    assert_eq!(desk.status(&free), "succeeded");
    assert_eq!(desk.tick().started, [""; 0]);
}

#[test]
fn an_attempt_that_takes_too_long_ends_with_124() {
    let desk = Desk::new();
    let text =
        flow(&[("one", "sleep 600", "")]) + "[[policies]]\nmatch = { default = true }\ntimeout = \"200ms\"\n";
    desk.flow("slow", &text);
    let ran = desk.run(&["run", "slow", "--follow", "--format", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let record = desk.record(&format!("wf-{run}-one"));
    assert_eq!((&record["status"], &record["exit_code"]), (&json!("failed"), &json!(124)));
}

#[test]
fn no_more_jobs_run_at_once_than_there_is_room_for() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    desk.put(job("holder").status("running")).put(job("one")).put(job("gone").status("succeeded"));
    let ticked = desk.tick();
    assert_eq!(ticked.started, [""; 0]);
    let (status, kind, _) = desk.standing("one");
    assert_eq!((status.as_str(), kind.as_str()), ("queued", "capacity"));
    assert_eq!(desk.record("one")["schedule"]["waited_on"], json!(["capacity"]));
    desk.end("holder", "succeeded");
    desk.succeeds("one");
}

#[test]
fn unknown_keys_of_the_configuration_are_errors() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacty = 3\n");
    let ran = desk.run(&["run", "one"]);
    assert!(matches!(ran.code, Some(1 | 2)), "{ran:?}");
    assert!(ran.err.contains("capacty") && ran.err.contains("config.toml:2"), "{ran:?}");
    assert_eq!(desk.job_dirs(), [""; 0]);
}

#[test]
fn runs_are_listed_and_steered_as_a_whole() {
    let desk = Desk::new();
    desk.flow("pair", &flow(&[("one", "true", ""), ("two", "true", "after = [\"one\"]")]));
    let run = desk.enqueue(&["pair", "--require-approval"]);
    let listed = desk.run(&["runs", "list"]);
    assert!(listed.code == Some(0) && listed.out.contains(&run[..12]), "{listed:?}");
    let shown = desk.run(&["runs", "show", &run]);
    assert!(shown.code == Some(0) && shown.out.contains("two"), "{shown:?}");
    let ran = desk.run(&["runs", "cancel", &run]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.status(&format!("wf-{run}-one")), "cancelled");
    assert!(matches!(desk.status(&format!("wf-{run}-two")).as_str(), "cancelled" | "blocked_by_dependency"));
    let ran = desk.run(&["runs", "retry", &run]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.status(&format!("wf-{run}-one")), "waiting_on_approval");
    assert_eq!(desk.run(&["runs", "show", "run_nobody"]).code, Some(1));
}

#[test]
fn an_id_that_two_files_have_is_refused_with_both() {
    let desk = Desk::new();
    let text = flow(&[("a", "true", "")]);
    desk.flow("one", &text).flow("two", &text);
    let id = text.lines().find_map(|line| line.strip_prefix("id = ")).unwrap().trim_matches('"').to_owned();
    let ran = desk.run(&["run", &id]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let files = "`.tidewheel/workflows/one.toml`, `.tidewheel/workflows/two.toml`";
    assert!(ran.err.contains(&format!("Several flows have the id `{id}`: {files}.")), "{ran:?}");
    assert_eq!(desk.run(&["run", "two", "--follow"]).code, Some(0));
}
