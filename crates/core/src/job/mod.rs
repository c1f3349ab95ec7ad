//! Jobs: processes of a template, each a node of a graph with gates before it. Records, rules and decisions, no disk.
//!
//! A [`Record`] is what is kept of a job, a [`Brief`] the part of it that scheduling and lists need, a [`Manifest`]
//! what is kept of a run. Whatever comes from outside has a type that was checked: [`JobId`], [`RunId`], [`NodeId`],
//! [`Slug`], [`Branch`].

mod after;
mod approve;
mod artifact;
mod brief;
mod cancel;
mod collect;
mod config;
mod context;
mod contract;
mod ended;
mod event;
mod extent;
mod external;
mod finish;
mod gate;
mod go_back;
mod hide;
mod id;
mod inspect;
mod manifest;
mod metadata;
mod outcome;
mod overlay;
mod question;
mod record;
mod reset;
mod result;
mod rewind;
mod schedule;
mod script;
mod secret;
mod settle;
mod shared;
mod signal;
mod start;
mod status;
pub mod template;
mod time_text;
mod work_key;

pub use after::{AfterError, check_after, last_jobs_of};
pub use approve::{ApproveError, By, approve, reject};
pub use artifact::{Artifact, ArtifactError};
pub use brief::Brief;
pub use cancel::{CancelError, cancel, note_cleanup};
pub use collect::{Attic, CollectUnit, Collected, KeptRun, collect, keeps, marks_of};
pub(crate) use config::field_name;
pub use config::{
    Agent, Config, DEFAULT_GC_DAYS, DEFAULT_LOG_SIZE, DEFAULT_PROBE_INTERVAL, Display, DisplayFormat,
    KnownFields,
};
pub use context::{Context, ContextError, inherited};
pub use contract::misfit;
pub use ended::{Ended, Liveness, lost_told};
pub use event::{JobEvent, JobEventKind, LoggedFailure};
pub use extent::LogExtent;
pub use external::{ExternalError, check_token, overdue, release_permit, start_external};
pub use finish::{Finished, finish, refuse};
pub use gate::Refusal;
pub use go_back::{GoBack, budget_told, loop_back, stay};
pub use hide::HideError;
pub use id::{Branch, IdError, JobId, NodeId, RunId, Slug};
pub use inspect::{Finding, Gate, Inspection, Look};
pub use manifest::{Loop, MANIFEST_VERSION, Manifest, ManifestError, ManifestNode, Retry, TemplateSource};
pub use metadata::Metadata;
pub use outcome::{JobOutcome, NodeOutcome};
pub use question::{Answer, Facts, Question};
pub use record::{RECORD_VERSION, Record, RecordError};
pub use reset::{Cause, Cleanup, Reset, reset};
pub use result::{RunResult, RunState};
pub use rewind::{Rewind, RewindError, rewind, rewind_all, sentinels};
pub use schedule::{
    After, AfterPolicy, Approval, ApprovalState, ExternalWait, Limits, Lock, LockMode, MissingProducer,
    Needed, PinnedHead, Precondition, Schedule, WaitKind, WaitReason,
};
pub use script::{foreign_interpreter, script_argv, script_shown};
pub use secret::{
    Cut, HIDDEN, Hiding, LEAST_SECRET, MOST_SECRET, MissingSecret, OverlapError, SecretRefused, Secrets,
};
pub use settle::{Settled, World, settle};
pub use shared::Shared;
pub use signal::{killed_by, signal_named, signal_told};
pub use start::{start, withdraw};
pub use status::{JobStatus, Transition};
pub use work_key::PlainKey;
