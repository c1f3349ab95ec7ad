//! What an input caused is undone once, the last first, whatever else happens.

use std::cell::Cell;
use std::collections::BTreeMap;

use tidewheel_core::event::{Event, Undo};
use tidewheel_core::policy::{Policy, name};
use tidewheel_core::workflow::{Workflow, compensation};
use tidewheel_testkit::{Case, Dice, Kind, lowered_components};

use crate::search::{for_all, same};
use crate::trouble::{Aim, Trouble};

#[test]
fn what_was_done_is_undone_once_in_the_reverse_order() {
    let undone = Cell::new(0);
    for_all(1_000, |case| {
        let (workflow, names) = undoable(case);
        let mut trouble = Trouble::of(case, workflow.clone(), Aim::Undo);
        trouble.finish()?;
        undone.set(undone.get() + is_undone(&trouble.log, &workflow, &names)?);
        Ok(())
    });
    assert!(undone.get() > 0, "nothing was undone at all");
}

#[test]
fn every_beginning_of_a_log_with_undos_gives_the_run_as_it_was() {
    for_all(250, |case| {
        let mut trouble = Trouble::of(case, undoable(case).0, Aim::Undo);
        trouble.finish()?;
        trouble.replays()
    });
}

#[test]
fn a_log_with_undos_that_is_not_whole_never_panics() {
    for_all(250, |case| {
        let mut trouble = Trouble::of(case, undoable(case).0, Aim::Undo);
        trouble.finish()?;
        trouble.is_broken_without_panic();
        Ok(())
    });
}

/// Builds the workflow with a component that undoes what some of the others did.
fn undoable(case: &Case) -> (Workflow, Vec<String>) {
    let mut dice = Dice::new(case.seed);
    let can_be = |place: &usize| match case.spec.parts[*place].kind {
        Kind::Step { .. } | Kind::Rule { .. } | Kind::Map { .. } | Kind::Reduce { .. } => true,
        Kind::Condition(_) | Kind::State { .. } => false,
    };
    let places = (0..case.spec.parts.len()).filter(can_be).filter(|_| dice.chance(70));
    let names: Vec<String> = places.map(|place| case.spec.name(place)).collect();
    let undo = compensation("undo", |done: serde_json::Value| {
        // Some things cannot be undone.
        if done.to_string().len().is_multiple_of(4) { Err("stuck".to_owned()) } else { Ok(done) }
    });
    let components = lowered_components(&case.spec).into_iter().chain([undo]);
    let builder = components.fold(Workflow::new("random"), tidewheel_core::workflow::WorkflowBuilder::add);
    let policy = Policy::new().compensation_node("undo");
    let builder = names.iter().fold(builder, |builder, of| builder.policy(name(of), policy.clone()));
    (builder.build().unwrap(), names)
}

/// Says what is wrong with the undos of a log, which it reads by itself. Returns how much was undone.
fn is_undone(log: &[Event], workflow: &Workflow, names: &[String]) -> Result<usize, String> {
    // The input of each lineage and of each activation.
    let (mut lineages, mut acts): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    let mut open: BTreeMap<u32, u32> = BTreeMap::new();
    // What each input did, in order; what was said is found again when work says something else.
    let mut done: BTreeMap<u32, Vec<Undo>> = BTreeMap::new();
    let mut said: BTreeMap<u32, u32> = BTreeMap::new();
    let (mut registered, mut inputs, mut undone) = (0, 0, 0);
    let (mut begun, mut ended): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for event in log {
        match event {
            Event::FactProduced { node: None, .. } => {
                lineages.push(inputs);
                inputs += 1;
            }
            Event::FactProduced { fact, lineage, .. } => {
                let line: serde_json::Value =
                    serde_json::from_str(&event.to_json(workflow).unwrap()).unwrap();
                let by = line["fact_produced"]["node"].as_str().unwrap_or_default();
                if names.iter().any(|name| name == by) {
                    done.entry(lineages[*lineage as usize]).or_default().push(Undo::Fact(*fact));
                }
            }
            Event::FannedOut { lineage, count, .. } => {
                let input = lineages[*lineage as usize];
                lineages.extend((0..*count).map(|_| input));
            }
            Event::UndoRegistered { act, .. } => {
                let did = done.entry(acts[*act as usize]).or_default();
                if let Some(earlier) = said.insert(*act, registered) {
                    did.retain(|undo| *undo != Undo::Registered(earlier));
                }
                did.push(Undo::Registered(registered));
                registered += 1;
            }
            Event::RunnableActivated { lineage, .. } => {
                let input = lineages[*lineage as usize];
                acts.push(input);
                *open.entry(input).or_default() += 1;
                same("begins although it is undone", &begun.contains(&input), &false)?;
            }
            Event::UndoBegun { input, .. } => {
                same("is undone twice", &begun.contains(input), &false)?;
                begun.push(*input);
            }
            Event::UndoActivated { undo, lineage, .. } => {
                let input = lineages[*lineage as usize];
                acts.push(input);
                let is_open = open.insert(input, 1).unwrap_or(0);
                same("open when something is undone", &is_open, &0)?;
                same("is undone", &Some(*undo), &done.entry(input).or_default().pop())?;
                undone += 1;
            }
            Event::ActivationConsumed { act } => {
                *open.entry(acts[*act as usize]).or_default() -= 1;
            }
            Event::UndoEnded { input } => {
                same("left to undo", &done.remove(input).unwrap_or_default(), &Vec::new())?;
                same("open at the end", &open.get(input).copied().unwrap_or(0), &0)?;
                ended.push(*input);
            }
            _ => {}
        }
    }
    begun.sort_unstable();
    ended.sort_unstable();
    same("inputs that were undone", &ended, &begun).map(|()| undone)
}
