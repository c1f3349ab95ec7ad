//! Equal definitions have equal identities, and no two things of a run have the same.

use std::collections::BTreeSet;

use tidewheel_core::run::Run;
use tidewheel_testkit::lowered;

use crate::drive::{executed, finish};
use crate::search::{Finding, for_all, same};

#[test]
fn a_workflow_that_is_built_twice_gives_the_same_ids() {
    for_all(1_000, |case| {
        let (one, other) = (lowered(&case.spec), lowered(&case.spec));
        same("signature", &other.signature(), &one.signature())?;
        let (mut one, mut other) = (one.run("random"), other.run("random"));
        for input in &case.inputs {
            one.plan(*input);
            other.plan(*input);
        }
        let names = |run: &mut Run| -> Vec<_> {
            run.next_runnables().into_iter().map(|(name, id)| (name.map(str::to_owned), id)).collect()
        };
        same("runnables", &names(&mut other), &names(&mut one))?;
        finish(&mut one, &case.spec)?;
        finish(&mut other, &case.spec)?;
        let facts =
            |run: &Run| -> Vec<_> { run.reactions().iter().map(|fact| (fact.id, fact.depth)).collect() };
        same("facts", &facts(&other), &facts(&one))
    });
}

#[test]
fn no_two_facts_and_no_two_pieces_of_work_have_one_id() {
    for_all(1_000, |case| {
        let mut run = lowered(&case.spec).run("random");
        for input in &case.inputs {
            run.plan(*input);
        }
        let mut work = Vec::new();
        loop {
            let runnables = run.prepare();
            if runnables.is_empty() {
                break;
            }
            for runnable in runnables {
                work.push(runnable.id());
                run.apply(executed(runnable, &case.spec));
            }
        }
        all_different("pieces of work", &work)?;
        all_different("facts", &run.reactions().iter().map(|fact| fact.id).collect::<Vec<_>>())?;
        for fact in run.reactions() {
            let way = run.ancestry(fact.id);
            let depths: Vec<u32> = way.iter().map(|fact| fact.depth).collect();
            same("depths of an ancestry", &depths, &(0..=fact.depth).collect())?;
            same("input of an ancestry", &way[0].input, &fact.input)?;
        }
        Ok(())
    });
}

fn all_different<T: Ord + std::fmt::Debug>(what: &str, list: &[T]) -> Finding {
    same(&format!("different {what}"), &list.iter().collect::<BTreeSet<_>>().len(), &list.len())
}
