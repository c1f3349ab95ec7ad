//! The demo in its parts: policies are drawn, an order survives the death of its worker, and a release runs as jobs. The
//! command puts them together.

pub(crate) mod chart;
pub(crate) mod live;
pub(crate) mod order;
pub(crate) mod place;
pub(crate) mod release;
pub(crate) mod told;
pub(crate) mod worker;
