//! Why a job or a run is as it is: what holds it up through to the root, what its attempts came to, and what is next.
//! Data for programs, and the same in sentences for people.

mod attempt;
mod cause;
mod chain;
mod job;
mod next;
mod page;
mod remedy;
mod run;
mod text;

pub use attempt::{AttemptOutcome, AttemptTold, Note, NoteKind, OutputLine, Piece, Told};
pub use cause::{Cause, CauseKind};
pub use job::{Explanation, GateState, GateTold, Subject, World, explain_job};
pub use next::{Dependents, Next, NextKind};
pub use page::{Line, Part};
pub use remedy::Remedy;
pub use run::{Failed, RootCause, RunExplanation, RunNext, RunSubject, explain_run};
