//! What a workflow must come to, computed the slow and plain way: component by component, for every input and
//! every item, from tables of what came before. It shares no code with the engine that it judges.

use std::collections::BTreeMap;

use crate::spec::{Datum, How, Kind, Part, Spec, Test, Trouble};

/// Returns what a workflow comes to for these inputs.
///
/// # Panics
/// Panics if it is no workflow.
#[must_use]
pub fn expected(spec: &Spec, inputs: &[i64]) -> Expected {
    expected_since(spec, inputs, &vec![0; spec.parts.len()])
}

/// Returns what a workflow comes to for these inputs if each component takes part from some input on: not
/// before anything that it comes after.
///
/// # Panics
/// Panics if it is no workflow.
#[must_use]
pub fn expected_since(spec: &Spec, inputs: &[i64], since: &[usize]) -> Expected {
    let types = spec.types().expect("what is given to the oracle is a workflow");
    let scopes = types.into_iter().map(|(_, scope)| scope).collect();
    let mut world = World { spec, inputs, since, scopes, columns: Vec::new() };
    for at in 0..spec.parts.len() {
        let column = world.column(at);
        world.columns.push(column);
    }
    let is_map = |at: &usize| matches!(spec.parts[*at].kind, Kind::Map { .. });
    let items = (0..spec.parts.len()).filter(is_map).map(|at| world.columns[at].len()).sum();
    let joins = (0..spec.parts.len()).map(|at| world.joins(at)).collect();
    Expected { columns: world.columns, joins, items }
}

/// The place of a value: its input, then its place in each map around it. Their order is the order of inputs,
/// then items.
pub type Place = Vec<usize>;

/// What a workflow comes to.
#[derive(Clone, Debug)]
pub struct Expected {
    /// For each component, what comes of it at each place, in order.
    pub columns: Vec<BTreeMap<Place, Cell>>,
    /// For each component with several parents, the list of what they give at each place where all came.
    pub joins: Vec<BTreeMap<Place, Datum>>,
    /// How many items its maps have in all.
    pub items: usize,
}

/// What comes of a component at a place.
#[derive(Clone, Debug)]
pub struct Cell {
    /// What it gives to what comes after it, or why it gives nothing.
    pub given: Result<Datum, Why>,
    /// What it produces, in order.
    pub produced: Vec<Datum>,
}

/// Why a component gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// A condition is not true.
    Unsatisfied,
    /// Something before it was skipped.
    UpstreamSkipped,
    /// It was skipped itself.
    Skipped,
    /// Something before it failed.
    UpstreamFailed,
    /// It failed itself.
    Failed,
}

impl Why {
    /// What this is for what comes after.
    const fn downstream(self) -> Self {
        match self {
            Self::Unsatisfied => Self::Unsatisfied,
            Self::UpstreamSkipped | Self::Skipped => Self::UpstreamSkipped,
            Self::UpstreamFailed | Self::Failed => Self::UpstreamFailed,
        }
    }

    const fn of(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Failed(How::Skip) => Self::Skipped,
            Trouble::Failed(How::Never | How::Error | How::Panic | How::Mend) | Trouble::WrongShape => {
                Self::Failed
            }
        }
    }
}

struct World<'s> {
    spec: &'s Spec,
    inputs: &'s [i64],
    since: &'s [usize],
    scopes: Vec<Vec<usize>>,
    columns: Vec<BTreeMap<Place, Cell>>,
}

impl World<'_> {
    fn column(&self, at: usize) -> BTreeMap<Place, Cell> {
        let part = &self.spec.parts[at];
        let mut column = BTreeMap::new();
        let mut state = None;
        for place in self.places(&self.scopes[at], self.since[at]) {
            let cell = match &part.kind {
                Kind::Step { calc, fault, .. } => {
                    self.cell(part, &place, |taken| mended(part, calc.of(*fault, taken)))
                }
                Kind::Condition(ask) => {
                    let passed = |taken: &Datum| match ask.of(taken) {
                        Ok(true) => Ok(taken.clone()),
                        Ok(false) => Err(Why::Unsatisfied),
                        Err(trouble) => Err(Why::of(trouble)),
                    };
                    // A condition lets a fact pass and produces none.
                    Cell { produced: Vec::new(), ..self.cell(part, &place, passed) }
                }
                Kind::Rule { test, calc, fault } => self.cell(part, &place, |taken| {
                    if self.is_true(test, taken).map_err(Why::of)? {
                        mended(part, calc.of(*fault, taken))
                    } else {
                        Err(Why::Unsatisfied)
                    }
                }),
                Kind::Map { calc, fault } => {
                    let (item, list) = place.split_last().expect("an item has a place in its list");
                    let items = self.items(part, list).expect("a list that did not come has no items");
                    let given = mended(part, calc.of(*fault, &Datum::Number(items[*item])));
                    Cell { produced: given.iter().cloned().collect(), given }
                }
                Kind::Reduce { fold, initial, fault } => {
                    let taken = self.reduced(part, &place);
                    let fold_all = |items: Vec<Datum>| {
                        let mut sum = fold.first(*initial);
                        for item in &items {
                            let (next, is_last) = fold.next(*fault, &sum, item)?;
                            sum = next;
                            if is_last {
                                break;
                            }
                        }
                        Ok(sum)
                    };
                    // A fold that halts does not care what becomes of the items behind that.
                    let halted = self.items_in_order(part, &place).and_then(|items| {
                        let mut sum = fold.first(*initial);
                        for item in items {
                            let Some(item) = item.ok()? else { continue };
                            let (next, is_last) = fold.next(*fault, &sum, &item).ok()?;
                            if is_last {
                                return Some(next);
                            }
                            sum = next;
                        }
                        None
                    });
                    let folded = match halted {
                        Some(sum) => Ok(sum),
                        None => taken.and_then(|items| mended(part, fold_all(items))),
                    };
                    Cell { produced: folded.iter().cloned().collect(), given: folded }
                }
                Kind::State { fold, initial, fault, .. } => {
                    let before = state.clone().unwrap_or_else(|| fold.first(*initial));
                    let next = |taken: &Datum| fold.next(*fault, &before, taken).map(|(next, _)| next);
                    let mut cell = self.cell(part, &place, |taken| mended(part, next(taken)));
                    if let Ok(next) = &cell.given {
                        if state.is_none() {
                            cell.produced.insert(0, before);
                        }
                        state = Some(next.clone());
                    }
                    cell
                }
            };
            column.insert(place, cell);
        }
        column
    }

    /// Returns what comes of a function of all parents at the same place.
    fn cell(
        &self,
        part: &Part,
        place: &[usize],
        function: impl FnOnce(&Datum) -> Result<Datum, Why>,
    ) -> Cell {
        let given = self.taken(part, place).and_then(|taken| function(&taken));
        Cell { produced: given.iter().cloned().collect(), given }
    }

    /// Returns the lists of what several parents give, at each place where all of them came.
    fn joins(&self, at: usize) -> BTreeMap<Place, Datum> {
        let part = &self.spec.parts[at];
        let [first, _, ..] = part.parents.as_slice() else { return BTreeMap::new() };
        let places = self.places(&self.scopes[*first], self.since[at]).into_iter();
        places.filter_map(|place| self.taken(part, &place).ok().map(|list| (place, list))).collect()
    }

    /// Returns what all parents give at a place: the input, what the only one gives, or a list of all.
    fn taken(&self, part: &Part, place: &[usize]) -> Result<Datum, Why> {
        let given = |parent: &usize| self.columns[*parent][place].given.clone().map_err(Why::downstream);
        match part.parents.as_slice() {
            [] => Ok(Datum::Number(self.inputs[place[0]])),
            [parent] => given(parent),
            parents => {
                let all: Vec<Result<Datum, Why>> = parents.iter().map(given).collect();
                match all.iter().filter_map(|one| one.as_ref().err()).max() {
                    Some(gravest) => Err(*gravest),
                    None => Ok(Datum::Several(all.into_iter().flatten().collect())),
                }
            }
        }
    }

    /// Returns the items that a map takes apart at the place of its list.
    fn items(&self, map: &Part, list: &[usize]) -> Result<Vec<i64>, Why> {
        self.taken(map, list).and_then(|taken| taken.as_list().ok_or(Why::Failed))
    }

    /// Returns what a reduce folds: the items of the innermost map around its parents, or a list.
    fn reduced(&self, part: &Part, place: &[usize]) -> Result<Vec<Datum>, Why> {
        let around = part.parents.first().and_then(|parent| self.scopes[*parent].last());
        let Some(map) = around else {
            let list = self.taken(part, place)?.as_list().ok_or(Why::Failed)?;
            return Ok(list.into_iter().map(Datum::Number).collect());
        };
        let count = self.items(&self.spec.parts[*map], place)?.len();
        let mut items = Vec::new();
        for item in 0..count {
            match self.taken(part, &[place, &[item]].concat()) {
                Ok(item) => items.push(item),
                Err(Why::Unsatisfied | Why::Skipped | Why::UpstreamSkipped) => {}
                Err(Why::Failed | Why::UpstreamFailed) => return Err(Why::UpstreamFailed),
            }
        }
        Ok(items)
    }

    /// Returns the items that a reduce of a map is given, in order: a value, nothing, or a failure.
    fn items_in_order(&self, part: &Part, place: &[usize]) -> Option<Vec<Result<Option<Datum>, Why>>> {
        let map = part.parents.first().and_then(|parent| self.scopes[*parent].last())?;
        let count = self.items(&self.spec.parts[*map], place).ok()?.len();
        let item = |item: usize| match self.taken(part, &[place, &[item]].concat()) {
            Ok(item) => Ok(Some(item)),
            Err(Why::Unsatisfied | Why::Skipped | Why::UpstreamSkipped) => Ok(None),
            Err(why) => Err(why),
        };
        Some((0..count).map(item).collect())
    }

    fn is_true(&self, test: &Test, taken: &Datum) -> Result<bool, Trouble> {
        match test {
            Test::Named(place) => match &self.spec.parts[*place].kind {
                Kind::Condition(ask) => ask.of(taken),
                _ => Err(Trouble::WrongShape),
            },
            Test::Inline(ask) => ask.of(taken),
            Test::Not(test) => Ok(!self.is_true(test, taken)?),
            Test::All(tests) => {
                for test in tests {
                    if !self.is_true(test, taken)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Any(tests) => {
                for test in tests {
                    if self.is_true(test, taken)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    /// Returns all places inside of some maps, in order, from some input on.
    fn places(&self, scope: &[usize], since: usize) -> Vec<Place> {
        let Some((map, outer)) = scope.split_last() else {
            return (since..self.inputs.len()).map(|input| vec![input]).collect();
        };
        let items = |list: Place| {
            let count = self.items(&self.spec.parts[*map], &list).map_or(0, |items| items.len());
            (0..count).map(move |item| [list.as_slice(), &[item]].concat())
        };
        self.places(outer, since).into_iter().flat_map(items).collect()
    }
}

/// Returns what comes of a call: where a value is put in the place of a failure, that value.
fn mended(part: &Part, result: Result<Datum, Trouble>) -> Result<Datum, Why> {
    match result {
        Err(Trouble::Failed(How::Mend)) => Ok(part.kind.mended()),
        other => other.map_err(Why::of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Ask, Calc, Fault, Fold, Shape};

    fn produced(spec: &Spec, inputs: &[i64], at: usize) -> Vec<serde_json::Value> {
        let cells = expected(spec, inputs).columns.swap_remove(at).into_values();
        cells.flat_map(|cell| cell.produced).map(|datum| datum.to_json()).collect()
    }

    fn after(parent: usize, kind: Kind) -> Part {
        Part { kind, parents: vec![parent] }
    }

    #[test]
    fn a_map_a_rule_and_a_reduce_by_hand() {
        let ask = Ask { about: Shape::Number, by: 2, fault: Fault::NEVER, later: false };
        let list = Kind::Step { calc: Calc::Spread(4), fault: Fault::NEVER, later: false };
        let parts = vec![
            Part { kind: list, parents: Vec::new() },
            after(0, Kind::Map { calc: Calc::Add(1), fault: Fault::NEVER }),
            after(1, Kind::Rule { test: Test::Inline(ask), calc: Calc::Mul(10), fault: Fault::NEVER }),
            after(2, Kind::Reduce { fold: Fold::Sum, initial: 5, fault: Fault::NEVER }),
        ];
        let spec = Spec { parts };
        assert_eq!(produced(&spec, &[7, 4], 0), [serde_json::json!([7, 10, 13]), serde_json::json!([])]);
        assert_eq!(produced(&spec, &[7, 4], 1), [8, 11, 14]);
        assert_eq!(produced(&spec, &[7, 4], 2), [110]);
        assert_eq!(produced(&spec, &[7, 4], 3), [115, 5]);
    }

    #[test]
    fn a_state_with_a_failed_turn_by_hand() {
        let fault = Fault { how: How::Panic, by: 10, rest: 2 };
        let kind = Kind::State { fold: Fold::Sum, initial: 1, fault, machine: false };
        let spec = Spec { parts: vec![Part { kind, parents: Vec::new() }] };
        assert_eq!(produced(&spec, &[2, 3, 12, 4], 0), [1, 4, 8]);
        let given = &expected(&spec, &[2, 3]).columns[0][&vec![0]].given;
        assert_eq!(*given, Err(Why::Failed));
    }
}
