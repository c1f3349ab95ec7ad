//! The order of the work, and the order in which components were added, change nothing of what comes out.

use serde_json::Value;
use tidewheel_core::fact::FactId;
use tidewheel_core::run::Run;
use tidewheel_testkit::{Dice, built, expected, lowered, lowered_components};

use crate::compare::finished_as;
use crate::drive::{Chaos, finish};
use crate::search::{for_all, same};

#[test]
fn any_order_of_the_work_comes_to_the_same_facts() {
    for_all(3_000, |case| {
        let workflow = lowered(&case.spec);
        let mut serial = workflow.run("random");
        for input in &case.inputs {
            serial.plan(*input);
            finish(&mut serial, &case.spec)?;
        }
        let expected = expected(&case.spec, &case.inputs);
        let mut chaos = Chaos::of(case);
        for turn in 0..4 {
            let mut run = workflow.run("random");
            if turn == 0 {
                chaos.finish_anyhow(&mut run, |_| {})?;
            } else {
                chaos.finish_starving(&mut run, |_| {})?;
            }
            finished_as(&run, case, &expected)?;
            same("ids of all facts", &ids(&run), &ids(&serial))?;
        }
        Ok(())
    });
}

#[test]
fn components_may_be_added_in_any_order() {
    for_all(1_000, |case| {
        let mut components = lowered_components(&case.spec);
        Dice::new(case.seed).shuffle(&mut components);
        let (workflow, shuffled) = (lowered(&case.spec), built(components));
        same("signature", &shuffled.signature(), &workflow.signature())?;
        let (mut one, mut other) = (workflow.run("random"), shuffled.run("random"));
        for input in &case.inputs {
            one.plan(*input);
            other.plan(*input);
        }
        finish(&mut one, &case.spec)?;
        finish(&mut other, &case.spec)?;
        for place in 0..case.spec.parts.len() {
            let name = case.spec.name(place);
            same(&format!("productions of {name}"), &produced(&other, &name), &produced(&one, &name))?;
        }
        Ok(())
    });
}

fn ids(run: &Run) -> Vec<FactId> {
    run.reactions().iter().map(|fact| fact.id).collect()
}

fn produced(run: &Run, name: &str) -> Vec<(FactId, Value)> {
    run.productions_of(name).unwrap().iter().map(|fact| (fact.id, fact.value.to_json().unwrap())).collect()
}
