//! A tick that is killed while it puts the end of a lost job on record: the next one repeats what was decided.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Map;
use tempfile::TempDir;
use tidewheel_core::job::{
    JobEvent, JobEventKind, JobId, MANIFEST_VERSION, Manifest, ManifestNode, Metadata, NodeId, Record, RunId,
    Secrets, start,
};
use tidewheel_core::policy::{Backoff, Kind, Policy};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_runner::job::{Options, Scheduler};
use tidewheel_store::jobs::{Batch, Files, JobStore as _};
use tidewheel_store::sqlite::failpoint;

const DATA: &str = "TIDEWHEEL_TEST_RECOVERY";
const NTH: &str = "TIDEWHEEL_TEST_RECOVERY_NTH";
const JOB: &str = "wf-run_1-n";

fn at(secs: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000).saturating_add(Span::from_secs(secs))
}

fn scheduler(data: &Path, now: Timestamp) -> Scheduler {
    Scheduler::open(Options {
        root: data.parent().unwrap().to_owned(),
        data: data.to_owned(),
        // The waker that a pass leaves behind is not what this is about.
        binary: PathBuf::from("/bin/true"),
        actor: "ada".to_owned(),
        capacity: 4,
        probe_interval: Options::PROBE_INTERVAL,
        log_limit: Options::LOG_LIMIT,
        cleans_cancelled: false,
        agents: BTreeMap::new(),
        secrets: Secrets::default(),
        tell_of_wait: None,
        now: Some(now),
    })
    .unwrap()
}

/// Writes a job that is said to run, and whose supervisor is gone.
fn lost_job(policy: &Policy) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join(".tidewheel");
    let store = Files::open(&data).unwrap();
    let (run, node) = (RunId::new("run_1").unwrap(), NodeId::new("n").unwrap());
    let mut record = Record::new(JobId::new(JOB).unwrap(), at(0));
    record.child_args = vec!["true".to_owned()];
    record.metadata.set(Metadata::RUN_ID, run.as_str());
    record.metadata.set(Metadata::NODE_ID, node.as_str());
    start(&mut record, None, at(1));
    let started = JobEvent {
        at: at(1),
        attempt: 1,
        event: JobEventKind::Dispatched { policy_attempt: 0, stdout_offset: 0, stderr_offset: 0 },
    };
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        run_id: run,
        workflow_template_selector: "file:a.toml".to_owned(),
        workflow_template_source: None,
        workflow_template_id: "template.a".to_owned(),
        workflow_template_version: "v1".to_owned(),
        policy_snapshot_hash: "00".to_owned(),
        created_at: at(0),
        params: BTreeMap::new(),
        nodes: BTreeMap::from([(
            node,
            ManifestNode {
                job_id: record.id.clone(),
                kind: Kind::Shell,
                uses: "cap.env.shell.command.run".to_owned(),
                args: Map::new(),
                errexit: false,
                gates: Vec::new(),
                produces: BTreeMap::new(),
                policy: policy.to_record(),
                rule: None,
                loops: Vec::new(),
                retry: None,
                routes: Vec::new(),
                schemas: BTreeMap::new(),
                cuts: BTreeMap::new(),
            },
        )]),
    };
    let events = vec![(record.id.clone(), started)];
    let batch = Batch { records: vec![record], events, manifest: Some(manifest), ..Batch::default() };
    assert!(store.turn().unwrap().commit(batch).unwrap().is_empty());
    folder
}

/// Makes a pass in another process, which dies before it renames a file for the `nth` time. Returns whether it did.
fn killed_at(data: &Path, nth: u64) -> bool {
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recovery::a_tick", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DATA, data)
        .env(NTH, nth.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

#[test]
#[ignore = "other tests start it in another process"]
fn a_tick() {
    let Some(data) = std::env::var_os(DATA) else { return };
    let scheduler = scheduler(Path::new(&data), at(100));
    failpoint::arm(failpoint::BEFORE_RENAME, std::env::var(NTH).unwrap().parse().unwrap());
    let ticked = scheduler.tick().unwrap();
    assert_eq!(ticked.errors, [""; 0]);
}

/// Returns what is kept of the job.
fn kept(data: &Path) -> [String; 3] {
    let job = data.join("jobs").join(JOB);
    ["events.jsonl", "job.json", "outcome.json"]
        .map(|name| fs::read_to_string(job.join(name)).unwrap_or_default())
}

#[test]
fn a_tick_that_is_killed_at_any_rename_leaves_the_retry_that_it_decided() {
    let delay = Span::from_secs(3_600);
    let retries = Policy::new().max_retries(2).backoff(Backoff::Fixed).base_delay(delay).max_delay(delay);
    for (policy, is_retried) in [
        (retries.clone().retryable_errors(["lost"]), true),
        (retries.non_retryable_errors(["lost"]), false),
        (Policy::new(), false),
    ] {
        let mut kills_after_the_log = 0;
        for nth in 1.. {
            let folder = lost_job(&policy);
            let data = folder.path().join(".tidewheel");
            let is_killed = killed_at(&data, nth);
            let is_logged = kept(&data)[0].contains("attempt_failed");
            assert!(scheduler(&data, at(200)).tick().unwrap().errors.is_empty());
            // A pass that nothing interrupts, at the instant of the decision that counts.
            let whole = lost_job(&policy);
            let reference = whole.path().join(".tidewheel");
            scheduler(&reference, if is_logged { at(100) } else { at(200) }).tick().unwrap();
            assert_eq!(
                kept(&data),
                kept(&reference),
                "killed before rename {nth} under {}",
                policy.to_record()
            );
            assert_eq!(kept(&data)[1].contains("\"queued\""), is_retried, "{}", kept(&data)[1]);
            if !is_killed {
                break;
            }
            kills_after_the_log += u32::from(is_logged);
        }
        assert!(kills_after_the_log > 0, "no kill was between the event and the record");
    }
}
