//! Functions as work, whatever their shape: one to eight arguments, with or without a context, by value or
//! by reference, sync or async, returning a value or a `Result`.

use std::any::type_name;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use super::context::Context;
use super::outcome::IntoOutcome;
use super::types::PortType;
use super::user_code::{CaughtFuture, call_user};
use crate::fact::{Payload, Value};
use crate::policy::{Failure, Function};

type Later = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;
type RunFn = dyn Fn(&Context, &[Value]) -> Running + Send + Sync;

/// Work that was started.
pub enum Running {
    /// It is over.
    Done(Result<Value, Failure>),
    /// It has to be polled.
    Later(Later),
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done(_) => "Done",
            Self::Later(_) => "Later",
        })
    }
}

/// A function with its types, ready to be run.
#[derive(Clone)]
pub struct Work {
    run: Function<RunFn>,
    inputs: Vec<PortType>,
    output: PortType,
    shape: Shape,
    /// Takes a list apart into values of the type of the first argument.
    split: fn(&Value) -> Result<Vec<Value>, Failure>,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    is_async: bool,
    wants_context: bool,
}

impl Work {
    /// Returns the types of the arguments.
    #[must_use]
    pub fn inputs(&self) -> &[PortType] {
        &self.inputs
    }

    /// Returns the type of the result.
    #[must_use]
    pub const fn output(&self) -> &PortType {
        &self.output
    }

    /// Tells whether the function is async.
    #[must_use]
    pub const fn is_async(&self) -> bool {
        self.shape.is_async
    }

    /// Tells whether the function looks at its context.
    #[must_use]
    pub const fn wants_context(&self) -> bool {
        self.shape.wants_context
    }

    /// Takes a list apart into values of the type of the first argument.
    /// A panic, as of a value that cannot be copied, is a failure.
    pub(crate) fn split(&self, list: &Value) -> Result<Vec<Value>, Failure> {
        call_user(|| (self.split)(list)).flatten()
    }

    /// Starts the work on one value: the parts of a join are its arguments if it takes several.
    pub(crate) fn start_on(&self, context: &Context, value: &Value) -> Running {
        let parts = if self.inputs.len() > 1 { value.parts() } else { None };
        self.start(context, parts.as_deref().unwrap_or_else(|| std::slice::from_ref(value)))
    }

    /// Starts the work. A panic is a failure, in the call and in every poll.
    #[must_use]
    pub fn start(&self, context: &Context, arguments: &[Value]) -> Running {
        match call_user(|| self.run.call()(context, arguments)) {
            Ok(Running::Done(result)) => Running::Done(result),
            Ok(Running::Later(later)) => Running::Later(caught(later)),
            Err(failure) => Running::Done(Err(failure)),
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("inputs", &self.inputs)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}

/// Makes a panic in a poll, or when the future is dropped, the failure of the work.
fn caught(later: Later) -> Later {
    let mut caught = CaughtFuture::new(later);
    Box::pin(std::future::poll_fn(move |task| Pin::new(&mut caught).poll(task).map(Result::flatten)))
}

/// Anything that can be work. The marker tells the shapes apart; nobody writes it.
pub trait IntoWork<Marker> {
    /// Makes it work.
    fn into_work(self) -> Work;
}

impl IntoWork<Self> for Work {
    fn into_work(self) -> Work {
        self
    }
}

fn argument<T: Payload>(arguments: &[Value], index: usize) -> Result<T, Failure> {
    match arguments.get(index) {
        // A panic in here is that of the call.
        Some(value) => value.read().map_err(|error| Failure::of(&error).code("type").non_retryable()),
        None => Err(Failure::new(format!("argument {index} is missing")).non_retryable()),
    }
}

/// Takes a list apart into its items, each of the given type.
pub(crate) fn split_list<T: Payload>(list: &Value) -> Result<Vec<Value>, Failure> {
    let items = list.read::<Vec<T>>().map_err(|error| {
        let message = format!("cannot map over a {}: it is no list of {}", error.held, type_name::<T>());
        Failure::new(message).code("type").non_retryable()
    })?;
    Ok(items.into_iter().map(Value::new).collect())
}

fn port<T>() -> PortType {
    PortType::of_name(type_name::<T>())
}

/// Marks a function that is called and done.
#[derive(Debug)]
pub enum Called {}
/// Marks a function that is called and then awaited.
#[derive(Debug)]
pub enum Awaited {}
/// Marks a function that gets its context first and is done when it returns.
#[derive(Debug)]
pub enum CalledWithContext {}
/// Marks a function that gets its context first and is then awaited.
#[derive(Debug)]
pub enum AwaitedWithContext {}
/// Marks a function that looks at its argument without taking it.
#[derive(Debug)]
pub enum ByReference {}

/// The first of several types.
macro_rules! first {
    ($First:ident $(, $Rest:ident)*) => {
        $First
    };
}

macro_rules! handlers {
    ($($Arg:ident $index:tt),+) => {
        impl<Fun, Out, Marker, $($Arg,)+> IntoWork<(Called, Marker, ($($Arg,)+))> for Fun
        where
            Fun: Fn($($Arg,)+) -> Out + Send + Sync + 'static,
            Out: IntoOutcome<Marker>,
            $($Arg: Payload,)+
        {
            fn into_work(self) -> Work {
                let run = move |_: &Context, arguments: &[Value]| {
                    let call = || self($(argument::<$Arg>(arguments, $index)?,)+).into_outcome();
                    Running::Done(call())
                };
                Work {
                    run: Function::new(Arc::new(run)),
                    inputs: vec![$(port::<$Arg>(),)+],
                    output: port::<Out::Value>(),
                    shape: Shape { is_async: false, wants_context: false },
                    split: split_list::<first!($($Arg),+)>,
                }
            }
        }

        impl<Fun, Out, Marker, $($Arg,)+> IntoWork<(CalledWithContext, Marker, ($($Arg,)+))> for Fun
        where
            Fun: Fn(Context, $($Arg,)+) -> Out + Send + Sync + 'static,
            Out: IntoOutcome<Marker>,
            $($Arg: Payload,)+
        {
            fn into_work(self) -> Work {
                let run = move |context: &Context, arguments: &[Value]| {
                    let call = || self(context.clone(), $(argument::<$Arg>(arguments, $index)?,)+).into_outcome();
                    Running::Done(call())
                };
                Work {
                    run: Function::new(Arc::new(run)),
                    inputs: vec![$(port::<$Arg>(),)+],
                    output: port::<Out::Value>(),
                    shape: Shape { is_async: false, wants_context: true },
                    split: split_list::<first!($($Arg),+)>,
                }
            }
        }

        impl<Fun, Fut, Out, Marker, $($Arg,)+> IntoWork<(Awaited, Marker, ($($Arg,)+))> for Fun
        where
            Fun: Fn($($Arg,)+) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Out> + Send + 'static,
            Out: IntoOutcome<Marker>,
            $($Arg: Payload,)+
        {
            fn into_work(self) -> Work {
                let run = move |_: &Context, arguments: &[Value]| {
                    let start = || Ok::<_, Failure>(self($(argument::<$Arg>(arguments, $index)?,)+));
                    match start() {
                        Ok(future) => Running::Later(Box::pin(async move { future.await.into_outcome() })),
                        Err(failure) => Running::Done(Err(failure)),
                    }
                };
                Work {
                    run: Function::new(Arc::new(run)),
                    inputs: vec![$(port::<$Arg>(),)+],
                    output: port::<Out::Value>(),
                    shape: Shape { is_async: true, wants_context: false },
                    split: split_list::<first!($($Arg),+)>,
                }
            }
        }

        impl<Fun, Fut, Out, Marker, $($Arg,)+> IntoWork<(AwaitedWithContext, Marker, ($($Arg,)+))> for Fun
        where
            Fun: Fn(Context, $($Arg,)+) -> Fut + Send + Sync + 'static,
            Fut: Future<Output = Out> + Send + 'static,
            Out: IntoOutcome<Marker>,
            $($Arg: Payload,)+
        {
            fn into_work(self) -> Work {
                let run = move |context: &Context, arguments: &[Value]| {
                    let start = || Ok::<_, Failure>(self(context.clone(), $(argument::<$Arg>(arguments, $index)?,)+));
                    match start() {
                        Ok(future) => Running::Later(Box::pin(async move { future.await.into_outcome() })),
                        Err(failure) => Running::Done(Err(failure)),
                    }
                };
                Work {
                    run: Function::new(Arc::new(run)),
                    inputs: vec![$(port::<$Arg>(),)+],
                    output: port::<Out::Value>(),
                    shape: Shape { is_async: true, wants_context: true },
                    split: split_list::<first!($($Arg),+)>,
                }
            }
        }
    };
}

handlers!(A 0);
handlers!(A 0, B 1);
handlers!(A 0, B 1, C 2);
handlers!(A 0, B 1, C 2, D 3);
handlers!(A 0, B 1, C 2, D 3, E 4);
handlers!(A 0, B 1, C 2, D 3, E 4, F 5);
handlers!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
handlers!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

impl<Fun, Out, Marker, Arg> IntoWork<(ByReference, Marker, Arg)> for Fun
where
    Fun: Fn(&Arg) -> Out + Send + Sync + 'static,
    Out: IntoOutcome<Marker>,
    Arg: Payload,
{
    fn into_work(self) -> Work {
        let run = move |_: &Context, arguments: &[Value]| {
            let call = || match arguments.first().and_then(Value::held::<Arg>) {
                Some(held) => self(held).into_outcome(),
                None => self(&argument::<Arg>(arguments, 0)?).into_outcome(),
            };
            Running::Done(call())
        };
        Work {
            run: Function::new(Arc::new(run)),
            inputs: vec![port::<Arg>()],
            output: port::<Out::Value>(),
            shape: Shape { is_async: false, wants_context: false },
            split: split_list::<Arg>,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;

    fn run<M>(work: impl IntoWork<M>, arguments: &[Value]) -> Result<serde_json::Value, Failure> {
        match work.into_work().start(&Context::empty(), arguments) {
            Running::Done(result) => result.map(|value| value.to_json().unwrap()),
            Running::Later(mut later) => {
                let mut task = std::task::Context::from_waker(std::task::Waker::noop());
                match later.as_mut().poll(&mut task) {
                    Poll::Ready(result) => result.map(|value| value.to_json().unwrap()),
                    Poll::Pending => panic!("these futures are ready at once"),
                }
            }
        }
    }

    fn double(x: i64) -> i64 {
        x * 2
    }

    async fn double_later(x: i64) -> i64 {
        x * 2
    }

    fn parse(text: String) -> Result<i64, std::num::ParseIntError> {
        text.parse()
    }

    fn sloppy(text: String) -> Result<i64, String> {
        text.parse().map_err(|_| format!("no number: {text}"))
    }

    async fn boxed(x: i64) -> Result<i64, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("boxed {x}").into())
    }

    fn told(x: i64) -> Result<i64, Failure> {
        Err(Failure::new("slow down").code(x).retry_after(std::time::Duration::from_secs(1)))
    }

    fn with_context(context: Context, x: i64) -> String {
        format!("{}:{x}", context.attempt())
    }

    #[test]
    fn ordinary_functions_of_every_shape_are_work() {
        let five = [Value::new(5_i64)];
        assert_eq!(run(double, &five).unwrap(), 10);
        assert_eq!(run(double_later, &five).unwrap(), 10);
        assert_eq!(run(|x: i64| x + 1, &five).unwrap(), 6);
        assert_eq!(run(|x: &i64| *x + 1, &five).unwrap(), 6);
        assert_eq!(run(with_context, &five).unwrap(), "0:5");
        assert_eq!(
            run(|a: i64, b: String| format!("{a}{b}"), &[Value::new(1_i64), Value::new("x")]).unwrap(),
            "1x"
        );
        assert_eq!(run(|_: Context, a: i64| async move { a }, &five).unwrap(), 5);
    }

    #[test]
    fn results_of_every_kind_are_values_or_failures() {
        let text = |text: &str| [Value::new(text.to_owned())];
        assert_eq!(run(parse, &text("7")).unwrap(), 7);
        assert_eq!(run(parse, &text("x")).unwrap_err().type_name.unwrap(), "core::num::error::ParseIntError");
        assert_eq!(run(sloppy, &text("7")).unwrap(), 7);
        assert_eq!(run(sloppy, &text("x")).unwrap_err().message, "no number: x");
        assert_eq!(run(boxed, &[Value::new(3_i64)]).unwrap_err().message, "boxed 3");
        assert_eq!(run(told, &[Value::new(429_i64)]).unwrap_err().code, Some(429.into()));
    }

    #[test]
    fn a_panic_is_a_failure_in_the_call_and_in_the_poll() {
        let five = [Value::new(5_i64)];
        assert_eq!(run(|_: i64| -> i64 { panic!("boom") }, &five).unwrap_err().message, "boom");
        let later = |x: i64| async move { if x > 0 { panic!("late {x}") } else { x } };
        assert_eq!(run(later, &five).unwrap_err().message, "late 5");
    }

    #[test]
    fn an_argument_of_the_wrong_type_is_a_failure_that_retrying_does_not_mend() {
        let failure = run(double, &[Value::new("text")]).unwrap_err();
        assert!(failure.non_retryable);
        assert!(failure.message.starts_with("a value of type &str cannot be read as i64"));
    }
}
