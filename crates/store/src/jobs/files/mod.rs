//! Jobs as plain files in the data directory, for any number of processes of one machine.

mod append;
mod artifacts;
mod aside;
mod beneath;
mod checkup;
mod commit;
mod folders;
mod grave;
mod group;
mod index;
mod layout;
mod lock;
mod obstacle;
mod read;
mod regular;
mod remove;
mod rewind;
mod scan;
mod signature;
mod staging;
mod store;
mod sweep;
mod sync;
mod turn;
mod unfinished;

pub use checkup::{Checkup, Kept, Trouble};
pub use index::{Glance, IndexState, Survey};
pub use lock::{Holder, TellOfWait};
pub use obstacle::Obstacle;
pub use read::History;
pub use regular::{Access, make_folders, open_regular, read_regular, split_data};
pub use store::Files;
