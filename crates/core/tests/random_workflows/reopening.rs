//! Work that failed by chance and was given another one changes nothing of what comes out.
//!
//! A state takes what comes late after what came before, so what it and those after it compute may differ. Of
//! these, only how often a state had a turn is compared.

use tidewheel_core::run::Run;
use tidewheel_testkit::{Case, Expected, Kind, expected, lowered};

use crate::compare::finished_as;
use crate::search::{Finding, for_all, same};
use crate::trouble::{Aim, Trouble};

#[test]
fn what_failed_and_was_tried_again_comes_to_what_it_would_have_come_to() {
    for_all(1_000, |case| {
        let mut trouble = Trouble::of(case, lowered(&case.spec), Aim::Reopen);
        trouble.finish()?;
        comes_to(&trouble.run, case, &expected(&case.spec, &case.inputs))
    });
}

#[test]
fn every_beginning_of_a_log_with_chances_gives_the_run_as_it_was() {
    for_all(250, |case| {
        let mut trouble = Trouble::of(case, lowered(&case.spec), Aim::Reopen);
        trouble.finish()?;
        trouble.replays()
    });
}

#[test]
fn a_log_with_chances_that_is_not_whole_never_panics() {
    for_all(250, |case| {
        let mut trouble = Trouble::of(case, lowered(&case.spec), Aim::Reopen);
        trouble.finish()?;
        trouble.is_broken_without_panic();
        Ok(())
    });
}

fn comes_to(run: &Run, case: &Case, expected: &Expected) -> Finding {
    let is_state = |place: &usize| matches!(case.spec.parts[*place].kind, Kind::State { .. });
    if !(0..case.spec.parts.len()).any(|place| is_state(&place)) {
        return finished_as(run, case, expected);
    }
    let mut is_after_state = vec![false; case.spec.parts.len()];
    for (place, part) in case.spec.parts.iter().enumerate() {
        is_after_state[place] = part.parents.iter().any(|parent| is_after_state[*parent] || is_state(parent));
        if is_after_state[place] {
            continue;
        }
        let name = case.spec.name(place);
        let cells = expected.columns[place].values();
        let wanted: Vec<_> = cells.flat_map(|cell| &cell.produced).map(|datum| datum.to_json()).collect();
        let found: Vec<_> =
            run.productions_of(&name).unwrap().iter().map(|fact| fact.value.to_json().unwrap()).collect();
        if is_state(&place) {
            same(&format!("turns of {name}"), &found.len(), &wanted.len())?;
        } else {
            same(&format!("productions of {name}"), &found, &wanted)?;
        }
    }
    Ok(())
}
