//! What every store promises, as cases that run for each backend; no case knows which backend it meets.

pub mod append;
mod cases;
pub mod claim;
pub mod command;
pub mod dead_letter;
pub mod list;
pub mod owner;
pub mod shared;
pub mod time;
mod world;

pub use world::World;
