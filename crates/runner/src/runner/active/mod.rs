//! A run that this process drives.

mod asked;
mod life;
mod state;

pub(super) use life::{Active, Beginning, Right};
pub(super) use state::{By, Lost, Mode, Rest, Seen};
