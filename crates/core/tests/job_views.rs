//! What people and programs see of jobs: the schedule, the list, one job, runs. Records are written as files have them.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidewheel_core::job::{Artifact, Brief, JobId, JobStatus, Manifest, Record, RunId};
use tidewheel_core::view::jobs::{
    Buckets, Field, List, ListAsk, Row, RunLine, RunStatus, SHOW_FIELDS, Schedule, ScheduleAsk,
    counted_number, find, find_run, latest_line, show_json, status_line, watched,
};

type Briefs = BTreeMap<JobId, Brief>;

/// Returns the record of a job that was enqueued so many seconds after noon.
fn record(id: &str, status: &str, second: u64, rest: Value) -> Record {
    let mut form = json!({ "id": id, "version": 1, "status": status,
        "created_at": format!("2026-02-01T12:{:02}:{:02}Z", second / 60, second % 60) });
    let rest = rest.as_object().cloned().unwrap_or_default();
    form.as_object_mut().unwrap().extend(rest);
    Record::parse(&form.to_string()).unwrap()
}

fn briefs(records: &[Record]) -> Briefs {
    records.iter().map(|record| (record.id.clone(), Brief::from(record))).collect()
}

fn after(ids: &[&str]) -> Value {
    let after: Vec<Value> = ids.iter().map(|id| json!({ "job_id": id, "policy": "success" })).collect();
    json!({ "schedule": { "after": after } })
}

fn ask() -> ScheduleAsk<'static> {
    ScheduleAsk { all: false, focus: None, max_depth: ScheduleAsk::DEPTH }
}

fn nothing_there(_: &Artifact) -> bool {
    false
}

fn ids(briefs: &Briefs, ask: &ScheduleAsk<'_>) -> String {
    Schedule::of(briefs, ask).rows().map(|row| row.job_id).collect::<Vec<_>>().join(" ")
}

fn dag(briefs: &Briefs, ask: &ScheduleAsk<'_>) -> String {
    Schedule::of(briefs, ask).dag(&nothing_there).join("\n")
}

fn form(briefs: &Briefs, ask: &ScheduleAsk<'_>) -> Value {
    serde_json::to_value(Schedule::of(briefs, ask).form(&nothing_there)).unwrap()
}

#[test]
fn k_98_rows_are_ordered_by_creation_and_then_by_id() {
    let jobs = briefs(&[
        record("b", "queued", 1, json!({})),
        record("c", "running", 0, json!({})),
        record("a", "queued", 1, json!({})),
    ]);
    assert_eq!(ids(&jobs, &ask()), "c a b");
    let orders: Vec<usize> = Schedule::of(&jobs, &ask()).rows().map(|row| row.order).collect();
    assert_eq!(orders, [1, 2, 3]);
}

#[test]
fn k_99_what_is_over_is_hidden_unless_it_holds_somebody_up() {
    let needs = json!({ "schedule": { "dependencies": [{ "artifact": { "custom": { "type_id": "t", "key": "k" } } }] } });
    let makes = json!({ "schedule": { "artifacts": [{ "custom": { "type_id": "t", "key": "k" } }] } });
    let jobs = briefs(&[
        record("blocker", "failed", 0, json!({})),
        record("maker", "failed", 1, makes),
        record("done", "succeeded", 2, json!({})),
        record("gone", "cancelled", 3, json!({})),
        record("passed-over", "skipped", 4, json!({})),
        record("other-failure", "failed", 5, json!({})),
        record("dep-blocked", "blocked_by_dependency", 6, after(&["blocker"])),
        record("rejected", "blocked_by_approval", 7, json!({})),
        record("waiting", "waiting_on_deps", 8, needs),
        record("asked", "waiting_on_approval", 9, after(&["other-failure"])),
    ]);
    assert_eq!(ids(&jobs, &ask()), "blocker maker dep-blocked rejected waiting asked");
    assert_eq!(ids(&jobs, &ScheduleAsk { all: true, ..ask() }).split(' ').count(), 10);
}

#[test]
fn k_100_the_focused_job_is_the_first_row_and_what_is_far_is_absent() {
    let jobs = briefs(&[
        record("job-0", "queued", 0, json!({})),
        record("job-1", "queued", 1, after(&["job-0"])),
        record("job-root", "queued", 2, after(&["job-1"])),
        record("job-3", "queued", 3, after(&["job-root"])),
        record("unrelated", "queued", 4, json!({})),
    ]);
    let root = JobId::new("job-root").unwrap();
    let focus = |max_depth| ids(&jobs, &ScheduleAsk { all: false, focus: Some(&root), max_depth });
    assert_eq!(focus(3), "job-root job-0 job-1 job-3");
    assert_eq!(focus(1), "job-root job-1 job-3");
    assert_eq!(focus(0), "job-root");
    let unknown = JobId::new("nobody").unwrap();
    assert!(Schedule::of(&jobs, &ScheduleAsk { focus: Some(&unknown), ..ask() }).is_empty());
}

#[test]
fn k_100_a_focused_job_that_is_over_is_shown() {
    let jobs = briefs(&[
        record("before", "succeeded", 0, json!({})),
        record("done", "succeeded", 1, after(&["before"])),
        record("next", "running", 2, after(&["done"])),
    ]);
    let done = JobId::new("done").unwrap();
    assert_eq!(ids(&jobs, &ScheduleAsk { focus: Some(&done), ..ask() }), "done next");
    assert_eq!(ids(&jobs, &ScheduleAsk { focus: Some(&done), all: true, ..ask() }), "done before next");
}

#[test]
fn k_101_an_empty_schedule_for_programs() {
    let text = serde_json::to_string(&Schedule::of(&Briefs::new(), &ask()).form(&nothing_there)).unwrap();
    assert_eq!(text, r#"{"version":1,"ordering":"created_at_then_job_id","jobs":[],"edges":[]}"#);
}

#[test]
fn k_102_the_schedule_for_programs() {
    let jobs = briefs(&[
        record("job-17", "running", 0, json!({})),
        record(
            "job-24",
            "queued",
            1,
            json!({
                "metadata": { "command_alias": "approve", "plan": "foo", "target": "main" },
                "schedule": {
                    "after": [{ "job_id": "job-17", "policy": "success" }, { "job_id": "job-17", "policy": "success" }],
                    "dependencies": [{ "artifact": { "target_branch": { "name": "y" } } }],
                    "wait_reason": { "kind": "dependencies", "detail": "waiting on job job-17" },
                },
            }),
        ),
    ]);
    assert_eq!(
        form(&jobs, &ask()),
        json!({
            "version": 1,
            "ordering": "created_at_then_job_id",
            "jobs": [
                { "order": 1, "job_id": "job-17", "slug": null, "name": "<command unavailable>",
                  "status": "running", "wait": null, "created_at": "2026-02-01T12:00:00Z" },
                { "order": 2, "job_id": "job-24", "slug": "foo", "name": "approve/foo/main", "status": "queued",
                  "wait": "waiting on job job-17", "created_at": "2026-02-01T12:00:01Z" },
            ],
            "edges": [
                { "from": "job-24", "to": "job-17", "after": { "policy": "success" } },
                { "from": "job-24", "to": "artifact:target_branch:y", "artifact": "target_branch:y", "state": "missing" },
            ],
        })
    );
}

#[test]
fn k_103_edges_are_followed_to_jobs_that_are_not_shown() {
    let jobs = briefs(&[
        record("a", "succeeded", 0, json!({})),
        record("b", "succeeded", 1, after(&["a"])),
        record("c", "running", 2, after(&["b"])),
    ]);
    let edges = |max_depth| {
        let form = form(&jobs, &ScheduleAsk { max_depth, ..ask() });
        let edges = form["edges"].as_array().unwrap().iter();
        edges.map(|edge| format!("{}>{}", edge["from"], edge["to"]).replace('"', "")).collect::<Vec<_>>()
    };
    assert_eq!(edges(0), [""; 0]);
    assert_eq!(edges(1), ["c>b"]);
    assert_eq!(edges(2), ["b>a", "c>b"]);
}

#[test]
fn k_104_the_dag_as_text() {
    let jobs = briefs(&[
        record("job-predecessor", "succeeded", 0, json!({})),
        record(
            "job-producer",
            "running",
            1,
            json!({
                "command": ["make", "it"],
                "schedule": { "artifacts": [{ "command_patch": { "job_id": "x" } }] },
            }),
        ),
        record(
            "job-1",
            "waiting_on_deps",
            2,
            json!({
                "metadata": { "command_alias": "merge" },
                "schedule": {
                    "after": [{ "job_id": "job-predecessor" }, { "job_id": "nobody", "policy": "completion" }],
                    "dependencies": [
                        { "artifact": { "command_patch": { "job_id": "x" } } },
                        { "artifact": { "target_branch": { "name": "y" } } },
                    ],
                    "locks": [{ "key": "k", "mode": "exclusive" }, { "key": "l", "mode": "shared" }],
                    "pinned_head": { "branch": "b", "oid": "oid" },
                    "wait_reason": { "kind": "dependencies", "detail": "waiting on command_patch:x" },
                },
            }),
        ),
    ]);
    assert_eq!(
        dag(&jobs, &ask()),
        "\
Schedule (DAG, verbose)
job-producer running [make it]

job-1 waiting_on_deps [merge] [wait: waiting on command_patch:x] [locks: k:exclusive, l:shared] [pinned: b@oid]
|-- after:success -> job-predecessor succeeded
|-- after:completion -> nobody missing
|-- command_patch:x -> job-producer running
`-- target_branch:y -> [missing]"
    );
    let present = Schedule::of(&jobs, &ask()).dag(&|_| true).join("\n");
    assert!(present.ends_with("`-- target_branch:y -> [present]"), "{present}");
}

#[test]
fn k_105_the_depth_says_how_far_edges_are_followed() {
    let jobs = briefs(&[
        record("c", "succeeded", 0, json!({})),
        record("b", "succeeded", 1, after(&["c"])),
        record("a", "running", 2, after(&["b", "c"])),
    ]);
    let at = |max_depth| dag(&jobs, &ScheduleAsk { max_depth, ..ask() });
    assert_eq!(at(0), "Schedule (DAG, verbose)\na running [<command unavailable>]");
    assert_eq!(
        at(1),
        "\
Schedule (DAG, verbose)
a running [<command unavailable>]
|-- after:success -> b succeeded
`-- after:success -> c succeeded"
    );
    assert_eq!(
        at(2),
        "\
Schedule (DAG, verbose)
a running [<command unavailable>]
|-- after:success -> b succeeded
|   `-- after:success -> c succeeded
`-- after:success -> c succeeded"
    );
}

#[test]
fn k_105_a_circle_is_drawn_once() {
    let jobs =
        briefs(&[record("a", "queued", 0, after(&["b"])), record("b", "queued", 1, after(&["a", "b"]))]);
    assert_eq!(
        dag(&jobs, &ScheduleAsk { max_depth: 1_000, ..ask() }).lines().skip(1).collect::<Vec<_>>(),
        [
            "a queued [<command unavailable>]",
            "`-- after:success -> b queued",
            "    |-- after:success -> a queued",
            "    `-- after:success -> b queued",
            "",
            "b queued [<command unavailable>]",
            "|-- after:success -> a queued",
            "|   `-- after:success -> b queued",
            "`-- after:success -> b queued",
        ]
    );
}

/// Returns layers of jobs, each after all of the layer before.
fn layers(layers: usize, width: usize) -> Briefs {
    let id = |layer: usize, index: usize| format!("l{layer}-{index:04}");
    let mut records = Vec::new();
    for layer in 0..layers {
        let before: Vec<String> =
            if layer == 0 { Vec::new() } else { (0..width).map(|index| id(layer - 1, index)).collect() };
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        for index in 0..width {
            records.push(record(&id(layer, index), "queued", 0, after(&before)));
        }
    }
    briefs(&records)
}

#[test]
fn each_edge_of_layers_stands_there_once() {
    let jobs = layers(4, 40);
    assert_eq!(form(&jobs, &ask())["edges"].as_array().unwrap().len(), 4_800);
    let edges = dag(&jobs, &ask()).lines().filter(|line| line.contains(" -> ")).count();
    assert_eq!(edges, 4_800);
}

#[test]
fn the_picture_of_ten_thousand_jobs_is_linear() {
    let chain: Vec<Record> = (0..10_000)
        .map(|index| {
            let before = format!("j{:05}", index - 1_i32);
            record(
                &format!("j{index:05}"),
                "queued",
                0,
                if index == 0 { json!({}) } else { after(&[&before]) },
            )
        })
        .collect();
    let jobs = briefs(&chain);
    let deep = ScheduleAsk { max_depth: 1_000, ..ask() };
    assert_eq!(form(&jobs, &deep)["edges"].as_array().unwrap().len(), 9_999);
    assert!(dag(&jobs, &deep).lines().count() < 40_000);
}

#[test]
fn a_custom_artifact_comes_from_the_own_run_if_that_makes_it() {
    let of_run = |id: &str, run: &str, second, makes: bool| {
        let artifact = json!({ "custom": { "type_id": "t", "key": "k" } });
        let schedule = match makes {
            true => json!({ "artifacts": [artifact] }),
            false => json!({ "dependencies": [{ "artifact": artifact }] }),
        };
        record(id, "queued", second, json!({ "metadata": { "workflow_run_id": run }, "schedule": schedule }))
    };
    let jobs = briefs(&[
        of_run("m1", "r1", 0, true),
        of_run("m2", "r2", 1, true),
        of_run("n2", "r2", 2, false),
        of_run("n3", "r3", 3, false),
    ]);
    let edges = form(&jobs, &ask())["edges"].as_array().unwrap().clone();
    let edges: Vec<String> = edges.iter().map(|edge| format!("{} {}", edge["from"], edge["to"])).collect();
    assert_eq!(edges, [r#""n2" "m2""#, r#""n3" "m1""#, r#""n3" "m2""#]);
}

#[test]
fn k_106_a_job_is_called_after_its_node_its_alias_or_its_command() {
    let name = |rest: Value| record("a", "queued", 0, rest).name();
    assert_eq!(
        name(json!({ "metadata": { "workflow_node_name": "Ship it", "workflow_node_id": "x" } })),
        "Ship it"
    );
    assert_eq!(
        name(
            json!({ "metadata": { "workflow_node_id": "develop_draft__stage_files", "command_alias": "draft" } })
        ),
        "develop draft / stage files"
    );
    let alias = |plan: Value, target: Value| {
        name(json!({ "metadata": { "command_alias": "approve", "plan": plan, "target": target } }))
    };
    assert_eq!(alias(json!("foo"), json!("main")), "approve/foo/main");
    assert_eq!(alias(json!(null), json!("main")), "approve/main");
    assert_eq!(alias(json!("foo"), json!(" ")), "approve");
    assert_eq!(name(json!({ "command": ["a", "b", "c"] })), "a b c");
    assert_eq!(name(json!({ "command": ["a", "b", "c", "d"] })), "a b c ...");
    assert_eq!(name(json!({})), "<command unavailable>");
}

#[test]
fn k_107_the_slug_is_that_of_the_plan_or_of_what_is_made() {
    let slug = |rest: Value| record("a", "queued", 0, rest).slug();
    let made = json!([{ "target_branch": { "name": "x" } }, { "merge_sentinel": { "slug": "alpha" } }]);
    assert_eq!(
        slug(json!({ "metadata": { "plan": "p" }, "schedule": { "artifacts": made } })).as_deref(),
        Some("p")
    );
    assert_eq!(slug(json!({ "schedule": { "artifacts": made } })).as_deref(), Some("alpha"));
    assert_eq!(slug(json!({})), None);
}

fn rows<'a>(jobs: &[(&'a str, JobStatus)]) -> Vec<Row<'a>> {
    let row = |(index, (job_id, status)): (usize, &(&'a str, JobStatus))| Row {
        order: index + 1,
        job_id,
        slug: None,
        name: "",
        status: *status,
        wait: None,
        created_at: tidewheel_core::time::Timestamp::default(),
    };
    jobs.iter().enumerate().map(row).collect()
}

#[test]
fn k_109_the_focused_running_job_is_watched_else_the_first_among_the_first_rows() {
    let rows = rows(&[("a", JobStatus::Queued), ("b", JobStatus::Running), ("c", JobStatus::Running)]);
    assert_eq!(watched(&rows, None, 3), Some("b"));
    assert_eq!(watched(&rows, Some("c"), 1), Some("c"));
    assert_eq!(watched(&rows, Some("a"), 3), Some("b"));
    assert_eq!(watched(&rows, None, 1), None);
    let buckets = Buckets::of(rows.iter().map(|row| row.status));
    assert_eq!(buckets, Buckets { queued: 1, running: 2, ..Buckets::default() });
    let all = Buckets::of(JobStatus::ALL.iter().copied());
    assert_eq!(all, Buckets { queued: 1, waiting: 3, running: 1, blocked: 2, terminal: 4 });
}

#[test]
fn k_110_the_latest_line_is_the_last_with_anything_on_it() {
    assert_eq!(latest_line("one\n  two \n\n \t\n"), Some("two"));
    assert_eq!(latest_line(" \n\n"), None);
}

#[test]
fn k_111_a_list_says_what_it_hides() {
    let mut records = vec![
        record("r", "running", 0, json!({})),
        record("q", "queued", 1, json!({})),
        record("f", "failed", 2, json!({})),
    ];
    records.extend((0..3).map(|index| record(&format!("s{index}"), "succeeded", 3, json!({}))));
    let jobs = briefs(&records);
    let said = |ask| {
        let list = List::of(&jobs, [], ask);
        let ids: Vec<&str> = list.jobs.iter().map(|job| job.id.as_str()).collect();
        (ids.join(" "), list.outcome, list.hidden.unwrap_or_default())
    };
    let strings = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    let dismiss = ListAsk { dismiss_failures: true, ..ListAsk::default() };
    assert_eq!(
        said(dismiss),
        strings("q r", "2 background jobs", "1 failed, 3 succeeded (use --all to include)")
    );
    assert_eq!(
        said(ListAsk::default()),
        strings("f q r", "3 background jobs", "3 succeeded (use --all to include)")
    );
    assert_eq!(said(ListAsk { all: true, ..dismiss }), strings("s2 s1 s0 f q r", "6 background jobs", ""));
    assert_eq!(said(ListAsk { show_succeeded: true, ..dismiss }).2, "1 failed (use --all to include)");
}

#[test]
fn k_111_a_list_with_nothing_in_it_says_why() {
    let outcome = |records: &[Record]| {
        List::of(&briefs(records), [], ListAsk { dismiss_failures: true, ..ListAsk::default() }).outcome
    };
    assert_eq!(outcome(&[]), "No background jobs found");
    assert_eq!(outcome(&[record("s", "succeeded", 0, json!({}))]), "No active background jobs");
    assert_eq!(outcome(&[record("s", "skipped", 0, json!({}))]), "No active background jobs");
    let both = [record("s", "succeeded", 0, json!({})), record("f", "failed", 0, json!({}))];
    assert_eq!(outcome(&both), "No visible background jobs");
    assert_eq!(outcome(&[record("q", "queued", 0, json!({}))]), "1 background job");
    assert_eq!([0, 999, 1_000, 1_234_567].map(counted_number), ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn k_113_one_job_for_programs_is_strings() {
    let record = record(
        "j",
        "failed",
        0,
        json!({
            "pid": 4242, "exit_code": 42, "config_snapshot": { "a": 1 },
            "metadata": {
                "workflow_gates": ["script", "approval"], "workflow_node_attempt": 2, "execution_root": ".",
                "workflow_template_id": "template.release", "workflow_executor_class": "agent",
            },
            "schedule": {
                "after": [{ "job_id": "a", "policy": "success" }],
                "locks": [{ "key": "repo_serial", "mode": "exclusive" }],
                "wait_reason": { "kind": "locks", "detail": "waiting on locks" },
                "waited_on": ["dependencies", "locks"],
                "pinned_head": { "branch": "main", "oid": "feedface" },
                "dependencies": [{ "artifact": { "plan_doc": { "slug": "alpha", "branch": "draft/alpha" } } }],
                "approval": { "required": true, "state": "approved", "decided_by": "ada" },
            },
        }),
    );
    let shown = show_json(&record, SHOW_FIELDS);
    for (name, value) in [
        ("job", "j"),
        ("pid", "4242"),
        ("exit_code", "42"),
        ("after", "a (success)"),
        ("locks", "repo_serial:exclusive"),
        ("wait", "locks: waiting on locks"),
        ("waited_on", "dependencies, locks"),
        ("pinned_head", "main@feedface"),
        ("dependencies", "plan_doc:alpha (draft/alpha)"),
        ("artifacts", "none"),
        ("approval_required", "true"),
        ("approval_state", "approved"),
        ("approval_decided_by", "ada"),
        ("workflow_gates", "script | approval"),
        ("workflow_node_attempt", "2"),
        ("workflow_template", "template.release"),
        ("workflow_executor_class", "agent"),
        ("execution_root", "."),
        ("stdout", ".tidewheel/jobs/j/stdout.log"),
    ] {
        assert_eq!(shown.get(name), Some(&json!(value)), "{name}");
    }
    assert_eq!(shown["config_snapshot"], json!({ "a": 1 }));
    assert_eq!(shown.get("approval_reason"), None);
}

#[test]
fn a_field_is_found_by_its_key_and_by_its_label() {
    for field in Field::ALL {
        assert_eq!(Field::parse(field.name()), Some(*field));
        assert_eq!(Field::parse(&field.label()), Some(*field), "{}", field.label());
    }
    assert_eq!(Field::parse("waited-ON"), Some(Field::WaitedOn));
    assert_eq!([Field::Pid.label(), Field::WaitedOn.label()], ["PID", "Waited on"]);
    assert_eq!(Field::parse("workflow capability"), None);
}

#[test]
fn k_114_the_status_of_a_job_is_one_line() {
    let done = record("J", "succeeded", 0, json!({ "exit_code": 0 }));
    assert_eq!(
        status_line(&done),
        "J [succeeded] exit=0 stdout=.tidewheel/jobs/J/stdout.log stderr=.tidewheel/jobs/J/stderr.log"
    );
    assert!(status_line(&record("J", "running", 0, json!({}))).contains("[running] exit=- stdout="));
}

#[test]
fn a_job_is_found_by_any_beginning_or_end_of_its_id_and_by_its_node() {
    let node = |run: &str, node: &str| {
        record(
            &format!("wf-run_{run}-{node}"),
            "queued",
            0,
            json!({ "metadata": { "workflow_run_id": format!("run_{run}"), "workflow_node_id": node } }),
        )
    };
    let jobs = briefs(&[
        node("aa1", "one"),
        node("aa1", "two"),
        node("bb2", "one"),
        record("solo", "queued", 0, json!({})),
    ]);
    let found =
        |text: &str| find(&jobs, text).map(|job| job.id.to_string()).map_err(|error| error.to_string());
    let ok = |id: &str| Ok::<String, String>(id.to_owned());
    assert_eq!(found("wf-run_aa1-one"), ok("wf-run_aa1-one"));
    assert_eq!(found("so"), ok("solo"));
    assert_eq!(found("-two"), ok("wf-run_aa1-two"));
    assert_eq!(found("run_bb2/one"), ok("wf-run_bb2-one"));
    assert_eq!(found("bb/one"), ok("wf-run_bb2-one"));
    assert_eq!(found("aa1/t"), ok("wf-run_aa1-two"));
    assert_eq!(found("one").unwrap_err(), "one is ambiguous: wf-run_aa1-one, wf-run_bb2-one");
    for unknown in ["J1", "", "../../x", "run_bb2/two", "x/one", "/", "run_bb2/"] {
        assert_eq!(found(unknown).unwrap_err(), format!("no background job {unknown}"));
    }
    assert_eq!(find_run(&jobs, "run:run_aa1").unwrap().as_str(), "run_aa1");
    assert_eq!(find_run(&jobs, "run").unwrap_err().to_string(), "run is ambiguous: run_aa1, run_bb2");
    assert_eq!(find_run(&jobs, "zz").unwrap_err().to_string(), "no workflow run zz");
}

#[test]
fn a_run_is_what_its_jobs_are() {
    let of_run = |run: &str, statuses: &[&str], second: u64| -> Vec<Record> {
        let metadata =
            json!({ "metadata": { "workflow_run_id": run }, "finished_at": "2026-02-01T13:00:00Z" });
        let job = |(index, status): (usize, &&str)| {
            record(&format!("{run}-{index}"), status, second, metadata.clone())
        };
        statuses.iter().enumerate().map(job).collect()
    };
    let all: Vec<Record> = [
        of_run("r0", &["succeeded", "skipped"], 0),
        of_run("r1", &["succeeded", "failed", "blocked_by_dependency"], 1),
        of_run("r2", &["succeeded", "blocked_by_approval"], 2),
        of_run("r3", &["cancelled", "succeeded"], 3),
        of_run("r4", &["failed", "waiting_on_approval"], 4),
        of_run("r5", &["queued", "running"], 5),
        vec![record("solo", "queued", 0, json!({}))],
    ]
    .concat();
    let jobs = briefs(&all);
    let ids: Vec<RunId> = (0..6).rev().map(|run| RunId::new(&format!("r{run}")).unwrap()).collect();
    let of = |id| RunLine::of(id, jobs.values().filter(|job| job.run.as_ref() == Some(id)).collect());
    let runs: Vec<RunLine<'_>> = ids.iter().map(of).collect();
    let lines: Vec<String> =
        runs.iter().map(|run| format!("{} {} ({})", run.id, run.status, run.counts.said())).collect();
    assert_eq!(
        lines,
        [
            "r5 running (1 running, 1 queued)",
            "r4 waiting (1 waiting, 1 failed)",
            "r3 failed (1 succeeded, 1 cancelled)",
            "r2 blocked (1 succeeded, 1 blocked)",
            "r1 failed (1 succeeded, 1 failed, 1 blocked)",
            "r0 succeeded (1 succeeded, 1 skipped)",
        ]
    );
    assert!(runs.iter().all(|run| run.finished_at.is_some() == run.status.is_over()));
    assert!(RunStatus::Blocked.is_over() && !RunStatus::Waiting.is_over());
}

/// A run of which a record was deleted looked like one that succeeded.
#[test]
fn a_run_of_which_a_record_is_gone_has_not_succeeded() {
    let run = RunId::new("r0").unwrap();
    let manifest = |nodes: &[&str]| {
        let node = |name: &&str| {
            let form = json!({ "job_id": format!("wf-r0-{name}"), "kind": "shell",
                "uses": "cap.env.shell.command.run", "policy": "{}" });
            ((*name).to_owned(), form)
        };
        let form = json!({ "version": 1, "run_id": "r0", "workflow_template_selector": "x",
            "workflow_template_id": "x", "workflow_template_version": "v1", "policy_snapshot_hash": "",
            "created_at": "2026-02-01T12:00:00Z", "params": {},
            "nodes": nodes.iter().map(node).collect::<serde_json::Map<_, _>>() });
        Manifest::parse(&form.to_string()).unwrap()
    };
    let (whole, more) = (manifest(&["a"]), manifest(&["a", "b", "c"]));
    for (status, told) in [("succeeded", "incomplete"), ("failed", "failed"), ("running", "running")] {
        let jobs = briefs(&[record("wf-r0-a", status, 0, json!({}))]);
        let line = || RunLine::of(&run, jobs.values().collect());
        assert_eq!(line().among(&whole).status, line().status);
        let line = line().among(&more);
        assert_eq!((line.status.name(), line.counts.said()), (told, format!("1 {status}, 2 missing")));
        let gone: Vec<String> = line.missing.iter().map(|(node, job)| format!("{node} {job}")).collect();
        assert_eq!(gone, ["b wf-r0-b", "c wf-r0-c"]);
    }
    let line = RunLine::of(&run, Vec::new()).among(&whole);
    assert_eq!((line.status, line.created_at), (RunStatus::Incomplete, whole.created_at));
}
