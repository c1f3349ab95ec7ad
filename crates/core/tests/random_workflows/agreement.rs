//! A run comes to what the plain evaluator says.

use tidewheel_testkit::{Case, expected, lowered};

use crate::compare::finished_as;
use crate::drive::finish;
use crate::search::for_all;

#[test]
fn inputs_that_overlap_come_to_what_the_oracle_says() {
    for_all(5_000, |case| {
        let mut run = lowered(&case.spec).run("random");
        for input in &case.inputs {
            run.plan(*input);
        }
        finish(&mut run, &case.spec)?;
        finished_as(&run, case, &expected(&case.spec, &case.inputs))
    });
}

#[test]
fn inputs_one_after_the_other_come_to_what_the_oracle_says() {
    for_all(5_000, |case| {
        let mut run = lowered(&case.spec).run("random");
        for (count, input) in (1..).zip(&case.inputs) {
            run.plan(*input);
            finish(&mut run, &case.spec)?;
            // What later inputs bring changes nothing of what there is.
            if count % 2 == 1 {
                let so_far = Case { inputs: case.inputs[..count].to_vec(), ..case.clone() };
                finished_as(&run, &so_far, &expected(&case.spec, &so_far.inputs))?;
            }
        }
        finished_as(&run, case, &expected(&case.spec, &case.inputs))
    });
}
