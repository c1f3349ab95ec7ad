//! Gates: what has to be so before a job starts, one file each, in the order in which they are asked.
//!
//! Every file has the same shape: `judge` says whether the gate is open, whether the job waits at it, or whether it
//! never opens. No gate looks at the world: what is not known is asked for.

mod after;
mod approval;
mod artifact;
mod breaker;
mod capacity;
mod delay;
mod key;
mod lock;
mod pinned_head;
mod precondition;
mod rate;
mod verdict;
mod view;

pub(super) use after::{Afters, is_optional};
pub(super) use approval::judge as approval;
pub(super) use artifact::Needs;
pub(super) use breaker::judge as breaker;
pub(super) use capacity::Slots;
pub(super) use delay::{Patience, judge as delay, judge_deadline as deadline};
pub(super) use key::Keys;
pub(super) use lock::Locks;
pub(super) use pinned_head::judge as pinned_head;
pub(super) use precondition::judge as precondition;
pub(super) use rate::Rates;
pub use verdict::Refusal;
pub(super) use verdict::{End, Verdict, Wait, waits};
pub(super) use view::View;
