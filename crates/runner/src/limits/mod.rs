//! What work has to be let in by: circuit breakers, rates, slots and retry budgets, shared by all runs of a store.

mod gates;
mod keeper;
mod line;
mod pass;

pub(crate) use keeper::Limits;
pub(crate) use line::{Ask, Asker, Entry, Held, Permits, waited_too_long};
