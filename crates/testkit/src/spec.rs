//! Workflows as data: parts with their parents and parameters, whose values are numbers and lists of numbers.
//! It says what each function computes, and nothing about when it runs.

use std::fmt;

/// A workflow as data. Parents and conditions that a rule refers to stand before what needs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The components.
    pub parts: Vec<Part>,
}

/// One component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it does.
    pub kind: Kind,
    /// What it comes after, by place; nothing means the input.
    pub parents: Vec<usize>,
}

/// What a component does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function.
    Step {
        /// Which.
        calc: Calc,
        /// When it fails.
        fault: Fault,
        /// Whether it is async.
        later: bool,
    },
    /// A gate, and a name for rules.
    Condition(Ask),
    /// A function under a condition.
    Rule {
        /// The condition.
        test: Test,
        /// The function.
        calc: Calc,
        /// When it fails.
        fault: Fault,
    },
    /// A function for each item of a list.
    Map {
        /// Which.
        calc: Calc,
        /// When it fails.
        fault: Fault,
    },
    /// A fold of the items of the innermost map, or of a list outside of maps.
    Reduce {
        /// Which.
        fold: Fold,
        /// Where it begins.
        initial: i64,
        /// On which items it fails.
        fault: Fault,
    },
    /// A state over facts.
    State {
        /// The next state.
        fold: Fold,
        /// The first state.
        initial: i64,
        /// On which facts it fails.
        fault: Fault,
        /// Whether it is written as a state machine.
        machine: bool,
    },
}

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calc {
    /// A number to a number.
    Add(i64),
    /// A number to a number.
    Mul(i64),
    /// A number to a list of fewer items than this.
    Spread(i64),
    /// A list, or all parents as a list, to a number.
    Digest,
    /// A list, or all parents as a list, to a list.
    Reverse,
    /// Several parents as arguments to a number.
    Weave,
    /// Two parents as one tuple to a number.
    Pair,
}

/// A fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// A sum.
    Sum,
    /// A number that depends on the order.
    Weave,
    /// The same, up to the first item that this divides.
    Halt(i64),
    /// The last few items, as a list.
    Collect,
}

/// When a function fails: for what leaves `rest` when divided by `by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// How.
    pub how: How,
    /// The divisor.
    pub by: i64,
    /// The rest.
    pub rest: i64,
}

/// How a function fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Never.
    Never,
    /// It returns an error, or panics where it cannot.
    Error,
    /// It panics.
    Panic,
    /// It fails, and whoever runs it lets that pass.
    Skip,
    /// It fails, and whoever runs it has a value to put in its place.
    Mend,
}

/// A question about a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// What it is about; it is not true of anything else.
    pub about: Shape,
    /// True for what leaves something other than zero when divided by this.
    pub by: i64,
    /// When it fails: by an error or a panic.
    pub fault: Fault,
    /// Whether it is async, so that it is handed out like a step.
    pub later: bool,
}

/// A test of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// A condition, by place.
    Named(usize),
    /// A function.
    Inline(Ask),
    /// All of them.
    All(Vec<Self>),
    /// One of them.
    Any(Vec<Self>),
    /// Not this.
    Not(Box<Self>),
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A number.
    Number,
    /// A list of numbers.
    List,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Datum {
    /// A number.
    Number(i64),
    /// A list of numbers.
    List(Vec<i64>),
    /// What a join gives.
    Several(Vec<Self>),
}

/// How a call ended without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It failed.
    Failed(How),
    /// It does not take such a value.
    WrongShape,
}

/// What a failure says that shall be let pass.
pub const SKIP: &str = "skip";

/// What a failure says in the place of which a value shall be put.
pub const MEND: &str = "mend";

/// Values stay below this, so that nothing overflows and everything meets everything.
const LIMIT: i64 = 1_009;

/// As many items a collected list has at most, so that maps over it stay small.
const COLLECTED: usize = 3;

impl Datum {
    /// Returns the value as JSON.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Number(number) => (*number).into(),
            Self::List(list) => list.clone().into(),
            Self::Several(parts) => parts.iter().map(Self::to_json).collect(),
        }
    }

    /// Returns a list of numbers, if it is one. Parts that are numbers are one, too.
    #[must_use]
    pub fn as_list(&self) -> Option<Vec<i64>> {
        let number = |part: &Self| if let Self::Number(number) = part { Some(*number) } else { None };
        match self {
            Self::Number(_) => None,
            Self::List(list) => Some(list.clone()),
            Self::Several(parts) => parts.iter().map(number).collect(),
        }
    }

    /// Returns a number that tells values and orders apart.
    fn mark(&self) -> i64 {
        match self {
            Self::Number(number) => *number,
            Self::List(list) => list.iter().fold(7, |mark, item| wrapped(mark * 31 + item)),
            Self::Several(parts) => parts.iter().fold(7, |mark, part| wrapped(mark * 31 + part.mark())),
        }
    }
}

impl Calc {
    /// Computes.
    ///
    /// # Errors
    /// It fails for these arguments, or does not take them.
    pub fn of(self, fault: Fault, taken: &Datum) -> Result<Datum, Trouble> {
        let list = || taken.as_list().ok_or(Trouble::WrongShape);
        fault.check(taken)?;
        Ok(match (self, taken) {
            (Self::Add(add), Datum::Number(number)) => Datum::Number(wrapped(number + add)),
            (Self::Mul(by), Datum::Number(number)) => Datum::Number(wrapped(number * by)),
            (Self::Spread(below), Datum::Number(number)) => {
                Datum::List((0..number.rem_euclid(below)).map(|item| wrapped(number + 3 * item)).collect())
            }
            (Self::Add(_) | Self::Mul(_) | Self::Spread(_), _) => return Err(Trouble::WrongShape),
            (Self::Digest, _) => Datum::Number(Datum::List(list()?).mark()),
            (Self::Reverse, _) => Datum::List(list()?.into_iter().rev().collect()),
            (Self::Weave | Self::Pair, _) => Datum::Number(taken.mark()),
        })
    }

    /// Returns what it gives for such arguments, if it takes them.
    fn shape(self, taken: &[Shape]) -> Option<Shape> {
        let numbers = taken.iter().all(|shape| *shape == Shape::Number);
        match (self, taken) {
            (Self::Add(_) | Self::Mul(_), [Shape::Number]) => Some(Shape::Number),
            (Self::Spread(_), [Shape::Number]) => Some(Shape::List),
            (Self::Digest, [Shape::List]) => Some(Shape::Number),
            (Self::Digest, [_, _, ..]) if numbers => Some(Shape::Number),
            (Self::Reverse, [Shape::List]) => Some(Shape::List),
            (Self::Reverse, [_, _, ..]) if numbers => Some(Shape::List),
            (Self::Weave, [_, _]) => Some(Shape::Number),
            (Self::Weave, [_, _, _] | [_, _, _, _]) if numbers => Some(Shape::Number),
            (Self::Pair, [_, _]) => Some(Shape::Number),
            _ => None,
        }
    }
}

impl Fold {
    /// Returns where it begins.
    #[must_use]
    pub fn first(self, initial: i64) -> Datum {
        match self {
            Self::Sum | Self::Weave | Self::Halt(_) => Datum::Number(initial),
            Self::Collect => Datum::List(vec![initial]),
        }
    }

    /// Returns the next accumulator, and whether that is the last.
    ///
    /// # Errors
    /// It fails for this item.
    pub fn next(self, fault: Fault, sum: &Datum, item: &Datum) -> Result<(Datum, bool), Trouble> {
        fault.check(item)?;
        let mark = item.mark();
        Ok(match (self, sum) {
            (Self::Sum, Datum::Number(sum)) => (Datum::Number(wrapped(sum + mark)), false),
            (Self::Weave, Datum::Number(sum)) => (Datum::Number(wrapped(sum * 31 + mark)), false),
            (Self::Halt(by), Datum::Number(sum)) => {
                (Datum::Number(wrapped(sum * 31 + mark)), mark.rem_euclid(by) == 0)
            }
            (Self::Collect, Datum::List(list)) => {
                let all: Vec<i64> = list.iter().copied().chain([mark]).collect();
                (Datum::List(all[all.len().saturating_sub(COLLECTED)..].to_vec()), false)
            }
            _ => return Err(Trouble::WrongShape),
        })
    }

    /// Returns what it gives.
    #[must_use]
    pub const fn shape(self) -> Shape {
        match self {
            Self::Sum | Self::Weave | Self::Halt(_) => Shape::Number,
            Self::Collect => Shape::List,
        }
    }
}

impl Fault {
    /// Never fails.
    pub const NEVER: Self = Self { how: How::Never, by: 1, rest: 0 };

    fn check(self, taken: &Datum) -> Result<(), Trouble> {
        if self.how != How::Never && taken.mark().rem_euclid(self.by) == self.rest {
            return Err(Trouble::Failed(self.how));
        }
        Ok(())
    }
}

impl Ask {
    /// Tells whether it is true of a value.
    ///
    /// # Errors
    /// It fails for this value.
    pub fn of(self, taken: &Datum) -> Result<bool, Trouble> {
        let is_about = match self.about {
            Shape::Number => matches!(taken, Datum::Number(_)),
            Shape::List => taken.as_list().is_some(),
        };
        if !is_about {
            return Ok(false);
        }
        self.fault.check(taken)?;
        Ok(taken.mark().rem_euclid(self.by) != 0)
    }
}

impl Kind {
    /// Returns what is put in the place of a failure.
    #[must_use]
    pub fn mended(&self) -> Datum {
        let shape = match self {
            Self::Step { calc, .. } | Self::Rule { calc, .. } | Self::Map { calc, .. } => match calc {
                Calc::Spread(_) | Calc::Reverse => Shape::List,
                Calc::Add(_) | Calc::Mul(_) | Calc::Digest | Calc::Weave | Calc::Pair => Shape::Number,
            },
            Self::Reduce { fold, .. } | Self::State { fold, .. } => fold.shape(),
            Self::Condition(_) => Shape::Number,
        };
        match shape {
            Shape::Number => Datum::Number(500),
            Shape::List => Datum::List(vec![501, 502]),
        }
    }
}

impl Spec {
    /// Returns the name of a component.
    #[must_use]
    pub fn name(&self, place: usize) -> String {
        let word = match self.parts[place].kind {
            Kind::Step { .. } => "step",
            Kind::Condition(_) => "condition",
            Kind::Rule { .. } => "rule",
            Kind::Map { .. } => "map",
            Kind::Reduce { .. } => "reduce",
            Kind::State { .. } => "state",
        };
        format!("{word}{place}")
    }

    /// Returns the component of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Part> {
        (0..self.parts.len()).find(|place| self.name(*place) == name).map(|place| &self.parts[place])
    }

    /// Returns what each component gives and the maps it runs inside of, outermost first; nothing if it is no
    /// workflow.
    #[must_use]
    pub fn types(&self) -> Option<Vec<(Shape, Vec<usize>)>> {
        let mut types: Vec<(Shape, Vec<usize>)> = Vec::with_capacity(self.parts.len());
        for (place, part) in self.parts.iter().enumerate() {
            let shape = part.shape(self, &types)?;
            let scope = part.scope(place, &types)?;
            types.push((shape, scope));
        }
        Some(types)
    }
}

impl Part {
    /// Returns the types of what it takes; the input is a number.
    #[must_use]
    pub fn taken(&self, types: &[(Shape, Vec<usize>)]) -> Option<Vec<Shape>> {
        if self.parents.is_empty() {
            return Some(vec![Shape::Number]);
        }
        self.parents.iter().map(|parent| types.get(*parent).map(|(shape, _)| *shape)).collect()
    }

    fn shape(&self, spec: &Spec, types: &[(Shape, Vec<usize>)]) -> Option<Shape> {
        let taken = self.taken(types)?;
        let whole = whole(&taken);
        match &self.kind {
            Kind::Step { calc, .. } => calc.shape(&taken),
            Kind::Condition(ask) => match taken.as_slice() {
                // What a condition at the beginning is about is not known before an input comes.
                [_] if self.parents.is_empty() => Some(Shape::Number),
                _ => whole.filter(|shape| *shape == ask.about),
            },
            Kind::Rule { test, calc, .. } => {
                test.is_whole(spec, types.len()).then(|| calc.shape(&taken)).flatten()
            }
            Kind::Map { calc, .. } => (whole == Some(Shape::List) && taken.len() == 1)
                .then(|| calc.shape(&[Shape::Number]))
                .flatten(),
            Kind::Reduce { fold, .. } => {
                let inside = self.parents.first().is_some_and(|parent| !types[*parent].1.is_empty());
                whole.filter(|shape| inside || *shape == Shape::List).map(|_| fold.shape())
            }
            Kind::State { fold, .. } => {
                whole.filter(|_| !matches!(fold, Fold::Halt(_))).map(|_| fold.shape())
            }
        }
    }

    fn scope(&self, place: usize, types: &[(Shape, Vec<usize>)]) -> Option<Vec<usize>> {
        let mut scopes = self.parents.iter().map(|parent| &types[*parent].1);
        let mut scope = scopes.next().cloned().unwrap_or_default();
        if scopes.any(|other| *other != scope) {
            return None;
        }
        match &self.kind {
            Kind::Map { .. } => scope.push(place),
            Kind::Reduce { .. } => drop(scope.pop()),
            Kind::Step { .. } | Kind::Condition(_) | Kind::Rule { .. } | Kind::State { .. } => {}
        }
        Some(scope)
    }
}

impl Test {
    /// Returns the conditions it refers to.
    #[must_use]
    pub fn named(&self) -> Vec<usize> {
        match self {
            Self::Named(place) => vec![*place],
            Self::Inline(_) => Vec::new(),
            Self::All(tests) | Self::Any(tests) => tests.iter().flat_map(Self::named).collect(),
            Self::Not(test) => test.named(),
        }
    }

    fn is_whole(&self, spec: &Spec, below: usize) -> bool {
        let is_condition = |place: &usize| matches!(spec.parts[*place].kind, Kind::Condition(_));
        self.named().iter().all(|place| *place < below && is_condition(place))
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, part) in self.parts.iter().enumerate() {
            let after: Vec<String> = part.parents.iter().map(|parent| self.name(*parent)).collect();
            writeln!(f, "{} after [{}]: {:?}", self.name(place), after.join(", "), part.kind)?;
        }
        Ok(())
    }
}

/// Returns the type of all that is taken, as one value: several numbers are a list.
fn whole(taken: &[Shape]) -> Option<Shape> {
    match taken {
        [one] => Some(*one),
        several => several.iter().all(|shape| *shape == Shape::Number).then_some(Shape::List),
    }
}

const fn wrapped(number: i64) -> i64 {
    number.rem_euclid(LIMIT)
}
