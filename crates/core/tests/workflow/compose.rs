//! Components that are added to a run while it lives.

use serde_json::json;
use tidewheel_core::event::{Absence, Event};
use tidewheel_core::fact::Value;
use tidewheel_core::policy::{Matcher, Overlay, Policy, Rules, name};
use tidewheel_core::run::Run;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{
    Meta, Workflow, WorkflowBuilder, accumulator, condition, map, reduce, rule, step,
};
use tidewheel_core::{Change, EventError, SignalError};

use crate::{double, inc, produced};

fn base() -> WorkflowBuilder {
    Workflow::new("w").add(step("inc", inc))
}

/// A run with its log.
struct Logged {
    run: Run,
    log: Vec<Event>,
}

impl Logged {
    fn of(workflow: &Workflow) -> Self {
        Self { run: workflow.run("r"), log: Vec::new() }
    }

    fn plan(&mut self, input: i64) {
        self.log.extend_from_slice(self.run.plan(input));
    }

    fn compose(&mut self, builder: &WorkflowBuilder) {
        let workflow = builder.clone().build().unwrap();
        self.log.extend_from_slice(self.run.compose(&workflow).unwrap());
    }

    /// Does what can be done now, and not what that wakes.
    fn step(&mut self) {
        let runnables = self.run.prepare();
        self.log.extend_from_slice(self.run.last_events());
        for runnable in runnables {
            self.log.extend_from_slice(self.run.apply(runnable.execute()));
        }
    }

    fn finish(&mut self) {
        while self.run.is_runnable() {
            self.step();
        }
    }

    fn react(&mut self, input: i64) {
        self.plan(input);
        self.finish();
    }

    fn lines(&self) -> Vec<String> {
        let workflow = self.run.workflow();
        self.log.iter().map(|event| event.to_json(&workflow).unwrap()).collect()
    }

    fn results(&self, component: &str) -> Vec<i64> {
        self.run.results(component).unwrap()
    }

    /// Replays the whole log in each way.
    fn is_told_by_its_log(&self, workflow: &Workflow) {
        let typed = Run::replay(&self.run.workflow(), "r", &self.log).unwrap();
        let lines = self.lines();
        let read = Run::replay_json(workflow, "r", lines.iter().map(String::as_str)).unwrap();
        for run in [typed, read] {
            assert_eq!(produced(&run), produced(&self.run));
            assert_eq!(run.is_runnable(), self.run.is_runnable());
            assert_eq!(run.pending_runnables(), self.run.pending_runnables());
            let names = |run: &Run| {
                let mut names: Vec<String> = run.added().map(str::to_owned).collect();
                names.sort();
                names
            };
            assert_eq!(names(&run), names(&self.run));
        }
    }
}

#[test]
fn a_step_that_is_added_reacts_to_later_inputs_alone() {
    let mut run = Logged::of(&base().build().unwrap());
    run.react(1);
    let more = base().add(step("double", double).after("inc"));
    run.compose(&more);
    assert_eq!(run.results("double"), [0_i64; 0]);
    run.react(2);
    run.react(3);
    assert_eq!(run.results("inc"), [2, 3, 4]);
    assert_eq!(run.results("double"), [6, 8]);
    assert_eq!(run.run.added().collect::<Vec<_>>(), ["double"]);
    run.is_told_by_its_log(&more.build().unwrap());
}

#[test]
fn what_is_in_flight_does_not_learn_of_it() {
    let pair = |a: i64, b: i64| a * 100 + b;
    let old = base()
        .add(step("list", |n: i64| (0..n).collect::<Vec<_>>()).after("inc"))
        .add(map("item", inc).after("list"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total + x).after("sum"))
        .add(step("both", pair).after(["inc", "sum"]));
    let new = old
        .clone()
        .add(step("doubled", double).after("item"))
        .add(reduce("product", 1_i64, |product: i64, x: i64| product * x).after("item"))
        .add(step("second", pair).after(["sum", "product"]))
        .add(accumulator("count", 0_i64, |count: i64, _: i64| count + 1).after("item"))
        .add(rule("odd").when(|x: &i64| x % 2 == 1).then(double).after("inc"))
        .add(step("other", double));
    let mut alone = Logged::of(&old.clone().build().unwrap());
    alone.react(2);
    alone.react(3);
    alone.react(1);
    // Whatever the point at which it grows, the inputs before it come to the same.
    for steps in 0..7 {
        let mut run = Logged::of(&old.clone().build().unwrap());
        run.plan(2);
        run.step();
        run.plan(3);
        for _ in 0..steps {
            run.step();
        }
        run.compose(&new);
        run.react(1);
        for component in ["inc", "item", "sum", "total", "both"] {
            assert_eq!(run.results(component), alone.results(component), "{component} after {steps}");
        }
        assert_eq!(run.results("doubled"), [2, 4]);
        assert_eq!(run.results("product"), [2]);
        assert_eq!(run.results("second"), [302]);
        assert_eq!(run.results("count"), [0, 1, 2]);
        assert_eq!(run.results("odd"), [0_i64; 0]);
        assert_eq!(run.results("other"), [2]);
        assert_eq!(run.run.absence("second", 0), None);
        run.is_told_by_its_log(&new.clone().build().unwrap());
    }
}

#[test]
fn a_failure_of_an_earlier_input_is_not_told_to_what_is_added() {
    let fails = |n: i64| if n > 5 { Err(format!("{n} is too much")) } else { Ok(vec![n; 2]) };
    let old = Workflow::new("w").add(step("list", fails)).add(map("item", inc).after("list"));
    let new = old
        .clone()
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total + x).after("sum"));
    let mut run = Logged::of(&old.build().unwrap());
    run.plan(9);
    run.compose(&new);
    run.plan(8);
    run.plan(1);
    run.finish();
    assert_eq!(run.run.absence("sum", 0), None);
    assert_eq!(run.run.absence("sum", 1), Some(Absence::UpstreamFailed));
    assert_eq!(run.results("total"), [0, 4]);
    run.is_told_by_its_log(&new.build().unwrap());
}

#[test]
fn a_list_of_an_earlier_input_that_cannot_be_taken_apart_is_not_told_to_what_is_added() {
    let old = Workflow::new("w").add(map("item", inc));
    let new = old.clone().add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"));
    let mut run = Logged::of(&old.build().unwrap());
    run.plan(1);
    run.compose(&new);
    run.plan(2);
    run.finish();
    assert_eq!(run.run.failures().len(), 2, "a number is no list");
    assert_eq!(run.run.absence("sum", 0), None);
    assert_eq!(run.run.absence("sum", 1), Some(Absence::UpstreamFailed));
    run.is_told_by_its_log(&new.build().unwrap());
}

#[test]
fn an_empty_list_of_an_earlier_input_wakes_no_reduce_that_is_added() {
    let old = Workflow::new("w")
        .add(step("list", |n: i64| (0..n).collect::<Vec<_>>()))
        .add(map("item", inc).after("list"));
    let new = old.clone().add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"));
    let mut run = Logged::of(&old.build().unwrap());
    run.plan(0);
    run.step();
    run.compose(&new);
    run.finish();
    assert_eq!(run.results("sum"), [0_i64; 0]);
    run.react(0);
    assert_eq!(run.results("sum"), [0]);
    run.is_told_by_its_log(&new.build().unwrap());
}

#[test]
fn a_state_that_is_added_counts_later_inputs_in_their_order() {
    let mut run = Logged::of(&base().build().unwrap());
    run.plan(1);
    let more = base().add(accumulator("digits", 0_i64, |sum: i64, x: i64| sum * 10 + x).after("inc"));
    run.compose(&more);
    run.plan(2);
    run.plan(3);
    // The last one comes back first.
    let mut runnables = run.run.prepare();
    run.log.extend_from_slice(run.run.last_events());
    runnables.reverse();
    for runnable in runnables {
        run.log.extend_from_slice(run.run.apply(runnable.execute()));
    }
    run.finish();
    assert_eq!(run.results("digits"), [0, 3, 34]);
    run.is_told_by_its_log(&more.build().unwrap());
}

#[test]
fn a_run_grows_twice_and_nodes_keep_their_places() {
    // Whatever is added stands before what was there.
    let workflow = |names: &[&str]| {
        let before = |name: &str| match name {
            "a" | "d" => None,
            "b" => Some("a"),
            _ => Some("b"),
        };
        let add = |builder: WorkflowBuilder, name: &&str| {
            builder
                .add(step(*name, inc).after(before(name).into_iter().map(str::to_owned).collect::<Vec<_>>()))
        };
        names.iter().fold(Workflow::new("w"), add).output("last", names[names.len() - 1])
    };
    let mut run = Logged::of(&workflow(&["a", "b"]).build().unwrap());
    run.plan(0);
    run.step();
    run.compose(&workflow(&["d", "a", "b"]));
    run.plan(10);
    run.step();
    let last = workflow(&["c", "d", "b", "a"]);
    run.compose(&last);
    run.plan(20);
    run.finish();
    assert_eq!(run.results("a"), [1, 11, 21]);
    assert_eq!(run.results("b"), [2, 12, 22]);
    assert_eq!(run.results("c"), [23]);
    assert_eq!(run.results("d"), [11, 21]);
    assert_eq!(run.run.output::<i64>("last").unwrap(), Some(21));
    assert_eq!(run.run.workflow().signature(), last.clone().build().unwrap().signature());
    run.is_told_by_its_log(&last.clone().build().unwrap());

    let events = run.run.compose(&last.build().unwrap()).unwrap();
    assert!(events.is_empty(), "the same again adds nothing");
}

#[test]
fn an_addition_is_one_line_of_the_log() {
    let mut run = Logged::of(&base().build().unwrap());
    run.react(1);
    run.compose(&base().add(step("double", double).after("inc")).add(step("other", inc)));
    let line = run.lines().pop().unwrap();
    assert_eq!(line, r#"{"components_added":{"nodes":["double","other"],"since":1}}"#);
}

#[test]
fn a_definition_that_lacks_or_changed_something_is_refused_and_changes_nothing() {
    let old = base().add(map("item", inc)).add(step("double", double).after("inc"));
    let mut run = Logged::of(&old.build().unwrap());
    run.plan(1);
    let events = run.run.last_events().len();
    let given = Workflow::new("w")
        .add(map("item", |x: String| i64::from(x.is_empty())))
        .add(step("double", double).version(2))
        .add(step("new", inc))
        .build()
        .unwrap();
    let error = run.run.compose(&given).unwrap_err();
    assert_eq!(
        error.changes,
        [
            Change::Removed("inc".to_owned()),
            Change::Changed("double".to_owned()),
            Change::Changed("item".to_owned()),
        ]
    );
    assert_eq!(
        error.to_string(),
        "a run keeps the components that it has: `inc` is gone, `double` is not what it was, \
         `item` is not what it was"
    );
    assert_eq!(run.run.last_events().len(), events);
    assert!(!run.run.workflow().has_component("new") && run.run.added().next().is_none());
    run.finish();
    assert_eq!(run.results("double"), [4]);
}

#[test]
fn a_log_with_an_addition_needs_a_definition_that_has_it() {
    let old = base().build().unwrap();
    let mut run = Logged::of(&old);
    run.react(1);
    run.compose(&base().add(step("double", double).after("inc")));
    run.react(2);
    let lines = run.lines();
    let error = Run::replay_json(&old, "r", lines.iter().map(String::as_str)).unwrap_err();
    assert!(matches!(&error.source, EventError::UnknownNode { node } if node == "double"), "{error:?}");
    assert!(Run::replay(&old, "r", &run.log).is_err());

    let added = run.log.iter().position(|event| matches!(event, Event::ComponentsAdded { .. })).unwrap();
    let mut twice = run.log.clone();
    twice.insert(added, twice[added].clone());
    assert_eq!(Run::replay(&run.run.workflow(), "r", &twice).unwrap_err().index, added + 1);
    let mut early = run.log.clone();
    early.swap(0, added);
    assert_eq!(Run::replay(&run.run.workflow(), "r", &early).unwrap_err().index, 0, "before its input");
}

#[test]
fn a_stored_run_leaves_out_what_its_log_does_not_add() {
    let old = base().build().unwrap();
    let one = base().add(step("double", double).after("inc"));
    let whole = one.clone().add(step("other", inc)).build().unwrap();
    let mut run = Logged::of(&old);
    run.plan(1);
    let lines = run.lines();

    let stored = whole.run("r").stored_with(&old.signature());
    let mut resumed = stored.replayed_json(lines.iter().map(String::as_str)).unwrap();
    resumed.run_until_satisfied().unwrap();
    assert_eq!(resumed.productions().len(), 1);
    let signal = resumed.plan_signal("other", Value::new(1_i64), None);
    assert!(
        matches!(signal.unwrap_err(), SignalError::NoComponent { component, .. } if component == "other")
    );
    resumed.react_until_satisfied(2_i64).unwrap();
    assert_eq!(resumed.productions().len(), 2, "not in later inputs, either");

    // The program goes on to do what it did: it adds one after the other.
    assert_eq!(resumed.compose(&one.clone().build().unwrap()).unwrap().len(), 1);
    resumed.react_until_satisfied(3_i64).unwrap();
    assert_eq!(resumed.compose(&whole).unwrap().len(), 1);
    resumed.react_until_satisfied(4_i64).unwrap();
    assert_eq!(resumed.results::<i64>("double").unwrap(), [8, 10]);
    assert_eq!(resumed.results::<i64>("other").unwrap(), [5]);
    assert!(resumed.compose(&one.build().unwrap()).is_err(), "what was added stays");
}

#[test]
fn what_is_added_reads_what_came_before() {
    let mut run = Logged::of(&base().build().unwrap());
    run.react(1);
    let seen = |context: Context, _: i64| context.meta::<Vec<i64>>(&Meta::AllValuesOf("inc".to_owned()));
    let more = base().add(step("seen", seen).after("inc").reads(Meta::AllValuesOf("inc".to_owned())));
    run.compose(&more);
    run.react(5);
    assert_eq!(produced(&run.run), [json!(2), json!(6), json!([2, 6])]);
    run.is_told_by_its_log(&more.build().unwrap());
}

#[test]
fn policies_become_those_of_the_definition_and_rules_of_the_run_stay_over_them() {
    let retries = |run: &Run, component: &str| {
        run.nodes().find(|(node, ..)| node.name == Some(component)).unwrap().1.max_retries
    };
    let runtime = Rules::new([(name("double"), Policy::new().max_retries(7))]).unwrap();
    let old = base().policy(Matcher::Default, Policy::new().max_retries(1));
    let new = base().add(step("double", double)).policy(Matcher::Default, Policy::new().max_retries(2));
    let mut run = old.build().unwrap().run("r").with_policies(runtime, Overlay::Merge);
    assert_eq!(retries(&run, "inc"), 1);
    run.compose(&new.build().unwrap()).unwrap();
    assert_eq!((retries(&run, "inc"), retries(&run, "double")), (2, 7));
    run.purge_memory();
    assert_eq!((retries(&run, "inc"), retries(&run, "double")), (2, 7), "whatever is forgotten");
}

#[test]
fn a_condition_that_is_out_while_its_policy_goes_can_be_offered_again() {
    let builder = Workflow::new("w").add(condition("even", |x: &i64| x % 2 == 0));
    let old = builder.clone().policy(Matcher::Default, Policy::new().max_retries(1)).build().unwrap();
    let mut run = Logged::of(&old);
    run.plan(4);
    let out = run.run.prepare();
    run.log.extend_from_slice(run.run.last_events());
    let new = builder.add(step("half", |x: i64| x / 2).after("even"));
    run.compose(&new);
    run.log.extend_from_slice(run.run.give_back(&out[0].ticket()));
    run.react(6);
    assert_eq!(run.results("half"), [3]);
    run.is_told_by_its_log(&new.build().unwrap());
}
