//! Broken surroundings are told as what they are: records that somebody deleted, files in the place of directories,
//! histories with damaged lines, stores without their end, disks for reading only, processes that were killed.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::home::{Home, Ran};
use crate::screens::{APART, can_mount, script};
use crate::shop;
use crate::yard::Yard;

/// Returns what came of it, with the name of the directory written short.
fn shown(home: &Home, ran: &Ran) -> String {
    ran.to_string().replace(&home.path().display().to_string(), "HOME")
}

/// Returns a flow of one node that runs a script, and one that comes after it.
fn flow(script: &str) -> String {
    format!(
        "id = \"template.x\"\nversion = \"v1\"\n[[nodes]]\nid = \"one\"\nkind = \"shell\"\n\
         uses = \"cap.env.shell.command.run\"\nargs = {{ script = '''{script}''' }}\n[[nodes]]\nid = \"two\"\n\
         kind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = {{ script = \"true\" }}\n\
         after = [{{ node_id = \"one\" }}]\n"
    )
}

/// Returns what the doctor says of a check, as `level file: message`.
fn judged(home: &Home, check: &str, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["doctor", "--format", "json"], arguments].concat();
    let ran = home.run_under(&[("PATH", "/usr/bin:/bin")], &arguments);
    let value: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("it is JSON: {ran}"));
    let of_check = value["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == check);
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or("-").to_owned();
    let said = of_check.map(|finding| {
        format!("{} {}: {}", text(finding, "level"), text(finding, "file"), text(finding, "message"))
    });
    said.collect()
}

/// The run looked like one that had succeeded.
#[test]
fn a_run_of_which_a_record_was_deleted_is_incomplete() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.json(&["run", "two.toml", "--follow"]);
    let run = ran["run_id"].as_str().unwrap();
    assert_eq!(ran["missing"], json!([]));
    fs::remove_dir_all(yard.path(&format!("wf-{run}-one"))).unwrap();
    let list = yard.json(&["runs", "list"]);
    assert_eq!(list["runs"][0]["status"], "incomplete");
    assert_eq!(list["runs"][0]["jobs"]["missing"], 1);
    let show = yard.json(&["runs", "show", run]);
    assert_eq!(show["missing"], json!([{ "job": format!("wf-{run}-one"), "node": "one" }]));
    let show = yard.run(&["runs", "show", run]);
    assert!(show.out.contains("Jobs: 1 succeeded, 1 missing\n"), "{show}");
    let row = show.lines().into_iter().find(|line| line.starts_with("one ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words.join(" "), "one missing its record is gone");
    assert!(show.err.starts_with("hint: What came of jobs that are missing is not known"), "{show}");
    let why = yard.run(&["runs", "explain", run]);
    assert!(why.out.contains(&format!("Run {run} is incomplete: 1 succeeded, 1 missing.")), "{why}");
    let timeline = yard.run(&["runs", "timeline", run]).succeeded();
    assert!(timeline.out.contains("incomplete: 1 succeeded, 1 missing\n"), "{timeline}");
    assert_eq!(yard.json(&["runs", "list", "--status", "succeeded"])["runs"], json!([]));
    assert_eq!(yard.json(&["runs", "list", "--status", "incomplete"])["runs"][0]["id"], run);
    let file = format!("broken .tidewheel/jobs/runs/{run}.json");
    let judge = || judged(&yard.home, "runs", &[]);
    assert_eq!(
        judge(),
        [format!("{file}: 1 job (wf-{run}-one) of the run is gone: deleted by a person or another program")]
    );
    // Of a run of which nothing is left, its manifest still knows.
    fs::remove_dir_all(yard.path(&format!("wf-{run}-two"))).unwrap();
    let list = yard.json(&["runs", "list"]);
    assert_eq!((&list["runs"][0]["id"], &list["runs"][0]["jobs"]["missing"]), (&json!(run), &json!(2)));
    let show = yard.json(&["runs", "show", &run[..12]]);
    assert_eq!((&show["run"]["status"], &show["jobs"]), (&json!("incomplete"), &json!([])));
    assert!(judge()[0].starts_with(&file) && judge().len() == 1, "{:?}", judge());
}

/// A run of which a record is gone is damaged, however old it is: gc removes a run as a whole.
#[test]
fn a_record_that_is_lost_is_broken_also_in_an_old_run() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.json(&["run", "two.toml", "--follow"]);
    let run = ran["run_id"].as_str().unwrap();
    fs::remove_dir_all(yard.path(&format!("wf-{run}-one"))).unwrap();
    let text = fs::read_to_string(yard.path(&format!("wf-{run}-two/job.json"))).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["created_at"] = json!("2026-02-01T12:00:00Z");
    fs::write(yard.path(&format!("wf-{run}-two/job.json")), record.to_string()).unwrap();
    let found = judged(&yard.home, "runs", &[]);
    assert!(found[0].starts_with(&format!("broken .tidewheel/jobs/runs/{run}.json: 1 job")), "{found:?}");
    assert_eq!(yard.run(&["doctor"]).code, Some(1));
    // What is left goes as a whole.
    yard.run(&["jobs", "gc", "--days", "0"]).succeeded();
    assert_eq!(judged(&yard.home, "runs", &[]), ["fine -: 0 manifests, and nothing is wrong"]);
}

#[test]
fn a_tick_says_which_records_cannot_be_read_and_goes_on_with_the_others() {
    let yard = Yard::new();
    yard.job("good", "queued", 0, json!({ "child_args": ["--version"] }));
    yard.home.file(".tidewheel/jobs/bad/job.json", "{ this is no record");
    let ran = yard.run(&["tick"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(ran.out.contains("Started: good\n"), "{ran}");
    assert!(ran.err.contains("job bad: its record cannot be read: "), "{ran}");
    let ticked = yard.run(&["tick", "--format", "json"]);
    assert!(ticked.code == Some(1) && ticked.out.contains("job bad: its record cannot be read"), "{ticked}");
}

#[test]
fn who_follows_is_told_that_a_record_went_away_and_follows_the_others() {
    let yard = Yard::with_flows(&[("x.toml", &flow("rm -r .tidewheel/jobs/wf-*-two"))]);
    let ran = yard.run(&["run", "x.toml", "--follow"]);
    assert_eq!(ran.code, Some(1), "{ran}");
    assert!(
        ran.out.contains("two: missing: its record is gone; `tidewheel doctor` says what to do\n"),
        "{ran}"
    );
    assert!(ran.out.contains("\none: succeeded\n") || ran.out.starts_with("one: succeeded\n"), "{ran}");
    assert!(ran.out.contains("Outcome: Workflow run failed\n"), "{ran}");
    let last = ran.lines().pop().unwrap();
    assert!(last.starts_with("Missing: wf-run_") && last.ends_with("-two"), "{ran}");
    let yard = Yard::with_flows(&[("x.toml", &flow("echo {} > $(echo .tidewheel/jobs/wf-*-two)/job.json"))]);
    let ran = yard.run(&["run", "x.toml", "--follow"]);
    assert!(ran.code == Some(1) && ran.out.contains(": missing: its record cannot be read: "), "{ran}");
}

#[test]
fn locks_that_are_no_files_are_found() {
    let yard = Yard::new();
    yard.job("queued", "queued", 0, json!({ "child_args": ["--version"] }));
    for name in ["scheduler.lock", "daemon.lock", "queued/run.lock"] {
        fs::create_dir(yard.path(name)).unwrap();
    }
    assert_snapshot!(judged(&yard.home, "lock", &[]).join("\n"), @"
    broken .tidewheel/jobs/daemon.lock: is a directory, and not a file that can be locked: no process can wait for retries and delays
    broken .tidewheel/jobs/queued/run.lock: is a directory, and not a file that can be locked: the next start or end of the job clears it away
    broken .tidewheel/jobs/scheduler.lock: is a directory, and not a file that can be locked: nothing can be scheduled
    ");
    assert_snapshot!(shown(&yard.home, &yard.run(&["tick"])), @"
    --- stderr
    error[TW0023]: cannot open HOME/.tidewheel/jobs/scheduler.lock: Is a directory
    hint: A directory is where a file should be: move it away.
    hint: `tidewheel doctor` looks at everything around it.
    --- exit code 1
    ");
    fs::remove_dir(yard.path("scheduler.lock")).unwrap();
    assert_snapshot!(shown(&yard.home, &yard.run(&["tick"])), @"
    Started: queued
    Updated: none
    --- stderr
    warning: HOME/.tidewheel/jobs/queued/run.lock was a directory where a file belongs, and was removed
    ");
}

#[test]
fn a_file_that_is_named_as_the_directory() {
    let home = Home::new();
    home.file("notes.txt", "");
    let told = [&["doctor"][..], &["jobs", "list"], &["init"]].map(|command| {
        let ran = home.run(&[command, &["--dir", "notes.txt"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran}");
        ran.err
    });
    assert!(told.iter().all(|err| *err == told[0]), "{told:?}");
    assert_snapshot!(told[0], @"
    error[TW0023]: `notes.txt` cannot be used: it is a file, and no directory.
    hint: --dir names the directory that has `.tidewheel/` in it.
    ");
}

/// It was told that there are no jobs.
#[test]
fn a_file_in_the_place_of_the_jobs() {
    let home = Home::new();
    home.file(".tidewheel/jobs", "").file("x.toml", flow("true"));
    let commands = [
        &["jobs", "list"][..],
        &["jobs", "schedule"],
        &["jobs", "show", "one"],
        &["runs", "list"],
        &["tick"],
        &["run", "x.toml"],
        &["daemon", "--until-idle"],
    ];
    for command in commands {
        let ran = home.run(command);
        let err = shown(&home, &ran);
        assert!(ran.code == Some(1) && ran.out.is_empty(), "{command:?}: {ran}");
        assert!(
            err.contains("HOME/.tidewheel/jobs: Not a directory\nhint: A file is where a directory"),
            "{err}"
        );
    }
    assert_eq!(
        judged(&home, "place", &[]),
        ["broken .tidewheel/jobs: the directory of the jobs is no directory"]
    );
    assert!(judged(&home, "rights", &[])[0].starts_with("fine "));
    assert!(judged(&home, "records", &[]).is_empty());
    assert_eq!(fs::read(home.path().join(".tidewheel/jobs")).unwrap(), b"");
}

/// Jobs of runs were told not to be there.
#[test]
fn a_file_in_the_place_of_the_manifests() {
    let yard = Yard::with_flows(&[]);
    assert_eq!(yard.run(&["run", "two.toml", "--follow"]).code, Some(0));
    fs::rename(yard.path("runs"), yard.path("../kept")).unwrap();
    fs::write(yard.path("runs"), "").unwrap();
    let commands = [
        &["jobs", "list", "--all"][..],
        &["jobs", "schedule"],
        &["jobs", "show", "one"],
        &["runs", "list"],
        &["tick"],
        &["run", "two.toml"],
    ];
    for command in commands {
        let ran = yard.run(command);
        let err = shown(&yard.home, &ran);
        assert!(ran.code == Some(1) && ran.out.is_empty(), "{command:?}: {ran}");
        let said = "HOME/.tidewheel/jobs/runs: Not a directory\nhint: A file is where a directory";
        assert!(err.contains(said), "{command:?}: {err}");
    }
    assert_eq!(
        judged(&yard.home, "place", &[]),
        [
            "broken .tidewheel/jobs/runs: the directory of the manifests is no directory, and the runs are unknown \
          without them"
        ]
    );
    assert!(judged(&yard.home, "records", &[]).is_empty());
    fs::remove_file(yard.path("runs")).unwrap();
    fs::rename(yard.path("../kept"), yard.path("runs")).unwrap();
    assert_eq!(yard.json(&["jobs", "list", "--all"])["jobs"].as_array().unwrap().len(), 2);
}

/// Runs a command as somebody whom rights stop; root is not stopped by them.
fn as_stranger(home: &Home, arguments: &[&str]) -> Ran {
    let mut command = home.command(arguments);
    command.env("PATH", "/usr/bin:/bin");
    if fs::metadata("/proc/self").unwrap().uid() == 0 {
        command.uid(65_534).gid(65_534);
    }
    Ran::of(command, b"")
}

/// What nobody may read was told as damaged, or as not there.
#[test]
fn what_somebody_has_no_right_to_read_is_not_judged() {
    let yard = Yard::new();
    yard.job("a", "succeeded", 0, json!({}));
    let rights = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (data, record) = (yard.home.path().join(".tidewheel"), yard.path("a/job.json"));
    rights(yard.home.path(), 0o755);
    rights(&record, 0o000);
    let ran = as_stranger(&yard.home, &["doctor"]);
    rights(&record, 0o644);
    assert!(ran.out.contains(".tidewheel/jobs/a/job.json: cannot be read: Permission denied\n"), "{ran}");
    assert!(ran.out.contains("Work as the one who owns it, or let the owner give you the right."), "{ran}");
    assert!(!ran.out.contains("backup"), "{ran}");
    rights(&data, 0o000);
    let (doctor, list) = (as_stranger(&yard.home, &["doctor"]), as_stranger(&yard.home, &["jobs", "list"]));
    rights(&data, 0o755);
    assert!(doctor.out.contains("rights       .tidewheel: cannot be read: Permission denied\n"), "{doctor}");
    assert!(!doctor.out.contains("config.toml") && !doctor.out.contains(" templates "), "{doctor}");
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert_snapshot!(shown(&yard.home, &list), @"
    --- stderr
    error[TW0023]: `HOME/.tidewheel` cannot be read: Permission denied.
    hint: Work as its owner, or give yourself the right, or use another directory.
    hint: `tidewheel doctor` looks at everything around it.
    --- exit code 1
    ");
}

/// `jobs explain` left the attempts out without a word, and the doctor found nothing.
#[test]
fn a_history_of_which_nothing_is_left_is_told() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.json(&["run", "two.toml", "--follow"]);
    let id = format!("wf-{}-one", ran["run_id"].as_str().unwrap());
    let path = yard.path(&id).join("events.jsonl");
    let whole = fs::read(&path).unwrap();
    let told = |why: &str| {
        let said = format!("warning .tidewheel/jobs/{id}/events.jsonl: cannot be read: {why}");
        assert_eq!(judged(&yard.home, "records", &[]), [said]);
        let explained = yard.run(&["jobs", "explain", &id]);
        let said = format!("warning: the history of job {id} is damaged, and some of it is missing here: ");
        assert!(explained.code == Some(0) && explained.err.starts_with(&said), "{explained}");
        assert!(explained.err.contains(why), "{explained}");
    };
    fs::write(&path, [0xa5; 50]).unwrap();
    told("no line of it is whole, and the job was started");
    fs::write(&path, &whole[..30]).unwrap();
    told("no line of it is whole, and the job was started");
    fs::remove_file(&path).unwrap();
    told("it is gone, and the job was started");
    // What a crash cut off at the end is no damage.
    fs::write(&path, [&whole[..], b"{\"at\":"].concat()).unwrap();
    assert_eq!(yard.run(&["jobs", "explain", &id]).err, "");
    assert!(judged(&yard.home, "records", &[])[0].starts_with("fine "));
}

/// One damaged line made `jobs explain` refuse.
#[test]
fn a_history_with_damaged_lines_is_told_as_far_as_it_goes() {
    let yard = Yard::with_flows(&[("x.toml", &flow("exit 3"))]);
    assert_eq!(yard.run(&["run", "x.toml", "--follow"]).code, Some(1));
    let id = yard.json(&["jobs", "list"])["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|job| job["job"].as_str().filter(|id| id.ends_with("-one")).map(str::to_owned));
    let id = id.unwrap();
    let path = yard.path(&id).join("events.jsonl");
    let whole = fs::read(&path).unwrap();
    let damage = |bytes: &[&[u8]]| fs::write(&path, bytes.concat()).unwrap();
    let events = format!(".tidewheel/jobs/{id}/events.jsonl");
    damage(&[b"what is this\n", &whole, b"\xff\xfe{}\n"]);
    let why = yard.run(&["jobs", "explain", &id]);
    assert_eq!(why.code, Some(0), "{why}");
    assert!(why.out.contains("with exit code 3") && why.out.contains("Attempt 1 began"), "{why}");
    let said = format!("warning: the history of job {id} is damaged, and some of it is missing here: ");
    assert!(why.err.starts_with(&said) && why.err.contains("line 1 and another one are damaged: "), "{why}");
    assert!(
        judged(&yard.home, "records", &[])[0]
            .starts_with(&format!("warning {events}: cannot be read: line 1"))
    );
    // Nothing of it is left, and the record still says how it ended.
    damage(&[b"{}\n"]);
    let why = yard.run(&["jobs", "explain", &id]);
    assert!(why.code == Some(0) && why.out.contains("failed") && why.err.starts_with(&said), "{why}");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let why = yard.run(&["jobs", "explain", &id]);
    assert!(why.code == Some(0) && why.err.contains("it is a directory, and no regular file"), "{why}");
}

/// It stayed on record as running for ever.
#[test]
fn a_job_whose_supervisor_is_gone_is_settled_though_its_history_is_damaged() {
    let yard = Yard::new();
    yard.job("gone", "running", 0, json!({ "child_args": ["--version"], "pid": 1 }));
    yard.home.file(".tidewheel/jobs/gone/events.jsonl", "what is this\n");
    let ran = yard.run(&["tick"]).succeeded();
    assert!(ran.out.contains("Updated: gone\n"), "{ran}");
    assert_eq!(yard.record("gone")["status"], "failed");
}

#[test]
fn a_daemon_that_has_nothing_to_wait_for_makes_nothing() {
    let home = Home::new();
    let ran = home.run(&["daemon", "--until-idle"]);
    assert_snapshot!(shown(&home, &ran), @"
    --- stderr
    hint: There are no jobs in `HOME/.tidewheel`, so nothing is due: `tidewheel run FLOW` enqueues some.
    ");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

/// A store without its end was told as somebody else's.
#[test]
fn a_store_without_its_end_is_damaged() {
    let home = shop::home();
    let bytes = fs::read(home.path().join("orders.db")).unwrap();
    for length in [10, 300, 4096, bytes.len() / 2] {
        home.file("torn.db", &bytes[..length]);
        let ran = home.run(&["runs", "list", "--store", "torn.db"]);
        assert!(ran.err.starts_with("error[TW0012]: The store `torn.db` is damaged: "), "{length}: {ran}");
        assert!(ran.err.contains("\nhint: Stop the programs that use it and take it from a backup"), "{ran}");
        let found = judged(&home, "store", &["--store", "torn.db"]);
        let is_told = |line: &String| line.starts_with("broken torn.db: ") && line.contains(" is damaged: ");
        assert!(!found.is_empty() && found.iter().all(is_told), "{length}: {found:?}");
    }
    home.file("text.db", "not a database, but long enough to look like one\n".repeat(99));
    let ran = home.run(&["runs", "list", "--store", "text.db"]);
    assert!(ran.err.starts_with("error[TW0010]: `text.db` is no store of Tidewheel: "), "{ran}");
}

/// Makes a copy of a database of which all is still in its log, without that log.
fn copy_without_log(from: &Path, to: &Path) {
    let connection = rusqlite::Connection::open(from).unwrap();
    let text = "PRAGMA journal_mode = WAL; CREATE TABLE migrations (version INTEGER PRIMARY KEY)";
    connection.execute_batch(text).unwrap();
    fs::copy(from, to).unwrap();
}

#[test]
fn a_store_that_was_copied_without_its_log_is_broken() {
    let home = Home::new();
    copy_without_log(&home.path().join("whole.db"), &home.path().join("copy.db"));
    assert_snapshot!(home.run(&["runs", "list", "--store", "copy.db"]), @"
    --- stderr
    error[TW0010]: `copy.db` is no store of Tidewheel: the database has no tables: it was copied without its `-wal`, or nothing was ever written to it.
    --- exit code 1
    ");
    assert_eq!(
        judged(&home, "store", &["--store", "copy.db"]),
        ["broken copy.db: the database has no tables, and so no runs"]
    );
}

#[test]
fn a_store_on_a_disk_for_reading_only() {
    if !can_mount() {
        return;
    }
    let home = shop::home();
    fs::create_dir(home.path().join("disk")).unwrap();
    let text =
        "mount -t tmpfs -o size=20m none disk && cp orders.db disk/o.db && mount -o remount,ro none disk
        tidewheel runs list --store disk/o.db";
    assert_snapshot!(shown(&home, &script(&home, &APART, text)), @"
    --- stderr
    error[TW0012]: The store `disk/o.db` cannot be used: SQLite has to make files beside it, even to read it, and its directory cannot be written: Read-only file system.
    hint: Give yourself the right to write there, or copy `disk/o.db` to a directory that you may write, with `disk/o.db-wal` if there is one, and look at the copy.
    --- exit code 1
    ");
}

#[test]
fn a_process_that_was_killed_is_told_so() {
    for (text, code, told) in [
        ("kill -KILL $$", 137, "137, killed by signal 9 (SIGKILL)"),
        ("exit 137", 137, "137, which a shell gives for signal 9 (SIGKILL)"),
        ("exit 143", 143, "143, which a shell gives for signal 15 (SIGTERM)"),
        ("exit 255", 255, "255"),
    ] {
        let yard = Yard::with_flows(&[("x.toml", &flow(text))]);
        let ran = yard.run(&["run", "x.toml", "--follow"]);
        assert!(ran.out.contains(&format!("one: failed (exit {told})\n")), "{ran}");
        let show = yard.run(&["jobs", "show", "one"]).succeeded();
        assert!(show.out.contains(&format!("\nExit code: {told}\n")), "{show}");
        let table = yard.run(&["jobs", "show", "one", "--format", "table"]).succeeded();
        assert!(table.out.contains(told), "{table}");
        assert_eq!(yard.json(&["jobs", "show", "one"])["exit_code"], code.to_string());
        let why = yard.run(&["jobs", "explain", "one"]).succeeded();
        let why = why.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(why.contains(&format!("with exit code {told}")), "{why}");
        let is_seen = why.contains("command.run was killed by signal 9 (SIGKILL).");
        assert_eq!(is_seen, text.starts_with("kill"), "{why}");
        let run = yard.json(&["runs", "list"])["runs"][0]["id"].as_str().unwrap().to_owned();
        let why = yard.run(&["runs", "explain", &run]).succeeded();
        assert_eq!(why.out.matches("killed by").count(), usize::from(is_seen), "{why}");
    }
}

/// What came after the job ran again without it.
#[test]
fn a_retry_that_cannot_reset_one_job_resets_none() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.json(&["run", "two.toml", "--follow"]);
    let run = ran["run_id"].as_str().unwrap();
    let [one, two] = ["one", "two"].map(|node| format!("wf-{run}-{node}"));
    for (job, name) in [(&one, "stdout.log"), (&two, "stderr.log"), (&two, "outcome.json")] {
        let path = yard.path(job).join(name);
        let aside = yard.path(job).join("aside");
        fs::rename(&path, &aside).unwrap();
        fs::create_dir(&path).unwrap();
        let before = [yard.record(&one), yard.record(&two)];
        let ran = yard.run(&["jobs", "retry", "one"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran}");
        let file = format!("{}: Is a directory\nhint: A directory is where a file should be", path.display());
        assert!(ran.err.starts_with("error[TW0022]: no job was reset: cannot "), "{ran}");
        assert!(ran.err.contains(&file), "{ran}");
        assert_eq!([yard.record(&one), yard.record(&two)], before);
        fs::remove_dir(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
    }
    assert_eq!(fs::read_to_string(yard.path(&one).join("stdout.log")).unwrap(), "hello here\n");
    let retried = yard.json(&["jobs", "retry", "one"]);
    assert_eq!(retried["reset"], json!([one, two]));
    yard.run(&["jobs", "wait", "one", "two"]).succeeded();
}

/// The run was there, and whoever was told only of an error would have run it again.
#[test]
fn a_directory_in_the_place_of_an_index_does_not_stop_runs() {
    for name in ["index.live", "index.done", "index.due"] {
        let yard = Yard::with_flows(&[]);
        yard.run(&["run", "two.toml", "--follow"]).succeeded();
        let path = yard.path(name);
        let put = |with: &[&str]| {
            let aside = yard.home.path().join("aside");
            fs::create_dir(&aside).unwrap();
            with.iter().for_each(|name| fs::write(aside.join(name), "mine").unwrap());
            // A supervisor that is about to go may write the file once more.
            while fs::rename(&aside, &path).is_err() {
                fs::remove_file(&path).ok();
            }
        };
        put(&[]);
        yard.run(&["run", "two.toml", "--follow"]).succeeded();
        assert!(!path.is_dir(), "{name}");
        // What is in a directory is not ours to remove.
        put(&["mine.txt"]);
        let ran = yard.run(&["run", "two.toml"]);
        assert!(ran.out.starts_with("Outcome: Workflow run enqueued\n"), "{ran}");
        let is_due = name == "index.due";
        assert_eq!((ran.code, ran.err.is_empty()), (Some(i32::from(is_due)), !is_due), "{ran}");
        if is_due {
            let told = format!("error[TW0022]: cannot write {}: Is a directory\n", path.display());
            assert!(ran.err.starts_with(&told) && ran.err.contains("move it away"), "{ran}");
        }
        let run = yard.json(&["runs", "list"])["runs"][0]["id"].as_str().unwrap().to_owned();
        let waited = yard.run(&["jobs", "wait", &format!("run:{run}")]);
        assert_eq!(waited.code, Some(0), "{waited}");
        let said = judged(&yard.home, "index", &[]);
        assert!(
            said.len() == 1 && said[0].starts_with(&format!("broken .tidewheel/jobs/{name}: is a d")),
            "{said:?}"
        );
        assert_eq!(fs::read_to_string(path.join("mine.txt")).unwrap(), "mine");
    }
}

/// It was said that the next pass starts it, and then no pass could.
#[test]
fn a_run_lock_that_is_no_file_keeps_no_job_from_its_start() {
    let yard = Yard::new();
    yard.job("queued", "queued", 0, json!({ "child_args": ["--version"] }));
    fs::create_dir(yard.path("queued/run.lock")).unwrap();
    let why = yard.jobs(&["explain", "queued"]).succeeded();
    assert!(why.out.contains("The next pass of the scheduler starts it."), "{why}");
    assert_eq!(yard.json(&["tick"])["started"], json!(["queued"]));
    yard.jobs(&["wait", "queued", "-q"]).succeeded();
}

/// They were told to be none.
#[test]
fn a_job_whose_record_is_damaged_is_known_by_the_end_of_its_id() {
    let yard = Yard::with_flows(&[]);
    let ran = yard.json(&["run", "two.toml", "--follow"]);
    let run = ran["run_id"].as_str().unwrap();
    let path = yard.path(&format!("wf-{run}-one/job.json"));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..20]).unwrap();
    let said = format!("error[TW0020]: unable to load background job wf-{run}-one: ");
    for verb in ["show", "tail", "retry", "status", "explain"] {
        for name in ["one", &format!("{run}/one"), &format!("{}/one", &run[..12]), &format!("wf-{run}-one")] {
            let ran = yard.run(&["jobs", verb, name]);
            assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran}");
            assert!(ran.err.contains(&said), "{verb} {name}: {ran}");
        }
    }
    for name in ["three", &format!("{run}/three"), "run_x/one"] {
        let ran = yard.run(&["jobs", "status", name]);
        assert!(ran.err.starts_with(&format!("error[TW0018]: no background job {name}\n")), "{ran}");
    }
    // What comes after it can be reset, and cannot run.
    let ran = yard.run(&["jobs", "retry", "two"]);
    let told = format!(
        "warning: job wf-{run}-two was reset and is blocked: scheduler data error for job dependency wf-{run}-one: "
    );
    assert!(ran.code == Some(0) && ran.err.starts_with(&told), "{ran}");
    fs::write(&path, text).unwrap();
    yard.run(&["jobs", "retry", "two"]).succeeded();
    yard.run(&["jobs", "wait", "two"]).succeeded();
}
