//! What a scheduler is told by whoever makes it: where, with which binary, as whom, how much.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tidewheel_core::job::Secrets;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::jobs::TellOfWait;

use crate::job::operation::AgentProgram;

/// What a scheduler has to know. Nothing of it is read from the environment here.
#[derive(Clone, Debug)]
pub struct Options {
    /// The root of the repository, in which jobs run.
    pub root: PathBuf,
    /// Its data directory.
    pub data: PathBuf,
    /// The binary that is started for each job, with its hidden command.
    pub binary: PathBuf,
    /// Who acts, for approvals and events.
    pub actor: String,
    /// How many jobs run at once.
    pub capacity: u32,
    /// How often to look at what nobody tells us of.
    pub probe_interval: Span,
    /// How large a log of a job may become before it is rotated.
    pub log_limit: u64,
    /// Whether a cancelled job's worktree is cleaned up when nobody says.
    pub cleans_cancelled: bool,
    /// How agents are called, by name.
    pub agents: BTreeMap<String, AgentProgram>,
    /// What nobody is to read in whatever is kept.
    pub secrets: Secrets,
    /// Called when this process has waited for its turn for longer than a second.
    pub tell_of_wait: Option<TellOfWait>,
    /// The present, where somebody holds it; the time of the machine otherwise.
    pub now: Option<Timestamp>,
}

impl Options {
    /// A probe of git takes a few milliseconds; nobody waits long for what a person did by hand.
    pub const PROBE_INTERVAL: Span = Span::from_secs(5);
    /// Large enough for a build, small enough for a disk.
    pub const LOG_LIMIT: u64 = 64 * 1024 * 1024;
}
