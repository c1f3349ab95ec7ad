//! Work that does not begin as it is: what it waits for, how long, and what it is given on its way in.

#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod breakers;
mod budgets;
mod files;
mod lines;
mod once;
mod rates;
mod slots;
mod smoke;
mod times;
mod waiting;
mod world;
