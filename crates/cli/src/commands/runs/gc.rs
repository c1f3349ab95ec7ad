//! `tidewheel runs gc`: forgets runs that are over and that nobody wrote to for a while.

use std::fmt::Write as _;
use std::io::{self, BufRead as _, IsTerminal as _};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use tidewheel_core::time::Span;
use tidewheel_core::view::relative;
use tidewheel_store::{Filter, RunRecord, Status, Store as _};

use super::VERSION;
use super::side::{EitherArguments, Side, of_programs, of_repositories};
use crate::commands::policy::Format;
use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::jobs::{Collect, DirArguments, collect};
use crate::output::{self, harmless};
use crate::store::{Opened, Purpose};
use crate::terminal;
use crate::view::columns::cut;

/// Delete runs that are over, with all that is stored of them
///
/// Of a repository, jobs go that have been over for as many days as --days
/// says, and runs with their last job. In a store, a run is deleted if it is
/// over and was not written for as long as --older-than says. Runs that a
/// process still holds, and those of which something was asked, stay. Where a
/// person types, the command asks first.
///
/// Example:
///
///   $ tidewheel runs gc --days 30
///   $ tidewheel runs gc --older-than 30d --dry-run --store orders.db
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: EitherArguments,
    /// With --store: only runs that were not written for so long: 30d, 12h
    #[arg(long, value_name = "SPAN", value_parser = Span::parse)]
    older_than: Option<Span>,
    /// Without --store: only jobs that have been over for more than so many days; what is configured, else 7
    #[arg(long, value_name = "N")]
    days: Option<u32>,
    /// With --store: only runs that ended so; several with commas between; all if not given
    #[arg(long, value_delimiter = ',', value_parser = ended())]
    status: Vec<Status>,
    /// Only show what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// With --store: do not ask
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// The ways to end. What was paused, stopped or parked can be resumed, so it is not over.
const ENDED: [Status; 3] = [Status::Completed, Status::Failed, Status::Cancelled];

fn ended() -> impl TypedValueParser<Value = Status> {
    PossibleValuesParser::new(ENDED.map(Status::name))
        .map(|name| Status::from_name(&name).expect("invariant: only names of statuses are possible"))
}

/// As many runs are named to people.
const MOST_NAMED: usize = 20;

/// Deletes what is old.
pub(super) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let store = match arguments.place.side() {
        Side::Program(store) => store,
        Side::Repository(dir) => return of_repository(&dir, arguments),
    };
    if arguments.days.is_some() {
        return Err(of_repositories("`--days`", "With a store, --older-than says how old.").into());
    }
    let Some(older_than) = arguments.older_than else {
        let message = "With --store, --older-than SPAN says which runs are old.";
        return Err(CommandError::new(Code::OtherSide, message).into());
    };
    let purpose = if arguments.dry_run { Purpose::Look } else { Purpose::Ask };
    let opened = Opened::open(&store, purpose)?;
    let (old, kept) = old(&opened, arguments, older_than)?;
    if arguments.dry_run {
        match arguments.format {
            Format::Json => output::json(&GcForm::of(true, &old, &kept))?,
            Format::Text => {
                output::text(&format!(
                    "{}{}",
                    named(&old, &opened),
                    summed("would be deleted", &old, &kept)
                ))?;
            }
        }
        return Ok(Exit::Succeeded);
    }
    if !old.is_empty() && !arguments.yes && arguments.format == Format::Text && io::stdin().is_terminal() {
        output::text(&named(&old, &opened))?;
        if !is_agreed(old.len())? {
            output::text("Nothing was deleted.\n")?;
            return Ok(Exit::Succeeded);
        }
    }
    let (mut gone, mut kept, mut letters) = (Vec::new(), kept, 0);
    for record in old {
        let put_aside = opened.wait(opened.store().dead_letters(Some(&record.id), None))?.rows.len();
        // Somebody may have taken it up meanwhile.
        match opened.wait(opened.store().delete(&record.id))? {
            Ok(_) => {
                letters += put_aside;
                gone.push(record);
            }
            Err(_) => kept.push((record, HELD)),
        }
    }
    let forgotten = opened.wait(opened.control.forget_keys())?;
    let told = match arguments.format {
        Format::Json => {
            let form = GcForm::of(false, &gone, &kept);
            output::json(&GcForm { forgotten_keys: forgotten, dead_letters: letters, ..form })
        }
        Format::Text => {
            let mut text = summed("deleted", &gone, &kept);
            if letters > 0 {
                let what = if letters == 1 { "1 dead letter" } else { &format!("{letters} dead letters") };
                let _ = writeln!(text, "{what} of theirs went with them.");
            }
            if forgotten > 0 {
                let _ = writeln!(
                    text,
                    "{} of theirs, kept for work with the same key, went with them.",
                    if forgotten == 1 { "1 result".to_owned() } else { format!("{forgotten} results") }
                );
            }
            output::text(&text)
        }
    };
    told.map_err(Ending::after_the_fact)?;
    Ok(Exit::Succeeded)
}

/// Deletes the old jobs of a repository, and with them its runs.
fn of_repository(dir: &DirArguments, arguments: &Arguments) -> Result<Exit, Ending> {
    if arguments.older_than.is_some() {
        return Err(of_programs("`--older-than`", "Here --days says how old.").into());
    }
    if !arguments.status.is_empty() {
        return Err(of_programs("`--status`", "Here all jobs that are over are old one day.").into());
    }
    if arguments.yes {
        return Err(of_programs("`--yes`", "Here nothing is asked.").into());
    }
    let wanted = Collect { days: arguments.days, dry_run: arguments.dry_run, format: arguments.format };
    collect(dir, wanted)
}

const HELD: &str = "a process holds it";
const ASKED: &str = "something was asked of it";

/// Runs that stay although they are old, each with the reason.
type Kept = Vec<(RunRecord, &'static str)>;

/// Returns the runs that are old enough, oldest first, and those of them that stay, with the reason.
fn old(
    opened: &Opened,
    arguments: &Arguments,
    older_than: Span,
) -> Result<(Vec<RunRecord>, Kept), CommandError> {
    let statuses = if arguments.status.is_empty() { ENDED.to_vec() } else { arguments.status.clone() };
    let mut filter = Filter { statuses, limit: Some(u32::MAX), ..Filter::default() };
    let (mut old, mut kept) = (Vec::new(), Vec::new());
    loop {
        let page = opened.list(filter.clone())?;
        for record in page.rows {
            if !opened.now.has_reached(record.updated_at, older_than) {
                continue;
            }
            if record.owner.is_some() {
                kept.push((record, HELD));
            } else if !opened.wait(opened.store().commands_of(&record.id))?.is_empty() {
                kept.push((record, ASKED));
            } else {
                old.push(record);
            }
        }
        filter.after = page.next;
        if filter.after.is_none() {
            old.reverse();
            return Ok((old, kept));
        }
    }
}

fn named(old: &[RunRecord], opened: &Opened) -> String {
    let canvas = terminal::canvas();
    let mut text = String::new();
    for record in old.iter().take(MOST_NAMED) {
        let line = format!("  {}  {} {}", record.id, record.status, relative(record.updated_at, opened.now));
        let _ = writeln!(text, "{}", cut(&harmless(&line), canvas.width, canvas));
    }
    if old.len() > MOST_NAMED {
        let _ = writeln!(text, "  and {} more", old.len() - MOST_NAMED);
    }
    text
}

fn summed(done: &str, runs: &[RunRecord], kept: &Kept) -> String {
    let count = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
    let done = match (done, runs.len()) {
        ("deleted", 1) => "was deleted",
        ("deleted", _) => "were deleted",
        (other, _) => other,
    };
    let mut text = format!("{} {done}.", count(runs.len()));
    for why in [HELD, ASKED] {
        let held = kept.iter().filter(|(_, reason)| *reason == why).count();
        if held > 0 {
            let stay = if held == 1 { "stays" } else { "stay" };
            let _ = write!(text, " {} {stay}: {why}.", count(held));
        }
    }
    text.push('\n');
    text
}

/// Asks whoever types.
fn is_agreed(count: usize) -> Result<bool, Ending> {
    let what = if count == 1 { "this run".to_owned() } else { format!("these {count} runs") };
    output::text(&format!("Delete {what} for good? [y/N] "))?;
    let mut line = String::new();
    // An answer that cannot be read is no yes.
    drop(io::stdin().lock().read_line(&mut line));
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

#[derive(Serialize)]
struct GcForm<'a> {
    version: u32,
    dry_run: bool,
    deleted: Vec<&'a str>,
    kept: Vec<KeptForm<'a>>,
    /// Results that were kept for work with the same key, of runs that are gone.
    forgotten_keys: usize,
    /// What was put aside in them, at least.
    dead_letters: usize,
}

#[derive(Serialize)]
struct KeptForm<'a> {
    run: &'a str,
    why: &'static str,
}

impl<'a> GcForm<'a> {
    fn of(dry_run: bool, runs: &'a [RunRecord], kept: &'a Kept) -> Self {
        Self {
            version: VERSION,
            dry_run,
            deleted: runs.iter().map(|record| record.id.as_str()).collect(),
            kept: kept.iter().map(|(record, why)| KeptForm { run: record.id.as_str(), why }).collect(),
            forgotten_keys: 0,
            dead_letters: 0,
        }
    }
}
