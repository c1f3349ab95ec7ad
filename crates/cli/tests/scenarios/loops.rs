//! Ways back: every end that has a loop takes it, whoever brought it about, and nothing is counted twice on the way.

use serde_json::{Value, json};

use crate::by_hand::{Desk, job};
use crate::runs::flow;
use crate::world::eventually;

/// Returns a template in which `b`, after `a`, waits for a person and goes back when it does not get its way.
fn gate(edge: &str) -> String {
    let a = flow(&[("a", "echo a >>log", "")]);
    let b = "[[nodes]]\nid = \"b\"\nkind = \"gate\"\nuses = \"control.gate.approval\"\nafter = [\"a\"]\n";
    format!("{a}{b}{edge}\n")
}

#[test]
fn a_job_that_a_gate_blocks_goes_back() {
    let desk = Desk::new();
    let makes = "echo a >>log; test $(wc -l <log) -lt 3 || \
                 { mkdir -p .tidewheel/tmp/merge-conflicts; echo {} >.tidewheel/tmp/merge-conflicts/s.json; }";
    let back = "after = [\"a\"]\nneeds = [{ merge_sentinel = { slug = \"s\" } }]\non.blocked = [\"a\"]\n\
                retry = { mode = \"on_failure\", budget = 2 }";
    desk.flow("f", &flow(&[("a", makes, ""), ("b", "echo b >>log", back)]));
    let ran = desk.run(&["run", "f", "--follow"]);
    assert_eq!((ran.code, desk.lines("log")), (Some(0), ["a", "a", "a", "b"].map(String::from).to_vec()));
}

#[test]
fn a_job_that_a_gate_blocks_goes_back_only_as_often_as_it_may() {
    let desk = Desk::new();
    let back = "after = [\"a\"]\nneeds = [{ merge_sentinel = { slug = \"s\" } }]\non.blocked = [\"a\"]\n\
                retry = { mode = \"on_failure\", budget = 2 }";
    desk.flow("f", &flow(&[("a", "echo a >>log", ""), ("b", "echo b >>log", back)]));
    let ran = desk.run(&["run", "f", "--follow"]);
    assert_eq!((ran.code, desk.lines("log")), (Some(10), vec!["a".to_owned(); 3]), "{ran:?}");
}

#[test]
fn a_job_that_is_blocked_by_what_is_before_it_goes_back() {
    let desk = Desk::new();
    let text = flow(&[
        ("a", "echo a >>log", ""),
        ("b", "test $(wc -l <log) -ge 2", "after = [\"a\"]"),
        ("c", "echo c >>log", "after = [\"b\"]\non.blocked = [\"a\"]"),
    ]);
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow"]);
    assert_eq!((ran.code, desk.lines("log")), (Some(0), ["a", "a", "c"].map(String::from).to_vec()));
}

#[test]
fn a_job_that_a_person_rejects_goes_back_and_asks_again() {
    let desk = Desk::new();
    desk.flow("f", &gate("on.blocked = [\"a\"]"));
    let run = desk.enqueue(&["f"]);
    let [a, b] = ["a", "b"].map(|node| format!("wf-{run}-{node}"));
    desk.wait(&a);
    assert_eq!(desk.status(&b), "waiting_on_approval");
    let ran = desk.run(&["jobs", "reject", &b, "--reason", "not yet"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    desk.wait(&a);
    assert_eq!(desk.lines("log"), ["a", "a"]);
    let record = desk.record(&b);
    assert_eq!(record["status"], "waiting_on_approval", "{record}");
    assert_eq!(record["schedule"]["approval"]["state"], "pending");
    // A loop that nobody bounded is taken once.
    assert_eq!(desk.run(&["jobs", "reject", &b]).code, Some(0));
    assert_eq!((desk.status(&b).as_str(), desk.lines("log").len()), ("blocked_by_approval", 2));
}

#[test]
fn a_job_that_is_cancelled_while_it_waits_goes_back() {
    let desk = Desk::new();
    desk.flow("f", &gate("on.cancelled = [\"a\"]"));
    let run = desk.enqueue(&["f"]);
    let [a, b] = ["a", "b"].map(|node| format!("wf-{run}-{node}"));
    desk.wait(&a);
    let ran = desk.run(&["jobs", "cancel", &b]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // What a person has just cancelled does not run again at once: the loop waits for a person.
    assert_eq!((desk.status(&a).as_str(), desk.lines("log").len()), ("waiting_on_approval", 1));
    assert!(ran.err.contains(&format!("`tidewheel jobs approve {a}`")), "{ran:?}");
    assert!(desk.standing(&a).2.contains("was cancelled: approve to go back"), "{:?}", desk.standing(&a));
    assert_eq!(desk.run(&["jobs", "approve", &a]).code, Some(0));
    desk.wait(&a);
    assert_eq!((desk.status(&b).as_str(), desk.lines("log").len()), ("waiting_on_approval", 2));
    assert!(!desk.in_jobs(&b).join("outcome.json").exists(), "it is not over");
    assert_eq!(desk.run(&["jobs", "cancel", &b]).code, Some(0));
    assert_eq!((desk.status(&b).as_str(), desk.lines("log").len()), ("cancelled", 2));
}

/// Returns a template whose job `long` has a loop to `fix` and a handler for one outcome.
fn loop_and_handler(outcome: &str, fix: &str, long: &str) -> String {
    let more = format!("after = [\"fix\"]\non.{outcome} = [\"fix\", \"handler\"]");
    flow(&[("fix", fix, ""), ("long", long, &more), ("handler", "echo handled >>log", "")])
}

#[test]
fn a_cancelled_job_whose_loop_a_person_ends_stays_cancelled_and_calls_its_handler() {
    for end in ["cancel", "reject"] {
        let desk = Desk::new();
        desk.pipe("never");
        desk.flow("f", &loop_and_handler("cancelled", "true", "touch begun; : <never"));
        let run = desk.enqueue(&["f"]);
        let [fix, long, handler] = ["fix", "long", "handler"].map(|node| format!("wf-{run}-{node}"));
        desk.has_begun(&long, "begun");
        let ran = desk.run(&["jobs", "cancel", &long]);
        assert_eq!((ran.code, desk.status(&long).as_str()), (Some(0), "waiting_on_deps"), "{ran:?}");
        assert!(ran.out.contains("its loop has rewound it: it is waiting_on_deps"), "{ran:?}");
        let ran = desk.run(&["jobs", end, &fix]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        desk.wait(&handler);
        let stand = [&long, &handler].map(|id| desk.status(id));
        assert_eq!(stand, ["cancelled", "succeeded"], "{end}");
        assert_eq!(desk.lines("log"), ["handled"]);
        let record = desk.record(&long);
        assert_eq!(record["exit_code"], 143, "{record}");
        assert!(desk.in_jobs(&long).join("outcome.json").exists(), "{end}");
    }
}

#[test]
fn a_failure_calls_its_handler_when_what_its_loop_goes_back_to_fails() {
    let desk = Desk::new();
    desk.flow("f", &loop_and_handler("failed", "test ! -e broken", "touch broken; exit 3"));
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap_or_default().to_owned();
    let stand = ["fix", "long", "handler"].map(|node| desk.status(&format!("wf-{run}-{node}")));
    assert_eq!(stand, ["failed", "blocked_by_dependency", "succeeded"], "{ran:?}");
    assert_eq!((ran.code, desk.lines("log")), (Some(1), vec!["handled".to_owned()]));
}

#[test]
fn a_failure_is_not_passed_over_when_what_its_loop_goes_back_to_is_skipped() {
    let desk = Desk::new();
    let rule = "[[policies]]\nmatch = { name = \"fix\" }\non_failure = \"skip\"\n";
    let text = loop_and_handler("failed", "test ! -e broken", "touch broken; exit 3") + rule;
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap_or_default().to_owned();
    let stand = ["fix", "long", "handler"].map(|node| desk.status(&format!("wf-{run}-{node}")));
    assert_eq!(stand, ["skipped", "blocked_by_dependency", "succeeded"], "{ran:?}");
    assert_eq!(ran.code, Some(10), "{ran:?}");
}

#[test]
fn a_job_that_waited_too_long_in_the_queue_goes_back() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:exclusive"]));
    let back = "after = [\"a\"]\nlocks = [{ key = \"k\", mode = \"exclusive\" }]\non.failed = [\"a\"]";
    let text = flow(&[("a", "echo a >>log", ""), ("b", "true", back)])
        + "[[policies]]\nmatch = { name = \"b\" }\nqueue_timeout = \"100ms\"\n";
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let b = format!("wf-{}-b", ran.json()["run_id"].as_str().unwrap_or_default());
    assert_eq!((ran.code, desk.lines("log").len()), (Some(1), 2), "{ran:?}");
    assert_eq!((desk.status(&b).as_str(), desk.standing(&b).2.as_str()), ("failed", "queue timeout"));
}

#[test]
fn a_running_job_that_is_cancelled_goes_back_and_that_is_no_error() {
    let desk = Desk::new();
    desk.pipe("never");
    let text = flow(&[
        ("a", "echo a >>log", ""),
        ("c", "echo c >>log; touch begun; : <never", "after = [\"a\"]\non.cancelled = [\"a\"]"),
    ]);
    desk.flow("f", &text);
    let run = desk.enqueue(&["f"]);
    let [a, c] = ["a", "c"].map(|node| format!("wf-{run}-{node}"));
    desk.has_begun(&c, "begun");
    std::fs::remove_file(desk.path("begun")).unwrap();
    let ran = desk.run(&["jobs", "cancel", &c]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!((desk.status(&a).as_str(), desk.lines("log").len()), ("waiting_on_approval", 2), "{ran:?}");
    assert_eq!(desk.run(&["jobs", "approve", &a]).code, Some(0));
    desk.wait(&a);
    desk.has_begun(&c, "begun");
    assert_eq!(desk.lines("log"), ["a", "c", "a", "c"]);
    let ran = desk.run(&["jobs", "cancel", &c]);
    assert_eq!((ran.code, desk.status(&c).as_str()), (Some(0), "cancelled"), "{ran:?}");
}

#[test]
fn what_would_have_started_beside_a_way_back_is_counted_once() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let text = flow(&[
        ("a", "true", ""),
        ("check", "test -e done || { touch done; exit 1; }", "after = [\"a\"]\non.failed = [\"a\"]"),
        ("r1", "true", ""),
        ("r2", "true", "after = [\"r1\"]"),
    ]) + "[[policies]]\nmatch = { pattern = \"^r\" }\n\
         rate_limit = { count = 2, window = \"1h\", name = \"mail\" }\n";
    desk.flow("f", &text);
    let run = desk.enqueue(&["f"]);
    for node in ["check", "r1"] {
        let id = format!("wf-{run}-{node}");
        desk.wait(&id);
        assert_eq!(desk.status(&id), "succeeded");
    }
    let r2 = format!("wf-{run}-r2");
    assert_ne!(desk.standing(&r2).1, "schedule", "{:?}", desk.standing(&r2));
    desk.wait(&r2);
    assert_eq!(desk.status(&r2), "succeeded");
}

#[test]
fn every_target_of_a_way_back_is_done_again() {
    let desk = Desk::new();
    let text = flow(&[
        ("a", "echo a >>log", ""),
        ("b", "echo b >>log", ""),
        (
            "c",
            "test -e done || { touch done; exit 1; }",
            "after = [\"a\", \"b\"]\non.failed = [\"a\", \"b\"]",
        ),
    ]);
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let mut log = desk.lines("log");
    log.sort_unstable();
    assert_eq!((ran.code, log), (Some(0), ["a", "a", "b", "b"].map(String::from).to_vec()), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap_or_default().to_owned();
    let attempts = ["a", "b", "c"].map(|node| -> Value {
        desk.record(&format!("wf-{run}-{node}"))["metadata"]["workflow_node_attempt"].clone()
    });
    assert_eq!(attempts, [json!(2), json!(2), json!(2)]);
}

/// A job that may not start, and whose loop leads to itself, must not hold everybody up until its budget is used up.
#[test]
fn a_loop_in_which_nothing_runs_gives_others_their_turn() {
    let desk = Desk::new();
    let breaker = "circuit_breaker = { name = \"api\", failure_threshold = 1, reset_timeout = \"1h\", on_open = \"fail\" }";
    let rounds = "after = [{ node_id = \"breaks\", policy = \"completion\" }]\non.failed = [\"a\"]\nretry = { mode = \"on_failure\", budget = 4294967295 }";
    let nodes = flow(&[("breaks", "exit 1", ""), ("a", "true", rounds)]);
    let rules: String = ["breaks", "a"]
        .map(|name| format!("[[policies]]\nmatch = {{ name = \"{name}\" }}\n{breaker}\n"))
        .concat();
    desk.flow("f", &(nodes + &rules));
    let run = desk.enqueue(&["f"]);
    eventually("it is over", || desk.status(&format!("wf-{run}-breaks")) == "failed");
    for _ in 0..3 {
        assert_eq!(desk.run(&["tick"]).code, Some(0));
    }
}

/// The loop of `ga` rewinds `gb` twice, which has not started: it still may fail as often as its own budget says.
#[test]
fn a_loop_counts_only_starts_that_came_about() {
    let desk = Desk::new();
    let gate = |id: &str, script: &str, before: &str, budget: u32| {
        format!(
            "[[nodes]]\nid = \"{id}\"\nkind = \"gate\"\nuses = \"control.gate.stop_condition\"\n\
             gates = [{{ kind = \"script\", script = \"{script}\" }}]\nafter = [\"{before}\"]\n\
             on.failed = [\"{before}\"]\nretry = {{ mode = \"until_gate\", budget = {budget} }}\n"
        )
    };
    let text = flow(&[("w1", "echo 1 >>one", ""), ("w2", "echo 2 >>two", "after = [\"ga\"]")])
        + &gate("ga", "test $(wc -l <one) -ge 3", "w1", 2)
        + &gate("gb", "test $(wc -l <two) -ge 2", "w2", 1);
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    assert_eq!((ran.code, desk.lines("two").len()), (Some(0), 2), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap_or_default().to_owned();
    let attempts = ["w1", "ga", "w2", "gb"].map(|node| -> Value {
        desk.record(&format!("wf-{run}-{node}"))["metadata"]["workflow_node_attempt"].clone()
    });
    assert_eq!(attempts, [json!(3), json!(3), json!(2), json!(2)]);
}

#[test]
fn a_loop_that_is_used_up_is_told_as_that() {
    let desk = Desk::new();
    let back = "on.failed = [\"loop\"]\nretry = { mode = \"on_failure\", budget = 1 }";
    desk.flow("f", &flow(&[("loop", "echo x >>log; exit 1", back)]));
    let ran = desk.run(&["run", "f", "--follow"]);
    assert_eq!((ran.code, desk.lines("log").len()), (Some(10), 2), "{ran:?}");
    let why = "the 1 round that its `retry.budget` allows was used";
    assert!(ran.out.contains(&format!("loop: blocked_by_dependency: {why}\n")), "{ran:?}");
    let told = desk.json(&["jobs", "explain", "loop"]);
    let summary = told["summary"].as_str().unwrap();
    assert!(summary.contains("ended as blocked") && summary.ends_with(&format!(": {why}.")), "{summary}");
}

#[test]
fn a_handler_of_a_failure_runs_when_the_loop_gives_up() {
    let desk = Desk::new();
    let more =
        "after = [\"a\"]\non.failed = [\"a\", \"tell\"]\nretry = { mode = \"on_failure\", budget = 1 }";
    let text = flow(&[("a", "echo a >>log", ""), ("check", "exit 1", more), ("tell", "echo told >>log", "")]);
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(ran.code, Some(10), "the run is blocked, even when a handler ran: {ran:?}");
    assert_eq!(desk.lines("log"), ["a", "a", "told"]);
    assert_eq!(desk.status(&format!("wf-{run}-check")), "blocked_by_dependency");
    assert_eq!(desk.status(&format!("wf-{run}-tell")), "succeeded");
}

#[test]
fn a_retry_of_a_person_fills_the_budget_of_a_loop_again() {
    let desk = Desk::new();
    let gate = "kind = \"gate\"\nuses = \"control.gate.stop_condition\"\n\
                gates = [{ kind = \"script\", script = \"test -e enough\" }]\n\
                retry = { mode = \"until_gate\", budget = 2 }\non.failed = [\"a\"]\nafter = [\"a\"]\n";
    let text = flow(&[("a", "echo a >>log", "")]) + "[[nodes]]\nid = \"enough\"\n" + gate;
    desk.flow("f", &text);
    let ran = desk.run(&["run", "f", "--follow", "--format", "json"]);
    assert_eq!((ran.code, desk.lines("log").len()), (Some(10), 3), "{ran:?}");
    let run = ran.json()["run_id"].as_str().unwrap().to_owned();
    let ran = desk.run(&["jobs", "retry", &format!("wf-{run}-a")]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(desk.run(&["jobs", "wait", &format!("run:{run}")]).code, Some(10));
    assert_eq!(desk.lines("log").len(), 6, "as many rounds as at first");
    // The follower prints what really blocks the job, and not only its status.
    let told = desk.run(&["run", "f", "--follow"]).out;
    let says = "enough: blocked_by_dependency: the 2 retries that its `retry.budget` allows were used\n";
    assert!(told.contains(says), "{told}");
}
