//! Functions as work: what may be called, what it may return, and what it may know.
//!
//! Any function or closure of one to eight arguments is work. It may be async, return a `Result`, and ask for a
//! [`Context`] first.
//!
//! ```
//! use std::error::Error;
//!
//! use tidewheel::prelude::*;
//! use tidewheel::work::{Cancellation, Context, IntoOutcome, IntoWork, PortType, RunContext, Running, Work};
//!
//! /// Takes whatever [`step`] takes.
//! fn arguments<M>(function: impl IntoWork<M>) -> Work {
//!     function.into_work()
//! }
//!
//! let greet = arguments(|context: Context, name: String| async move {
//!     let greeting = context.value("greeting").and_then(|text| text.as_str()).unwrap_or("Hello");
//!     format!("{greeting}, {name}!")
//! });
//! assert!(greet.is_async() && greet.wants_context());
//! assert_eq!(greet.inputs(), [PortType::of::<String>()]);
//!
//! // Without a run, as in a test of its own.
//! let Running::Later(greeting) = greet.start(&Context::empty(), &[Value::new("Ada")]) else {
//!     return Err("it is async".into());
//! };
//! # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
//! assert_eq!(runtime.block_on(greeting).map_err(|failure| failure.message)?.get::<String>()?, "Hello, Ada!");
//!
//! // In a run, with values from outside, which reach no fact and no log.
//! let workflow = Workflow::new("greeting").add(step("greet", greet)).build()?;
//! let mut run = workflow.run("run-1").with_context(RunContext::new().scoped("greet", "greeting", "Ahoy"));
//! run.react_until_satisfied("Ada".to_owned())?;
//! assert_eq!(run.result::<String>("greet")?.as_deref(), Some("Ahoy, Ada!"));
//!
//! // What it returns is a value or a failure.
//! assert_eq!(IntoOutcome::into_outcome(5).map_err(|failure| failure.message)?.get::<i64>()?, 5);
//! let failed: Result<i64, std::num::ParseIntError> = "five".parse();
//! assert_eq!(IntoOutcome::into_outcome(failed).unwrap_err().message, "invalid digit found in string");
//!
//! // Whoever gives work up tells it.
//! let cancellation = Cancellation::default();
//! cancellation.cancel();
//! assert!(cancellation.is_cancelled());
//! # Ok::<(), Box<dyn Error>>(())
//! ```
//!
//! A scheduler of your own says what a function may know, and hears what it says:
//!
//! ```
//! use std::sync::Arc;
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use tidewheel::fact::RunId;
//! use tidewheel::prelude::*;
//! use tidewheel::work::{ContextParts, Signals, Token, TokenError};
//!
//! #[derive(Default)]
//! struct Beats(AtomicU32);
//!
//! impl Signals for Beats {
//!     fn heartbeat(&self) {
//!         self.0.fetch_add(1, Ordering::SeqCst);
//!     }
//! }
//!
//! let beats = Arc::new(Beats::default());
//! let parts = ContextParts::of(&RunId::new("run-1"), &Arc::new(RunContext::new()));
//! let context = Context::new(ContextParts { attempt: 2, signals: beats.clone(), ..parts });
//! context.heartbeat();
//! assert_eq!((context.attempt(), beats.0.load(Ordering::SeqCst)), (2, 1));
//!
//! // Who ends the work from outside has its token, as a text.
//! let token: Token = context.token().to_string().parse()?;
//! assert_eq!((token.run.as_str(), token.attempt), ("run-1", 2));
//! let error: TokenError = "no token".parse::<Token>().unwrap_err();
//! assert_eq!(error.text, "no token");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use tidewheel_core::work::{
    Cancellation, Context, ContextParts, IntoOutcome, IntoWork, PortType, RunContext, Running, Signals,
    Token, TokenError, Work,
};
