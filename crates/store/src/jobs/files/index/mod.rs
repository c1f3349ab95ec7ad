//! A cache of the records, so that a turn costs as much as there are active jobs. Whoever deletes it makes the next
//! turn read all records, and changes nothing else. It is never synced: after a crash of the machine it is built anew.
//!
//! `index.live` is a log of what is known of the active jobs and of those that they need; `index.done` has a line for
//! each other job. A record that is about to be written is noted before and written down after, so that a writer that
//! dies in between leaves a note to read it again.

mod check;
mod done;
mod inspect;
mod line;
mod live;
mod load;
mod merge;
mod survey;
mod threads;
mod view;

pub use inspect::IndexState;
pub(in crate::jobs::files) use inspect::inspect;
pub(in crate::jobs::files) use line::Entry;
pub(in crate::jobs::files) use load::{Index, forget, is_there};
pub(in crate::jobs::files) use merge::Written;
pub use survey::{Glance, Survey};
pub(in crate::jobs::files) use view::survey;
