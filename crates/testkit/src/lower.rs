//! From a workflow as data to a real one, by the public ways only, with ordinary typed functions.

use std::panic::resume_unwind;

use tidewheel_core::policy::Failure;
use tidewheel_core::work::{IntoWork, Work};
use tidewheel_core::workflow::{
    self, Component, Workflow, accumulator, all, any, cond, condition, map, not, reduce, rule, state_machine,
    step,
};

use crate::spec::{Ask, Calc, Datum, Fault, Fold, How, Kind, MEND, SKIP, Shape, Spec, Test, Trouble};

/// Builds the workflow.
///
/// # Panics
/// Panics if it is refused.
#[must_use]
pub fn lowered(spec: &Spec) -> Workflow {
    built(lowered_components(spec))
}

/// Builds a workflow of components, added in this order.
///
/// # Panics
/// Panics if it is refused.
#[must_use]
pub fn built(components: Vec<Component>) -> Workflow {
    let builder = components.into_iter().fold(Workflow::new("random"), workflow::WorkflowBuilder::add);
    builder.build().unwrap_or_else(|errors| panic!("a workflow was refused:\n{errors}"))
}

/// Returns the components in their order.
///
/// # Panics
/// Panics if it is no workflow.
#[must_use]
pub fn lowered_components(spec: &Spec) -> Vec<Component> {
    let types = spec.types().expect("what is lowered is a workflow");
    let lower_one = |place: usize| {
        let part = &spec.parts[place];
        let name = spec.name(place);
        let taken = part.taken(&types).expect("what is lowered is a workflow");
        let whole = if taken.len() == 1 { taken[0] } else { Shape::List };
        let component = match &part.kind {
            Kind::Step { calc, fault, later } => {
                step(name, work(Function { calc: *calc, fault: *fault, later: *later }, &taken))
            }
            Kind::Condition(ask) => condition(name, question(*ask)),
            Kind::Rule { test, calc, fault } => rule(name)
                .when_all(lowered_test(spec, test))
                .then(work(Function { calc: *calc, fault: *fault, later: false }, &taken)),
            Kind::Map { calc, fault } => {
                map(name, work(Function { calc: *calc, fault: *fault, later: false }, &[Shape::Number]))
            }
            Kind::Reduce { fold, initial, fault } => {
                // Outside of maps it takes the items of the list.
                let inside = part.parents.first().is_some_and(|parent| !types[*parent].1.is_empty());
                let item = if inside { whole } else { Shape::Number };
                lowered_reduce(name, Folding { fold: *fold, initial: *initial, fault: *fault }, item)
            }
            Kind::State { fold, initial, fault, machine } => {
                let folding = Folding { fold: *fold, initial: *initial, fault: *fault };
                if *machine {
                    lowered_machine(name, folding, whole)
                } else {
                    lowered_state(name, folding, whole)
                }
            }
        };
        let parents: Vec<String> = part.parents.iter().map(|parent| spec.name(*parent)).collect();
        component.after(parents)
    };
    (0..spec.parts.len()).map(lower_one).collect()
}

/// A Rust type that values have.
trait Native: Sized {
    fn datum(self) -> Datum;
    fn of(datum: Datum) -> Self;
}

impl Native for i64 {
    fn datum(self) -> Datum {
        Datum::Number(self)
    }

    fn of(datum: Datum) -> Self {
        match datum {
            Datum::Number(number) => number,
            Datum::List(_) | Datum::Several(_) => unexpected("a list where a number was meant"),
        }
    }
}

impl Native for Vec<i64> {
    fn datum(self) -> Datum {
        Datum::List(self)
    }

    fn of(datum: Datum) -> Self {
        datum.as_list().unwrap_or_else(|| unexpected("no list where a list was meant"))
    }
}

/// Unwinds without a word to the standard error, which thousands of wanted panics would fill.
fn unexpected<T>(message: &'static str) -> T {
    resume_unwind(Box::new(message))
}

const fn message(how: How) -> &'static str {
    match how {
        How::Never => "never",
        How::Error => "error",
        How::Panic => "panic",
        How::Skip => SKIP,
        How::Mend => MEND,
    }
}

/// For functions that cannot return an error.
fn surely<T>(result: Result<T, Trouble>) -> T {
    result.unwrap_or_else(|trouble| match trouble {
        Trouble::Failed(how) => unexpected(message(how)),
        Trouble::WrongShape => unexpected("wrong shape"),
    })
}

/// For functions that can.
fn fallibly<T>(result: Result<T, Trouble>) -> Result<T, String> {
    match result {
        Err(Trouble::Failed(how @ (How::Error | How::Skip | How::Mend))) => Err(message(how).to_owned()),
        other => Ok(surely(other)),
    }
}

fn told<T>(result: Result<T, Trouble>) -> Result<T, Failure> {
    fallibly(result).map_err(Failure::new)
}

#[derive(Clone, Copy)]
struct Function {
    calc: Calc,
    fault: Fault,
    later: bool,
}

#[derive(Clone, Copy)]
struct Folding {
    fold: Fold,
    initial: i64,
    fault: Fault,
}

/// A function of some arguments in one of its ways: plain, with a `Result`, or async.
macro_rules! function {
    ($function:ident, $Out:ty, |$($arg:ident: $Arg:ty),+| $taken:expr) => {{
        let Function { calc, fault, later } = $function;
        let call = move |taken: Datum| calc.of(fault, &taken).map(<$Out as Native>::of);
        if later {
            (move |$($arg: $Arg),+| async move { told(call($taken)) }).into_work()
        } else if matches!(fault.how, How::Error | How::Skip | How::Mend) {
            (move |$($arg: $Arg),+| fallibly(call($taken))).into_work()
        } else {
            (move |$($arg: $Arg),+| surely(call($taken))).into_work()
        }
    }};
}

fn work(function: Function, taken: &[Shape]) -> Work {
    use Shape::{List, Number};
    type Numbers = Vec<i64>;
    match (function.calc, taken) {
        (Calc::Add(_) | Calc::Mul(_), _) => function!(function, i64, |x: i64| x.datum()),
        (Calc::Spread(_), _) => function!(function, Numbers, |x: i64| x.datum()),
        (Calc::Digest, _) => function!(function, i64, |list: Numbers| list.datum()),
        (Calc::Reverse, _) => function!(function, Numbers, |list: Numbers| list.datum()),
        (Calc::Pair, [Number, Number]) => function!(function, i64, |pair: (i64, i64)| of_pair(pair)),
        (Calc::Pair, [Number, List]) => function!(function, i64, |pair: (i64, Numbers)| of_pair(pair)),
        (Calc::Pair, [List, Number]) => function!(function, i64, |pair: (Numbers, i64)| of_pair(pair)),
        (Calc::Pair, _) => function!(function, i64, |pair: (Numbers, Numbers)| of_pair(pair)),
        (Calc::Weave, [Number, Number]) => function!(function, i64, |a: i64, b: i64| of_pair((a, b))),
        (Calc::Weave, [Number, List]) => function!(function, i64, |a: i64, b: Numbers| of_pair((a, b))),
        (Calc::Weave, [List, Number]) => function!(function, i64, |a: Numbers, b: i64| of_pair((a, b))),
        (Calc::Weave, [List, List]) => function!(function, i64, |a: Numbers, b: Numbers| of_pair((a, b))),
        (Calc::Weave, [_, _, _]) => {
            function!(function, i64, |a: i64, b: i64, c: i64| vec![a, b, c].datum())
        }
        (Calc::Weave, _) => {
            function!(function, i64, |a: i64, b: i64, c: i64, d: i64| vec![a, b, c, d].datum())
        }
    }
}

fn of_pair<A: Native, B: Native>((a, b): (A, B)) -> Datum {
    Datum::Several(vec![a.datum(), b.datum()])
}

fn question(ask: Ask) -> Work {
    let is_fallible = ask.fault.how == How::Error;
    match ask.about {
        Shape::Number if ask.later => (move |x: i64| async move { told(ask.of(&x.datum())) }).into_work(),
        Shape::Number if is_fallible => (move |x: i64| fallibly(ask.of(&x.datum()))).into_work(),
        Shape::Number => (move |x: &i64| surely(ask.of(&x.datum()))).into_work(),
        Shape::List if ask.later => {
            (move |list: Vec<i64>| async move { told(ask.of(&list.datum())) }).into_work()
        }
        Shape::List if is_fallible => (move |list: Vec<i64>| fallibly(ask.of(&list.datum()))).into_work(),
        Shape::List => (move |list: &Vec<i64>| surely(ask.of(&list.clone().datum()))).into_work(),
    }
}

fn lowered_test(spec: &Spec, test: &Test) -> workflow::Test {
    match test {
        Test::Named(place) => cond(spec.name(*place)),
        Test::Inline(ask) => workflow::test(question(*ask)),
        Test::All(tests) => all(tests.iter().map(|test| lowered_test(spec, test))),
        Test::Any(tests) => any(tests.iter().map(|test| lowered_test(spec, test))),
        Test::Not(test) => not(lowered_test(spec, test)),
    }
}

fn lowered_reduce(name: String, folding: Folding, item: Shape) -> Component {
    fn may_halt<A>((sum, is_last): (A, bool)) -> workflow::Fold<A> {
        if is_last { workflow::Fold::Halt(sum) } else { workflow::Fold::Continue(sum) }
    }
    let initial = folding.initial;
    match (folding.fold, item) {
        (Fold::Halt(_), Shape::Number) => {
            reduce(name, initial, move |sum: i64, x: i64| may_halt(folding.next(sum, x)))
        }
        (Fold::Halt(_), Shape::List) => {
            reduce(name, initial, move |sum: i64, x: Vec<i64>| may_halt(folding.next(sum, x)))
        }
        (Fold::Sum | Fold::Weave, Shape::Number) => {
            reduce(name, initial, move |sum: i64, x: i64| folding.next(sum, x).0)
        }
        (Fold::Sum | Fold::Weave, Shape::List) => {
            reduce(name, initial, move |sum: i64, x: Vec<i64>| folding.next(sum, x).0)
        }
        (Fold::Collect, Shape::Number) => {
            reduce(name, vec![initial], move |sum: Vec<i64>, x: i64| folding.next(sum, x).0)
        }
        (Fold::Collect, Shape::List) => {
            reduce(name, vec![initial], move |sum: Vec<i64>, x: Vec<i64>| folding.next(sum, x).0)
        }
    }
}

fn lowered_state(name: String, folding: Folding, taken: Shape) -> Component {
    let initial = folding.initial;
    match (folding.fold.shape(), taken) {
        (Shape::Number, Shape::Number) => accumulator(name, initial, folding.state::<i64, i64>()),
        (Shape::Number, Shape::List) => accumulator(name, initial, folding.state::<i64, Vec<i64>>()),
        (Shape::List, Shape::Number) => accumulator(name, vec![initial], folding.state::<Vec<i64>, i64>()),
        (Shape::List, Shape::List) => accumulator(name, vec![initial], folding.state::<Vec<i64>, Vec<i64>>()),
    }
}

fn lowered_machine(name: String, folding: Folding, taken: Shape) -> Component {
    let initial = folding.initial;
    match (folding.fold.shape(), taken) {
        (Shape::Number, Shape::Number) => state_machine(name, initial, folding.state::<i64, i64>()),
        (Shape::Number, Shape::List) => state_machine(name, initial, folding.state::<i64, Vec<i64>>()),
        (Shape::List, Shape::Number) => state_machine(name, vec![initial], folding.state::<Vec<i64>, i64>()),
        (Shape::List, Shape::List) => {
            state_machine(name, vec![initial], folding.state::<Vec<i64>, Vec<i64>>())
        }
    }
}

impl Folding {
    fn next<A: Native, I: Native>(self, sum: A, item: I) -> (A, bool) {
        let (sum, is_last) = surely(self.fold.next(self.fault, &sum.datum(), &item.datum()));
        (A::of(sum), is_last)
    }

    fn state<S: Native, I: Native>(self) -> impl Fn(S, I) -> S + Send + Sync + 'static {
        move |state, x| self.next(state, x).0
    }
}
