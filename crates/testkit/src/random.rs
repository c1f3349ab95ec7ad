//! Random workflows with their inputs, each from one seed and the same in every process.

use crate::spec::{Ask, Calc, Fault, Fold, How, Kind, Part, Shape, Spec, Test};

/// Numbers that look random and depend on nothing but their seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

/// A workflow and its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What it was made from; whatever else is random about it comes from here, too.
    pub seed: u64,
    /// The workflow.
    pub spec: Spec,
    /// The inputs.
    pub inputs: Vec<i64>,
}

/// As many components a workflow has at most.
const PARTS: usize = 14;

/// As many inputs it gets at most.
const INPUTS: usize = 4;

/// As many maps stand inside of each other at most, so that the items stay few.
const DEPTH: usize = 3;

impl Dice {
    /// Begins at a seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number (splitmix64).
    pub const fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below one that is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        let below = self.roll() % (end as u64);
        usize::try_from(below).unwrap_or(0)
    }

    /// Returns a number from one to another, both among them.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        low + i64::try_from(self.roll() % high.abs_diff(low).saturating_add(1)).unwrap_or(0)
    }

    /// Tells whether something shall be that is so in so many of a hundred cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.roll() % 100 < percent
    }

    /// Puts a list into any order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for end in (1..list.len()).rev() {
            let other = self.below(end + 1);
            list.swap(end, other);
        }
    }
}

impl Case {
    /// Makes a workflow and its inputs from a seed.
    #[must_use]
    pub fn random(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let taste = Taste::random(&mut dice);
        let size = if dice.chance(30) { 1 + dice.below(PARTS) } else { PARTS / 2 + dice.below(PARTS / 2) };
        let mut maker = Maker { dice, taste, spec: Spec::default() };
        while maker.spec.parts.len() < size {
            maker.add_part();
        }
        let Maker { mut dice, spec, .. } = maker;
        let count = 1 + dice.below(INPUTS);
        let inputs = (0..count).map(|_| dice.between(0, 40)).collect();
        Self { seed, spec, inputs }
    }
}

/// What a workflow has much or little of. Workflows that have a bit of everything have too little of anything.
struct Taste {
    /// How often each kind of component is tried: step, condition, rule, map, reduce, state.
    kinds: [usize; 6],
    /// In how many of a hundred cases a map follows a list.
    maps: u64,
    /// In how many of a hundred cases a component has one parent more.
    joins: u64,
    /// In how many of a hundred cases it comes after something deep inside of maps.
    deep: u64,
    /// In how many of a hundred cases a function can fail.
    faults: u64,
}

impl Taste {
    fn random(dice: &mut Dice) -> Self {
        Self {
            kinds: std::array::from_fn(|_| [1, 3, 3, 9][dice.below(4)]),
            maps: [20, 80, 100][dice.below(3)],
            joins: [5, 30, 60][dice.below(3)],
            deep: [10, 60, 95][dice.below(3)],
            faults: [0, 15, 40][dice.below(3)],
        }
    }
}

/// A workflow that is being made.
struct Maker {
    dice: Dice,
    taste: Taste,
    spec: Spec,
}

impl Maker {
    /// Adds a component that fits; what does not fit is thrown away, and enough fits.
    fn add_part(&mut self) {
        let before = self.spec.parts.len();
        let part = self.part();
        // A list is mostly there to be taken apart.
        let is_list = matches!(part.kind, Kind::Step { calc: Calc::Spread(_), .. });
        self.spec.parts.push(part);
        if is_list && self.dice.chance(self.taste.maps) {
            let kind = self.map();
            self.spec.parts.push(Part { kind, parents: vec![before] });
        }
        let types = self.spec.types();
        if types.is_none_or(|types| types.iter().any(|(_, scope)| scope.len() > DEPTH)) {
            self.spec.parts.truncate(before);
        }
    }

    fn part(&mut self) -> Part {
        let types = self.spec.types().unwrap_or_default();
        let parents = self.parents(&types);
        let shapes: Vec<Shape> = match parents.as_slice() {
            [] => vec![Shape::Number],
            parents => parents.iter().map(|parent| types[*parent].0).collect(),
        };
        let whole = if let [shape] = shapes.as_slice() { *shape } else { Shape::List };
        let kind = match self.choice() {
            Some(1) => Kind::Condition(self.ask(whole)),
            Some(2) => {
                let (test, calc) = (self.test(whole, 2), self.calc(&shapes));
                Kind::Rule { test, calc, fault: self.fault() }
            }
            Some(3) if shapes.as_slice() == [Shape::List] => self.map(),
            // A map needs a list first.
            Some(3) => {
                let calc = Calc::Spread(self.dice.between(3, 6));
                Kind::Step { calc, fault: self.fault(), later: false }
            }
            Some(4) => {
                let (fold, initial) = (self.fold(), self.dice.between(0, 5));
                Kind::Reduce { fold, initial, fault: self.fault() }
            }
            Some(5) => {
                let (fold, initial, machine) = (self.fold(), self.dice.between(0, 5), self.dice.chance(30));
                Kind::State { fold, initial, fault: self.fault(), machine }
            }
            _ => {
                let (calc, later) = (self.calc(&shapes), self.dice.chance(15));
                Kind::Step { calc, fault: self.fault(), later }
            }
        };
        Part { kind, parents }
    }

    /// Chooses a kind, by its place in the taste.
    fn choice(&mut self) -> Option<usize> {
        let mut pick = self.dice.below(self.taste.kinds.iter().sum());
        self.taste.kinds.iter().position(|weight| {
            let is_here = pick < *weight;
            pick = pick.saturating_sub(*weight);
            is_here
        })
    }

    /// Chooses what a component comes after: rather something new than something old, and all inside of the
    /// same maps.
    fn parents(&mut self, types: &[(Shape, Vec<usize>)]) -> Vec<usize> {
        let dice = &mut self.dice;
        if types.is_empty() || dice.chance(10) {
            return Vec::new();
        }
        let deepest = types.iter().map(|(_, scope)| scope.len()).max().unwrap_or(0);
        let deep: Vec<usize> = (0..types.len()).filter(|at| types[*at].1.len() == deepest).collect();
        let first = if dice.chance(self.taste.deep) {
            deep[dice.below(deep.len())]
        } else if dice.chance(50) {
            types.len() - 1 - dice.below(types.len().min(3))
        } else {
            dice.below(types.len())
        };
        let mut parents = vec![first];
        while parents.len() < 4 && dice.chance(self.taste.joins) {
            let beside: Vec<usize> = (0..types.len()).filter(|at| types[*at].1 == types[first].1).collect();
            parents.push(beside[dice.below(beside.len())]);
        }
        dice.shuffle(&mut parents);
        parents
    }

    fn map(&mut self) -> Kind {
        Kind::Map { calc: self.calc(&[Shape::Number]), fault: self.fault() }
    }

    fn calc(&mut self, taken: &[Shape]) -> Calc {
        let dice = &mut self.dice;
        match taken {
            [Shape::Number] => match dice.below(5) {
                0 | 1 => Calc::Spread(dice.between(2, 6)),
                2 | 3 => Calc::Add(dice.between(0, 9)),
                _ => Calc::Mul(dice.between(0, 9)),
            },
            [Shape::List] => [Calc::Digest, Calc::Reverse][dice.below(2)],
            [_, _] => [Calc::Weave, Calc::Pair, Calc::Digest, Calc::Reverse][dice.below(4)],
            _ => [Calc::Weave, Calc::Weave, Calc::Digest, Calc::Reverse][dice.below(4)],
        }
    }

    fn fold(&mut self) -> Fold {
        let halt = Fold::Halt(self.dice.between(2, 4));
        [Fold::Sum, Fold::Weave, halt, Fold::Collect][self.dice.below(4)]
    }

    fn fault(&mut self) -> Fault {
        let dice = &mut self.dice;
        if !dice.chance(self.taste.faults) {
            return Fault::NEVER;
        }
        let by = dice.between(2, 6);
        let how = [How::Error, How::Panic, How::Skip, How::Mend][dice.below(4)];
        Fault { how, by, rest: dice.between(0, by - 1) }
    }

    fn ask(&mut self, about: Shape) -> Ask {
        // A question about something else is no error, it is just not true.
        let other = [Shape::Number, Shape::List][self.dice.below(2)];
        let about = if self.dice.chance(90) { about } else { other };
        // Nobody runs a question, so nobody can let its failure pass.
        let fault = self.fault();
        let can_be = matches!(fault.how, How::Error | How::Panic) && self.dice.chance(50);
        let fault = if can_be { fault } else { Fault::NEVER };
        Ask { about, by: self.dice.between(2, 5), fault, later: self.dice.chance(15) }
    }

    fn test(&mut self, about: Shape, depth: usize) -> Test {
        let is_condition = |at: &usize| matches!(self.spec.parts[*at].kind, Kind::Condition(_));
        let conditions: Vec<usize> = (0..self.spec.parts.len()).filter(is_condition).collect();
        match self.dice.below(9) {
            0 if depth > 0 => Test::All(self.tests(about, depth)),
            1 if depth > 0 => Test::Any(self.tests(about, depth)),
            2 if depth > 0 => Test::Not(Box::new(self.test(about, depth - 1))),
            3..6 if !conditions.is_empty() => Test::Named(conditions[self.dice.below(conditions.len())]),
            _ => Test::Inline(self.ask(about)),
        }
    }

    fn tests(&mut self, about: Shape, depth: usize) -> Vec<Test> {
        (0..self.dice.below(4)).map(|_| self.test(about, depth - 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::oracle::expected;

    /// What a test over random workflows shows is worth as much as they are.
    #[test]
    fn random_workflows_have_enough_of_everything() {
        let mut seen: BTreeMap<(String, usize, String), usize> = BTreeMap::new();
        for case in (0..5_000).map(Case::random) {
            let types = case.spec.types().unwrap();
            for (at, column) in expected(&case.spec, &case.inputs).columns.iter().enumerate() {
                let word = case.spec.name(at).trim_end_matches(char::is_numeric).to_owned();
                for cell in column.values() {
                    let came =
                        cell.given.as_ref().map_or_else(|why| format!("{why:?}"), |_| "came".to_owned());
                    *seen.entry((word.clone(), types[at].1.len(), came)).or_default() += 1;
                }
            }
        }
        let whys = ["came", "Unsatisfied", "Failed", "Skipped", "UpstreamFailed", "UpstreamSkipped"];
        for word in ["step", "condition", "rule", "reduce", "state"] {
            for depth in 0..2 {
                for why in whys {
                    let count = seen.get(&(word.to_owned(), depth, why.to_owned())).copied().unwrap_or(0);
                    // Nobody runs a question who could skip it.
                    let cannot_be = (word, why) == ("condition", "Skipped");
                    assert!(cannot_be || count >= 3, "{word} at depth {depth}: {why} {count} times");
                }
            }
        }
    }

    #[test]
    fn one_seed_makes_one_workflow_and_smaller_ones_are_workflows() {
        for seed in 0..200 {
            let case = Case::random(seed);
            assert_eq!(case, Case::random(seed));
            assert!(case.smaller().iter().all(|case| case.spec.types().is_some()));
        }
    }
}
