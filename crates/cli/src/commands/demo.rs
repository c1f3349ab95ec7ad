//! `tidewheel demo`: one flaky step under several policies, a small workflow, a durable one whose process is killed in
//! the middle, and a build as jobs. It leaves no file behind that nobody asked for, and comes out the same every time.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::Args;
use serde::Serialize;
use tidewheel_core::policy::{Backoff, Jitter, JitterSeed, Policy};
use tidewheel_core::time::Span;
use tidewheel_core::view::{Rehearsal, Script, rehearse};

use super::policy::Format;
use crate::durable::jobs::{self, JobStory, build};
use crate::durable::tell::{self as durable, StepStory, tell};
use crate::error::Ending;
use crate::exit::Exit;
use crate::output;
use crate::terminal;
use crate::view::columns::cut;
use crate::view::fields;
use crate::view::order::{self, Story};
use crate::view::timeline::{Canvas, Row, draw, legend, wrapped};

/// See policies at work, a workflow that survives kill -9, and a build as jobs
///
/// A step takes 400ms, fails three times and then succeeds. The demo draws
/// what different policies make of it: the function that decides about real
/// retries decides here, and time is only counted. Then an order runs through
/// a small workflow, and once more from its events alone. Then a worker, a
/// process of its own, runs the order on a database in a temporary directory,
/// is killed in the middle and started again. At last a small build runs as
/// jobs, as `tidewheel run --follow` runs it. Nothing is left behind unless
/// --keep asks for it, and the demo is the same every time.
///
/// Example:
///
///   $ tidewheel demo
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Arguments {
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Leave out the worker that is killed and the jobs: no process is started, and no file is touched
    #[arg(long)]
    no_crash: bool,
    /// Keep the files of the jobs in this directory, which is made
    #[arg(long, value_name = "DIR", conflicts_with = "no_crash")]
    keep: Option<PathBuf>,
}

/// How often the step fails before it succeeds.
const FAILURES: u32 = 3;
/// How long each of its attempts takes.
const ATTEMPT_TAKES: Span = Span::from_millis(400);
/// What jitter is a function of, beside the run.
const STEP: &str = "flaky";

/// No text is easy to read that is wider.
const WIDEST_TEXT: usize = 88;

/// Shows the step under each policy.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let shows = shows();
    let durable = || if arguments.no_crash { Ok(None) } else { tell().map(Some) };
    let jobs = || if arguments.no_crash { Ok(None) } else { build(arguments.keep.as_deref()).map(Some) };
    match arguments.format {
        Format::Json => output::json(&DemoForm::of(&shows, durable()?, jobs()?))?,
        Format::Text => {
            let canvas = terminal::canvas();
            output::text(&told(&shows, canvas))?;
            // Whoever reads has something to read while processes come and go.
            if let Some(story) = durable()? {
                output::text(&survived(&story, canvas))?;
            }
            if let Some(story) = jobs()? {
                output::text(&built(&story, canvas))?;
            }
            let next = next(&program(), arguments.keep.as_deref());
            output::text(&format!("{STRONG}Try next:{STRONG:#}\n{next}\n"))?;
        }
    }
    Ok(Exit::Succeeded)
}

/// One policy, in one run of the step.
struct Show {
    name: &'static str,
    policy: Policy,
    run_id: &'static str,
}

/// The policies, each a little kinder than the one before, and at the end two that give up.
fn shows() -> [Show; 9] {
    let retrying = |backoff| Policy::new().max_retries(FAILURES).backoff(backoff);
    let jitter = || retrying(Backoff::exponential()).jitter(Jitter::Full);
    let show = |name, policy| Show { name, policy, run_id: "run-1" };
    [
        show("no policy", Policy::new()),
        show("fixed 500ms", retrying(Backoff::Fixed)),
        show("linear 500ms", retrying(Backoff::Linear)),
        show("exponential 500ms", retrying(Backoff::exponential())),
        Show { name: "jitter, run 1", policy: jitter(), run_id: "run-1" },
        Show { name: "jitter, run 2", policy: jitter(), run_id: "run-2" },
        Show { name: "jitter, run 3", policy: jitter(), run_id: "run-3" },
        show("llm, 3s in all", Policy::llm().timeout("1s").total_timeout("3s")),
        show("fast_fail, 200ms", Policy::fast_fail().timeout("200ms")),
    ]
}

impl Show {
    fn rehearsal(&self) -> Rehearsal {
        let seed = JitterSeed::new(self.run_id, STEP);
        let script = Script { failures: FAILURES, attempt_takes: ATTEMPT_TAKES, seed };
        let policy = self.policy.resolved().expect("invariant: the policies of the demo are in order");
        rehearse(&policy, &script)
    }
}

const STRONG: Style = Style::new().bold();

fn told(shows: &[Show], canvas: Canvas) -> String {
    let width = canvas.width.min(WIDEST_TEXT);
    let row = |show: &Show| Row { name: show.name.to_owned(), rehearsal: show.rehearsal() };
    let rows: Vec<Row> = shows.iter().map(row).collect();
    let mut text = String::new();
    let paragraph = |words: &str| wrapped(words, width, "");
    let title = paragraph("A step takes 400ms, fails three times and then succeeds.");
    let _ = writeln!(text, "{STRONG}{title}{STRONG:#}");
    let _ = writeln!(text, "{}\n", paragraph("This is what different policies make of it:"));
    let _ = writeln!(text, "{}", draw(&rows, canvas));
    let _ = writeln!(text, "{}\n", legend(canvas));
    let _ = writeln!(text, "{}\n", paragraph(SEEN));
    let _ = writeln!(text, "{STRONG}{}{STRONG:#}", paragraph("A workflow: an order through five functions."));
    let _ = writeln!(text, "{}\n", paragraph(WORKFLOW));
    let story = order::tell();
    for production in &story.productions {
        let line = format!("  {:<18} {}", production.component, production.value);
        let _ = writeln!(text, "{}", cut(&line, canvas.width, canvas));
    }
    let same = if story.replay_is_equal { "the same facts" } else { "other facts, which is a bug" };
    let told = format!(
        "Every change was an event, {} in all. A run made from these events alone has {same}.",
        story.events
    );
    let _ = writeln!(text, "\n{}\n", paragraph(&told));
    text
}

/// Tells of the worker that was killed.
fn survived(story: &durable::Story, canvas: Canvas) -> String {
    let width = canvas.width.min(WIDEST_TEXT);
    let paragraph = |words: &str| wrapped(words, width, "");
    let mut text = String::new();
    let _ = writeln!(text, "{STRONG}{}{STRONG:#}", paragraph("A durable workflow: kill -9 in the middle."));
    let told = format!(
        "A worker process runs the same order on a SQLite database. While {} runs, it is killed with SIGKILL. \
         Then a second worker starts on the same database.",
        story.killed_in
    );
    let _ = writeln!(text, "{}\n", paragraph(&told));
    let rows = story.steps.iter().map(|step| (step.step, in_first(step), in_second(step)));
    for (name, first, second) in [("", "first worker", "second worker")].into_iter().chain(rows) {
        let line = format!("  {name:<18} {first:<16} {second}");
        let _ = writeln!(text, "{}", cut(line.trim_end(), canvas.width, canvas));
    }
    let result = format!("  {:<18} {:<16} {}", "result", "", story.result);
    let _ = writeln!(text, "{}", cut(&result, canvas.width, canvas));
    let seen = match story.lost().filter(|_| story.is_right()) {
        Some(lost) => format!(
            "What was stored did not run again. {} ran again as attempt {} with the same id, {}: a service \
             that gets the id as its idempotency key can tell that it is the same piece of work.",
            story.killed_in, lost.attempt, lost.work
        ),
        None => "Something else than what is promised happened, which is a bug.".to_owned(),
    };
    let _ = writeln!(text, "\n{}\n", paragraph(&seen));
    text
}

fn in_first(step: &StepStory) -> &'static str {
    match (&step.first, step.was_stored) {
        (Some(_), true) => "ran, stored",
        (Some(_), false) => "ran, killed",
        (None, _) => "",
    }
}

fn in_second(step: &StepStory) -> &'static str {
    match (&step.first, &step.second) {
        (_, None) => "did not run again",
        (Some(first), Some(second)) if first == second => "ran again, same id and attempt",
        (Some(_), Some(_)) => "ran again",
        (None, Some(_)) => "ran",
    }
}

/// Tells of the jobs.
fn built(story: &jobs::Story, canvas: Canvas) -> String {
    let width = canvas.width.min(WIDEST_TEXT);
    let paragraph = |words: &str| wrapped(words, width, "");
    let mut text = String::new();
    let _ =
        writeln!(text, "{STRONG}{}{STRONG:#}", paragraph("Jobs: a build as processes, kept in plain files."));
    let _ = writeln!(text, "{}\n", paragraph(JOBS));
    for job in &story.jobs {
        let line = format!("  {:<8} {:<10} {}", job.node, job.status.to_string(), how(job));
        let _ = writeln!(text, "{}", cut(line.trim_end(), canvas.width, canvas));
    }
    let seen = if story.is_right() { RETRIED } else { "Not all of that was meant, which is a bug." };
    let _ = writeln!(text, "\n{}", paragraph(seen));
    let _ = writeln!(text, "{}", paragraph(FILES));
    let said = story
        .kept_in
        .as_ref()
        .map_or_else(|| GONE.to_owned(), |kept| format!("All of it is in {}.", kept.display()));
    let _ = writeln!(text, "{}\n", paragraph(&said));
    text
}

/// Says what a job came after, and how its starts ended where there were several.
fn how(job: &JobStory) -> String {
    let code =
        |code: &Option<i32>| code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
    let after = (!job.after.is_empty()).then(|| format!("after {}", job.after.join(" and ")));
    let starts = (job.exit_codes.len() > 1).then(|| {
        let codes: Vec<String> = job.exit_codes.iter().map(code).collect();
        format!("{} starts: {}", codes.len(), codes.join(", then "))
    });
    after.into_iter().chain(starts).collect::<Vec<_>>().join(", ")
}

/// What the build does.
const JOBS: &str = "A template of four jobs runs as `tidewheel run build.toml --follow` runs it. Each job is a \
    process with a supervisor of its own, and would go on if this command were killed.";

/// What was seen of it.
const RETRIED: &str = "The first start of fetch ended with 75, which its policy lists as worth another try; compile and \
    lint did not wait for each other, and package waited for both.";

/// Where everything is.
const FILES: &str = "Each job has a directory .tidewheel/jobs/JOB/ with its record (job.json), its logs (stdout.log, \
    stderr.log) and why it was retried (events.jsonl).";

/// For whoever did not keep it.
const GONE: &str = "Here that was in a temporary directory, which is gone; `--keep DIR` keeps it.";

/// What was seen.
const SEEN: &str = "Without a policy the first failure is final. Growing delays give a struggling service \
    time to recover. Jitter keeps runs that failed together from coming back together, and still gives \
    each run the same delays every time. The llm policy looked ahead: its next retry would have started at \
    3.8s, after the 3s it has in all, so it failed at once instead of waiting for nothing. And fast_fail cut \
    the first attempt off at its timeout.";

/// What the workflow does.
const WORKFLOW: &str = "A rule lets the order in, three checks look at it independently, and a decision waits for \
    all of them.";

/// Returns commands that work as they stand, in any directory. They are not broken by width, so that they can be
/// copied.
fn next(program: &str, kept: Option<&Path>) -> String {
    let keep = if kept.is_some() { String::new() } else { format!("\n  {program} demo --keep {KEPT}") };
    let kept = kept.unwrap_or_else(|| Path::new(KEPT)).display();
    format!(
        r#"  echo '{{"policy": {{"backoff": "linear"}}, "attempt_index": 2}}' |
    {program} decide delay
  echo 'policies = [{{match.default=true, max_retries=4, backoff="jitter"}}]' |
    {program} policy check - --name fetch{keep}
  {program} jobs tail fetch --dir {kept}
  {program} jobs schedule --all --dir {kept}"#
    )
}

/// Where the jobs are kept in the commands above.
const KEPT: &str = "demo-jobs";

/// Returns how we were called if that was by a path, as `cargo run` does; who has us on the `PATH` just names
/// us.
fn program() -> String {
    let called = std::env::args().next().filter(|called| called.contains('/'));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    called.filter(|called| called.chars().all(is_plain)).unwrap_or_else(|| "tidewheel".to_owned())
}

/// The version of the form below.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct DemoForm {
    version: u32,
    failures: u32,
    attempt_takes_ms: u64,
    rehearsals: Vec<ShowForm>,
    workflow: Story,
    #[serde(skip_serializing_if = "Option::is_none")]
    durable: Option<durable::Story>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jobs: Option<jobs::Story>,
}

#[derive(Serialize)]
struct ShowForm {
    name: &'static str,
    policy: serde_json::Map<String, serde_json::Value>,
    run_id: &'static str,
    node: &'static str,
    rehearsal: Rehearsal,
}

impl DemoForm {
    fn of(shows: &[Show], durable: Option<durable::Story>, jobs: Option<jobs::Story>) -> Self {
        let form = |show: &Show| ShowForm {
            name: show.name,
            policy: fields::of_record(&show.policy.to_record()),
            run_id: show.run_id,
            node: STEP,
            rehearsal: show.rehearsal(),
        };
        Self {
            version: VERSION,
            failures: FAILURES,
            attempt_takes_ms: ATTEMPT_TAKES.as_millis(),
            rehearsals: shows.iter().map(form).collect(),
            workflow: order::tell(),
            durable,
            jobs,
        }
    }
}
