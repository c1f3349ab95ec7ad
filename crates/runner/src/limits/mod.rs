//! What work has to be let in by: circuit breakers, rates, slots and retry budgets, shared by all runs of a store.

mod gates;
mod keeper;
mod line;
mod lines;
mod pass;
mod serve;

pub(crate) use keeper::Limits;
pub(crate) use line::{Ask, Asker, Entry, Held, Permits, waited_too_long};
