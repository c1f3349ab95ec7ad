//! A run in memory and who does its work: whoever ends a piece applies its result and hands in what it woke.
//! The lock around the run puts the results in order. Conditions are looked at under it; no other work is done
//! there.

mod drive;
mod end;
mod gates;
mod life;
mod state;

pub(crate) use drive::drive;
