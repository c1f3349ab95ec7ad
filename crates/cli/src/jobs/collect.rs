//! Removing what has been over for a while: one answer for jobs and for runs.

use std::fmt::Write as _;

use serde_json::json;
use tidewheel_runner::job::{Removes, Ticked};

use super::opened::{Opened, concluded, refused};
use super::place::DirArguments;
use crate::commands::policy::Format;
use crate::error::Ending;
use crate::exit::Exit;
use crate::output;

/// What is removed, and how it is told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Collect {
    /// How long ago it ended at least; what is configured where nobody says.
    pub(crate) days: Option<u32>,
    /// Whether nothing is removed.
    pub(crate) dry_run: bool,
    pub(crate) format: Format,
}

/// The version of the form for programs.
const VERSION: u32 = 1;

/// Removes what is old, or says what would be removed.
pub(crate) fn collect(dir: &DirArguments, wanted: Collect) -> Result<Exit, Ending> {
    let opened = Opened::open(dir)?;
    let days = wanted.days.unwrap_or(opened.settings.config.gc_days);
    let removes = if wanted.dry_run { Removes::Nothing } else { Removes::Old };
    let collected = if opened.place.data.join("jobs").is_dir() {
        opened.scheduler()?.gc(days, removes).map_err(|error| refused(&error))?
    } else {
        Default::default()
    };
    let verb = if wanted.dry_run { "would remove" } else { "removed" };
    let outcome = format!("{verb} {} job(s)", collected.jobs.len());
    let told = match wanted.format {
        Format::Json => output::json(&json!({
            "version": VERSION,
            "outcome": outcome,
            "dry_run": wanted.dry_run,
            "days": days,
            "removed": collected.jobs,
            "removed_runs": collected.runs,
            "kept": collected.kept,
            "left": collected.left,
            "errors": collected.errors,
        })),
        Format::Text => {
            let mut text = format!("Outcome: {outcome}\n");
            if wanted.dry_run {
                for id in &collected.jobs {
                    let _ = writeln!(text, "  {id}");
                }
            }
            for path in &collected.left {
                let _ = writeln!(text, "Left: .tidewheel/{path}, which Tidewheel did not make");
            }
            output::text(&text)
        }
    };
    told.map_err(|ending| if wanted.dry_run { ending } else { ending.after_the_fact() })?;
    concluded(&Ticked { errors: collected.errors, ..Ticked::default() })
}
