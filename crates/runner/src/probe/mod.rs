//! Looks at the world for the gates of jobs: markers, branches, heads, the working tree. It answers questions and
//! judges nothing.

mod answer;

pub use answer::{EPHEMERAL, Prober};
