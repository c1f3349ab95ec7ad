//! A run that this process drives.

mod asked;
mod end;
mod gates;
mod gone;
mod life;
mod outside;
mod start;
mod state;
mod stored;
mod tell;

pub(super) use asked::{Retried, waiting_for_people};
pub(super) use life::{Active, Beginning, Right};
pub(super) use outside::Said;
pub(super) use state::{By, Lost, Mode, Rest, Seen};
