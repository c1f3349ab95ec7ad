//! Three phases, one after the other.

use serde_json::json;
use tidewheel_core::Outcome;
use tidewheel_core::event::{Absence, Event};
use tidewheel_core::workflow::{Workflow, accumulator, map, reduce, rule, step};

use crate::{double, inc, produced, produced_set, ran};

fn branch() -> Workflow {
    Workflow::new("branch")
        .add(step("inc", inc))
        .add(step("add2", |x: i64| x + 2).after("inc"))
        .add(step("add4", |x: i64| x + 4).after("inc"))
        .build()
        .unwrap()
}

#[test]
fn a1_plan_makes_one_pending_runnable_and_no_production() {
    let workflow = Workflow::new("one").add(step("double", double)).build().unwrap();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    assert_eq!(run.next_runnables().len(), 1);
    assert!(run.productions().is_empty());
}

#[test]
fn a3_an_executed_runnable_produces_its_fact_and_consumes_its_activation() {
    let workflow = Workflow::new("one").add(step("double", double)).build().unwrap();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    let executed = run.prepare().remove(0).execute();
    assert!(matches!(executed.outcome(), Outcome::Completed(value) if value.get::<i64>().unwrap() == 10));
    let events = run.apply(executed).to_vec();
    assert!(matches!(&events[0], Event::FactProduced { value, .. } if value.get::<i64>().unwrap() == 10));
    assert!(matches!(events[1], Event::ActivationConsumed { .. }));
    assert_eq!(events.len(), 2);
    let fact = &run.productions()[0];
    assert_eq!((fact.depth, fact.producer), (1, Some("double")));
    let way: Vec<_> = run.ancestry(fact.id).iter().map(|fact| fact.producer).collect();
    assert_eq!(way, [None, Some("double")]);
}

#[test]
fn a5_what_was_not_handed_out_or_came_back_already_changes_nothing() {
    let workflow = Workflow::new("one").add(step("double", double)).build().unwrap();
    let mut run = workflow.run("r");
    run.plan(5_i64);
    let mut twin = run.clone();
    let executed = run.prepare().remove(0).execute();
    assert!(twin.apply(executed).is_empty(), "the twin never handed it out");
    let again = twin.prepare().remove(0).execute();
    let mut other = workflow.run("other");
    other.plan(5_i64);
    other.prepare();
    assert!(other.apply(again).is_empty(), "another run");
}

#[test]
fn a6_branch_after_one_cycle() {
    let workflow = branch();
    let mut run = workflow.run("r");
    run.plan(2_i64);
    run.react().unwrap();
    assert_eq!(produced(&run), [json!(3)]);
    assert_eq!(run.next_runnables().len(), 2);
    run.react().unwrap();
    assert_eq!(produced_set(&run), [3, 5, 7]);
    assert!(!run.is_runnable());
}

#[test]
fn a8_a_loop_by_hand_comes_to_the_same_facts() {
    let workflow =
        Workflow::new("chain").pipeline([step("double", double), step("inc", inc)]).build().unwrap();
    let mut run = workflow.run("r");
    run.plan(10_i64);
    while run.is_runnable() {
        for runnable in run.prepare() {
            let executed = runnable.execute();
            run.apply(executed);
        }
    }
    let values: Vec<i64> = run.reactions().iter().map(|fact| fact.value.get().unwrap()).collect();
    assert_eq!(values, [10, 20, 21]);
    assert_eq!(produced(&run), produced(&ran(&workflow, 10_i64)));
}

#[test]
fn a10_depth_counts_productions() {
    let workflow =
        Workflow::new("chain").pipeline([step("a", inc), step("b", inc), step("c", inc)]).build().unwrap();
    let run = ran(&workflow, 0_i64);
    let depths: Vec<u32> = run.reactions().iter().map(|fact| fact.depth).collect();
    assert_eq!(depths, [0, 1, 2, 3]);
}

#[test]
fn a13_a_failing_step_ends_its_branch_and_nothing_hangs() {
    let workflow = Workflow::new("fail")
        .add(step("bad", |_: i64| -> i64 { panic!("boom") }))
        .add(step("after", inc).after("bad"))
        .add(step("good", inc))
        .build()
        .unwrap();
    let run = ran(&workflow, 1_i64);
    assert!(!run.is_runnable());
    assert_eq!(produced_set(&run), [2]);
    let failures = run.failures();
    assert_eq!((failures[0].component, failures[0].failure.message.as_str()), (Some("bad"), "boom"));
    assert_eq!(run.absence("bad", 0), Some(Absence::Failed));
    assert_eq!(run.absence("after", 0), Some(Absence::UpstreamFailed));
}

#[test]
fn a14_text_processing() {
    let workflow = Workflow::new("text")
        .add(step("tokenize", |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>()))
        .add(
            step("frequency", |words: Vec<String>| {
                words.into_iter().fold(std::collections::BTreeMap::new(), |mut counts, word| {
                    *counts.entry(word).or_insert(0) += 1;
                    counts
                })
            })
            .after("tokenize"),
        )
        .add(step("first", |words: Vec<String>| words.first().cloned()).after("tokenize"))
        .add(step("last", |words: Vec<String>| words.last().cloned()).after("tokenize"))
        .add(step("count", |words: Vec<String>| words.len()).after("tokenize"))
        .build()
        .unwrap();
    let run = ran(&workflow, "anybody want a peanut".to_owned());
    assert_eq!(
        produced(&run),
        [
            json!(["anybody", "want", "a", "peanut"]),
            json!({"a": 1, "anybody": 1, "peanut": 1, "want": 1}),
            json!("anybody"),
            json!("peanut"),
            json!(4),
        ]
    );
}

#[test]
fn a16_purge_memory_forgets_facts_and_keeps_the_workflow() {
    let workflow = branch();
    let mut run = ran(&workflow, 2_i64);
    run.purge_memory();
    assert!(run.reactions().is_empty() && !run.is_runnable());
    run.react_until_satisfied(3_i64).unwrap();
    assert_eq!(produced_set(&run), [4, 6, 8]);
}

#[test]
fn a17_an_unknown_parent_is_named() {
    let errors = Workflow::new("w").add(step("a", inc).after("nobody")).build().unwrap_err();
    assert_eq!(errors.to_string(), "a: comes after `nobody`, which is no component (there are a)");
    assert!(!branch().has_component("nobody"));
}

#[test]
fn a18_removing_a_component_joins_what_was_around_it() {
    let chain = || {
        Workflow::new("w")
            .add(step("inc", inc))
            .add(step("double", double).after("inc"))
            .add(step("dec", |x: i64| x - 1).after("double"))
    };
    let run = ran(&chain().remove("double").build().unwrap(), 5_i64);
    assert_eq!(produced_set(&run), [5, 6]);
    let unchanged = ran(&chain().remove("nobody").build().unwrap(), 5_i64);
    assert_eq!(produced_set(&unchanged), [6, 11, 12]);
}

#[test]
fn a19_running_on_with_nothing_pending_adds_nothing() {
    let workflow = Workflow::new("w").add(step("inc", inc)).build().unwrap();
    let mut run = ran(&workflow, 1_i64);
    run.run_until_satisfied().unwrap();
    run.react().unwrap();
    assert_eq!(produced_set(&run), [2]);
}

#[test]
fn a20_a_list_is_an_input_like_any_other() {
    let workflow = Workflow::new("w").add(step("len", |list: Vec<i64>| list.len())).build().unwrap();
    assert_eq!(produced(&ran(&workflow, vec![1_i64, 2])), [json!(2)]);
}

#[test]
fn a21_two_components_with_one_name_are_refused() {
    let errors = Workflow::new("w").add(step("a", inc)).add(step("a", double)).build().unwrap_err();
    assert_eq!(errors.to_string(), "a: there are two components with this name");
}

#[test]
fn a_circle_is_shown_with_its_way_and_every_error_comes_at_once() {
    let errors = Workflow::new("w")
        .add(step("a", inc).after("c"))
        .add(step("b", inc).after("a"))
        .add(step("c", inc).after("b"))
        .add(step("x", inc).after("nobody"))
        .add(step("x", inc))
        .add(step("number", inc))
        .add(step("text", |text: String| text).after("number"))
        .build()
        .unwrap_err();
    let text = errors.to_string();
    assert!(text.contains("text: takes text, but `number` gives integer"), "{text}");
    assert!(text.contains("x: there are two"), "{text}");
    assert!(text.contains("x: comes after `nobody`"), "{text}");
    assert!(text.contains("these come after each other in a circle"), "{text}");
    let itself = Workflow::new("w").add(step("a", inc).after("a")).build().unwrap_err();
    assert_eq!(itself.to_string(), "a -> a: these come after each other in a circle");
}

#[test]
fn j4_types_that_do_not_fit_are_refused_with_both() {
    let errors = Workflow::new("w")
        .add(step("number", inc))
        .add(step("text", |text: String| text).after("number"))
        .build()
        .unwrap_err();
    assert_eq!(errors.to_string(), "text: takes text, but `number` gives integer");
}

#[test]
fn j6_a_function_takes_as_many_arguments_as_it_comes_after() {
    let errors = Workflow::new("w")
        .add(step("a", inc))
        .add(step("sum", |x: i64, y: i64| x + y).after("a"))
        .build()
        .unwrap_err();
    assert_eq!(errors.to_string(), "sum: its function takes 2 arguments, but it comes after 1 components");
}

#[test]
fn k5_equal_inputs_are_two_facts_and_both_run() {
    let workflow = Workflow::new("w").add(step("inc", inc)).build().unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(5_i64).unwrap();
    run.react_until_satisfied(5_i64).unwrap();
    assert_eq!(produced_set(&run), [6, 6]);
    let ids: Vec<_> = run.reactions().iter().map(|fact| fact.id).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids.iter().all(|id| ids.iter().filter(|other| *other == id).count() == 1));
}

#[test]
fn k6_ids_do_not_collide() {
    let workflow = Workflow::new("w").add(map("item", inc)).build().unwrap();
    let run = ran(&workflow, (0..100_000).collect::<Vec<i64>>());
    let ids: std::collections::BTreeSet<_> = run.reactions().iter().map(|fact| fact.id).collect();
    assert_eq!(ids.len(), 100_001);
}

#[test]
fn k7_one_function_under_two_names_is_two_nodes() {
    let workflow = Workflow::new("w").add(step("a", inc)).add(step("b", inc)).build().unwrap();
    assert_eq!(produced_set(&ran(&workflow, 1_i64)), [2, 2]);
    let nodes = workflow.signature().nodes;
    assert_ne!(nodes["a"], nodes["b"]);
}

#[test]
fn the_result_is_the_last_of_the_productions_of_a_component() {
    let workflow = Workflow::new("w")
        .add(map("row", |row: Vec<i64>| row))
        .add(map("cell", inc).after("row"))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total + x).after("cell"))
        .add(rule("odd").when(|x: &i64| x % 2 == 1).then(|x: i64| x).after("cell"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("cell"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    for input in 0..20_i64 {
        let row =
            |row: i64| (0..=(input * 7 + row * 3) % 11).map(move |cell| input * 1_000 + row * 100 + cell);
        run.plan((0..10).map(|place| row(place).collect::<Vec<i64>>()).collect::<Vec<_>>());
    }
    let mut turn = 0;
    while run.is_runnable() {
        // Rows, cells and inputs overtake each other, so that the last fact is hardly ever the last to come.
        let mut runnables = run.prepare();
        turn += 1;
        let middle = (turn * 7) % runnables.len();
        runnables.rotate_left(middle);
        for runnable in runnables.into_iter().rev() {
            let executed = runnable.execute();
            run.apply(executed);
            if run.facts_len().is_multiple_of(50) {
                let last = run.results::<i64>("cell").unwrap().pop();
                assert_eq!(run.result::<i64>("cell").unwrap(), last, "while it runs");
            }
        }
    }
    assert!(run.facts_len() > 3_000);
    for name in ["cell", "odd", "sum", "total"] {
        let results = run.results::<i64>(name).unwrap();
        assert_eq!(run.fact_count(name).unwrap(), results.len());
        assert_eq!(run.result::<i64>(name).unwrap(), results.last().copied(), "{name}");
    }
    assert_eq!(run.result::<i64>("cell").unwrap(), Some(19_000 + 900 + (19 * 7 + 27) % 11 + 1));
    for error in [
        run.result::<i64>("sumn").map(drop).unwrap_err(),
        run.results::<i64>("sumn").map(drop).unwrap_err(),
        run.fact_count("sumn").map(drop).unwrap_err(),
        run.productions_of("sumn").map(drop).unwrap_err(),
        run.output::<i64>("sumn").map(drop).unwrap_err(),
    ] {
        assert!(error.to_string().contains("`sumn`"), "{error}");
    }
}

#[test]
fn work_that_was_handed_out_can_be_offered_again() {
    let workflow = branch();
    let mut run = workflow.run("r");
    run.plan(1_i64);
    let lost = run.prepare().remove(0);
    assert!(run.prepare().is_empty(), "each piece is handed out once");
    assert_eq!(run.pending_runnables(), [lost.id()]);
    run.release(lost.id());
    let again = run.prepare().remove(0);
    assert_eq!(again.id(), lost.id());
    let executed = again.execute();
    run.apply(executed);
    assert!(run.apply(lost.execute()).is_empty(), "the lost one comes too late");
    run.run_until_satisfied().unwrap();
    assert_eq!(produced_set(&run), [2, 4, 6]);
}

#[test]
fn what_a_component_comes_after_adds_up() {
    let workflow = Workflow::new("w")
        .add(step("a", |x: i64| x + 1))
        .add(step("b", |x: i64| x * 2))
        .add(step("both", |a: i64, b: i64| (a, b)).after("a").after("b"))
        .build()
        .unwrap();
    let mut run = workflow.run("run-1");
    run.react_until_satisfied(20_i64).unwrap();
    assert_eq!(run.result::<(i64, i64)>("both").unwrap(), Some((21, 40)));
}
