//! Rules of policy of a definition: those that would never act are refused, and so are runs whose policies the serial
//! loop cannot perform.

use tidewheel_core::policy::{Kind, Policy, default, kind, kinds, name, pattern, predicate, tag};
use tidewheel_core::workflow::{Meta, Workflow, WorkflowBuilder, accumulator, map, reduce, step};

use crate::{double, inc};

fn shop() -> WorkflowBuilder {
    Workflow::new("shop")
        .add(step("fetch", inc).tag("network"))
        .add(step("charge", inc))
        .add(step("pair", |a: i64, b: i64| a + b).after(["fetch", "charge"]))
}

fn retries() -> Policy {
    Policy::new().max_retries(1)
}

fn refused(builder: WorkflowBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[test]
fn a_rule_that_matches_no_component_is_refused_with_what_may_have_been_meant() {
    for (matcher, said) in [
        (
            name("chrage"),
            "policies[0].match.name: matches nothing: no node is named `chrage` (did you mean `charge`?)",
        ),
        (
            name("x"),
            "policies[0].match.name: matches nothing: no node is named `x` (name a node that is there, or leave the rule out)",
        ),
        (
            pattern("^llm_"),
            "policies[0].match.pattern: matches nothing: no node has a name that fits `^llm_` (change the pattern, or leave the rule out)",
        ),
        (
            tag("netwrok"),
            "policies[0].match.tag: matches nothing: no node has the tag `netwrok` (did you mean `network`?)",
        ),
        (
            kind(Kind::Map),
            "policies[0].match.kind: matches nothing: no node that runs is of the kind map (there are nodes of the kinds step, or leave the rule out)",
        ),
        (
            kinds([Kind::Map, Kind::Reduce]),
            "policies[0].match.kinds: matches nothing: no node that runs is of the kinds map, reduce (there are nodes of the kinds step, or leave the rule out)",
        ),
        (
            kind(Kind::Join),
            "policies[0].match.kind: matches nothing: no node that runs is of the kind join (a join only waits: write the rule for the component that comes after it, or leave the rule out)",
        ),
    ] {
        assert_eq!(refused(shop().policy(matcher.clone(), retries())), said);
        let built = shop().build().unwrap();
        assert_eq!(built.append_policy(matcher.clone(), retries()).unwrap_err().to_string(), said);
        assert_eq!(built.with_policies([(matcher, retries())]).unwrap_err().to_string(), said);
    }
}

#[test]
fn a_rule_behind_one_that_takes_all_it_matches_is_refused() {
    for (first, second) in [
        (default(), name("charge")),
        (default(), default()),
        (name("charge"), name("charge")),
        (pattern("^ch"), name("charge")),
        (tag("network"), name("fetch")),
        (kind(Kind::Step), name("fetch")),
        (kinds([Kind::Step, Kind::Map]), kind(Kind::Step)),
    ] {
        let said = refused(shop().policy(first.clone(), retries()).policy(second.clone(), Policy::new()));
        assert_eq!(
            said,
            format!(
                "policies[1].match: never acts: policies[0] ({first}) comes first and matches all that `{second}` matches (put it before policies[0], or leave one of the two out)"
            )
        );
        let one = shop().policy(first, retries()).build().unwrap();
        assert!(one.append_policy(second, Policy::new()).is_err());
    }
}

#[test]
fn rules_that_may_act_are_taken() {
    let all_named = shop()
        .policy(name("fetch"), retries())
        .policy(tag("network"), retries())
        .policy(pattern("^(charge|pair)$"), retries())
        .policy(predicate(|_| false), retries())
        .policy(default(), retries());
    assert!(all_named.build().is_ok(), "what is broader may stand behind what is narrower");
    let overridden = shop().policy(name("fetch"), retries()).policy_first(name("fetch"), Policy::new());
    assert!(overridden.build().is_ok(), "who puts a rule first means to override");
    let patient = shop().policy(name("fetch"), retries()).build().unwrap();
    assert!(patient.prepend_policy(default(), Policy::new()).is_ok());
    assert!(patient.prepend_policy(name("fetsh"), Policy::new()).is_err());
}

#[test]
fn a_component_that_is_removed_takes_the_rules_for_its_name_along() {
    let fewer = shop().policy(name("pair"), retries()).remove("pair").build().unwrap();
    assert!(fewer.rules().as_slice().is_empty());
}

#[test]
fn rules_for_components_of_a_living_run_come_with_the_definition_that_has_them() {
    let small = shop();
    let mut run = small.clone().build().unwrap().run("r");
    let more = small.add(step("double", double).after("pair")).policy(name("double"), retries());
    run.compose(&more.build().unwrap()).unwrap();
    assert_eq!(run.rules().as_slice().len(), 1);
}

#[test]
fn the_serial_loop_refuses_a_run_whose_policies_it_cannot_perform() {
    let workflow = shop()
        .policy(name("charge"), Policy::new())
        .policy(tag("network"), retries())
        .policy(default(), Policy::new().timeout("1s"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    let because = "but this loop has no clock and runs work without policies";
    let said = run.react_until_satisfied(1_i64).unwrap_err();
    let paths: Vec<&str> = said.all().iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(paths, ["policies[1]", "policies[2]"], "what says nothing is in nobody's way");
    assert_eq!(said.all()[0].message, format!("acts on `fetch`, {because}"));
    assert_eq!(said.all()[1].message, format!("acts on `pair`, {because}"));
    assert_eq!(run.inputs_len(), 0, "the input was not taken");
    assert!(run.react().is_err() && run.run_until_satisfied().is_err());
    let mut plain = workflow.with_policies([]).unwrap().run("r");
    plain.react_until_satisfied(1_i64).unwrap();
    assert_eq!(plain.result::<i64>("pair").unwrap(), Some(4));
}

#[test]
fn a_value_of_a_component_is_found_whether_another_one_reads_it_or_not() {
    let workflow = Workflow::new("w")
        .add(map("item", |x: i64| x))
        .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x).after("item"))
        .add(accumulator("total", 0_i64, |total: i64, x: i64| total + x).after("sum"))
        .build()
        .unwrap();
    let mut run = workflow.run("r");
    run.react_until_satisfied(vec![1_i64, 2]).unwrap();
    run.react_until_satisfied(vec![3_i64]).unwrap();
    let number = |meta: &Meta| run.meta(meta).unwrap().unwrap().get::<i64>().unwrap();
    assert_eq!(number(&Meta::StateOf("total".into())), 6);
    assert_eq!(number(&Meta::LatestValueOf("sum".into())), 3);
    assert_eq!(run.meta(&Meta::FactCount("item".into())).unwrap().unwrap().get::<usize>().unwrap(), 3);
    let all = run.meta(&Meta::AllValuesOf("sum".into())).unwrap().unwrap();
    assert_eq!(all.to_json().unwrap(), serde_json::json!([3, 3]));
    for meta in
        [Meta::StateOf("summ".into()), Meta::LatestValueOf("summ".into()), Meta::StepRan("summ".into())]
    {
        assert_eq!(
            run.meta(&meta).unwrap_err().to_string(),
            "there is no component `summ`; the nearest is `sum`"
        );
    }
    let reads = step("say", inc).reads(Meta::LatestValueOf("summ".into()));
    let said = Workflow::new("w").add(step("sum", inc)).add(reads).build().unwrap_err().to_string();
    assert_eq!(
        said,
        "say: reads latest_value_of(summ), but there is no such component; the nearest is `sum`"
    );
}
