//! Where the time of runs went, from their records and events as files have them.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidewheel_core::job::{Brief, JobEvent, JobId, NodeOutcome, Record, RunId};
use tidewheel_core::time::Timestamp;
use tidewheel_core::view::Doing;
use tidewheel_core::view::jobs::{RunStatus, Timeline};

type Briefs = BTreeMap<JobId, Brief>;
type Events = BTreeMap<JobId, Vec<JobEvent>>;

fn run() -> RunId {
    RunId::of_bits(7)
}

/// Returns an instant, so many seconds after noon.
fn at(second: u64) -> Timestamp {
    Timestamp::parse(&text(second)).unwrap()
}

fn text(second: u64) -> String {
    format!("2026-02-01T{:02}:{:02}:{:02}Z", 12 + second / 3_600, second / 60 % 60, second % 60)
}

/// A run that is being written.
#[derive(Default)]
struct Written {
    briefs: Briefs,
    events: Events,
}

impl Written {
    /// Adds a job with more of its record, and what happened to it: seconds, attempts and events.
    fn job(mut self, id: &str, status: &str, rest: Value, events: &[(u64, u32, Value)]) -> Self {
        let mut record = json!({
            "id": id, "version": 1, "status": status, "created_at": text(0),
            "metadata": { "workflow_run_id": run().as_str(), "workflow_node_id": id },
        });
        record.as_object_mut().unwrap().extend(rest.as_object().cloned().unwrap());
        let record = Record::parse(&record.to_string()).unwrap();
        let told = events.iter().map(|(second, attempt, event)| {
            let line = json!({ "at": text(*second), "attempt": attempt, "event": event });
            serde_json::from_str(&line.to_string()).unwrap()
        });
        self.events.insert(record.id.clone(), told.collect());
        self.briefs.insert(record.id.clone(), Brief::from(&record));
        self
    }

    /// Returns each row as a line: the job, a mark if it is critical, and its stretches in seconds.
    fn lines(&self, now: u64) -> Vec<String> {
        let run = run();
        let timeline = Timeline::of(&run, &self.briefs, &self.events, at(now));
        let line = |row: &tidewheel_core::view::jobs::TimelineRow<'_>| {
            let mut line = row.job.id.to_string();
            if row.is_critical {
                line.push('*');
            }
            for stretch in &row.stretches {
                let second = |at: Timestamp| (at.as_nanos() - self::at(0).as_nanos()) / 1_000_000_000;
                let to = stretch.to.map(|at| second(at).to_string()).unwrap_or_default();
                let said = format!(" {}:{}-{to}", stretch.doing.name(), second(stretch.from));
                line.push_str(&said);
            }
            line
        };
        timeline.rows.iter().map(line).collect()
    }
}

fn dispatched() -> Value {
    json!({ "dispatched": { "policy_attempt": 0, "stdout_offset": 0, "stderr_offset": 0 } })
}

fn completed(outcome: &str) -> Value {
    json!({ "completed": { "outcome": outcome, "exit_code": 0, "summary": null } })
}

/// An attempt failed, and the next one is due then; without an instant, none is.
fn failed(due: Option<u64>) -> Value {
    use tidewheel_core::decide::{Action, Decision, ReasonCode};
    let action = due.map_or(Action::Fail, |due| Action::RetryAt(at(due)));
    let decision = Decision { action, reason: ReasonCode::RetryScheduled, attempt_next: 1 };
    json!({ "attempt_failed": { "exit_code": 1, "message": "no", "decision": decision } })
}

fn after(ids: &[&str]) -> Value {
    let after: Vec<Value> = ids.iter().map(|id| json!({ "job_id": id })).collect();
    json!({ "schedule": { "after": after } })
}

#[test]
fn a_job_is_told_from_when_it_could_start_and_retries_have_gaps() {
    let written = Written::default()
        .job(
            "fetch",
            "succeeded",
            json!({}),
            &[
                (1, 1, dispatched()),
                (3, 1, failed(Some(6))),
                (7, 2, dispatched()),
                (9, 2, completed("succeeded")),
            ],
        )
        .job("lint", "succeeded", after(&["fetch"]), &[(9, 1, dispatched()), (10, 1, completed("succeeded"))])
        .job(
            "build",
            "succeeded",
            json!({ "schedule": { "after": [{ "job_id": "fetch" }], "waited_on": ["dependencies", "locks"] } }),
            &[(12, 1, dispatched()), (20, 1, completed("succeeded"))],
        );
    assert_eq!(
        written.lines(99),
        [
            "fetch* queue:0-1 failed:1-3 backoff:3-6 queue:6-7 attempt:7-9",
            "lint attempt:9-10",
            "build* locks:9-12 attempt:12-20",
        ]
    );
    let run = run();
    let timeline = Timeline::of(&run, &written.briefs, &written.events, at(99));
    assert_eq!((timeline.to, timeline.run.status), (at(20), RunStatus::Succeeded));
    assert_eq!((timeline.critical.as_slice(), timeline.critical_ns), (&[0, 2][..], 20_000_000_000));
    let spent =
        |doing| timeline.spent.rows.iter().find(|row| row.doing == doing).map_or(0, |row| row.wall_ns);
    assert_eq!(spent(Doing::Attempt), 11_000_000_000, "9-10 is attempt, whoever waits for locks meanwhile");
    assert_eq!((spent(Doing::Locks), spent(Doing::Backoff)), (2_000_000_000, 3_000_000_000));
    assert_eq!((timeline.spent.idle_ns, timeline.spent.total_ns), (0, 20_000_000_000));
    let first = &timeline.rows[0].attempts;
    assert_eq!(
        first.iter().map(|one| one.outcome).collect::<Vec<_>>(),
        [Some(NodeOutcome::Failed), Some(NodeOutcome::Succeeded)]
    );
}

#[test]
fn what_goes_on_goes_on_until_now() {
    let waits = |kind: &str| json!({ "schedule": { "wait_reason": { "kind": kind, "detail": "" } } });
    let written = Written::default()
        .job("works", "running", json!({}), &[(2, 1, dispatched())])
        .job("by_hand", "running", json!({ "started_at": text(3) }), &[])
        .job("asks", "waiting_on_approval", waits("approval"), &[])
        .job("locked", "waiting_on_locks", waits("locks"), &[])
        .job("full", "queued", waits("capacity"), &[])
        .job("dirty", "waiting_on_deps", waits("preconditions"), &[])
        .job("again", "queued", waits("schedule"), &[(1, 1, dispatched()), (4, 1, failed(Some(60)))])
        .job("deps", "waiting_on_deps", waits("dependencies"), &[]);
    assert_eq!(
        written.lines(30),
        [
            "again* queue:0-1 failed:1-4 backoff:4-",
            "works queue:0-2 attempt:2-",
            "by_hand queue:0-3 attempt:3-",
            "asks approval:0-",
            "dirty world:0-",
            "full capacity:0-",
            "locked locks:0-",
            "deps",
        ]
    );
}

#[test]
fn the_time_that_a_person_took_is_told() {
    let written = Written::default()
        .job("test", "succeeded", json!({}), &[(0, 1, dispatched()), (5, 1, completed("succeeded"))])
        .job(
            "sign",
            "succeeded",
            after(&["test"]),
            &[
                (35, 0, json!({ "decided": { "approved": true, "by": "ada" } })),
                (36, 1, dispatched()),
                (37, 1, completed("succeeded")),
            ],
        )
        .job(
            "early",
            "succeeded",
            after(&["test"]),
            &[
                (2, 0, json!({ "decided": { "approved": true, "by": "ada" } })),
                (6, 1, dispatched()),
                (7, 1, completed("succeeded")),
            ],
        );
    assert_eq!(
        written.lines(99),
        ["test* attempt:0-5", "early queue:5-6 attempt:6-7", "sign* approval:5-35 queue:35-36 attempt:36-37"]
    );
}

#[test]
fn what_never_ran_takes_no_time() {
    let written = Written::default()
        .job(
            "bad",
            "failed",
            json!({}),
            &[(0, 1, dispatched()), (4, 1, failed(None)), (4, 1, completed("failed"))],
        )
        .job("blocked", "blocked_by_dependency", after(&["bad"]), &[])
        .job("skipped", "skipped", after(&["bad"]), &[]);
    assert_eq!(written.lines(99), ["bad* failed:0-4", "blocked", "skipped"]);
    let run = run();
    let timeline = Timeline::of(&run, &written.briefs, &written.events, at(99));
    assert_eq!((timeline.run.status, timeline.to), (RunStatus::Failed, at(4)));
}

#[test]
fn a_job_that_was_rewound_was_idle_in_between() {
    let written = Written::default()
        .job(
            "first",
            "succeeded",
            json!({}),
            &[
                (0, 1, dispatched()),
                (2, 1, completed("succeeded")),
                (10, 1, json!({ "rewound": { "by": "ada" } })),
                (11, 2, dispatched()),
                (13, 2, completed("succeeded")),
            ],
        )
        .job(
            "second",
            "succeeded",
            after(&["first"]),
            &[
                (2, 1, dispatched()),
                (3, 1, completed("failed")),
                (10, 1, json!({ "rewound": { "by": "ada" } })),
                (14, 2, dispatched()),
                (15, 2, completed("succeeded")),
            ],
        );
    assert_eq!(
        written.lines(99),
        ["first* attempt:0-2 queue:10-11 attempt:11-13", "second* failed:2-3 queue:13-14 attempt:14-15",]
    );
    let run = run();
    let timeline = Timeline::of(&run, &written.briefs, &written.events, at(99));
    assert_eq!(timeline.spent.idle_ns, 7_000_000_000);
}

#[test]
fn a_start_that_was_withdrawn_is_waiting() {
    let withdrawn = json!({ "withdrawn": { "reason": "no fork" } });
    let written = Written::default().job(
        "a",
        "succeeded",
        json!({}),
        &[(1, 1, dispatched()), (2, 1, withdrawn), (5, 1, dispatched()), (6, 1, completed("succeeded"))],
    );
    assert_eq!(written.lines(9), ["a* queue:0-1 queue:1-5 attempt:5-6"]);
}

#[test]
fn a_run_without_jobs_has_no_rows() {
    let run = run();
    let (briefs, events) = (Briefs::new(), Events::new());
    let timeline = Timeline::of(&run, &briefs, &events, at(9));
    assert!(timeline.rows.is_empty() && timeline.critical.is_empty());
    assert_eq!((timeline.spent.rows.len(), timeline.critical_ns), (0, 0));
}

/// Returns the weight of the heaviest way, found by walking all of them.
fn heaviest_of_all(before: &[Vec<usize>], weights: &[u64]) -> u64 {
    let mut best = 0;
    let mut ways: Vec<(usize, u64)> = weights.iter().copied().enumerate().collect();
    while let Some((place, sum)) = ways.pop() {
        best = best.max(sum);
        ways.extend(before[place].iter().map(|other| (*other, sum + weights[*other])));
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_critical_path_is_the_heaviest_of_all_ways(
        edges in prop::collection::btree_set((0_usize..8, 0_usize..8), 0..20),
        took in prop::collection::vec(0_u64..6, 8),
    ) {
        let before: Vec<Vec<usize>> = (0..8)
            .map(|node| edges.iter().filter(|(from, to)| from < to && *to == node).map(|(from, _)| *from).collect())
            .collect();
        let ids: Vec<String> = (0..8).map(|node| format!("n{node}")).collect();
        // Each starts at once when the last of those before it has ended.
        let mut ends: Vec<u64> = Vec::new();
        let mut written = Written::default();
        for node in 0..8 {
            let start = before[node].iter().map(|other| ends[*other]).max().unwrap_or(0);
            let end = start + took[node];
            ends.push(end);
            let needed: Vec<&str> = before[node].iter().map(|other| ids[*other].as_str()).collect();
            let told = [(start, 1, dispatched()), (end, 1, completed("succeeded"))];
            written = written.job(&ids[node], "succeeded", after(&needed), &told);
        }
        let run = run();
        let timeline = Timeline::of(&run, &written.briefs, &written.events, at(999));
        let best = heaviest_of_all(&before, &took);
        prop_assert_eq!(timeline.critical_ns, best * 1_000_000_000);
        prop_assert_eq!(best, ends.iter().copied().max().unwrap_or(0), "nobody waits, so it is all of the time");
        let way: Vec<usize> = timeline.critical.iter()
            .map(|place| timeline.rows[*place].job.id.as_str()[1..].parse().unwrap())
            .collect();
        prop_assert!(way.windows(2).all(|pair| before[pair[1]].contains(&pair[0])), "{:?}", way);
        prop_assert_eq!(way.iter().map(|node| took[*node]).sum::<u64>(), best);
        prop_assert_eq!(timeline.rows.iter().filter(|row| row.is_critical).count(), way.len());
        let wall: u64 = timeline.spent.rows.iter().map(|row| row.wall_ns).sum();
        prop_assert_eq!(wall + timeline.spent.idle_ns, timeline.spent.total_ns);
    }

    #[test]
    fn no_history_makes_it_panic_or_runs_backwards(
        events in prop::collection::vec((0_u64..50, 0_usize..7), 0..12),
        status in prop::sample::select(vec!["queued", "running", "succeeded", "failed", "skipped", "waiting_on_deps"]),
        finished in prop::option::of(0_u64..50),
    ) {
        let kinds = [
            dispatched(), completed("succeeded"), completed("cancelled"), failed(Some(20)), failed(None),
            json!({ "rewound": { "by": "x" } }), json!({ "decided": { "approved": false, "by": "x" } }),
        ];
        let told: Vec<(u64, u32, Value)> =
            events.iter().map(|(second, kind)| (*second, 1, kinds[*kind].clone())).collect();
        let rest = finished.map_or_else(|| json!({}), |second| json!({ "finished_at": text(second) }));
        let written = Written::default().job("a", status, rest, &told);
        let run = run();
        let timeline = Timeline::of(&run, &written.briefs, &written.events, at(30));
        for stretch in &timeline.rows[0].stretches {
            prop_assert!(stretch.to.is_none_or(|to| to >= stretch.from));
        }
        let wall: u64 = timeline.spent.rows.iter().map(|row| row.wall_ns).sum();
        prop_assert_eq!(wall + timeline.spent.idle_ns, timeline.spent.total_ns);
    }
}
