//! What nodes do, with processes that are told how to end.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidewheel_core::job::{
    Approval, ApprovalState, Artifact, JobId, Manifest, ManifestNode, Metadata, NodeOutcome, Record,
};
use tidewheel_core::policy::ErrorCode;
use tidewheel_core::time::Timestamp;
use tidewheel_runner::git::{Git, System};
use tidewheel_runner::job::attempt::{AttemptError, End, Ended};
use tidewheel_runner::job::operation::{AgentProgram, Around, Node, NodeEnd, Task, run, run_child};
use tidewheel_runner::process::{Captured, StartError};
use tidewheel_store::jobs::JobStoreError;

/// A node that has nobody around it.
#[derive(Debug)]
struct Alone(PathBuf);

impl Around for Alone {
    fn data(&self) -> &Path {
        &self.0
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(0)
    }

    fn manifest(&self) -> Result<Option<Manifest>, JobStoreError> {
        Ok(None)
    }

    fn payload(&self, _: &Artifact) -> Result<Option<Value>, JobStoreError> {
        Ok(None)
    }

    fn git(&self) -> Arc<dyn Git> {
        Arc::new(System::default())
    }

    fn note(&self, _: &[(&str, Value)]) -> io::Result<()> {
        Ok(())
    }

    fn noted(&self, _: &str) -> io::Result<Option<Value>> {
        Ok(None)
    }

    fn noted_in_run(&self, _: &str) -> io::Result<Vec<Value>> {
        Ok(Vec::new())
    }

    fn say(&self, _: &str) {}

    fn complain(&self, _: &str) {}

    fn agent(&self, _: &str) -> Option<&AgentProgram> {
        None
    }
}

struct Bench {
    root: TempDir,
    node: Value,
    record: Record,
    attempt: u32,
    overrides: Option<Value>,
}

impl Bench {
    fn new(uses: &str, node: Value) -> Self {
        let mut written = json!({"job_id": "job", "kind": "step", "uses": uses, "policy": ""});
        for (name, value) in node.as_object().unwrap() {
            written[name] = value.clone();
        }
        let record = Record::new(JobId::new("job").unwrap(), Timestamp::from_nanos(0));
        Self { root: tempfile::tempdir().unwrap(), node: written, record, attempt: 1, overrides: None }
    }

    fn approval(mut self, state: ApprovalState, reason: Option<&str>) -> Self {
        let approval = Approval::pending("ada", Timestamp::from_nanos(0));
        let reason = reason.map(str::to_owned);
        self.record.schedule.approval = Some(Approval { state, reason, ..approval });
        self
    }

    fn run(&self) -> NodeEnd {
        self.run_with(&mut really)
    }

    fn run_with(&self, execute: &mut dyn FnMut(Task) -> Result<Ended, AttemptError>) -> NodeEnd {
        let node: ManifestNode = serde_json::from_value(self.node.clone()).unwrap();
        let overrides = self.overrides.as_ref().map(|overrides| overrides.as_object().unwrap());
        let mut record = self.record.clone();
        record.metadata.set(Metadata::NODE_ATTEMPT, self.attempt);
        let (record, root) = (&record, self.root.path());
        let around = Alone(root.join(".tidewheel"));
        run(&Node { node: &node, record, attempt: self.attempt, root, overrides, around: &around }, execute)
    }

    fn made(&self, file: &str) -> bool {
        self.root.path().join(file).exists()
    }
}

/// Runs a program without a supervisor, which would take the children of other tests away.
fn really(task: Task) -> Result<Ended, AttemptError> {
    let program = task.program;
    let mut command = Command::new(program.name().unwrap());
    let output = command.args(program.args()).current_dir(program.directory().unwrap()).output();
    let output = output.map_err(|source| StartError { program: program.clone(), source })?;
    let end = output.status.code().map(End::Exited);
    Ok(ended(end.unwrap_or_else(|| End::Signalled(output.status.signal().unwrap())), output.stderr))
}

fn ended(end: End, stderr: Vec<u8>) -> Ended {
    let stderr = Captured { bytes: stderr, is_truncated: false };
    Ended { end, stdout: Captured::default(), stderr, log_error: None, took: Duration::ZERO }
}

#[track_caller]
fn assert_end(end: &NodeEnd, outcome: NodeOutcome, code: i32, summary: &str) {
    assert_eq!((end.outcome, end.exit_code, end.summary.as_str()), (outcome, Some(code), summary));
}

use NodeOutcome::{Blocked, Cancelled, Failed, Succeeded};

fn command_run(args: &Value) -> Bench {
    Bench::new("cap.env.shell.command.run", json!({"args": args}))
}

#[test]
fn m_136_a_command_succeeds_or_fails_with_its_code() {
    assert_end(&command_run(&json!({"script": "printf ok"})).run(), Succeeded, 0, "command.run succeeded");
    let failed = command_run(&json!({"command": "echo why >&2; exit 9"})).run();
    assert_end(&failed, Failed, 9, "command.run failed (exit 9)");
    assert_eq!(failed.code, Some(ErrorCode::Number(9)));
    assert_eq!(failed.complaint.as_deref(), Some("why"));
    assert_eq!(failed.failure().unwrap().message, "command.run failed (exit 9): why");
    assert_end(
        &command_run(&json!({"script": "kill -9 $$"})).run(),
        Failed,
        137,
        "command.run was killed by signal 9 (SIGKILL) (exit 137)",
    );
}

#[test]
fn a_list_is_run_without_a_shell() {
    let bench = command_run(&json!({"command": ["touch", "a b", "$HOME"]}));
    assert_eq!(bench.run().outcome, Succeeded);
    assert!(bench.made("a b") && bench.made("$HOME"));
}

#[test]
fn a_program_that_cannot_be_started_fails_as_in_a_shell_and_for_good() {
    let missing = command_run(&json!({"command": ["no-such-program-anywhere"]})).run();
    assert_eq!((missing.outcome, missing.exit_code, missing.non_retryable), (Failed, Some(127), true));
    let bench = command_run(&json!({"command": ["./file"]}));
    std::fs::write(bench.root.path().join("file"), "").unwrap();
    let denied = bench.run();
    assert_eq!((denied.outcome, denied.exit_code, denied.non_retryable), (Failed, Some(126), true));
}

#[test]
fn a_timeout_silence_and_a_person_have_their_codes() {
    let bench = command_run(&json!({"script": "true"}));
    let end = |end| bench.run_with(&mut |_| Ok(ended(end, Vec::new())));
    let late = end(End::TimedOut);
    assert_eq!((late.outcome, late.exit_code, late.code), (Failed, Some(124), Some("timeout".into())));
    let silent = end(End::Silent);
    assert_eq!(
        (silent.outcome, silent.exit_code, silent.code),
        (Failed, Some(124), Some("heartbeat".into()))
    );
    let cancelled = end(End::Cancelled);
    assert_eq!((cancelled.outcome, cancelled.exit_code, cancelled.failure()), (Cancelled, Some(143), None));
}

#[test]
fn arguments_of_a_fallback_replace_what_is_run() {
    let mut bench = command_run(&json!({"command": "exit 1"}));
    bench.overrides = Some(json!({"script": "touch instead"}));
    assert_eq!(bench.run().outcome, Succeeded);
    assert!(bench.made("instead"));
}

#[test]
fn cicd_run_takes_the_script_of_its_gate_if_it_has_none() {
    let uses = "cap.env.shell.cicd.run";
    let gates = json!([{"kind": "cicd", "script": "exit 4"}]);
    assert_end(&Bench::new(uses, json!({"gates": gates})).run(), Failed, 4, "cicd.run failed (exit 4)");
    let own = Bench::new(uses, json!({"gates": gates, "args": {"script": "true"}}));
    assert_end(&own.run(), Succeeded, 0, "cicd.run passed");
    let none = Bench::new(uses, json!({})).run();
    let what = "cicd.run has neither a command nor a script, and no gate has one";
    assert_end(&none, Failed, 1, what);
}

#[test]
fn m_138_an_approval_gate_does_what_a_person_said() {
    let uses = "control.gate.approval";
    let gate = || Bench::new(uses, json!({}));
    assert_end(&gate().run(), Blocked, 10, "approval gate blocked: no approval state present");
    let bypassed = "no approval is required";
    for no in [json!("false"), json!(false), json!("no"), json!("0")] {
        let args = Bench::new(uses, json!({"args": {"required": no}}));
        assert_end(&args.run(), Succeeded, 0, bypassed);
        let gates = Bench::new(uses, json!({"gates": [{"kind": "approval", "required": no}]}));
        assert_end(&gates.run(), Succeeded, 0, bypassed);
    }
    use ApprovalState::{Approved, Pending, Rejected};
    assert_end(&gate().approval(Approved, None).run(), Succeeded, 0, "approved");
    let pending = gate().approval(Pending, None).run();
    assert_end(&pending, Blocked, 10, "approval gate blocked: it was neither approved nor rejected");
    let rejected = gate().approval(Rejected, Some("not today")).run();
    assert_end(&rejected, Failed, 10, "rejected: not today");
    let rejected = gate().approval(Rejected, Some(" ")).run();
    assert_end(&rejected, Failed, 10, "rejected: approval rejected");
}

#[test]
fn m_139_a_stop_condition_goes_back_until_its_budget_is_spent() {
    let uses = "control.gate.stop_condition";
    let gate = |script: &str, mode: &str, budget: u32| {
        let gates = json!([{"kind": "script", "script": script}]);
        Bench::new(uses, json!({"gates": gates, "retry": {"mode": mode, "budget": budget}}))
    };
    let none = Bench::new(uses, json!({})).run();
    assert_end(&none, Succeeded, 0, "stop-condition has no script, so that there is nothing to check");
    assert_end(&gate("true", "until_gate", 1).run(), Succeeded, 0, "stop-condition met");
    let mut red = gate("exit 5", "until_gate", 1);
    for attempt in [1, 2] {
        red.attempt = attempt;
        assert_end(&red.run(), Failed, 5, &format!("stop-condition failed on attempt {attempt}"));
    }
    red.attempt = 3;
    let spent = "stop-condition failed on attempt 3; retry budget exhausted (1)";
    assert_end(&red.run(), Blocked, 10, spent);
    let mut other = gate("echo no >&2; exit 5", "on_failure", 1);
    other.attempt = 3;
    assert_end(&other.run(), Failed, 5, "stop-condition failed on attempt 3: no");
}

#[test]
fn m_141_a_check_may_be_mended_once() {
    let gate = |script: &str, args: Value| {
        let gates = json!([{"kind": "cicd", "script": script, "auto_resolve": true}]);
        Bench::new("control.gate.cicd", json!({"gates": gates, "args": args}))
    };
    let none = Bench::new("control.gate.cicd", json!({})).run();
    assert_end(&none, Succeeded, 0, "cicd gate has no script, so that there is nothing to check");
    assert_end(&gate("true", json!({})).run(), Succeeded, 0, "cicd gate passed on attempt 1");
    assert_end(&gate("exit 7", json!({})).run(), Failed, 7, "cicd gate failed with exit code 7 on attempt 1");
    let mut mended = gate("test -e fixed || exit 7", json!({"auto_resolve_command": "touch fixed"}));
    mended.attempt = 2;
    assert_end(&mended.run(), Succeeded, 0, "cicd gate passed after auto-resolve on attempt 2");
    let in_vain = gate("exit 7", json!({"auto_resolve_script": "exit 1"})).run();
    assert_end(&in_vain, Failed, 7, "cicd gate failed with exit code 7 on attempt 1");
    let not_wanted = gate("exit 7", json!({"auto_resolve": false, "auto_resolve_script": "touch fixed"}));
    assert_end(&not_wanted.run(), Failed, 7, "cicd gate failed with exit code 7 on attempt 1");
    assert!(!not_wanted.made("fixed"));
}

#[test]
fn what_was_cancelled_is_not_mended() {
    let gates = json!([{"kind": "cicd", "script": "x", "auto_resolve": true}]);
    let node = json!({"gates": gates, "args": {"auto_resolve_command": "y"}});
    let bench = Bench::new("control.gate.cicd", node);
    for (end, outcome) in [(End::Cancelled, Cancelled), (End::TimedOut, Failed)] {
        let mut count = 0;
        let came = bench.run_with(&mut |_| {
            count += 1;
            Ok(ended(end, Vec::new()))
        });
        assert_eq!((came.outcome, count), (outcome, 1));
    }
}

#[test]
fn m_143_a_terminal_node_leads_nowhere() {
    let uses = "control.terminal";
    assert_end(&Bench::new(uses, json!({})).run(), Succeeded, 0, "terminal sink reached");
    let what = "terminal policy node must not declare outgoing routes";
    assert_end(&Bench::new(uses, json!({"routes": ["a"]})).run(), Failed, 1, what);
    let back = json!({"loops": [{"on": "failed", "to": "a"}]});
    assert_end(&Bench::new(uses, back).run(), Failed, 1, what);
}

#[test]
fn m_148_nothing_runs_outside_the_repository() {
    let outside = tempfile::tempdir().unwrap();
    let bench = command_run(&json!({"script": "touch here"}));
    let root = bench.root.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(outside.path(), root.join("link")).unwrap();
    std::fs::create_dir(root.join("below")).unwrap();
    let end_in = |path: &str| {
        let mut bench = command_run(&json!({"script": "touch here"}));
        bench.record.metadata.set(Metadata::EXECUTION_ROOT, path);
        bench.root = TempDir::new().unwrap();
        let node: ManifestNode = serde_json::from_value(bench.node.clone()).unwrap();
        let around = Alone(root.join(".tidewheel"));
        let (record, around) = (&bench.record, &around);
        let node = Node { node: &node, record, attempt: 1, root: &root, overrides: None, around };
        run(&node, &mut really)
    };
    let above = root.parent().unwrap().join("evil");
    let target = outside.path().canonicalize().unwrap();
    for (given, found) in [("../evil", above.as_path()), ("link", &target), ("/etc", Path::new("/etc"))] {
        let what = format!(
            "workflow metadata.execution_root path {} is outside repository root {}",
            found.display(),
            root.display()
        );
        assert_end(&end_in(given), Failed, 1, &what);
    }
    assert!(!target.join("here").exists());
    assert_eq!(end_in("below").outcome, Succeeded);
    assert!(root.join("below/here").exists());
    assert_eq!(end_in(".").outcome, Succeeded);
    let missing = end_in("missing");
    assert!(missing.summary.contains("cannot be used"), "{}", missing.summary);
}

#[test]
fn a_job_without_a_run_is_this_binary_with_its_arguments() {
    let root = tempfile::tempdir().unwrap();
    let mut record = Record::new(JobId::new("job").unwrap(), Timestamp::from_nanos(0));
    let binary = Path::new("/bin/sh");
    assert_end(&run_child(&record, binary, root.path(), &mut really), Failed, 1, "missing child args");
    record.child_args = ["-c", "exit 3"].map(str::to_owned).to_vec();
    assert_end(&run_child(&record, binary, root.path(), &mut really), Failed, 3, "job failed (exit 3)");
}

#[test]
fn an_operation_that_is_not_there_is_named() {
    let end = Bench::new("cap.env.builtin.git.blame", json!({})).run();
    assert_end(&end, Failed, 1, "this release has no operation `cap.env.builtin.git.blame`");
    assert!(end.non_retryable);
}
