//! Removing what is old.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::{Desk, Job, custom, job};
use crate::runs::{ONE, flow};

const OLD: &str = "2026-01-01T00:00:00Z";

fn old(id: &str) -> Job {
    job(id).status("succeeded").with("created_at", OLD).with("finished_at", OLD)
}

/// Returns the instant of now as a record has it.
fn now(desk: &Desk) -> String {
    desk.flow("now", ONE);
    let run = desk.enqueue(&["now"]);
    let id = format!("wf-{run}-one");
    desk.wait(&id);
    desk.record(&id)["created_at"].as_str().unwrap().to_owned()
}

#[test]
fn j_92_old_jobs_go_and_young_or_active_ones_stay() {
    let desk = Desk::new();
    let now = now(&desk);
    for status in
        ["succeeded", "failed", "cancelled", "blocked_by_dependency", "blocked_by_approval", "skipped"]
    {
        desk.put(old(&format!("old-{status}")).status(status));
    }
    desk.put(old("young").with("finished_at", now.as_str()));
    desk.put(job("active").gated().with("created_at", OLD));
    let kept = |desk: &Desk| -> Vec<String> {
        desk.job_dirs().into_iter().filter(|id| !id.starts_with("wf-")).collect()
    };
    let before = kept(&desk);
    assert_eq!(desk.run(&["jobs", "gc", "--dry-run"]).code, Some(0));
    assert_eq!(kept(&desk), before);
    let ran = desk.run(&["jobs", "gc"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(kept(&desk), ["active", "young"]);
}

#[test]
fn j_93_the_days_are_given_or_configured() {
    let desk = Desk::new();
    desk.put(old("a"));
    assert_eq!(desk.run(&["jobs", "gc", "--days", "100000"]).code, Some(0));
    assert_eq!(desk.job_dirs(), ["a"]);
    desk.file(".tidewheel/config.toml", "[jobs.gc]\ndays = 100000\n");
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert_eq!(desk.job_dirs(), ["a"]);
    assert_eq!(desk.run(&["jobs", "gc", "--days", "7"]).code, Some(0));
    assert_eq!(desk.job_dirs(), [""; 0]);
    for bad in ["-1", "x", "99999999999999999999"] {
        assert_eq!(desk.run(&["jobs", "gc", "--days", bad]).code, Some(2), "{bad}");
    }
}

#[test]
fn j_94_without_an_end_the_creation_counts() {
    let desk = Desk::new();
    let now = now(&desk);
    desk.put(old("a").with("finished_at", Value::Null));
    desk.put(old("b").with("finished_at", Value::Null).with("created_at", now.as_str()));
    // The end counts where there is one, however old the job is.
    desk.put(old("c").with("finished_at", now.as_str()));
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert!(!desk.in_jobs("a").exists() && desk.in_jobs("b").exists() && desk.in_jobs("c").exists());
}

#[test]
fn j_95_what_an_active_job_is_after_stays() {
    let desk = Desk::new();
    desk.put(old("needed")).put(old("free"));
    desk.put(job("one").after(&["needed"]).gated());
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert_eq!(desk.job_dirs(), ["needed", "one"]);
    desk.tick();
    assert_eq!(desk.status("one"), "waiting_on_approval");
}

#[test]
fn j_96_with_the_last_job_of_a_run_everything_of_the_run_goes() {
    let desk = Desk::new();
    desk.flow(
        "make",
        &format!(
            "{}{}",
            "[[artifact_contracts]]\nid = \"package\"\nversion = \"v1\"\n",
            "[[nodes]]\nid = \"one\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
             args = { script = \"true\" }\nproduces.succeeded = [{ custom = { type_id = \"package\", key = \"k\" } }]\n\
             [[nodes]]\nid = \"two\"\nkind = \"shell\"\nuses = \"cap.env.shell.command.run\"\n\
             args = { script = \"true\" }\nafter = [\"one\"]\n"
        )
        .replacen("[[artifact", "id = \"t\"\nversion = \"v1\"\n[[artifact", 1),
    );
    let run = desk.enqueue(&["make"]);
    let (one, two) = (format!("wf-{run}-one"), format!("wf-{run}-two"));
    desk.wait(&two);
    let manifest = desk.in_jobs(&format!("runs/{run}.json"));
    let marker = desk.in_jobs(&format!("artifacts/custom/7061636b616765/6b/{one}.json"));
    assert!(manifest.exists() && marker.exists());
    let age = |id: &str| {
        let record = desk.record(id);
        desk.put(Job(record).with("created_at", OLD).with("finished_at", OLD));
    };
    age(&one);
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert!(manifest.exists(), "a job of the run is still there");
    if desk.in_jobs(&two).exists() {
        age(&two);
    }
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert!(!manifest.exists() && !marker.exists());
    assert_eq!(desk.job_dirs(), [""; 0]);
}

#[test]
fn j_97_who_makes_what_an_active_job_needs_stays() {
    let desk = Desk::new();
    let patch = json!({"command_patch": {"job_id": "producer"}});
    desk.put(old("producer").makes(std::slice::from_ref(&patch)));
    desk.put(old("marker").makes(&[custom("t", "k")]));
    let marker = json!({"job_id": "marker", "type_id": "t", "key": "k", "written_at": OLD});
    desk.file(".tidewheel/jobs/artifacts/custom/74/6b/marker.json", &marker.to_string());
    desk.put(job("one").needs(&[patch, custom("t", "k")]).gated());
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert_eq!(desk.job_dirs(), ["marker", "one", "producer"]);
    desk.tick();
    assert_eq!(desk.status("one"), "waiting_on_approval");
}

#[test]
fn an_enqueue_that_did_not_finish_is_invisible_and_removed_after_a_day() {
    let desk = Desk::new();
    let now = now(&desk);
    let lost = |id: &str, run: &str| job(id).meta("workflow_run_id", run).meta("workflow_node_id", "one");
    let run = "run_00000000000000000000000000000001";
    desk.put(lost("wf-old", run).with("created_at", OLD));
    desk.put(lost("wf-young", run).with("created_at", now.as_str()));
    assert_eq!(desk.tick().started, [""; 0]);
    assert_eq!((desk.status("wf-old"), desk.status("wf-young")), ("queued".into(), "queued".into()));
    let ran = desk.run(&["jobs", "list", "--all"]);
    assert!(!ran.out.contains("wf-old") && !ran.out.contains("wf-young"), "{ran:?}");
    assert_eq!(desk.run(&["jobs", "show", "wf-old"]).code, Some(1));
    assert_eq!(desk.run(&["jobs", "gc"]).code, Some(0));
    assert!(!desk.in_jobs("wf-old").exists() && desk.in_jobs("wf-young").exists());
    assert!(fs::exists(desk.in_jobs("scheduler.lock")).unwrap());
}

fn two() -> String {
    flow(&[("one", "true", ""), ("two", "true", "after = [\"one\"]")])
}

/// The manifest went at once, whatever the days, and the run was not listed any more.
#[test]
fn a_run_whose_record_is_lost_stays_with_all_of_its_jobs() {
    let desk = Desk::new();
    desk.flow("one", ONE).flow("two", &two());
    let (lonely, pair) = (desk.enqueue(&["one"]), desk.enqueue(&["two"]));
    desk.wait(&format!("wf-{lonely}-one"));
    desk.wait(&format!("wf-{pair}-two"));
    for id in [format!("wf-{lonely}-one"), format!("wf-{pair}-one")] {
        fs::remove_file(desk.in_jobs(&id).join("job.json")).unwrap();
    }
    for days in [&[][..], &["--days", "0"]] {
        let would = desk.json(&[&["jobs", "gc", "--dry-run"], days].concat());
        let did = desk.json(&[&["jobs", "gc"], days].concat());
        for report in [would, did] {
            assert_eq!((&report["removed"], &report["removed_runs"]), (&json!([]), &json!([])), "{report}");
        }
        for run in [&lonely, &pair] {
            assert!(desk.in_jobs(&format!("runs/{run}.json")).exists(), "{days:?}");
            let listed = desk.run(&["runs", "list"]);
            assert!(listed.out.contains(&run[..12]), "{listed:?}");
        }
        assert_eq!(desk.job_dirs(), [format!("wf-{pair}-two")]);
    }
    // With its directories it is given up.
    fs::remove_dir_all(desk.in_jobs(&format!("wf-{lonely}-one"))).unwrap();
    assert_eq!(desk.json(&["jobs", "gc"])["removed_runs"], json!([]), "it is young");
    assert_eq!(desk.json(&["jobs", "gc", "--days", "0"])["removed_runs"], json!([lonely]));
}

/// Every file there that ended in `.json` went with the next gc.
#[test]
fn what_is_no_manifest_of_ours_among_the_manifests_stays() {
    let desk = Desk::new();
    desk.flow("one", ONE);
    let run = desk.enqueue(&["one"]);
    desk.wait(&format!("wf-{run}-one"));
    let manifest = desk.in_jobs(&format!("runs/{run}.json"));
    fs::copy(&manifest, desk.in_jobs("runs/backup.json")).unwrap();
    desk.file(".tidewheel/jobs/runs/notes.json", "mine");
    desk.file(".tidewheel/jobs/runs/folder.json/notes.txt", "mine");
    let pipe = desk.in_jobs("runs/run_1.json");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let whole = fs::read_to_string(&manifest).unwrap();
    for text in [r#"{"version": 99}"#, "torn"] {
        fs::write(&manifest, text).unwrap();
        let ran = desk.run(&["jobs", "gc", "--days", "0"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.err.contains(&format!("run {run} stays, since its manifest cannot be read")), "{ran:?}");
        assert_eq!(fs::read_to_string(&manifest).unwrap(), text);
        assert_eq!(desk.job_dirs(), [format!("wf-{run}-one")]);
    }
    fs::write(&manifest, whole).unwrap();
    let ran = desk.run(&["jobs", "gc", "--days", "0"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Outcome: removed 1 job(s)\n"), "{ran:?}");
    let mut left: Vec<String> = fs::read_dir(desk.in_jobs("runs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["backup.json", "folder.json", "notes.json", "run_1.json"]);
    assert_eq!(fs::read_to_string(desk.in_jobs("runs/folder.json/notes.txt")).unwrap(), "mine");
}

/// Later ones said that there was nothing to remove, and left it.
#[test]
fn a_gc_that_was_killed_is_finished_by_the_next_one() {
    let desk = Desk::new();
    desk.flow("two", &two());
    let run = desk.enqueue(&["two"]);
    desk.wait(&format!("wf-{run}-two"));
    let bin = desk.in_jobs("tmp");
    fs::create_dir_all(&bin).unwrap();
    // The first two renames of a gc.
    let manifest = format!("{run}.json");
    fs::rename(desk.in_jobs("runs").join(&manifest), bin.join(format!(".manifest-{manifest}"))).unwrap();
    let one = format!("wf-{run}-one");
    fs::rename(desk.in_jobs(&one), bin.join(&one)).unwrap();
    let doctor = desk.run(&["doctor"]);
    assert!(!doctor.out.contains("broken"), "{doctor:?}");
    assert_eq!(desk.json(&["jobs", "gc", "--dry-run"])["removed"], json!([]), "nothing is touched");
    let collected = desk.json(&["jobs", "gc"]);
    assert_eq!(collected["removed"], json!([one, format!("wf-{run}-two")]));
    assert_eq!(collected["removed_runs"], json!([run]));
    assert_eq!(fs::read_dir(&bin).unwrap().count(), 0);
    assert_eq!(desk.job_dirs(), [""; 0]);
}
