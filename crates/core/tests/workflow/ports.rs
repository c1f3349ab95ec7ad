//! Types of ports: what fits, what happens when it does not, and the ports of a workflow itself.

use serde_json::{Value, json};
use tidewheel_core::work::PortType;
use tidewheel_core::workflow::{
    BuildError, Component, PortChecks, Workflow, WorkflowBuilder, accumulator, map, reduce, rule, step,
};

use crate::{double, inc, produced, ran};

/// Two components, one after the other.
fn pair(giver: Component, taker: Component) -> WorkflowBuilder {
    Workflow::new("w").pipeline([giver, taker])
}

fn refusal(builder: WorkflowBuilder) -> Option<String> {
    builder.build().err().map(|errors| errors.to_string())
}

#[test]
fn j4_any_fits_anything_and_lists_are_looked_into() {
    let numbers = || step("numbers", |n: i64| vec![n, n + 1]);
    let texts = refusal(pair(numbers(), step("texts", |texts: Vec<String>| texts.len())));
    assert_eq!(texts.unwrap(), "texts: takes list<text>, but `numbers` gives list<integer>");
    for taker in [
        step("same", |numbers: Vec<i64>| numbers.len()),
        step("list_of_any", |values: Vec<Value>| values.len()),
        step("any", |value: Value| value),
    ] {
        assert_eq!(refusal(pair(numbers(), taker)), None);
    }
    let from_any = pair(step("any", |value: Value| value), step("text", |text: String| text.len()));
    assert_eq!(refusal(from_any), None);
}

#[test]
fn j4_what_takes_the_input_is_not_checked_unless_the_input_is_declared() {
    let builder = || Workflow::new("w").add(step("number", inc)).add(step("text", |text: String| text));
    assert_eq!(refusal(builder()), None);
    let run = ran(&builder().build().unwrap(), 1_i64);
    assert_eq!(produced(&run), [json!(2)], "the other fails for this input, and alone");
    assert_eq!(run.failures().len(), 1);
    assert_eq!(refusal(builder().input::<i64>()).unwrap(), "text: takes text, but the input is integer");
    assert_eq!(refusal(builder().input::<Value>()), None, "any fits anything");
}

#[test]
fn j4_the_declared_input_is_checked_for_every_kind_of_component() {
    let builder = || {
        Workflow::new("w")
            .add(map("each", inc))
            .add(reduce("sum", 0_i64, |sum: i64, x: i64| sum + x))
            .add(accumulator("kept", 0_i64, |sum: i64, list: Vec<i64>| sum + list.iter().sum::<i64>()))
            .add(rule("r").when(|list: &Vec<i64>| !list.is_empty()).then(|list: Vec<i64>| list))
    };
    assert_eq!(refusal(builder().input::<Vec<i64>>()), None);
    assert_eq!(
        refusal(builder().input::<String>()).unwrap(),
        "each: takes list<integer>, but the input is text\n\
         sum: takes list<integer>, but the input is text\n\
         kept: takes list<integer>, but the input is text\n\
         r: takes list<integer>, but the input is text"
    );
}

#[test]
fn j4_checks_refuse_warn_or_are_off() {
    let builder = || {
        Workflow::new("w")
            .add(step("number", inc))
            .add(step("text", |text: String| text).after("number"))
            .add(map("each", double).after("number"))
            .add(step("fine", double).after("number"))
            .input::<bool>()
    };
    let told = [
        "text: takes text, but `number` gives integer",
        "each: maps over a list, but `number` gives integer",
        "number: takes integer, but the input is boolean",
    ];
    assert_eq!(refusal(builder()).unwrap(), told.join("\n"), "without a word, they refuse");
    assert_eq!(refusal(builder().port_checks(PortChecks::Refuse)).unwrap(), told.join("\n"));

    let warned = builder().port_checks(PortChecks::Warn).build().unwrap();
    let warnings: Vec<String> = warned.warnings().iter().map(BuildError::to_string).collect();
    assert_eq!(warnings, told);
    let unchecked = builder().port_checks(PortChecks::Off).build().unwrap();
    assert!(unchecked.warnings().is_empty());
    assert!(pair(step("a", inc), step("b", inc)).build().unwrap().warnings().is_empty());

    for workflow in [warned, unchecked] {
        let run = ran(&workflow, 1_i64);
        assert_eq!(produced(&run), [json!(2), json!(4)], "what fits runs");
        let failed: Vec<_> = run.failures().iter().map(|failed| failed.component).collect();
        assert_eq!(failed, [Some("text"), None], "what does not fit fails by its value");
        assert!(!run.is_runnable());
    }
}

#[test]
fn j4_checks_that_are_off_let_nothing_else_pass() {
    for checks in [PortChecks::Warn, PortChecks::Off] {
        let wrong = Workflow::new("w")
            .add(step("number", inc))
            .add(step("text", |text: String| text).after("number"))
            .add(step("sum", |a: i64, b: i64| a + b).after("number"))
            .add(step("lost", inc).after("nobody"))
            .port_checks(checks);
        assert_eq!(
            refusal(wrong).unwrap(),
            "lost: comes after `nobody`, which is no component (there are lost, number, sum, text)\n\
             sum: its function takes 2 arguments, but it comes after 1 components"
        );
    }
}

#[test]
fn j4_outputs_have_names_of_their_own() {
    let workflow = Workflow::new("w")
        .add(step("inc", inc))
        .add(step("text", |x: i64| x.to_string()).after("inc"))
        .add(rule("big").when(|x: &i64| *x > 100).then(double).after("inc"))
        .input::<i64>()
        .output("shown", "text")
        .output("next", "inc")
        .output("alarm", "big")
        .build()
        .unwrap();
    assert_eq!(workflow.input_type(), Some(&PortType::Integer));
    let outputs: Vec<_> = workflow.outputs().collect();
    assert_eq!(
        outputs,
        [
            ("alarm", "big", &PortType::Integer),
            ("next", "inc", &PortType::Integer),
            ("shown", "text", &PortType::Text),
        ]
    );
    let mut run = workflow.run("r");
    run.react_until_satisfied(1_i64).unwrap();
    run.react_until_satisfied(7_i64).unwrap();
    assert_eq!(run.output::<i64>("next").unwrap(), Some(8));
    assert_eq!(run.output::<String>("shown").unwrap().unwrap(), "8");
    assert_eq!(run.output::<i64>("alarm").unwrap(), None, "nothing came");
    run.output::<i64>("inc").expect_err("a component is no output");
    assert!(run.output::<i64>("shown").is_err(), "another type");
}

#[test]
fn j4_an_output_of_nothing_and_two_of_one_name_are_refused() {
    let wrong = Workflow::new("w")
        .add(step("inc", inc))
        .output("a", "inc")
        .output("b", "nobody")
        .output("a", "inc")
        .port_checks(PortChecks::Off);
    assert_eq!(
        refusal(wrong).unwrap(),
        "output b: is of `nobody`, which is no component\noutput a: there are two outputs with this name"
    );
    let merged = Workflow::new("w").add(step("inc", inc)).merge(
        Workflow::new("other").add(step("text", |text: String| text)).input::<String>().output("t", "text"),
    );
    assert_eq!(refusal(merged.clone()).unwrap(), "inc: takes integer, but the input is text");
    let workflow = merged.port_checks(PortChecks::Off).build().unwrap();
    assert_eq!(ran(&workflow, "x".to_owned()).output::<String>("t").unwrap().unwrap(), "x");
}
