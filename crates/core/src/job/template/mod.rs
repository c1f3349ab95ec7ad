//! Templates: graphs of nodes that people write in files, with parameters and imports, and the jobs that are made of
//! them. Files are asked for; nothing here reads or writes one.
//!
//! [`Template::load`] reads what the files say about themselves, [`Template::bind`] gives inputs to parameters,
//! [`Template::expand`] puts the values in and checks everything, [`Expanded::materialise`] makes records.

mod bind;
mod check;
mod check_edges;
mod check_git;
mod check_prompts;
mod check_scripts;
mod expand;
mod flat;
mod graph;
mod head;
mod label;
mod load;
mod materialise;
mod node;
mod part;
mod patch_files;
mod policies;
mod read;
mod scope;

pub use bind::{BindError, Flag, Inputs};
pub use check_git::taken_purpose;
pub use expand::{Expanded, MOST_NODES};
pub use label::{Class, LABELS, Label};
pub use load::{MOST_BYTES, MOST_DEPTH, Source, Template};
pub use materialise::{Enqueue, Run};
pub use node::Gate;
pub use patch_files::patch_files;
