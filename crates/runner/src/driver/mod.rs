//! The policy driver: a state machine around attempts. Every retry goes through `tidewheel_core::decide`. It
//! needs neither a runner nor a store, so that a scheduler of your own has policies, too.

mod course;
mod drive;
mod refuse;

pub use course::{Bound, Course, Known, Turn, Until};
pub use drive::{DriveOptions, drive, execute_with_policies};
pub(crate) use refuse::{Home, check_run};
pub use refuse::{check_policy, check_rules};
