//! A run that came to its end beside what was expected of it.

use serde_json::Value;
use tidewheel_core::Fact;
use tidewheel_core::event::Absence;
use tidewheel_core::run::Run;
use tidewheel_testkit::{Case, Expected, Kind, Why};

use crate::search::{Finding, same};

/// Says what a finished run got wrong.
pub(crate) fn finished_as(run: &Run, case: &Case, expected: &Expected) -> Finding {
    same("is runnable", &run.is_runnable(), &false)?;
    same("handed out", &run.pending_runnables(), &Vec::new())?;
    same("ready", &run.clone().next_runnables().len(), &0)?;
    productions_as(run, case, expected)?;
    same("facts", &run.facts_len(), &(case.inputs.len() + run.productions().len() + expected.items))?;
    same("reactions", &run.reactions().len(), &(case.inputs.len() + run.productions().len()))?;
    failures_as(run, case, expected)?;
    absences_as(run, case, expected)
}

/// Says which productions are wrong, each component by itself and all of them in their order.
pub(crate) fn productions_as(run: &Run, case: &Case, expected: &Expected) -> Finding {
    for place in 0..case.spec.parts.len() {
        let name = case.spec.name(place);
        let found: Vec<_> = run.productions_of(&name).unwrap().iter().map(shown).collect();
        let cells = expected.columns[place].iter();
        let wanted: Vec<_> = cells
            .flat_map(|(at, cell)| {
                cell.produced.iter().map(|datum| (Some(name.clone()), at[0], datum.to_json()))
            })
            .collect();
        same(&format!("productions of {name}"), &found, &wanted)?;
    }
    let found: Vec<_> = run.productions().iter().map(shown).collect();
    same("productions", &found, &all_productions(case, expected))?;
    let caused = (0..).take(case.inputs.len()).flat_map(|input| run.caused_by(input));
    same("what the inputs caused", &caused.map(|fact| shown(&fact)).collect(), &found)
}

/// Everything that is to be produced: by input, then component, then item; a join stands before its component.
fn all_productions(case: &Case, expected: &Expected) -> Vec<(Option<String>, usize, Value)> {
    let mut all = Vec::new();
    for input in 0..case.inputs.len() {
        for place in 0..case.spec.parts.len() {
            let joins = expected.joins[place].iter().filter(|(at, _)| at[0] == input);
            all.extend(joins.map(|(_, list)| (None, input, list.to_json())));
            let cells = expected.columns[place].iter().filter(|(at, _)| at[0] == input);
            let produced = cells.flat_map(|(_, cell)| &cell.produced);
            all.extend(produced.map(|datum| (Some(case.spec.name(place)), input, datum.to_json())));
        }
    }
    all
}

fn failures_as(run: &Run, case: &Case, expected: &Expected) -> Finding {
    let mut found: Vec<_> = run
        .failures()
        .iter()
        .map(|failed| {
            (failed.component.unwrap_or("nobody").to_owned(), failed.input as usize, failed.skipped)
        })
        .collect();
    let mut wanted: Vec<_> = (0..case.spec.parts.len())
        .flat_map(|place| expected.columns[place].iter().map(move |(at, cell)| (place, at[0], &cell.given)))
        .filter_map(|(place, input, given)| match given {
            Err(Why::Failed) => Some((case.spec.name(place), input, false)),
            Err(Why::Skipped) => Some((case.spec.name(place), input, true)),
            Ok(_) | Err(Why::Unsatisfied | Why::UpstreamFailed | Why::UpstreamSkipped) => None,
        })
        .collect();
    found.sort();
    wanted.sort();
    same("failures", &found, &wanted)
}

/// Outside of maps, a run can say why nothing came. That a condition was not true is said only where somebody
/// waits to hear it.
fn absences_as(run: &Run, case: &Case, expected: &Expected) -> Finding {
    let types = case.spec.types().unwrap();
    for (place, (_, scope)) in types.iter().enumerate() {
        let is_map = matches!(case.spec.parts[place].kind, Kind::Map { .. });
        if is_map || !scope.is_empty() {
            continue;
        }
        let name = case.spec.name(place);
        for (input, number) in (0..case.inputs.len()).zip(0_u32..) {
            let found = run.absence(&name, number);
            // A component that was added later has nothing to say of earlier inputs.
            let given = expected.columns[place].get(&vec![input]).map(|cell| &cell.given);
            let wanted = match given {
                None | Some(Ok(_)) => None,
                Some(Err(Why::Unsatisfied)) => found.and(Some(Absence::Unsatisfied)),
                Some(Err(Why::Failed)) => Some(Absence::Failed),
                Some(Err(Why::Skipped)) => Some(Absence::Skipped),
                Some(Err(Why::UpstreamFailed)) => Some(Absence::UpstreamFailed),
                Some(Err(Why::UpstreamSkipped)) => Some(Absence::UpstreamSkipped),
            };
            same(&format!("absence of {name} for input {input}"), &found, &wanted)?;
        }
    }
    Ok(())
}

fn shown(fact: &Fact<'_>) -> (Option<String>, usize, Value) {
    (fact.producer.map(str::to_owned), fact.input as usize, fact.value.to_json().unwrap())
}
