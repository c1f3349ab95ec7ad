//! Smaller workflows, so that one that shows a fault can be read.

use crate::random::Case;
use crate::spec::{Calc, Fault, Fold, Kind, Part, Spec, Test};

impl Case {
    /// Returns smaller cases that may show the same, the smallest first.
    #[must_use]
    pub fn smaller(&self) -> Vec<Self> {
        let with_inputs = |inputs: Vec<i64>| Self { inputs, ..self.clone() };
        let with_spec = |spec: Spec| Self { spec, ..self.clone() };
        let mut cases = Vec::new();
        for place in 0..self.spec.parts.len() {
            cases.extend(without(&self.spec, place).map(with_spec));
        }
        for place in 0..self.inputs.len() {
            let mut inputs = self.inputs.clone();
            inputs.remove(place);
            cases.push(with_inputs(inputs));
        }
        for place in 0..self.spec.parts.len() {
            for kind in simpler(&self.spec.parts[place].kind) {
                let mut spec = self.spec.clone();
                spec.parts[place].kind = kind;
                cases.push(with_spec(spec));
            }
            if self.spec.parts[place].parents.len() > 2 {
                let mut spec = self.spec.clone();
                spec.parts[place].parents.pop();
                cases.push(with_spec(spec));
            }
        }
        for place in 0..self.inputs.len() {
            for smaller in [0, 1, self.inputs[place] / 2, self.inputs[place] - 1] {
                let mut inputs = self.inputs.clone();
                inputs[place] = smaller;
                if (0..self.inputs[place]).contains(&smaller) {
                    cases.push(with_inputs(inputs));
                }
            }
        }
        cases.retain(|case| !case.inputs.is_empty() && case.spec.types().is_some());
        cases
    }
}

/// Takes a component out; what came after it comes after its parents.
fn without(spec: &Spec, place: usize) -> Option<Spec> {
    let gone = &spec.parts[place];
    let is_named =
        |part: &Part| matches!(&part.kind, Kind::Rule { test, .. } if test.named().contains(&place));
    if spec.parts.iter().any(is_named) {
        return None;
    }
    let moved = |at: usize| if at > place { at - 1 } else { at };
    let mut parts = Vec::with_capacity(spec.parts.len());
    for (_, part) in spec.parts.iter().enumerate().filter(|(at, _)| *at != place) {
        let mut part = part.clone();
        if part.parents.contains(&place) && part.parents.len() > 1 && gone.parents.len() != 1 {
            part.parents.retain(|parent| *parent != place);
        }
        let parents = part.parents.iter();
        part.parents = parents
            .flat_map(|parent| if *parent == place { gone.parents.clone() } else { vec![*parent] })
            .map(moved)
            .collect();
        if let Kind::Rule { test, .. } = &mut part.kind {
            rename(test, &moved);
        }
        parts.push(part);
    }
    Some(Spec { parts })
}

fn rename(test: &mut Test, moved: &impl Fn(usize) -> usize) {
    match test {
        Test::Named(place) => *place = moved(*place),
        Test::Inline(_) => {}
        Test::All(tests) | Test::Any(tests) => tests.iter_mut().for_each(|test| rename(test, moved)),
        Test::Not(test) => rename(test, moved),
    }
}

fn simpler(kind: &Kind) -> Vec<Kind> {
    let mut kinds = Vec::new();
    let plain = |kind: &Kind| {
        let mut kind = kind.clone();
        match &mut kind {
            Kind::Step { fault, later, .. } => (*fault, *later) = (Fault::NEVER, false),
            Kind::Rule { fault, .. } | Kind::Map { fault, .. } | Kind::Reduce { fault, .. } => {
                *fault = Fault::NEVER;
            }
            Kind::State { fault, machine, .. } => (*fault, *machine) = (Fault::NEVER, false),
            Kind::Condition(ask) => (ask.fault, ask.later) = (Fault::NEVER, false),
        }
        kind
    };
    kinds.push(plain(kind));
    match kind {
        Kind::Rule { test, calc, fault } => {
            let inner = match test {
                Test::All(tests) | Test::Any(tests) => tests.clone(),
                Test::Not(test) => vec![(**test).clone()],
                Test::Named(_) | Test::Inline(_) => Vec::new(),
            };
            kinds.push(Kind::Step { calc: *calc, fault: *fault, later: false });
            kinds.extend(inner.into_iter().map(|test| Kind::Rule { test, calc: *calc, fault: *fault }));
        }
        Kind::State { fold: Fold::Sum | Fold::Weave, fault, .. } => {
            kinds.push(Kind::Step { calc: Calc::Add(0), fault: *fault, later: false });
        }
        Kind::Step { .. }
        | Kind::Condition(_)
        | Kind::Map { .. }
        | Kind::Reduce { .. }
        | Kind::State { .. } => {}
    }
    kinds.retain(|simpler| simpler != kind);
    kinds
}
