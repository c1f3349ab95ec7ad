//! Programs of the system: started, fed, read and ended with all that they started; and a seam for tests.
//!
//! ```
//! use std::io;
//! use std::sync::Arc;
//!
//! use tidewheel::prelude::*;
//! use tidewheel::process::{Command, Program, Spawn, Spawned, System};
//!
//! /// Lets only one program through.
//! struct OnlyCat;
//!
//! impl Spawn for OnlyCat {
//!     fn spawn(&self, program: &Program) -> io::Result<Spawned> {
//!         match program.name() {
//!             Some(name) if name == "cat" => System.spawn(program),
//!             _ => Err(io::Error::new(io::ErrorKind::PermissionDenied, "only cat is allowed")),
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guarded = |step: Command| step.spawned_by(Arc::new(OnlyCat));
//! let workflow = Workflow::new("programs")
//!     .add(guarded(command("echo", ["cat"])))
//!     .add(guarded(command("remove", ["rm", "-r", "all"])))
//!     .build()?;
//! let mut run = workflow.run("run-1");
//! react_until_satisfied(&mut run, vec![1, 2, 3], ReactOptions::new()).await?;
//! assert_eq!(run.result::<Vec<i32>>("echo")?, Some(vec![1, 2, 3]));
//! assert_eq!(run.failures()[0].component, Some("remove"));
//! # Ok(())
//! # }
//! ```
//!
//! For programs of your own there is the layer below:
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::process::{
//!     Capture, Captured, End, Options, Outcome, ProcessError, Program, StartError, Started, Stopped, System, start,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = || Options {
//!     stdin: b"three little words".to_vec(),
//!     stdout: Capture::whole(1024),
//!     stderr: Capture::tail(1024),
//!     grace: Span::from_secs(5),
//! };
//! let never = std::future::pending::<()>();
//! let started: Started = start(&System, &Program::new(["wc", "-w"]))?;
//! let ended: Result<Outcome, ProcessError> = started.run(options(), never).await;
//! let Outcome { end, stdout: Captured { bytes, .. }, .. } = ended?;
//! assert_eq!((end, String::from_utf8(bytes)?.trim()), (End::Exited(0), "3"));
//!
//! // All of its group is gone when this returns.
//! let outcome = start(&System, &Program::new(["sleep", "600"]))?.run(options(), async {}).await?;
//! assert_eq!(outcome.stopped, Some(Stopped::Asked));
//!
//! let Err(StartError { program, .. }) = start(&System, &Program::new(["no-such-program"])) else {
//!     return Err("there is one".into());
//! };
//! assert_eq!(program.name(), Some("no-such-program".as_ref()));
//! # Ok(())
//! # }
//! ```
//!
//! What was started is a group of processes, which is waited for and ended as one:
//!
//! ```
//! use tidewheel::process::{End, Group, Program, Signal, Spawn, Spawned, System, Waiting};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let Spawned { mut group, .. } = System.spawn(&Program::new(["sleep", "600"]))?;
//! let group: &mut dyn Group = &mut *group;
//! assert_eq!(group.try_wait()?, None);
//! group.signal(Signal::Kill)?;
//! let ended: Waiting<'_> = group.wait();
//! assert_eq!(ended.await?, End::Signalled(9));
//! # Ok(())
//! # }
//! ```

pub use tidewheel_runner::process::{
    Capture, Captured, Command, End, Group, Options, Outcome, ProcessError, Program, Signal, Spawn, Spawned,
    StartError, Started, Stopped, System, Waiting, command, start,
};
