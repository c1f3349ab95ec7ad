//! The durable part of the demo: a worker process runs an order on a database, is killed in the middle, and
//! another one goes on.

pub(crate) mod tell;
pub(crate) mod worker;
