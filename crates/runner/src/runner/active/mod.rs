//! A run that this process drives.

mod asked;
mod end;
mod gates;
mod gone;
mod life;
mod link;
mod outside;
mod seen;
mod start;
mod state;
mod stored;
mod suspect;
mod table;
mod tell;

pub(super) use asked::{Retried, waiting_for_people};
pub(super) use life::{Active, Beginning, Right};
pub(super) use link::Link;
pub(super) use outside::Said;
pub(super) use seen::Seen;
pub(super) use state::{By, Lost, Mode, Rest};
pub(super) use table::Taken;
