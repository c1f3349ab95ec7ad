//! The search for a workflow of which something does not hold, and for the smallest one.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tidewheel_testkit::Case;

/// What does not hold, in words.
pub(crate) type Finding = Result<(), String>;

/// Looks at as many random workflows and panics with the smallest of which something does not hold.
///
/// `RANDOM_WORKFLOWS=100000` in the environment looks at that many instead, and `RANDOM_WORKFLOWS_FROM=7`
/// begins at another seed.
#[expect(clippy::disallowed_methods, reason = "core reads no environment, but who tests it may ask for more")]
pub(crate) fn for_all(count: u64, property: impl Fn(&Case) -> Finding) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("RANDOM_WORKFLOWS_FROM").unwrap_or(0);
    let count = number("RANDOM_WORKFLOWS").unwrap_or(count);
    for seed in first..first + count {
        let case = Case::random(seed);
        if let Err(finding) = caught(&property, &case) {
            let (case, finding) = smallest(case, finding, &property);
            panic!("seed {seed}: {finding}\n{}inputs: {:?}", case.spec, case.inputs);
        }
    }
}

fn smallest(mut case: Case, mut finding: String, property: &impl Fn(&Case) -> Finding) -> (Case, String) {
    'smaller: loop {
        for candidate in case.smaller() {
            if let Err(other) = caught(property, &candidate) {
                (case, finding) = (candidate, other);
                continue 'smaller;
            }
        }
        return (case, finding);
    }
}

/// A panic is a finding like any other.
fn caught(property: &impl Fn(&Case) -> Finding, case: &Case) -> Finding {
    catch_unwind(AssertUnwindSafe(|| property(case))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(text.unwrap_or_else(|| "panicked".to_owned()))
    })
}

/// Says what differs, if anything does.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Finding {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}\n   found {found:?}\nexpected {expected:?}"))
}
