//! The texts of the demo: what was gathered, for people.

use std::fmt::Write as _;
use std::path::Path;

use anstyle::Style;

use super::order::{self, DATABASE, StepStory, pieces};
use super::release::{self, Answer, FILE, JobStory};
use super::worker::RUN;
use crate::view::columns::cut;
use crate::view::timeline::{Canvas, wrapped};

const STRONG: Style = Style::new().bold();

/// No text is easy to read that is wider.
const WIDEST_TEXT: usize = 88;

/// Fills a paragraph.
pub(super) fn paragraph(words: &str, canvas: Canvas) -> String {
    wrapped(words, canvas.width.min(WIDEST_TEXT), "")
}

/// Begins a part.
pub(super) fn heading(words: &str, canvas: Canvas) -> String {
    format!("{STRONG}{}{STRONG:#}\n", paragraph(words, canvas))
}

/// Says what is to come.
pub(crate) fn beginning(place: Option<&Path>, canvas: Canvas) -> String {
    let Some(place) = place else { return String::new() };
    let words = format!(
        "An order for six books, and the release of the shop that takes it. All files are in {}/.",
        shown(place)
    );
    format!("{}\n\n", paragraph(&words, canvas))
}

/// Says what comes next, before it does.
pub(crate) fn order_begins(canvas: Canvas) -> String {
    let mut text = heading("2. A workflow: an order survives kill -9.", canvas);
    let _ = writeln!(text, "{}\n", paragraph(ORDER, canvas));
    text
}

/// What the order is.
const ORDER: &str = "A worker process runs an order on a SQLite database. The policies stand beside the workflow: at most \
    3 labels a second, a circuit breaker in front of the carrier, retries for what is overloaded. While screen_fraud \
    runs for the third time, the worker is killed with SIGKILL. Then a second worker starts on the same database.";

/// Tells of the order.
pub(crate) fn order(story: &order::Story, canvas: Canvas) -> String {
    let mut text = steps(story, canvas);
    let result = format!("  {:<15}  {}", "result", story.result);
    let _ = writeln!(text, "{}", cut(&result, canvas.width, canvas));
    let seen = match story.lost().filter(|_| story.is_right()) {
        Some(lost) => format!(
            "What was stored did not run again. {} ran again as the same attempt with the same id, {}: a service \
             that gets the id as its idempotency key can tell that it is the same piece of work. Every change is an \
             event in the database, and a run that is made from these events alone has the same result.",
            story.killed_in, lost.work
        ),
        None => "Something else than what is promised happened, which is a bug.".to_owned(),
    };
    let _ = writeln!(text, "\n{}\n", paragraph(&seen, canvas));
    text
}

/// Tells of each step what the workers did with it: side by side where there is room, and below each other elsewhere.
fn steps(story: &order::Story, canvas: Canvas) -> String {
    let rows = || story.steps.iter().map(|step| (step.step, in_first(step), in_second(step)));
    let head = ("", "first worker".to_owned(), "second worker");
    let lines = std::iter::once(head).chain(rows());
    let lines = lines.map(|(name, first, second)| format!("  {name:<15}  {first:<42}  {second}"));
    let lines: Vec<String> = lines.map(|line| line.trim_end().to_owned() + "\n").collect();
    if lines.iter().all(|line| line.len() <= canvas.width) {
        return lines.concat();
    }
    let mut text = String::new();
    for (name, first, second) in rows() {
        let said = [("first", first.as_str()), ("second", second)];
        let said = said.into_iter().filter(|(_, what)| !matches!(*what, "" | "-"));
        let mut name = name;
        for (worker, what) in said {
            let words = wrapped(&format!("{worker} worker: {what}"), canvas.width, &" ".repeat(19));
            let _ = writeln!(text, "  {name:<15}  {}", words.trim_start());
            name = "";
        }
    }
    text
}

fn in_first(step: &StepStory) -> String {
    let all = pieces(step.step);
    let mut words = Vec::new();
    if all > 1 {
        words.push(format!("{} ran", step.stored));
    }
    if step.waited_for_rate > 0 {
        words.push(format!("{} waited for the rate limit", step.waited_for_rate));
    }
    let failed = step.first.len().saturating_sub(all);
    match failed {
        0 => {}
        1 => words.push("failed once".to_owned()),
        2 => words.push("failed twice".to_owned()),
        _ => words.push(format!("failed {failed} times")),
    }
    if step.waited_for_breaker > 0 {
        words.push("held by the breaker".to_owned());
    }
    match (step.first.is_empty(), step.stored == all) {
        (true, _) => {}
        (false, true) if all > 1 => {}
        (false, true) => words.push("ran".to_owned()),
        (false, false) => words.push("killed".to_owned()),
    }
    words.join(", ")
}

fn in_second(step: &StepStory) -> &'static str {
    match (step.first.last(), step.second.last()) {
        (_, None) => "-",
        (Some(first), Some(second)) if first == second => "ran again",
        (Some(_), Some(_)) => "ran again, as another piece",
        (None, Some(_)) => "ran",
    }
}

/// Says what comes next, before it does.
pub(crate) fn release_begins(canvas: Canvas) -> String {
    let mut text = heading("3. Jobs: a release as processes, with a person in the loop.", canvas);
    let _ = writeln!(text, "{}\n", paragraph(RELEASE, canvas));
    text
}

/// What the release is.
const RELEASE: &str = "A template of five jobs runs as `tidewheel run release.toml --follow` runs it. Each job is a \
    process with a supervisor of its own, and would go on if this command were killed. The last one waits until a \
    person approves it.";

/// The question that a person is asked.
pub(crate) const QUESTION: &str = "publish waits for your approval. Publish? [Y/n] ";

/// Tells of the release.
pub(crate) fn release(story: &release::Story, canvas: Canvas) -> String {
    let mut text = String::new();
    let wide = story.jobs.iter().map(|job| job.status.to_string().len()).max().unwrap_or_default();
    for job in &story.jobs {
        let line = format!("  {:<8} {:<wide$}  {}", job.node, job.status.to_string(), how(job, story.answer));
        let _ = writeln!(text, "{}", cut(line.trim_end(), canvas.width, canvas));
    }
    let seen = if story.is_right() { RETRIED } else { "Not all of that was meant, which is a bug." };
    let _ = writeln!(text, "\n{}\n", paragraph(seen, canvas));
    text
}

/// Says what a job came after, how its starts ended where there were several, and what a person said.
fn how(job: &JobStory, answer: Answer) -> String {
    let code =
        |code: &Option<i32>| code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit {code}"));
    let mut words = Vec::new();
    if !job.after.is_empty() {
        words.push(format!("after {}", job.after.join(" and ")));
    }
    if job.exit_codes.len() > 1 {
        let codes: Vec<String> = job.exit_codes.iter().map(code).collect();
        words.push(format!("{} starts: {}", codes.len(), codes.join(", then ")));
    }
    if job.node == "publish" {
        words.push(match answer {
            Answer::Approved => "approved by you".to_owned(),
            Answer::Rejected => "rejected by you".to_owned(),
            Answer::ApprovedByOption => "approved by --yes".to_owned(),
            Answer::NobodyAsked => "approved by itself: nobody to ask".to_owned(),
            Answer::Unanswered => "not decided".to_owned(),
        });
    }
    words.join(", ")
}

/// What was seen of it.
const RETRIED: &str = "The first start of fetch ended with 75, which its policy lists as worth another try; compile and \
    lint did not wait for each other, and package waited for both.";

/// Says where everything is, with commands that work as they stand. They are not broken by width, so that they can be
/// copied.
pub(crate) fn ending(program: &str, place: Option<&Path>, answer: Option<Answer>, canvas: Canvas) -> String {
    let Some(place) = place else {
        return format!("{STRONG}See the rest:{STRONG:#}\n  {program} demo\n");
    };
    let place = shown(place);
    let mut text = heading(&format!("Everything is in {place}/:"), canvas);
    for (name, what) in [
        (DATABASE, "the order: facts, attempts, decisions"),
        (FILE, "the template of the jobs"),
        (".tidewheel/jobs/", "each job: its record, logs and events"),
    ] {
        let line = format!("  {name:<17} {what}");
        let _ = writeln!(text, "{}", cut(&line, canvas.width, canvas));
    }
    let _ = writeln!(text, "\n{STRONG}Look at it:{STRONG:#}");
    for command in [
        format!("runs timeline {RUN} --store {place}/{DATABASE}"),
        format!("runs explain {RUN} --store {place}/{DATABASE}"),
        format!("jobs list --all --dir {place}"),
        format!("jobs explain fetch --dir {place}"),
        match answer {
            Some(Answer::Unanswered) => format!("jobs approve publish --dir {place}"),
            Some(Answer::Rejected) => format!("jobs explain publish --dir {place}"),
            Some(Answer::Approved | Answer::ApprovedByOption | Answer::NobodyAsked) | None => {
                format!("jobs tail publish --dir {place}")
            }
        },
        format!("graph {place}/{FILE}"),
    ] {
        let _ = writeln!(text, "  {program} {command}");
    }
    let _ = writeln!(text, "\n{STRONG}Begin your own:{STRONG:#}\n  {program} init");
    text
}

/// Returns a path as a word of a shell.
fn shown(place: &Path) -> String {
    let text = place.display().to_string();
    let text = text.trim_end_matches('/');
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
