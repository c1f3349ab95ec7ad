//! Maps and reduces.

use serde_json::json;
use tidewheel_core::Outcome;
use tidewheel_core::event::{Absence, Event};
use tidewheel_core::fact::Value;
use tidewheel_core::policy::Failure;
use tidewheel_core::work::{Context, RunContext};
use tidewheel_core::workflow::{Fold, Workflow, map, reduce, rule, step};

use crate::{double, inc, produced, ran};

fn sum_of_doubles() -> Workflow {
    Workflow::new("w")
        .add(step("source", |n: i64| (1..=n).collect::<Vec<_>>()))
        .add(map("double", double).after("source"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("double"))
        .build()
        .unwrap()
}

#[test]
fn d1_map_and_reduce() {
    let run = ran(&sum_of_doubles(), 3_i64);
    assert_eq!(produced(&run), [json!([1, 2, 3]), json!(2), json!(4), json!(6), json!(12)]);
}

#[test]
fn d2_every_item_counts() {
    let workflow = Workflow::new("w")
        .add(step("source", |x: i64| (0..4).map(|add| x + add).collect::<Vec<_>>()))
        .add(map("double", double).after("source"))
        .add(
            reduce("all", Vec::new(), |mut all: Vec<i64>, x: i64| {
                all.push(x);
                all
            })
            .after("double"),
        )
        .build()
        .unwrap();
    let run = ran(&workflow, 2_i64);
    assert_eq!(run.results::<i64>("double").unwrap(), [4, 6, 8, 10]);
    assert_eq!(run.result::<Vec<i64>>("all").unwrap().unwrap(), [4, 6, 8, 10]);
}

#[test]
fn d3_reduce_takes_items_in_their_order_whatever_ran_first() {
    let workflow = Workflow::new("w")
        .add(map("letter", |letter: String| letter))
        .add(reduce("all", String::new(), |all: String, letter: String| all + &letter).after("letter"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan(["a", "b", "c", "d"].map(str::to_owned).to_vec());
    while run.is_runnable() {
        for runnable in run.prepare().into_iter().rev() {
            let executed = runnable.execute();
            run.apply(executed);
        }
    }
    assert_eq!(run.result::<String>("all").unwrap().unwrap(), "abcd");
}

#[test]
fn d4_a_reducer_may_stop_early() {
    let workflow = Workflow::new("w")
        .add(map("item", |x: i64| x))
        .add(
            reduce(
                "sum",
                0_i64,
                |sum: i64, x: i64| if x >= 3 { Fold::Halt(sum) } else { Fold::Continue(sum + x) },
            )
            .after("item"),
        )
        .build()
        .unwrap();
    assert_eq!(ran(&workflow, vec![1_i64, 2, 3, 4, 5]).result::<i64>("sum").unwrap(), Some(3));
}

#[test]
fn d5_a_plain_accumulator_goes_on_like_continue() {
    let plain = |items: Vec<i64>| {
        let workflow = Workflow::new("w")
            .add(map("item", |x: i64| x))
            .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
            .build()
            .unwrap();
        ran(&workflow, items).result::<i64>("sum").unwrap()
    };
    let told = |items: Vec<i64>| {
        let workflow = Workflow::new("w")
            .add(map("item", |x: i64| x))
            .add(reduce("sum", 0_i64, |sum: i64, x: i64| Fold::Continue(sum + x)).after("item"))
            .build()
            .unwrap();
        ran(&workflow, items).result::<i64>("sum").unwrap()
    };
    assert_eq!(plain(vec![1, 2, 3]), Some(6));
    assert_eq!(told(vec![1, 2, 3, 4]), Some(10));
    assert_eq!(plain(vec![1, 2, 3, 4]), told(vec![1, 2, 3, 4]));
}

#[test]
fn d6_pipelines_joins_and_maps_inside_a_map() {
    let workflow = Workflow::new("w")
        .add(map("row", |row: Vec<i64>| row))
        .add(map("cell", double).after("row"))
        .add(step("plus1", inc).after("cell"))
        .add(step("plus4", |x: i64| x + 4).after("cell"))
        .add(step("both", |a: i64, b: i64| a * b).after(["plus1", "plus4"]))
        .add(reduce("row_sum", 0_i64, |sum: i64, x: i64| sum + x).after("both"))
        .add(
            reduce("rows", Vec::new(), |mut rows: Vec<i64>, sum: i64| {
                rows.push(sum);
                rows
            })
            .after("row_sum"),
        )
        .build()
        .unwrap();
    let run = ran(&workflow, vec![vec![1_i64, 2], vec![], vec![3]]);
    let cell = |x: i64| (2 * x + 1) * (2 * x + 4);
    assert_eq!(run.result::<Vec<i64>>("rows").unwrap().unwrap(), [cell(1) + cell(2), 0, cell(3)]);
}

#[test]
fn d7_a_reduce_takes_the_branch_it_is_attached_to() {
    let workflow = Workflow::new("w")
        .add(map("plus1", inc))
        .add(step("plus2", |x: i64| x + 2).after("plus1"))
        .add(step("other", |x: i64| x * 100).after("plus1"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("plus2"))
        .build()
        .unwrap();
    assert_eq!(ran(&workflow, vec![0_i64, 1, 2, 3]).result::<i64>("sum").unwrap(), Some(18));
}

#[test]
fn d8_a_reduce_without_a_map_folds_the_list() {
    let workflow = Workflow::new("w")
        .add(step("list", |n: i64| vec![n, n + 1, n + 2]))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x * 10).after("list"))
        .build()
        .unwrap();
    assert_eq!(ran(&workflow, 1_i64).result::<i64>("sum").unwrap(), Some(60));
}

#[test]
fn d9_items_and_what_becomes_of_them_are_events() {
    let workflow = sum_of_doubles();
    let mut run = workflow.run("r");
    let mut log = run.plan(3_i64).to_vec();
    while run.is_runnable() {
        for runnable in run.prepare() {
            let executed = runnable.execute();
            log.extend_from_slice(run.apply(executed));
        }
    }
    let told: Vec<String> = log
        .iter()
        .filter_map(|event| match event {
            Event::FannedOut { count, fact: Some(_), .. } => Some(format!("taken apart into {count}")),
            Event::FactProduced { value, .. } => Some(value.to_json().unwrap().to_string()),
            Event::FanInReceived { item: Ok(_), .. } => Some("an item is through".to_owned()),
            Event::FanInCompleted { .. } => Some("all are through".to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        [
            "3",
            "[1,2,3]",
            "taken apart into 3",
            "1",
            "2",
            "3",
            "2",
            "an item is through",
            "4",
            "an item is through",
            "6",
            "an item is through",
            "all are through",
            "12",
        ]
    );
}

#[test]
fn d10_a_map_over_what_is_no_list_is_refused_or_fails_with_the_type() {
    let errors =
        Workflow::new("w").add(step("one", inc)).add(map("each", inc).after("one")).build().unwrap_err();
    assert_eq!(errors.to_string(), "each: maps over a list, but `one` gives integer");
    let dynamic = Workflow::new("w").add(map("each", inc)).build().unwrap();
    let run = ran(&dynamic, "text".to_owned());
    assert_eq!(
        run.failures()[0].failure.message,
        "cannot map over a alloc::string::String: it is no list of i64"
    );
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Fragile(i64);

impl Clone for Fragile {
    fn clone(&self) -> Self {
        panic!("it broke while it was copied")
    }
}

#[test]
fn a_value_that_panics_when_it_is_copied_fails_its_work_and_nothing_else() {
    let workflow = Workflow::new("w").add(map("each", |item: Fragile| item.0)).build().unwrap();
    let run = ran(&workflow, vec![Fragile(1)]);
    assert_eq!(run.failures()[0].failure.message, "it broke while it was copied");
}

#[test]
fn d12_an_empty_list_reduces_to_the_initial_value() {
    let run = ran(&sum_of_doubles(), 0_i64);
    assert_eq!(run.result::<i64>("sum").unwrap(), Some(0));
    assert!(!run.is_runnable());
}

#[test]
fn d13_a_failed_item_fails_the_reduce_and_a_skipped_one_is_left_out() {
    for (skip, expected) in [(false, None), (true, Some(2 + 6))] {
        let mut run = sum_of_doubles().run("r");
        run.plan(3_i64);
        while run.is_runnable() {
            for runnable in run.prepare() {
                let mut executed = runnable.execute();
                if matches!(executed.outcome(), Outcome::Completed(value) if value.get::<i64>().ok() == Some(4))
                {
                    let failure = Failure::new("four is right out");
                    let outcome = if skip { Outcome::Skipped(failure) } else { Outcome::Failed(failure) };
                    executed = executed.with_outcome(outcome);
                }
                run.apply(executed);
            }
        }
        assert_eq!(run.result::<i64>("sum").unwrap(), expected);
        assert_eq!(run.absence("sum", 0), (!skip).then_some(Absence::UpstreamFailed));
    }
}

#[test]
fn d14_a_value_in_place_of_a_failed_item_counts_for_the_reduce() {
    let workflow = Workflow::new("w")
        .add(map("item", |x: i64| if x == 2 { Err("no two".to_owned()) } else { Ok(x) }))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.plan(vec![1_i64, 2, 3]);
    while run.is_runnable() {
        for runnable in run.prepare() {
            let mut executed = runnable.execute();
            if matches!(executed.outcome(), Outcome::Failed(_)) {
                executed = executed.with_outcome(Outcome::Completed(Value::new(100_i64)));
            }
            run.apply(executed);
        }
    }
    assert_eq!(run.result::<i64>("sum").unwrap(), Some(104));
}

#[test]
fn d15_a_failed_item_takes_nothing_with_it_but_its_own() {
    let workflow = Workflow::new("w")
        .add(map("a", |x: i64| if x == 3 { Err(format!("no {x}")) } else { Ok(x) }))
        .add(step("b", |x: i64| x * 100).after("a"))
        .build()
        .unwrap();
    let run = ran(&workflow, (1..=6).collect::<Vec<i64>>());
    assert_eq!(run.results::<i64>("b").unwrap(), [100, 200, 400, 500, 600]);
    assert_eq!(run.failures()[0].failure.message, "no 3");
}

#[test]
fn d16_a_reducer_sees_values_from_outside() {
    let weighted = |context: Context, sum: i64, x: i64| {
        let weight = context.value("weight").and_then(serde_json::Value::as_i64);
        sum + x * weight.unwrap_or(0)
    };
    let over_a_map = Workflow::new("w")
        .add(map("item", |x: i64| x))
        .add(reduce("sum", 0_i64, weighted).needs("weight").after("item"))
        .build()
        .unwrap();
    let over_a_list =
        Workflow::new("w").add(reduce("sum", 0_i64, weighted).needs_or("weight", 10)).build().unwrap();
    for workflow in [over_a_map, over_a_list] {
        let mut run = workflow.run("r").with_context(RunContext::new().scoped("sum", "weight", 10));
        run.react_until_satisfied(vec![1_i64, 2]).unwrap();
        assert!(run.failures().is_empty());
        assert_eq!(run.result::<i64>("sum").unwrap(), Some(30));
        let mut other = workflow.run("r").with_context(RunContext::new().global("weight", 1));
        other.react_until_satisfied(vec![1_i64, 2]).unwrap();
        assert_eq!(other.result::<i64>("sum").unwrap(), Some(3));
    }
}

#[test]
fn d17_a_step_after_a_reduce_runs_with_its_value() {
    let workflow = Workflow::new("w")
        .add(map("item", inc))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(step("after", double).after("sum"))
        .build()
        .unwrap();
    assert_eq!(ran(&workflow, vec![1_i64, 2]).result::<i64>("after").unwrap(), Some(10));
}

#[test]
fn a_rule_inside_a_map_leaves_items_out_and_the_reduce_still_comes() {
    let workflow = Workflow::new("w")
        .add(map("item", |x: i64| x))
        .add(rule("even").when(|x: &i64| x % 2 == 0).then(double).after("item"))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("even"))
        .build()
        .unwrap();
    assert_eq!(ran(&workflow, vec![1_i64, 2, 3, 4]).result::<i64>("sum").unwrap(), Some(12));
    assert_eq!(ran(&workflow, vec![1_i64]).result::<i64>("sum").unwrap(), Some(0));
}

#[test]
fn parts_of_different_maps_cannot_be_joined() {
    let errors = Workflow::new("w")
        .add(map("item", inc))
        .add(step("whole", |list: Vec<i64>| list.len()))
        .add(step("mixed", |a: i64, b: usize| a + i64::try_from(b).unwrap_or(0)).after(["item", "whole"]))
        .build()
        .unwrap_err();
    assert_eq!(
        errors.to_string(),
        "mixed: joins `item` and `whole`, which are not items of the same map (reduce first)"
    );
}
