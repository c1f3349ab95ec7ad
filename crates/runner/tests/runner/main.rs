//! The durable runner, scenario by scenario.

mod basics;
mod cancel;
mod checkpoints;
mod commands;
mod crash;
mod definitions;
mod executors;
mod inputs;
mod many;
mod pause;
mod policies;
mod random;
mod results;
mod same;
mod shutdown;
mod stop;
mod supervision;
mod telling;
mod world;
