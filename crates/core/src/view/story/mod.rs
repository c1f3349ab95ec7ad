//! The story of a run, told by its log alone.

mod identity;
mod line;
mod stretch;
mod tell;
mod work;

pub use line::{AbsenceLine, FactLine, InputLine, UndoState};
pub use stretch::{Doing, Stretch};
pub use tell::Story;
pub use work::{AttemptLine, WorkLine, WorkState};
