//! Who does the work: a bounded number of pieces at once, functions on threads and async work in tasks, urgent ones
//! first, and each run gets its turn. It knows nothing of runs; whoever handed a piece in learns what came of it.

mod attempt;
mod failure;
mod impatient;
mod job;
mod loan;
mod number;
mod queue;
mod slots;
mod state;
mod worker;

pub(crate) use job::{Job, Place, Sink};
pub(crate) use loan::SlotLoan;
pub(crate) use number::ByNumber;
pub(crate) use slots::Pool;
pub(crate) use worker::{Meanwhile, call, is_worker};
