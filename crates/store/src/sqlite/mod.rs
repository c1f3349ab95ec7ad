//! The store in one file of SQLite: several processes use it at once, one thread of each writes for all its
//! callers, and what was answered is on the disk.

mod acknowledged;
mod append;
mod audit;
mod bell;
mod checksum;
mod claim;
mod command;
mod connection;
mod dead_letter;
mod examine;
pub mod failpoint;
mod fault;
mod health;
mod holder;
mod in_place;
mod list;
mod log;
mod migrate;
mod options;
mod owner;
mod peers;
mod presence;
mod reader;
mod rows;
mod run;
mod shared;
mod store;
mod transaction;
mod turn;
mod verify;
mod writer;

pub use acknowledged::Loss;
pub use examine::{Examined, examine};
pub use fault::is_damage;
pub use options::Options;
pub use store::Sqlite;
