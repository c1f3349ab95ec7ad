//! What a new job may be after.

use std::collections::BTreeMap;

use tidewheel_core::job::{After, AfterPolicy, Brief, JobId, Record, check_after, last_jobs_of};
use tidewheel_core::time::Timestamp;

use super::world::{id, node, run, wish};

fn job(name: &str) -> JobId {
    JobId::new(name).expect("it is an id")
}

/// Jobs, each with what it is after.
fn jobs(all: &[(&str, &[&str])]) -> BTreeMap<JobId, Brief> {
    let brief = |(name, after): &(&str, &[&str])| {
        let mut record = Record::new(job(name), Timestamp::default());
        record.schedule.after =
            after.iter().map(|name| After { job_id: job(name), policy: AfterPolicy::Success }).collect();
        (job(name), Brief::from(&record))
    };
    all.iter().map(brief).collect()
}

fn check(wanted: &[&str], own: &[&str], all: &[(&str, &[&str])]) -> Result<Vec<String>, String> {
    let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    let own: Vec<JobId> = own.iter().map(|name| job(name)).collect();
    let unreadable = BTreeMap::from([("bad".to_owned(), "expected value".to_owned())]);
    let found = check_after(&wanted, &own, &jobs(all), &unreadable);
    found.map(|ids| ids.iter().map(ToString::to_string).collect()).map_err(|error| error.to_string())
}

#[test]
fn b_23_what_a_job_is_to_be_after_is_checked() {
    let all: &[(&str, &[&str])] = &[("a", &[]), ("b", &["a"])];
    assert_eq!(check(&["b", "a", "b"], &[], all).unwrap(), ["b", "a"]);
    assert_eq!(check(&["ghost"], &[], all).unwrap_err(), "unknown --after job id: ghost");
    assert_eq!(check(&[""], &[], all).unwrap_err(), "unknown --after job id: <empty>");
    assert_eq!(check(&["../x"], &[], all).unwrap_err(), "unknown --after job id: ../x");
    assert_eq!(check(&["new"], &["new"], all).unwrap_err(), "invalid --after self dependency: new");
    assert_eq!(
        check(&["bad"], &[], all).unwrap_err(),
        "cannot read job record for --after bad: expected value"
    );
    let round: &[(&str, &[&str])] = &[("A", &["B"]), ("B", &["A"]), ("C", &["A"])];
    assert_eq!(check(&["A"], &[], round).unwrap_err(), "invalid --after cycle: A -> B -> A");
    assert_eq!(check(&["C"], &[], round).unwrap_err(), "invalid --after cycle: A -> B -> A");
    let back: &[(&str, &[&str])] = &[("B", &["A"])];
    assert_eq!(check(&["B"], &["A"], back).unwrap_err(), "invalid --after cycle: A -> B -> A");
}

#[test]
fn long_chains_of_jobs_are_no_burden() {
    let names: Vec<String> = (0..20_000).map(|number| format!("j{number}")).collect();
    let mut all = jobs(&[("j0", &[])]);
    for pair in names.windows(2) {
        all.extend(jobs(&[(&pair[1], &[&pair[0]])]));
    }
    assert_eq!(check_after(&["j19999".to_owned()], &[], &all, &BTreeMap::new()).unwrap().len(), 1);
}

#[test]
fn whoever_is_after_a_run_is_after_its_last_jobs() {
    let text = node("a", "on.succeeded = ['b', 'c']\non.failed = ['h']")
        + &node("b", "")
        + &node("c", "")
        + &node("h", "");
    let run = run(&text);
    let briefs: BTreeMap<JobId, Brief> =
        run.records.iter().map(|record| (record.id.clone(), Brief::from(record))).collect();
    assert_eq!(last_jobs_of(&wish().run, &briefs), [id("b"), id("c")]);
    assert_eq!(run.sinks, [id("b"), id("c")]);
}
