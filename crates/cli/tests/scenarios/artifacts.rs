//! Jobs that wait for artifacts of every kind.

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, custom, job, standing};

/// A kind of artifact: what it is called, how it is written, and how it comes to be.
struct Kind {
    name: &'static str,
    label: &'static str,
    artifact: Value,
    make: fn(&Desk),
}

fn kinds() -> [Kind; 7] {
    let plan = |kind: &str| json!({ kind: {"slug": "alpha", "branch": "draft/alpha"} });
    [
        Kind {
            name: "plan_branch",
            label: "plan_branch:alpha (draft/alpha)",
            artifact: plan("plan_branch"),
            make: |desk| drop(desk.git(&["branch", "draft/alpha"])),
        },
        Kind {
            name: "plan_doc",
            label: "plan_doc:alpha (draft/alpha)",
            artifact: plan("plan_doc"),
            make: commit_plan,
        },
        Kind {
            name: "plan_commits",
            label: "plan_commits:alpha (draft/alpha)",
            artifact: plan("plan_commits"),
            make: |desk| drop(desk.git(&["branch", "draft/alpha"])),
        },
        Kind {
            name: "target_branch",
            label: "target_branch:release",
            artifact: json!({"target_branch": {"name": "release"}}),
            make: |desk| drop(desk.git(&["branch", "release"])),
        },
        Kind {
            name: "merge_sentinel",
            label: "merge_sentinel:alpha",
            artifact: json!({"merge_sentinel": {"slug": "alpha"}}),
            make: |desk| {
                desk.file(".tidewheel/tmp/merge-conflicts/alpha.json", "{}");
            },
        },
        Kind {
            name: "command_patch",
            label: "command_patch:a-artifact",
            artifact: json!({"command_patch": {"job_id": "a-artifact"}}),
            make: |desk| {
                desk.file(".tidewheel/jobs/a-artifact/command.patch", "");
            },
        },
        Kind {
            name: "custom",
            label: "custom:acme.exec:k1",
            artifact: custom("acme.exec", "k1"),
            make: |desk| mark(desk, "somebody"),
        },
    ]
}

/// Puts the document of a plan on its branch, and not into the working tree.
fn commit_plan(desk: &Desk) {
    desk.git(&["checkout", "-q", "-b", "draft/alpha"]);
    desk.file(".tidewheel/implementation-plans/alpha.md", "# Alpha\n");
    desk.commit("plan");
    desk.git(&["checkout", "-q", "main"]);
}

/// Writes the marker of a custom artifact.
fn mark(desk: &Desk, by: &str) {
    let name = format!(".tidewheel/jobs/artifacts/custom/61636d652e65786563/6b31/{by}.json");
    let marker = json!({
        "job_id": by,
        "type_id": "acme.exec",
        "key": "k1",
        "written_at": "2026-02-01T12:00:00Z",
    });
    desk.file(&name, &marker.to_string());
}

/// Returns where a consumer stands after a tick, given its producers.
fn judged(kind: &Kind, is_there: bool, producers: &[&str]) -> (String, String, String) {
    let desk = Desk::with_git();
    if is_there {
        (kind.make)(&desk);
    }
    for (index, status) in producers.iter().enumerate() {
        desk.put(job(&format!("p{index}")).status(status).makes(std::slice::from_ref(&kind.artifact)));
    }
    // The approval shows that the gate was passed, and nothing has to run.
    desk.put(job("consumer").needs(std::slice::from_ref(&kind.artifact)).gated());
    desk.ticked("consumer")
}

/// Checks one rule for every kind.
fn check(is_there: bool, producers: &[&str], status: &str, detail: fn(&str) -> String) {
    for kind in kinds() {
        let expected = standing(status, "dependencies", &detail(kind.label));
        assert_eq!(judged(&kind, is_there, producers), expected, "{} {producers:?}", kind.name);
    }
}

#[test]
fn c_24_what_is_there_counts_whatever_its_producer_did() {
    let passed = standing("waiting_on_approval", "approval", "awaiting human approval");
    for kind in kinds() {
        for producers in [&["failed"][..], &["running"], &[], &["succeeded"], &["cancelled", "skipped"]] {
            assert_eq!(judged(&kind, true, producers), passed, "{} {producers:?}", kind.name);
        }
    }
}

#[test]
fn c_25_a_missing_artifact_with_an_active_producer_is_waited_for() {
    check(false, &["running"], "waiting_on_deps", |label| format!("waiting on {label}"));
    check(false, &["failed", "running"], "waiting_on_deps", |label| format!("waiting on {label}"));
    check(false, &["succeeded", "running"], "waiting_on_deps", |label| format!("waiting on {label}"));
}

#[test]
fn c_25_every_active_producer_is_waited_for() {
    let desk = Desk::new();
    desk.put(job("never").status("running").locks(&["held:exclusive"]));
    desk.put(job("waiting_on_deps").after(&["never"]).makes(&[custom("t", "waiting_on_deps")]));
    desk.put(job("waiting_on_locks").locks(&["held:exclusive"]).makes(&[custom("t", "waiting_on_locks")]));
    desk.put(job("waiting_on_approval").gated().makes(&[custom("t", "waiting_on_approval")]));
    let later = "2099-01-01T00:00:00Z";
    desk.put(job("queued").schedule("not_before", later).makes(&[custom("t", "queued")]));
    let producers = ["queued", "waiting_on_deps", "waiting_on_locks", "waiting_on_approval"];
    for status in producers {
        desk.put(job(&format!("needs-{status}")).needs(&[custom("t", status)]));
    }
    desk.tick();
    for status in producers {
        assert_eq!(desk.status(status), status);
        let detail = format!("waiting on custom:t:{status}");
        let expected = standing("waiting_on_deps", "dependencies", &detail);
        assert_eq!(desk.standing(&format!("needs-{status}")), expected);
    }
}

#[test]
fn c_26_a_producer_that_succeeded_without_it_blocks() {
    check(false, &["succeeded"], "blocked_by_dependency", |label| format!("missing {label}"));
}

#[test]
fn c_27_producers_that_all_failed_block() {
    let failed = |label: &str| format!("dependency failed for {label}");
    check(false, &["failed"], "blocked_by_dependency", failed);
    let all = ["failed", "cancelled", "blocked_by_dependency", "blocked_by_approval"];
    check(false, &all, "blocked_by_dependency", failed);
    check(false, &["skipped"], "blocked_by_dependency", failed);
}

#[test]
fn c_28_without_a_producer_it_is_missing() {
    check(false, &[], "blocked_by_dependency", |label| format!("missing {label}"));
}

#[test]
fn c_30_one_failed_and_one_succeeded_producer_make_it_missing() {
    check(false, &["failed", "succeeded"], "blocked_by_dependency", |label| format!("missing {label}"));
}

#[test]
fn c_31_artifacts_are_judged_in_the_listed_order() {
    let desk = Desk::new();
    desk.put(job("root").status("running"));
    for side in ["diamond-left", "diamond-right"] {
        desk.put(job(side).after(&["root"]).makes(&[json!({"command_patch": {"job_id": side}})]));
    }
    let patch = |side: &str| json!({"command_patch": {"job_id": side}});
    desk.put(job("leaf").needs(&[patch("diamond-left"), patch("diamond-right")]));
    desk.put(job("fael").needs(&[patch("diamond-right"), patch("diamond-left")]));
    desk.tick();
    let waits =
        |side: &str| standing("waiting_on_deps", "dependencies", &format!("waiting on command_patch:{side}"));
    assert_eq!(desk.standing("leaf"), waits("diamond-left"));
    assert_eq!(desk.standing("fael"), waits("diamond-right"));
}

#[test]
fn c_32_a_template_may_wait_for_a_producer_that_comes_later() {
    let desk = Desk::new();
    let flow = |node: &str| {
        format!(
            r#"
id = "template.{node}"
version = "v1"
[policy.dependencies]
missing_producer = "wait"
[[artifact_contracts]]
id = "package"
version = "v1"
[[nodes]]
id = "{node}"
kind = "shell"
uses = "cap.env.shell.command.run"
args = {{ script = "true" }}
"#
        )
    };
    let artifact = "[{ custom = { type_id = \"package\", key = \"k\" } }]\n";
    desk.flow("consume", &format!("{}needs = {artifact}", flow("consume")));
    desk.flow("produce", &format!("{}produces.succeeded = {artifact}", flow("produce")));
    let run = desk.enqueue(&["consume"]);
    let consumer = format!("wf-{run}-consume");
    let expected = standing("waiting_on_deps", "dependencies", "awaiting producer for custom:package:k");
    assert_eq!(desk.standing(&consumer), expected);
    desk.enqueue(&["produce"]);
    desk.wait(&consumer);
    assert_eq!(desk.status(&consumer), "succeeded");
}

#[test]
fn c_33_the_branch_of_a_plan_has_a_name_of_its_own_if_none_is_given() {
    let desk = Desk::with_git();
    let kinds = ["plan_branch", "plan_commits", "plan_doc"];
    for kind in kinds {
        desk.put(job(kind).needs(&[json!({ kind: {"slug": "alpha", "branch": ""} })]).gated());
    }
    desk.put(
        job("producer")
            .status("running")
            .makes(&kinds.map(|k| json!({ k: {"slug": "alpha", "branch": ""} }))),
    );
    desk.tick();
    for kind in kinds {
        let detail = format!("waiting on {kind}:alpha (draft/alpha)");
        assert_eq!(desk.standing(kind), standing("waiting_on_deps", "dependencies", &detail));
    }
    commit_plan(&desk);
    desk.tick();
    for kind in kinds {
        assert_eq!(desk.status(kind), "waiting_on_approval");
    }
}

#[test]
fn c_34_a_plan_counts_on_its_branch_and_not_in_the_working_tree() {
    let desk = Desk::with_git();
    desk.git(&["branch", "draft/alpha"]);
    desk.file(".tidewheel/implementation-plans/alpha.md", "# Alpha\n");
    let doc = json!({"plan_doc": {"slug": "alpha", "branch": "draft/alpha"}});
    desk.put(job("one").needs(&[doc]));
    let missing = "missing plan_doc:alpha (draft/alpha)";
    assert_eq!(desk.ticked("one"), standing("blocked_by_dependency", "dependencies", missing));
}

#[test]
fn c_35_a_branch_of_somebody_else_is_not_ours() {
    let desk = Desk::with_git();
    let head = desk.git(&["rev-parse", "HEAD"]);
    desk.git(&["update-ref", "refs/remotes/origin/release", &head]);
    desk.git(&["tag", "release"]);
    desk.put(job("one").needs(&[json!({"target_branch": {"name": "release"}})]));
    let missing = standing("blocked_by_dependency", "dependencies", "missing target_branch:release");
    assert_eq!(desk.ticked("one"), missing);
    // A branch in a packed file is as good as one in a file of its own.
    desk.git(&["branch", "packed"]);
    desk.git(&["pack-refs", "--all"]);
    desk.put(job("two").needs(&[json!({"target_branch": {"name": "packed"}})]));
    assert_eq!(desk.tick().started, ["two"]);
}

#[test]
fn c_36_the_sentinel_of_a_merge_is_in_the_data_directory() {
    let desk = Desk::with_git();
    let sentinel = json!({"merge_sentinel": {"slug": "alpha"}});
    desk.file(".git/tidewheel/tmp/merge-conflicts/alpha.json", "{}");
    desk.put(job("one").needs(std::slice::from_ref(&sentinel)));
    let missing = standing("blocked_by_dependency", "dependencies", "missing merge_sentinel:alpha");
    assert_eq!(desk.ticked("one"), missing);
    desk.file(".tidewheel/tmp/merge-conflicts/alpha.json", "{}");
    desk.put(job("two").needs(&[sentinel]));
    assert_eq!(desk.tick().started, ["two"]);
}

#[test]
fn c_37_a_job_that_succeeded_counts_as_its_patch() {
    let desk = Desk::new();
    desk.put(job("done").status("succeeded")).put(job("bad").status("failed"));
    desk.put(job("one").needs(&[json!({"command_patch": {"job_id": "done"}})]));
    desk.put(job("two").needs(&[json!({"command_patch": {"job_id": "bad"}})]));
    assert_eq!(desk.tick().started, ["one"]);
    assert_eq!(desk.standing("two").2, "missing command_patch:bad");
}

#[test]
fn c_38_success_leaves_a_marker_and_failure_takes_it_away() {
    let desk = Desk::new();
    let directory = desk.in_jobs("artifacts/custom/61636d652e65786563/6b31");
    desk.put(job("p").makes(&[custom("acme.exec", "k1")]));
    desk.tick();
    desk.wait("p");
    let marker: Value = serde_json::from_str(&fs::read_to_string(directory.join("p.json")).unwrap()).unwrap();
    assert_eq!(
        (&marker["job_id"], &marker["type_id"], &marker["key"]),
        (&json!("p"), &json!("acme.exec"), &json!("k1"))
    );
    assert!(marker["written_at"].as_str().unwrap().contains('T'), "{marker}");

    mark(&desk, "q");
    desk.put(job("q").makes(&[custom("acme.exec", "k1")]).with("child_args", json!(["--no-such-option"])));
    desk.tick();
    desk.wait("q");
    assert_eq!(desk.status("q"), "failed");
    assert!(!directory.join("q.json").exists(), "the marker of the job that failed is gone");
    assert!(directory.join("p.json").exists(), "and nobody else's");
}

#[test]
fn c_38_names_are_written_in_the_digits_of_their_bytes() {
    let desk = Desk::new();
    desk.put(job("p").makes(&[custom("ä/../b", "K ∞")]));
    desk.tick();
    desk.wait("p");
    let marker = desk.in_jobs("artifacts/custom/c3a42f2e2e2f62/4b20e2889e/p.json");
    assert!(marker.exists());
    desk.put(job("c").needs(&[custom("ä/../b", "K ∞")]));
    assert_eq!(desk.tick().started, ["c"]);
}

#[test]
fn c_39_a_payload_alone_is_not_the_artifact() {
    let desk = Desk::new();
    desk.file(".tidewheel/jobs/artifacts/data/61636d652e65786563/6b31/p.json", "{\"text\":\"x\"}");
    desk.put(job("one").needs(&[custom("acme.exec", "k1")]));
    let missing = standing("blocked_by_dependency", "dependencies", "missing custom:acme.exec:k1");
    assert_eq!(desk.ticked("one"), missing);
}

#[test]
fn markers_of_the_own_run_win() {
    let desk = Desk::new();
    let flow = |script: &str| {
        format!(
            r#"
id = "template.pair"
version = "v1"
[[artifact_contracts]]
id = "acme.exec"
version = "v1"
[[nodes]]
id = "produce"
kind = "shell"
uses = "cap.env.shell.command.run"
args = {{ script = "{script}" }}
produces.succeeded = [{{ custom = {{ type_id = "acme.exec", key = "k1" }} }}]
[[nodes]]
id = "consume"
kind = "shell"
uses = "cap.env.shell.command.run"
args = {{ script = "true" }}
needs = [{{ custom = {{ type_id = "acme.exec", key = "k1" }} }}]
"#
        )
    };
    // A marker of somebody else is there, and the own producer fails: it does not count.
    mark(&desk, "somebody");
    desk.flow("pair", &flow("false"));
    let run = desk.enqueue(&["pair"]);
    let consumer = format!("wf-{run}-consume");
    desk.wait(&consumer);
    let failed = "dependency failed for custom:acme.exec:k1";
    assert_eq!(desk.standing(&consumer), standing("blocked_by_dependency", "dependencies", failed));

    desk.flow("pair", &flow("true"));
    let run = desk.enqueue(&["pair"]);
    desk.wait(&format!("wf-{run}-consume"));
    assert_eq!(desk.status(&format!("wf-{run}-consume")), "succeeded");
}
