//! Templates of jobs: what they say, what is refused, and what becomes of them.

mod acts;
mod after;
mod at_once;
mod behaviour;
mod config;
mod edges;
mod hostile;
mod imports;
mod inputs;
mod nodes;
mod policies;
mod release;
mod world;
