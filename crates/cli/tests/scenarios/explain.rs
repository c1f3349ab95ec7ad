//! Why jobs are as they are, asked of the real binary while they wait, run, fail and are over.

use serde_json::{Value, json};

use crate::by_hand::{Desk, custom, job};
use crate::world::{World, eventually};

/// Two jobs and a person between the last job and its start, after what succeeds at once.
const RELEASE: &str = r#"
id = "template.release"
version = "v1"
[[nodes]]
id = "build"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo built" }
[[nodes]]
id = "sign_off"
kind = "gate"
uses = "control.gate.approval"
after = [{ node_id = "build" }]
[[nodes]]
id = "stage"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo staged" }
after = [{ node_id = "sign_off" }]
[[nodes]]
id = "deploy"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo deployed" }
after = [{ node_id = "stage" }]
[[nodes]]
id = "page"
kind = "shell"
uses = "cap.env.shell.command.run"
args = { script = "echo paged" }
after = [{ node_id = "build", policy = "failed" }]
"#;

/// A job that fails until its retries are used up, and one after it.
fn flaky(delay: &str) -> String {
    format!(
        r#"
id = "template.flaky"
version = "v1"
[[policies]]
match = {{ name = "fetch" }}
max_retries = 2
backoff = "fixed"
base_delay = "{delay}"
jitter = "none"
max_delay = "2h"
[[nodes]]
id = "fetch"
kind = "shell"
uses = "cap.env.shell.command.run"
args = {{ script = "echo try $TIDEWHEEL_ATTEMPT; echo no answer >&2; exit 7" }}
[[nodes]]
id = "use"
kind = "shell"
uses = "cap.env.shell.command.run"
args = {{ script = "echo used" }}
after = [{{ node_id = "fetch" }}]
"#
    )
}

#[track_caller]
fn told(world: &World, job: &str) -> (Value, String) {
    let ran = world.run(&["jobs", "explain", job]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    // Where lines are broken is a matter of the terminal.
    let words: Vec<&str> = ran.out.split_whitespace().collect();
    (world.json(&["jobs", "explain", job]), words.join(" "))
}

#[track_caller]
fn says(text: &str, words: &str) {
    assert!(text.contains(words), "{words}\n---\n{text}");
}

fn kinds(told: &Value) -> Vec<(&str, &str)> {
    let causes = told["causes"].as_array().map_or(&[][..], Vec::as_slice);
    causes
        .iter()
        .map(|cause| (cause["job"].as_str().unwrap_or(""), cause["kind"].as_str().unwrap_or("")))
        .collect()
}

#[test]
fn an_approval_is_found_through_two_others() {
    let world = World::new();
    world.flow("release", RELEASE);
    let run = world.enqueue(&["release"]);
    let id = |node: &str| format!("wf-{run}-{node}");
    world.wait(&id("build"));
    eventually("the gate waits", || world.status(&id("sign_off")) == "waiting_on_approval");
    let (deploy, text) = told(&world, &format!("{run}/deploy"));
    says(
        &text,
        "deploy waits on stage, which waits on sign_off, which awaits a person's approval, which ada asked for",
    );
    says(&text, &format!("tidewheel jobs approve {}", id("sign_off")));
    let expected = [(id("deploy"), "after"), (id("stage"), "after"), (id("sign_off"), "approval")];
    assert_eq!(kinds(&deploy), expected.each_ref().map(|(id, kind)| (id.as_str(), *kind)));
    // A handler that nobody called, and what succeeded.
    let (page, text) = told(&world, &id("page"));
    assert_eq!(page["status"], "skipped");
    says(&text, "page was skipped because of build, which succeeded.");
    let (build, text) = told(&world, &id("build"));
    assert_eq!((&build["status"], &build["causes"]), (&json!("succeeded"), &json!([])));
    assert_eq!(build["attempts"][0]["output"][0], json!({ "stream": "stdout", "text": "built" }));
    says(&text, "Nothing: it is over.");
    // The run as a whole, on both ways.
    let words = world.run(&["runs", "explain", &run]).out;
    assert_eq!(
        world.run(&["jobs", "explain", &format!("run:{run}")]).out.lines().count(),
        words.lines().count()
    );
    says(&words, "2 jobs wait on it: stage and deploy.");
    let whole = world.json(&["runs", "explain", &run]);
    assert_eq!(
        (&whole["version"], &whole["run"], &whole["status"]),
        (&json!(1), &json!(run), &json!("waiting"))
    );
    assert_eq!(whole["causes"][0]["cause"]["job"], json!(id("sign_off")));
    assert_eq!(whole["causes"][0]["holds_up"], json!([id("stage"), id("deploy")]));
    // A node of a run is a job.
    let node = world.json(&["runs", "explain", &run, "deploy"]);
    assert_eq!(node["job"], json!(id("deploy")));
    // What was asked for came, and nothing holds it up any more.
    assert_eq!(world.run(&["jobs", "reject", &id("sign_off"), "--reason", "not today"]).code, Some(0));
    let (_, text) = told(&world, &id("deploy"));
    says(
        &text,
        "deploy is blocked by stage, which is blocked by sign_off, which was rejected by ada: not today.",
    );
}

#[test]
fn a_failure_after_retries_is_told_with_its_output() {
    let world = World::new();
    world.flow("flaky", &flaky("10ms"));
    let run = world.enqueue(&["flaky"]);
    world.wait(&format!("wf-{run}-use"));
    let (fetch, text) = told(&world, &format!("{run}/fetch"));
    let attempts = fetch["attempts"].as_array().map_or(&[][..], Vec::as_slice);
    assert_eq!(attempts.len(), 3);
    for (index, attempt) in attempts.iter().enumerate() {
        let number = index + 1;
        assert_eq!((&attempt["attempt"], &attempt["exit_code"]), (&json!(number), &json!(7)), "{attempt}");
        let output = json!([
            { "stream": "stdout", "text": format!("try {number}") },
            { "stream": "stderr", "text": "no answer" },
        ]);
        assert_eq!(attempt["output"], output);
        let action = if number < 3 { "RETRY_AT" } else { "FAIL" };
        assert_eq!(attempt["decision"]["action"], action);
        assert_eq!(attempt["decision"]["at"].is_string(), number < 3, "{attempt}");
    }
    assert_eq!(attempts[2]["decision"]["reason_code"], "SCHED_MAX_RETRIES_REACHED");
    says(&text, "FAIL: all 2 retries that its policy allows were made (SCHED_MAX_RETRIES_REACHED).");
    says(&text, "failed");
    says(&text, &format!("tidewheel jobs retry wf-{run}-fetch"));
    let (_, text) = told(&world, &format!("{run}/use"));
    says(&text, "use is blocked by fetch, which failed with exit code 7.");
    let whole = world.json(&["runs", "explain", &run]);
    assert_eq!((&whole["status"], &whole["failures"][0]["attempts"]), (&json!("failed"), &json!(3)));
    says(whole["failures"][0]["message"].as_str().unwrap_or(""), "no answer");
}

#[test]
fn a_retry_that_is_to_come_is_told_with_its_time() {
    let world = World::new();
    world.flow("flaky", &flaky("1h"));
    let run = world.enqueue(&["flaky"]);
    let id = format!("wf-{run}-fetch");
    eventually("a retry is to come", || {
        let record = world.record(&id);
        record["status"] == "queued" && record["schedule"]["not_before"].is_string()
    });
    let (fetch, text) = told(&world, &id);
    says(&text, "fetch waits for retry 1 of 2, which comes in 59m");
    assert_eq!((&fetch["next"]["what"], kinds(&fetch)[0].1), (&json!("timer"), "schedule"));
    assert_eq!(fetch["next"]["at"], world.record(&id)["schedule"]["not_before"]);
    let (using, text) = told(&world, &format!("{run}/use"));
    assert_eq!(kinds(&using), [(format!("wf-{run}-use").as_str(), "after"), (id.as_str(), "schedule")]);
    says(&text, "use waits on fetch, which waits for retry 1 of 2");
    // A person ends it between two attempts.
    assert_eq!(world.run(&["jobs", "cancel", &id]).code, Some(0));
    let (fetch, text) = told(&world, &id);
    assert_eq!((&fetch["status"], &fetch["attempts"][0]["outcome"]), (&json!("cancelled"), &json!("failed")));
    says(&text, "was cancelled by a person");
}

#[test]
fn who_holds_a_lock_and_who_has_the_slots_is_told() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["db:exclusive"]));
    desk.put(job("wants").locks(&["db:shared", "free:exclusive"])).put(job("behind").after(&["wants"]));
    desk.tick();
    let (wants, text) = told(&desk, "wants");
    assert_eq!(kinds(&wants), [("wants", "locks"), ("holder", "running")]);
    says(&text, "wants waits on the lock db behind holder, which is running.");
    says(&text, "tidewheel jobs cancel holder");
    says(&text, "behind waits for it.");
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    desk.put(job("extra"));
    desk.tick();
    let (extra, text) = told(&desk, "extra");
    assert_eq!(kinds(&extra), [("extra", "capacity"), ("holder", "running")]);
    says(&text, "waiting for the one slot behind holder, which is running.");
}

#[test]
fn the_repository_is_looked_at_and_not_touched() {
    let desk = Desk::with_git();
    let first = desk.git(&["rev-parse", "HEAD"]);
    let pin = json!({ "branch": "main", "oid": first });
    desk.put(job("pinned").schedule("pinned_head", pin));
    desk.put(job("clean").schedule("preconditions", json!([{ "kind": "clean_worktree" }])));
    desk.put(job("needs").needs(&[custom("acme", "k")]).schedule("missing_producer", "wait"));
    let second = desk.commit("second");
    desk.file("x.txt", "new");
    let before = desk.record("pinned");
    let (_, text) = told(&desk, "pinned");
    says(&text, &format!("`main` stands at {}, and has to stand at {} again", &second[..12], &first[..12]));
    let (_, text) = told(&desk, "clean");
    says(&text, "clean waits: working tree has uncommitted or untracked changes. A person has to commit");
    let (needs, text) = told(&desk, "needs");
    assert_eq!(kinds(&needs), [("needs", "missing_artifact")]);
    says(&text, "awaiting producer for custom:acme:k");
    // Nobody made a pass in between.
    assert_eq!(desk.record("pinned"), before);
    desk.git(&["reset", "-q", "--hard", &first]);
    let (pinned, text) = told(&desk, "pinned");
    assert_eq!(pinned["next"]["what"], "start");
    says(&text, "The next pass of the scheduler starts it.");
}

#[test]
fn a_lost_supervisor_and_a_cancelled_attempt_are_told_as_such() {
    let world = World::new();
    world.flow(
        "slow",
        "id = \"template.slow\"\nversion = \"v1\"\n[[nodes]]\nid = \"nap\"\nkind = \"shell\"\n\
         uses = \"cap.env.shell.command.run\"\nargs = { script = \"echo sleeping; sleep 1000\" }\n",
    );
    let run = world.enqueue(&["slow"]);
    let id = format!("wf-{run}-nap");
    eventually("it sleeps", || {
        std::fs::read_to_string(world.in_jobs(&id).join("stdout.log"))
            .is_ok_and(|text| text.contains("sleeping"))
    });
    let (nap, text) = told(&world, &id);
    assert_eq!((&nap["attempts"][0]["outcome"], &nap["next"]["what"]), (&json!("running"), &json!("run")));
    says(&text, "[stdout] sleeping");
    assert_eq!(world.run(&["jobs", "cancel", &id]).code, Some(0));
    let (nap, text) = told(&world, &id);
    assert_eq!(
        (&nap["attempts"][0]["outcome"], &nap["attempts"][0]["exit_code"]),
        (&json!("cancelled"), &json!(143))
    );
    says(&text, "was ended by a person");
    let desk = Desk::new();
    desk.put(job("lost").status("running").with("pid", 1)).abandon("lost");
    desk.tick();
    let (lost, text) = told(&desk, "lost");
    assert_eq!((&lost["status"], &lost["attempts"][0]["outcome"]), (&json!("failed"), &json!("lost")));
    says(&text, "was lost: its supervisor was gone");
}

#[test]
fn what_nobody_knows_is_an_error() {
    let desk = Desk::new();
    desk.put(job("one-a")).put(job("one-b"));
    let ran = desk.run(&["jobs", "explain", "ghost"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
    says(&ran.err, "no background job ghost");
    says(&desk.run(&["jobs", "explain", "one"]).err, "one is ambiguous: one-a, one-b");
    desk.file(".tidewheel/jobs/bad/job.json", "not-json");
    desk.put(job("after-bad").after(&["bad"]));
    let ran = desk.run(&["jobs", "explain", "after-bad"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    says(&ran.out, "has a record that cannot be read");
    says(&ran.err, "unable to load background job bad");
}

/// With a breaker open, jobs were said to wait for a limit, and to go on at an instant that was over.
#[test]
fn a_job_behind_an_open_breaker_names_it_and_what_comes_next_is_to_come() {
    let desk = Desk::new();
    desk.file(".tidewheel/config.toml", "[scheduler]\ncapacity = 1\n");
    let breaker = "circuit_breaker = { name = \"api\", failure_threshold = 1, reset_timeout = \"1h\" }";
    let policy = format!("[[policies]]\nmatch = {{ default = true }}\nconcurrency_limit = 1\n{breaker}\n");
    desk.flow("f", &(crate::runs::flow(&[("a", "exit 3", ""), ("b", "echo b >>log", "")]) + &policy));
    let run = desk.enqueue(&["f"]);
    let id = format!("wf-{run}-b");
    assert_eq!(desk.wait(&format!("wf-{run}-a")).code, Some(1));
    let (status, kind, detail) = desk.standing(&id);
    assert_eq!((status.as_str(), kind.as_str()), ("queued", "schedule"));
    assert!(detail.contains("circuit breaker `api`"), "{detail}");
    let explained = desk.json(&["jobs", "explain", &id]);
    assert_eq!(explained["causes"][0]["kind"], "circuit_breaker", "{explained}");
    let capacity = explained["gates"].as_array().unwrap().iter().find(|gate| gate["gate"] == "capacity");
    assert_eq!(capacity.map(|gate| &gate["state"]), Some(&"passed".into()), "{explained}");
    let next = &explained["next"];
    assert_eq!((&next["what"], &next["at"]), (&"wait".into(), &serde_json::Value::Null), "{explained}");
    assert_eq!(next["text"], "It goes on when its circuit breaker lets it in.");
    // The others of its run are behind the same gate.
    let of_run = desk.run(&["runs", "explain", &run]).out;
    assert!(of_run.contains("circuit breaker `api` is open") && !of_run.contains("slot"), "{of_run}");
    assert!(!desk.path("log").exists());
}
