//! `tidewheel demo`: policies, an order whose worker is killed in the middle, and a release as jobs that a person
//! approves. It comes out the same every time, and all that it makes is in one directory.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::policy::Format;
use crate::demo::live::Live;
use crate::demo::release::Answer;
use crate::demo::{chart, order, place, release, told};
use crate::error::Ending;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::jobs::Tells;
use crate::output;
use crate::terminal;

/// See policies at work, a workflow that survives kill -9, and a release as jobs
///
/// First the demo draws what different policies make of a step that fails: the
/// function that decides about real retries decides here, and time is only
/// counted. Then a worker, a process of its own, runs an order with retries, a
/// rate limit and a circuit breaker, is killed in the middle and started again.
/// At last a small release runs as jobs, as `tidewheel run --follow` runs it,
/// and waits for your approval. It takes a few seconds and needs no git, no
/// server and no network; everything that it makes is in one directory, and
/// it ends with commands to look at that.
///
/// Example:
///
///   $ tidewheel demo
///   $ tidewheel demo --yes --keep /tmp/demo
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Approve the release without asking
    #[arg(long, short, conflicts_with = "no_crash")]
    yes: bool,
    /// Draw the policies only: no process is started, and no file is touched
    #[arg(long)]
    no_crash: bool,
    /// Keep everything in this directory, which is made; by default `tidewheel-demo` here
    #[arg(long, value_name = "DIR", conflicts_with = "no_crash")]
    keep: Option<PathBuf>,
}

/// Shows the three parts.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let place = if arguments.no_crash { None } else { Some(place::make(arguments.keep.as_deref())?) };
    match arguments.format {
        Format::Json => as_data(place.as_deref(), arguments),
        Format::Text => as_text(place.as_deref(), arguments),
    }
}

fn as_text(place: Option<&Path>, arguments: &Arguments) -> Result<Exit, Ending> {
    let canvas = terminal::canvas();
    output::text(&told::beginning(place, canvas))?;
    // Whoever reads has something to read while processes come and go.
    output::text(&chart::drawn(canvas))?;
    let mut answer = None;
    if let Some(place) = place {
        output::text(&told::order_begins(canvas))?;
        let story = order::tell(place, &Live::begin(true))?;
        output::text(&told::order(&story, canvas))?;
        output::text(&told::release_begins(canvas))?;
        let tells = if terminal::is_live() { Tells::Output } else { Tells::Nobody };
        let Some(story) = release::tell(place, tells, || ask(arguments))? else { return Ok(Exit::Failed) };
        if tells == Tells::Output {
            // The cursor stands behind the last line that was told live.
            output::text("\n\n")?;
        }
        output::text(&told::release(&story, canvas))?;
        answer = Some(story.answer);
    }
    output::text(&told::ending(&program(), place, answer, canvas))?;
    Ok(Exit::Succeeded)
}

/// Asks whether the release may be published. Who just presses the key that ends a line says yes; who goes away says
/// nothing.
fn ask(arguments: &Arguments) -> Result<Answer, Ending> {
    if arguments.yes {
        return Ok(Answer::ApprovedByOption);
    }
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Ok(Answer::NobodyAsked);
    }
    let interrupt = Interrupt::listen();
    loop {
        output::text(told::QUESTION)?;
        let Some(line) = line(&interrupt) else {
            output::text("\n")?;
            return Ok(Answer::Unanswered);
        };
        match line.trim().to_lowercase().as_str() {
            "" | "y" | "yes" => return Ok(Answer::Approved),
            "n" | "no" => return Ok(Answer::Rejected),
            _ => output::text("Please say y or n.\n")?,
        }
    }
}

/// Reads a line; `None` if there is none any more, or somebody has had enough.
fn line(interrupt: &Interrupt) -> Option<String> {
    let (sender, lines) = mpsc::channel();
    // A read cannot be given up. The thread that waits in it ends with the process.
    drop(std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        drop(sender.send(read.is_ok_and(|count| count > 0).then_some(line)));
    }));
    while !interrupt.is_heard() {
        match lines.recv_timeout(LOOK_AGAIN) {
            Ok(line) => return line,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

/// How long somebody who has had enough waits at most.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Returns how we were called if that was by a path, as `cargo run` does; who has us on the `PATH` just names
/// us.
fn program() -> String {
    let called = std::env::args().next().filter(|called| called.contains('/'));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    called.filter(|called| called.chars().all(is_plain)).unwrap_or_else(|| "tidewheel".to_owned())
}

/// The version of the form below.
const VERSION: u32 = 2;

#[derive(Serialize)]
struct DemoForm<'a> {
    version: u32,
    failures: u32,
    attempt_takes_ms: u64,
    rehearsals: Vec<chart::ShowForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<order::Story>,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<release::Story>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_in: Option<&'a Path>,
}

fn as_data(place: Option<&Path>, arguments: &Arguments) -> Result<Exit, Ending> {
    let mut form = DemoForm {
        version: VERSION,
        failures: chart::FAILURES,
        attempt_takes_ms: chart::ATTEMPT_TAKES.as_millis(),
        rehearsals: chart::forms(),
        order: None,
        release: None,
        kept_in: place,
    };
    if let Some(place) = place {
        form.order = Some(order::tell(place, &Live::begin(false))?);
        // A question would stand among the data.
        let answer = if arguments.yes { Answer::ApprovedByOption } else { Answer::NobodyAsked };
        let Some(story) = release::tell(place, Tells::Nobody, || Ok(answer))? else {
            return Ok(Exit::Failed);
        };
        form.release = Some(story);
    }
    output::json(&form)?;
    Ok(Exit::Succeeded)
}
