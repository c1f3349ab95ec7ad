//! Which shared states a policy is about, and their written form.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidewheel_core::policy::{Breaker, Budget, OnOpen, Rate, Resolved, Slots};

/// What work is let in by. All work with the same gates waits in one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gates {
    pub(super) breaker: Option<Name>,
    pub(super) waits_for_breaker: bool,
    pub(super) slots: Option<Name>,
    pub(super) rate: Option<Name>,
    pub(super) budget: Option<Name>,
}

/// The name of a shared state.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) kind: &'static str,
    pub(super) name: String,
}

impl Name {
    /// Returns what people call it: of a rule by itself, that is the field.
    pub(super) fn shown(&self) -> String {
        match self.kind {
            RATE_OF_RULE | SLOTS_OF_RULE => "its rule".to_owned(),
            _ => self.name.clone(),
        }
    }
}

const BREAKER: &str = "breaker";
const BUDGET: &str = "budget";
const RATE: &str = "rate";
const RATE_OF_RULE: &str = "rate_of_rule";
const SLOTS: &str = "slots";
const SLOTS_OF_RULE: &str = "slots_of_rule";

impl Gates {
    pub(super) fn of(workflow: &str, policy: &Resolved) -> Self {
        let name = |kind, name: &str| Name { kind, name: name.to_owned() };
        let of_rule = |kind| {
            let rule = policy.rule.as_deref().unwrap_or_default();
            Name { kind, name: format!("{workflow}/{rule}") }
        };
        Self {
            breaker: policy.circuit_breaker.as_ref().map(|breaker| name(BREAKER, &breaker.name)),
            waits_for_breaker: policy
                .circuit_breaker
                .as_ref()
                .is_some_and(|breaker| breaker.on_open == OnOpen::Wait),
            slots: policy.concurrency_limit.as_ref().map(|limit| match &limit.name {
                Some(shared) => name(SLOTS, shared),
                None => of_rule(SLOTS_OF_RULE),
            }),
            rate: policy.rate_limit.as_ref().map(|limit| match &limit.name {
                Some(shared) => name(RATE, shared),
                None => of_rule(RATE_OF_RULE),
            }),
            budget: policy.retry_budget.as_ref().map(|budget| name(BUDGET, &budget.name)),
        }
    }

    /// Returns the names of what others may have instead.
    pub(super) fn contended(&self) -> impl Iterator<Item = &Name> {
        [&self.breaker, &self.slots, &self.rate].into_iter().flatten()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &Name> {
        [&self.breaker, &self.slots, &self.rate, &self.budget].into_iter().flatten()
    }
}

/// The shared states that somebody looks at.
#[derive(Debug, Default)]
pub(super) struct Rows(BTreeMap<Name, Row>);

#[derive(Debug, Default)]
pub(super) struct Row {
    /// How often it was written; zero for one that nobody wrote.
    pub(super) version: u64,
    pub(super) is_changed: bool,
    state: State,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum State {
    #[default]
    New,
    Breaker(Breaker),
    Budget(Budget),
    Rate(Rate),
    Slots(Slots),
}

/// The written form.
#[derive(Serialize, Deserialize)]
struct Form<T> {
    v: u32,
    state: T,
}

const VERSION: u32 = 1;

impl Rows {
    /// Puts a state there as it is stored. One that cannot be read counts as new: whoever wrote it knew more than
    /// this release, or nothing; nobody shall wait for it for ever.
    pub(super) fn put(&mut self, name: Name, version: u64, body: Option<&str>) {
        let read = body.map(serde_json::from_str::<Form<State>>);
        let state = match read {
            Some(Ok(Form { v: VERSION, state })) => state,
            Some(other) => {
                let why = other.err().map(|error| error.to_string());
                tracing::warn!(kind = name.kind, name = name.name, why, "shared state cannot be read");
                State::New
            }
            None => State::New,
        };
        self.0.insert(name, Row { version, is_changed: false, state });
    }

    /// Returns what was changed, as it is to be written.
    pub(super) fn changed(&self) -> impl Iterator<Item = (&Name, u64, String)> {
        self.0.iter().filter(|(_, row)| row.is_changed).map(|(name, row)| {
            let form = Form { v: VERSION, state: &row.state };
            let body =
                serde_json::to_string(&form).expect("invariant: a state has no key that is not a string");
            (name, row.version, body)
        })
    }

    fn get(&mut self, name: &Name) -> &mut Row {
        if !self.0.contains_key(name) {
            self.0.insert(name.clone(), Row::default());
        }
        self.0.get_mut(name).expect("invariant: it is there since the line before")
    }

    /// Changes a breaker, and says so if it did change.
    pub(super) fn breaker<T>(&mut self, name: &Name, change: impl FnOnce(&mut Breaker) -> T) -> T {
        let row = self.get(name);
        let mut breaker =
            if let State::Breaker(breaker) = &row.state { *breaker } else { Breaker::default() };
        let before = breaker;
        let answer = change(&mut breaker);
        if breaker != before {
            row.is_changed = true;
            row.state = State::Breaker(breaker);
        }
        answer
    }

    pub(super) fn budget<T>(&mut self, name: &Name, change: impl FnOnce(&mut Budget) -> T) -> T {
        let row = self.get(name);
        let mut budget = if let State::Budget(budget) = &row.state { *budget } else { Budget::default() };
        let before = budget;
        let answer = change(&mut budget);
        if budget != before {
            row.is_changed = true;
            row.state = State::Budget(budget);
        }
        answer
    }

    /// Changes a rate. The change says whether it did: the state is too large to compare.
    pub(super) fn rate<T>(&mut self, name: &Name, change: impl FnOnce(&mut Rate) -> (T, bool)) -> T {
        let row = self.get(name);
        if !matches!(row.state, State::Rate(_)) {
            row.state = State::Rate(Rate::default());
        }
        let State::Rate(rate) = &mut row.state else { unreachable!("it was put there just now") };
        let (answer, is_changed) = change(rate);
        row.is_changed |= is_changed;
        answer
    }

    pub(super) fn slots<T>(&mut self, name: &Name, change: impl FnOnce(&mut Slots) -> (T, bool)) -> T {
        let row = self.get(name);
        if !matches!(row.state, State::Slots(_)) {
            row.state = State::Slots(Slots::default());
        }
        let State::Slots(slots) = &mut row.state else { unreachable!("it was put there just now") };
        let (answer, is_changed) = change(slots);
        row.is_changed |= is_changed;
        answer
    }
}
