//! The durable runner, scenario by scenario.

mod basics;
mod cancel;
mod checkpoints;
mod commands;
mod control;
mod crash;
mod definitions;
mod executors;
mod idle;
mod inputs;
mod many;
mod options;
mod panics;
mod parents;
mod pause;
mod policies;
mod random;
mod results;
mod same;
mod shutdown;
mod stop;
mod supervision;
mod table;
mod telling;
mod values;
mod world;
