//! Jobs that hold locks while they run.

use serde_json::{Value, json};

use crate::by_hand::{Desk, at, job, standing};

fn locked() -> (String, String, String) {
    standing("waiting_on_locks", "locks", "waiting on locks")
}

#[test]
fn g_63_shared_locks_are_held_together() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["k:shared"]));
    desk.put(job("one").locks(&["k:shared"])).put(job("two").locks(&["k:shared"]));
    assert_eq!(desk.tick().started, ["one", "two"]);
}

#[test]
fn g_64_and_65_an_exclusive_lock_is_held_alone() {
    let held = [("exclusive", "exclusive"), ("exclusive", "shared"), ("shared", "exclusive")];
    for (holds, wants) in held {
        let desk = Desk::new();
        desk.put(job("holder").status("running").locks(&[&format!("k:{holds}")]));
        desk.put(job("one").locks(&[&format!("k:{wants}")]));
        assert_eq!(desk.ticked("one"), locked(), "{wants} while {holds}");
        assert_eq!(desk.record("one")["schedule"]["waited_on"], json!(["locks"]));
    }
}

#[test]
fn g_66_who_waits_for_one_lock_takes_no_other() {
    let desk = Desk::new();
    desk.put(job("holder").status("running").locks(&["b:exclusive"]));
    desk.put(job("both").locks(&["a:exclusive", "b:exclusive"])).put(job("later").locks(&["a:exclusive"]));
    assert_eq!(desk.tick().started, ["later"]);
    assert_eq!(desk.standing("both"), locked());
}

#[test]
fn g_67_a_lock_that_was_just_taken_is_taken() {
    let desk = Desk::new();
    let blocked = "jobs wait holder".split(' ').collect::<Vec<_>>();
    desk.put(job("holder").status("running"));
    desk.put(job("z-early").locks(&["k:exclusive"]).with("child_args", json!(blocked)));
    desk.put(job("a-late").locks(&["k:exclusive"]));
    assert_eq!(desk.tick().started, ["z-early"]);
    assert_eq!(desk.standing("a-late"), locked());
    // The end of the first is enough: nobody has to tick.
    desk.end("holder", "succeeded");
    desk.wait("a-late");
    assert_eq!((desk.status("z-early"), desk.status("a-late")), ("succeeded".into(), "succeeded".into()));
}

#[test]
fn g_68_only_who_runs_holds_a_lock() {
    let desk = Desk::new();
    desk.put(job("asks").gated().locks(&["k:exclusive"]));
    desk.put(job("later").schedule("not_before", "2099-01-01T00:00:00Z").locks(&["k:exclusive"]));
    desk.put(job("done").status("succeeded").locks(&["k:exclusive"]));
    desk.put(job("one").locks(&["k:exclusive"]));
    assert_eq!(desk.tick().started, ["one"]);

    desk.put(job("holder").status("running").locks(&["l:exclusive"]));
    desk.put(job("two").locks(&["l:exclusive"]));
    assert_eq!(desk.ticked("two"), locked());
    desk.end("holder", "failed");
    desk.succeeds("two");
}

#[test]
fn g_69_what_was_waited_for_is_kept_in_order_and_once() {
    let desk = Desk::new();
    desk.put(job("dep").status("running")).put(job("holder").status("running").locks(&["k:exclusive"]));
    desk.put(job("one").after(&["dep"]).locks(&["k:exclusive"]));
    desk.tick();
    desk.tick();
    desk.end("dep", "succeeded");
    assert_eq!(desk.ticked("one"), locked());
    desk.end("holder", "succeeded");
    desk.succeeds("one");
    let record = desk.record("one");
    assert_eq!(record["schedule"]["waited_on"], json!(["dependencies", "locks"]));
    assert_eq!(at(&record, "/schedule/wait_reason"), &Value::Null);
}

#[test]
fn g_70_later_shared_locks_do_not_overtake_a_waiting_exclusive_one() {
    let desk = Desk::new();
    desk.put(job("reader").status("running").locks(&["k:shared"]));
    desk.put(job("writer").locks(&["k:exclusive"]));
    desk.tick();
    for index in 0..5 {
        desk.put(job(&format!("reader-{index}")).locks(&["k:shared"]));
    }
    assert_eq!(desk.tick().started, [""; 0]);
    assert_eq!(desk.standing("reader-3"), locked());
    desk.end("reader", "succeeded");
    desk.tick();
    for index in 0..5 {
        desk.wait(&format!("reader-{index}"));
    }
    let started = |id: &str| desk.record(id)["started_at"].as_str().unwrap().to_owned();
    let finished = desk.record("writer")["finished_at"].as_str().unwrap().to_owned();
    assert!((0..5).all(|index| started(&format!("reader-{index}")) >= finished));
}

#[test]
fn a_job_may_name_one_lock_twice() {
    let desk = Desk::new();
    desk.put(job("one").locks(&["k:exclusive", "k:exclusive", "k:shared"]));
    assert_eq!(desk.tick().started, ["one"]);
}
