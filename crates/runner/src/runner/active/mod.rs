//! A run that this process drives.

mod asked;
mod gates;
mod life;
mod state;

pub(super) use asked::{Retried, waiting_for_people};
pub(super) use gates::Said;
pub(super) use life::{Active, Beginning, Right};
pub(super) use state::{By, Lost, Mode, Rest, Seen};
