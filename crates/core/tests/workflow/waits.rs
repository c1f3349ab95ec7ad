//! Work that waits before it begins, between attempts, or for somebody outside.

use tidewheel_core::decide::{Record, RetryPolicy, Situation};
use tidewheel_core::event::{FailedAttempt, Hold};
use tidewheel_core::fact::Value;
use tidewheel_core::policy::{Failure, JitterSeed, Policy, name};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_core::{Runnable, Ticket};

use crate::driven::{Driven, well};
use crate::inc;

const fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

/// An attempt that failed and is followed by another one, at once.
pub(crate) fn failed_attempt(runnable: &Runnable) -> FailedAttempt {
    let policy = RetryPolicy::from(&Policy::new().max_retries(9).resolved().unwrap());
    let situation = Situation::failed(runnable.attempt(), at(50), JitterSeed::new("r", "node"));
    FailedAttempt { failure: Failure::new("once"), decided: Record::decide(policy, situation) }
}

/// Two components that may begin only when somebody lets them, or later, and one that just runs.
fn gated() -> Workflow {
    ["plain", "limited", "delayed"]
        .map(|name| step(name, inc))
        .into_iter()
        .fold(Workflow::new("w"), tidewheel_core::workflow::WorkflowBuilder::add)
        .policy(name("limited"), Policy::new().concurrency_limit(1))
        .policy(name("delayed"), Policy::new().delay(Span::from_millis(20)))
        .build()
        .unwrap()
}

fn admitted(driven: &mut Driven, now: u64) -> (Vec<Runnable>, Vec<tidewheel_core::Wait>) {
    let prepared = driven.run.prepare_admitted(at(now), Some(at(now)));
    driven.keep();
    (prepared.runnables, prepared.held)
}

fn hold(driven: &mut Driven, ticket: &Ticket, why: Hold, until: Option<Timestamp>, now: u64) {
    driven.run.hold(ticket, why, None, until, at(now));
    driven.keep();
}

#[test]
fn only_what_may_begin_as_it_is_is_handed_out() {
    let mut driven = Driven::of(&gated());
    driven.run.plan_accepted(Value::new(1_i64), at(5), None);
    driven.keep();
    let (runnables, held) = admitted(&mut driven, 10);
    assert_eq!(runnables.iter().map(|work| work.node().name).collect::<Vec<_>>(), [Some("plain")]);
    let waits: Vec<_> = held.iter().map(|wait| (wait.why, wait.until, wait.accepted_at)).collect();
    let wanted = [(Hold::Admission, at(10)), (Hold::Delay, at(30))];
    assert_eq!(waits, wanted.map(|(why, until)| (Some(why), Some(until), Some(at(5)))));
    assert_eq!((held[0].wanted_at, held[1].wanted_at), (Some(at(10)), None), "a delay is no queue");
    assert_eq!(driven.run.waits().len(), 2);
    assert!(!driven.run.only_waits(), "something is out");
    assert_eq!(driven.run.next_due(), Some(at(10)));
    assert!(admitted(&mut driven, 11).0.is_empty(), "each piece once");
    driven.apply(runnables.into_iter().next().unwrap().execute());
    assert!(driven.run.only_waits());
    driven.is_sound();
    for wait in held {
        let work = driven.run.prepare_retry(&wait.ticket, at(40)).unwrap();
        driven.keep();
        assert!(driven.run.prepare_retry(&wait.ticket, at(40)).is_none(), "it does not wait any more");
        driven.end(work, well);
    }
    driven.finish(well);
    assert_eq!(driven.run.next_due(), None);
}

#[test]
fn what_waits_longer_is_due_later_and_is_wanted_since_the_first_time() {
    let mut driven = Driven::of(&gated());
    driven.plan(1);
    let (_, held) = admitted(&mut driven, 10);
    let ticket = &held[0].ticket;
    hold(&mut driven, ticket, Hold::RateLimit, Some(at(25)), 11);
    assert_eq!(driven.run.next_due(), Some(at(25)));
    hold(&mut driven, ticket, Hold::ConcurrencyLimit, None, 26);
    assert_eq!(driven.run.next_due(), Some(at(30)), "that one waits for somebody, not for a time");
    let wait = driven.run.wait(ticket).unwrap();
    assert_eq!((wait.why, wait.until, wait.wanted_at), (Some(Hold::ConcurrencyLimit), None, Some(at(10))));
    assert_eq!(driven.run.waiting_runnable(ticket).unwrap().node().name, Some("limited"));
    assert_eq!(driven.run.waits().len(), 2, "to look at it takes nothing away");
    driven.is_sound();
}

#[test]
fn what_was_given_back_is_offered_again_and_waits_for_nothing() {
    let mut driven = Driven::of(&gated());
    driven.plan(1);
    let (_, held) = admitted(&mut driven, 10);
    for wait in &held {
        assert!(!driven.run.give_back(&wait.ticket).is_empty());
        driven.keep();
        assert!(driven.run.wait(&wait.ticket).is_none());
    }
    assert_eq!((driven.run.next_due(), driven.run.waits().len()), (None, 0));
    driven.is_sound();
    let (runnables, again) = admitted(&mut driven, 50);
    assert!(runnables.is_empty());
    let waits: Vec<_> = again.iter().map(|wait| (wait.why, wait.until)).collect();
    assert_eq!(waits, [(Some(Hold::Admission), Some(at(50))), (Some(Hold::Delay), Some(at(70)))]);
    driven.is_sound();
}

#[test]
fn what_is_over_or_of_another_run_does_not_wait() {
    let mut driven = Driven::of(&gated());
    driven.plan(1);
    let (mut runnables, held) = admitted(&mut driven, 10);
    let work = runnables.remove(0);
    let ticket = work.ticket();
    driven.end(work, well);
    assert!(driven.run.hold(&ticket, Hold::External, None, None, at(11)).is_empty());
    assert!(driven.run.give_back(&ticket).is_empty());
    let mut other = Driven::of(&gated());
    other.run = gated().run("other");
    other.run.plan(1_i64);
    other.run.prepare_admitted(at(10), None);
    assert!(other.run.hold(&held[0].ticket, Hold::External, None, None, at(11)).is_empty());
    assert!(other.run.give_back(&held[0].ticket).is_empty() && other.run.wait(&held[0].ticket).is_none());
}

#[test]
fn what_is_outside_can_be_ended_and_what_waits_for_a_turn_cannot() {
    let mut driven = Driven::of(&gated());
    driven.plan(1);
    let (mut runnables, held) = admitted(&mut driven, 10);
    let outside = runnables.remove(0);
    hold(&mut driven, &outside.ticket(), Hold::External, Some(at(90)), 12);
    assert!(driven.run.only_waits());
    let waiting = driven.run.waiting_runnable(&held[0].ticket).unwrap();
    assert!(driven.run.apply(waiting.execute()).is_empty(), "it was not handed out");
    driven.end(outside, well);
    assert_eq!(driven.values("plain"), [2]);
    assert_eq!(driven.run.next_due(), Some(at(10)));
    driven.is_sound();
}

#[test]
fn an_attempt_that_failed_waits_for_the_next_one_and_keeps_its_beginning() {
    let mut driven = Driven::of(&gated());
    driven.plan(1);
    let (mut runnables, _) = admitted(&mut driven, 10);
    let work = runnables.remove(0);
    driven.run.fail_attempt(&work.ticket(), failed_attempt(&work));
    driven.keep();
    let wait = driven.run.wait(&work.ticket()).unwrap();
    assert_eq!((wait.why, wait.until, wait.started_at), (None, Some(at(50)), Some(at(10))));
    assert!(driven.run.only_waits());
    driven.is_sound();
    let again = driven.run.prepare_retry(&work.ticket(), at(60)).unwrap();
    driven.keep();
    assert_eq!((again.attempt(), driven.run.dispatches(&again.ticket())), (1, 1));
    driven.end(again, well);
    assert_eq!(driven.values("plain"), [2]);
}

#[test]
fn what_got_lost_is_handed_out_again_or_asks_to_be_let_in_again() {
    let mut driven = Driven::of(&gated());
    driven.plan(1);
    let (_, held) = admitted(&mut driven, 10);
    for wait in &held {
        driven.run.prepare_retry(&wait.ticket, at(30)).unwrap();
        driven.keep();
    }
    let prepared = driven.run.prepare_lost(at(40));
    driven.keep();
    assert_eq!(prepared.runnables.len(), 1);
    let lost = prepared.runnables[0].ticket();
    assert_eq!(driven.run.dispatches(&lost), 2, "it was handed out twice");
    let waits: Vec<_> = prepared.held.iter().map(|wait| (wait.why, wait.until)).collect();
    let admission = (Some(Hold::Admission), Some(at(40)));
    assert_eq!(waits, [admission, admission], "what began once has had its delay");
    driven.is_sound();
}
