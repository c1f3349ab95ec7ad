//! The durable parts of the demo: a worker process runs an order on a database, is killed in the middle, and another
//! one goes on; and a small build runs as jobs.

pub(crate) mod jobs;
pub(crate) mod tell;
pub(crate) mod worker;
