//! What becomes of something that was asked of a run: waits a while until it is done, and tells how it went. It asks
//! nothing itself.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use tidewheel_core::fact::RunId;
use tidewheel_core::time::Span;
use tidewheel_runner::Sent;
use tidewheel_store::RunRecord;

use super::VERSION;
use super::side::of_programs;
use crate::commands::policy::Format;
use crate::error::{CommandError, Ending};
use crate::exit::Exit;
use crate::output::{self, harmless};
use crate::store::Opened;
use crate::terminal;
use crate::view::timeline::wrapped;

/// How long to wait until the process that drives the run has done what was asked.
#[derive(Clone, Debug, Args)]
pub(super) struct Patience {
    /// With --store: wait so long until it is done; 2s if not given
    #[arg(long, value_name = "SPAN", value_parser = Span::parse)]
    wait: Option<Span>,
    /// With --store: do not wait until it is done
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
}

/// So long is waited where nothing else is said.
const USUAL: Span = Span::from_secs(2);

impl Patience {
    /// Refuses haste where it would change nothing.
    pub(super) fn is_usual(&self) -> Result<(), CommandError> {
        let instead = "Here the command ends when it is done.";
        match (self.no_wait, self.wait) {
            (true, _) => Err(of_programs("`--no-wait`", instead)),
            (false, Some(_)) => Err(of_programs("`--wait`", instead)),
            (false, None) => Ok(()),
        }
    }

    /// Returns how long it is.
    pub(super) fn span(&self) -> Span {
        if self.no_wait { Span::ZERO } else { self.wait.unwrap_or(USUAL) }
    }

    /// Returns what is left of it until an instant.
    pub(super) fn left(&self, until: Instant) -> Self {
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let left = Span::from_millis(u64::try_from(left).unwrap_or(u64::MAX));
        Self { wait: Some(left), no_wait: self.no_wait }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    Cancel,
    Pause,
    Resume,
    Stop,
    Retry,
    Signal,
    Complete,
    Fail,
}

impl Wish {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::Retry => "retry",
            Self::Signal => "signal",
            Self::Complete => "complete",
            Self::Fail => "fail",
        }
    }
}

/// What became of something that was asked.
pub(super) struct Followed {
    /// Whether all of it is done, or was put away because it could not be.
    pub(super) is_handled: bool,
    /// The run then.
    pub(super) record: RunRecord,
    /// Why some of it was not done.
    pub(super) refusals: Vec<String>,
}

/// Waits for a while until what was asked is done.
pub(super) fn wait(
    opened: &Opened,
    patience: &Patience,
    sent: &[Sent],
) -> Result<Option<Followed>, CommandError> {
    let Some(last) = sent.last() else { return Ok(None) };
    let until = Duration::from_millis(patience.span().as_millis());
    let is_handled = opened.wait(async {
        // Rows are handled in order, so the last one tells of all of them.
        match tokio::time::timeout(until, opened.control.until_handled(last)).await {
            Ok(handled) => handled.map(|()| true),
            Err(_) => opened.control.is_handled(last).await,
        }
    })?;
    let found = opened.find(&last.record.id)?;
    let record = found.unwrap_or_else(|| last.record.clone());
    let refusals = if is_handled { refusals(opened, sent) } else { Vec::new() };
    Ok(Some(Followed { is_handled, record, refusals }))
}

/// Returns why some of what was asked was not done, each reason once.
fn refusals(opened: &Opened, sent: &[Sent]) -> Vec<String> {
    let mut refusals = Vec::new();
    // A run that was deleted meanwhile has no story that could say why.
    let last = sent.last().map(|last| opened.ask(opened.control.story(&last.record.id)));
    if let Some(Ok(story)) = last {
        refusals.extend(sent.iter().filter_map(|one| story.refused.get(&one.id?.0).cloned()));
    }
    refusals.dedup();
    refusals
}

/// Waits until what was asked is done, and tells what came of it.
pub(super) fn follow(
    opened: &Opened,
    wish: Wish,
    sent: &[Sent],
    (patience, format): (&Patience, Format),
) -> Result<Exit, Ending> {
    let Some(followed) = wait(opened, patience, sent)? else { return Ok(Exit::Succeeded) };
    match format {
        Format::Json => output::json(&AskedForm {
            version: VERSION,
            run: followed.record.id.as_str(),
            asked: wish.name(),
            count: sent.len(),
            handled: followed.is_handled,
            already: is_already_so(sent),
            refused: &followed.refusals,
            driven: followed.record.owner.is_some(),
            status: followed.record.status.name(),
        })?,
        Format::Text => {
            let width = terminal::canvas().width;
            output::text(&format!(
                "{}\n",
                wrapped(&harmless(&told(wish, sent, &followed, patience)), width, "")
            ))?;
        }
    }
    Ok(if followed.refusals.is_empty() { Exit::Succeeded } else { Exit::Failed })
}

fn told(wish: Wish, sent: &[Sent], followed: &Followed, patience: &Patience) -> String {
    let Followed { is_handled, record, refusals } = followed;
    let RunRecord { id, workflow, workflow_version, status, .. } = record;
    if is_already_so(sent) {
        let instead = match wish {
            Wish::Resume => "It goes on already, so nothing was asked of it.",
            Wish::Cancel
            | Wish::Pause
            | Wish::Stop
            | Wish::Retry
            | Wish::Signal
            | Wish::Complete
            | Wish::Fail => "It is so already, so nothing was asked of it.",
        };
        return format!("{id} is {status}. {instead}");
    }
    let mut text = asked(wish, id, sent.len());
    if !refusals.is_empty() {
        let _ = write!(text, " It was not done: {}. The run is {status}.", refusals.join("; "));
        return text;
    }
    if *is_handled {
        let _ = write!(text, " The process that drives it has taken that; it is {status} now.");
        return text;
    }
    let is_driven = record.owner.is_some();
    if is_driven {
        text.push_str(" The process that drives it will do so");
    } else {
        let _ = write!(
            text,
            " No process drives it now; the next one that knows workflow {workflow} version {workflow_version} will \
             do so"
        );
    }
    match (patience.no_wait, is_driven) {
        (true, _) => text.push('.'),
        (false, true) => {
            let _ = write!(text, ", and has not within {}.", patience.span());
        }
        (false, false) => {
            let _ = write!(text, "; none came within {}.", patience.span());
        }
    }
    text
}

/// Returns whether nothing was written, since the run is as it was asked to be.
fn is_already_so(sent: &[Sent]) -> bool {
    sent.iter().all(|sent| sent.id.is_none())
}

/// Says what was asked.
fn asked(wish: Wish, run: &RunId, count: usize) -> String {
    match (wish, count) {
        (Wish::Signal, _) => format!("A signal was sent to {run}."),
        (Wish::Complete, _) => format!("A result was sent to {run}."),
        (Wish::Fail, _) => format!("A failure was sent to {run}."),
        (Wish::Retry | Wish::Cancel, 2..) => {
            format!("{run} was asked to {} {count} pieces of work.", wish.name())
        }
        (Wish::Retry | Wish::Cancel | Wish::Pause | Wish::Resume | Wish::Stop, _) => {
            format!("{run} was asked to {}.", wish.name())
        }
    }
}

#[derive(Serialize)]
struct AskedForm<'a> {
    version: u32,
    run: &'a str,
    asked: &'static str,
    count: usize,
    handled: bool,
    already: bool,
    refused: &'a [String],
    driven: bool,
    status: &'static str,
}
