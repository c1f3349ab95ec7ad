//! What jobs share by name: rates, circuit breakers and retry budgets, as rows that somebody else keeps.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::brief::Brief;
use crate::policy::{Breaker, Budget, Rate, Resolved};

/// The states that jobs share, by the names of their rows. One that is not there counts as new.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    rows: BTreeMap<String, State>,
    changed: BTreeSet<String>,
    /// What the rows were before a pass that may have to be taken back.
    before: Option<Before>,
}

#[derive(Clone, Debug, PartialEq)]
struct Before {
    rows: BTreeMap<String, Option<State>>,
    changed: BTreeSet<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Breaker(Breaker),
    Budget(Budget),
    Rate(Rate),
}

/// The written form.
#[derive(Serialize, Deserialize)]
struct Form<T> {
    v: u32,
    state: T,
}

const VERSION: u32 = 1;

impl Shared {
    /// Returns the names of the rows that a pass over these jobs may look at.
    #[must_use]
    pub fn names_of_jobs<'a>(jobs: impl IntoIterator<Item = &'a Brief>) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for job in jobs {
            let Some(limits) = job.schedule.limits.as_deref().filter(|_| job.status.is_active()) else {
                continue;
            };
            if let Some(breaker) = &limits.breaker {
                names.insert(breaker_row(&breaker.name));
            }
            if let Some(rate) = &limits.rate {
                names.insert(rate_row(rate.name.as_deref().unwrap_or_default()));
            }
        }
        names
    }

    /// Returns the names of the rows that the end of an attempt under this policy may look at.
    #[must_use]
    pub fn names_of_policy(policy: &Resolved) -> BTreeSet<String> {
        let breaker = policy.circuit_breaker.as_ref().map(|breaker| breaker_row(&breaker.name));
        let budget = policy.retry_budget.as_ref().map(|budget| budget_row(&budget.name));
        breaker.into_iter().chain(budget).collect()
    }

    /// Puts a row there as it is stored. One that cannot be read counts as new: nobody shall wait for it for ever.
    pub fn put(&mut self, name: &str, stored: &Value) {
        if let Ok(Form { v: VERSION, state }) = Form::<State>::deserialize(stored) {
            self.rows.insert(name.to_owned(), state);
        }
    }

    /// Takes the rows that were changed since the last time, as they are to be stored.
    pub fn take_changed(&mut self) -> Vec<(String, Value)> {
        let changed = std::mem::take(&mut self.changed);
        let form = |name: String| {
            let state = self.rows.get(&name)?;
            let value = serde_json::to_value(Form { v: VERSION, state });
            Some((name, value.expect("invariant: a state has no key that is not a string")))
        };
        changed.into_iter().filter_map(form).collect()
    }

    /// Looks at a breaker, and changes it.
    pub(super) fn breaker<T>(&mut self, name: &str, change: impl FnOnce(&mut Breaker) -> T) -> T {
        let row = breaker_row(name);
        let mut breaker = match self.rows.get(&row) {
            Some(State::Breaker(breaker)) => *breaker,
            Some(State::Budget(_) | State::Rate(_)) | None => Breaker::default(),
        };
        let before = breaker;
        let answer = change(&mut breaker);
        if breaker != before {
            self.set(row, State::Breaker(breaker));
        }
        answer
    }

    /// Looks at a retry budget, and changes it.
    pub(super) fn budget<T>(&mut self, name: &str, change: impl FnOnce(&mut Budget) -> T) -> T {
        let row = budget_row(name);
        let mut budget = match self.rows.get(&row) {
            Some(State::Budget(budget)) => *budget,
            Some(State::Breaker(_) | State::Rate(_)) | None => Budget::default(),
        };
        let before = budget;
        let answer = change(&mut budget);
        if budget != before {
            self.set(row, State::Budget(budget));
        }
        answer
    }

    /// Looks at a rate, and changes it. The change says whether it did: the state is too large to compare.
    pub(super) fn rate<T>(&mut self, name: &str, change: impl FnOnce(&mut Rate) -> (T, bool)) -> T {
        let row = rate_row(name);
        if !matches!(self.rows.get(&row), Some(State::Rate(_))) {
            self.set(row.clone(), State::Rate(Rate::default()));
        } else if let Some(before) = &mut self.before
            && !before.rows.contains_key(&row)
        {
            before.rows.insert(row.clone(), self.rows.get(&row).cloned());
        }
        let Some(State::Rate(rate)) = self.rows.get_mut(&row) else {
            unreachable!("invariant: it was put there just now")
        };
        let (answer, is_changed) = change(rate);
        if is_changed {
            self.changed.insert(row);
        }
        answer
    }

    /// Remembers how everything stands, so that it can be put back.
    pub(super) fn begin(&mut self) {
        self.before = Some(Before { rows: BTreeMap::new(), changed: self.changed.clone() });
    }

    /// Keeps what was changed since the beginning.
    pub(super) fn keep(&mut self) {
        self.before = None;
    }

    /// Puts back what was changed since the beginning.
    pub(super) fn put_back(&mut self) {
        let Some(before) = self.before.take() else { return };
        self.changed = before.changed;
        for (name, state) in before.rows {
            match state {
                Some(state) => self.rows.insert(name, state),
                None => self.rows.remove(&name),
            };
        }
    }

    fn set(&mut self, row: String, state: State) {
        let old = self.rows.insert(row.clone(), state);
        if let Some(before) = &mut self.before {
            before.rows.entry(row.clone()).or_insert(old);
        }
        self.changed.insert(row);
    }
}

fn breaker_row(name: &str) -> String {
    format!("breaker:{name}")
}

fn budget_row(name: &str) -> String {
    format!("budget:{name}")
}

fn rate_row(name: &str) -> String {
    format!("rate:{name}")
}
