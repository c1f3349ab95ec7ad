//! Findings as people and programs read them. Nothing is judged here.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::finding::{Finding, Level};
use super::repair::Repaired;
use crate::jobs::Place;
use crate::output::harmless;
use crate::view::timeline::{FAINT, wrapped};

/// The version of what `--format json` prints.
const VERSION: u32 = 1;

/// How many findings of one check are shown to people.
const MOST: usize = 20;

/// Where the text of a finding begins.
const INDENT: &str = "                       ";

/// Writes findings for people; lines are broken where a width is given.
pub(crate) fn text(repaired: &[Repaired], findings: &[Finding], width: Option<usize>) -> String {
    let mut text = String::new();
    for Repaired { check, is_done, message } in repaired {
        let (word, style) = if *is_done { ("fixed", FINE) } else { ("not fixed", BROKEN) };
        row(&mut text, (word, style), check.name(), message, width);
    }
    if !repaired.is_empty() {
        text.push('\n');
    }
    for of_check in findings.chunk_by(|one, other| one.check == other.check) {
        for finding in of_check.iter().take(MOST) {
            let style = match finding.level {
                Level::Fine => FINE,
                Level::Warning => WARNING,
                Level::Broken => BROKEN,
            };
            let said = match &finding.file {
                Some(file) => format!("{file}: {}", finding.message),
                None => finding.message.clone(),
            };
            row(&mut text, (finding.level.name(), style), finding.check.name(), &said, width);
            if let Some(todo) = &finding.todo {
                let _ = writeln!(text, "{FAINT}{}{FAINT:#}", broken(todo, width));
            }
        }
        if of_check.len() > MOST {
            let more = format!("… and {} more, which --format json has.", of_check.len() - MOST);
            let _ = writeln!(text, "{INDENT}{more}");
        }
    }
    let _ = writeln!(text, "\nOutcome: {}", outcome(findings));
    text
}

/// Returns the form for programs.
pub(crate) fn json(place: &Place, repaired: &[Repaired], findings: &[Finding]) -> Value {
    let finding = |finding: &Finding| {
        json!({
            "check": finding.check.name(),
            "level": finding.level.name(),
            "file": finding.file,
            "message": finding.message,
            "todo": finding.todo,
            "can_fix": finding.repair.is_some(),
        })
    };
    let done = |done: &Repaired| {
        let Repaired { check, is_done, message } = done;
        json!({ "check": check.name(), "is_done": is_done, "message": message })
    };
    let level = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Fine);
    json!({
        "version": VERSION,
        "outcome": level.name(),
        "root": place.root.display().to_string(),
        "data": place.data.display().to_string(),
        "repairs": repaired.iter().map(done).collect::<Vec<_>>(),
        "findings": findings.iter().map(finding).collect::<Vec<_>>(),
    })
}

const FINE: Style = AnsiColor::Green.on_default();
const WARNING: Style = AnsiColor::Yellow.on_default().bold();
const BROKEN: Style = AnsiColor::Red.on_default().bold();

fn row(text: &mut String, (word, style): (&str, Style), check: &str, said: &str, width: Option<usize>) {
    let said = broken(said, width);
    let _ = writeln!(text, "{style}{word:<9}{style:#} {check:<12} {}", said.trim_start());
}

fn broken(text: &str, width: Option<usize>) -> String {
    let text = harmless(text);
    match width {
        Some(width) => wrapped(&text, width, INDENT),
        None => format!("{INDENT}{text}"),
    }
}

/// Says it in a line.
fn outcome(findings: &[Finding]) -> String {
    let count = |level| findings.iter().filter(|finding| finding.level == level).count();
    let (broken, warnings, fine) = (count(Level::Broken), count(Level::Warning), count(Level::Fine));
    if broken + warnings == 0 {
        return "Everything is fine".to_owned();
    }
    let mut parts = Vec::new();
    if broken > 0 {
        parts.push(format!("{broken} broken"));
    }
    match warnings {
        0 => {}
        1 => parts.push("1 warning".to_owned()),
        more => parts.push(format!("{more} warnings")),
    }
    parts.push(format!("{fine} fine"));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::finding::Check;
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_finding() {
        let mut foreign = Foreign::new("doctor");
        for _ in 0..foreign::count() / 4 {
            let texts = [foreign.text(), foreign.text(), foreign.text()];
            let [file, message, todo] = texts.clone();
            let finding = Finding::broken(Check::Records, file, message.clone()).todo(todo);
            let repaired = Repaired { check: Check::Index, is_done: false, message };
            // A line for the repair and one empty, two for the finding, one empty and the outcome.
            let (repaired, findings) = ([repaired], [finding]);
            let drawn = text(&repaired, &findings, None);
            Shown { text: &drawn, lines: Some(6), ..Shown::default() }.check(&texts);
            let drawn = text(&repaired, &findings, Some(foreign.canvas().width));
            Shown { text: &drawn, ..Shown::default() }.check(&texts);
        }
    }

    #[test]
    fn many_findings_of_one_check_are_cut_for_people_and_whole_for_programs() {
        let finding = |number| Finding::broken(Check::Records, format!("{number}"), "cannot be read");
        let findings: Vec<Finding> = (0..100).map(finding).collect();
        let drawn = text(&[], &findings, None);
        assert!(drawn.contains("… and 80 more, which --format json has."), "{drawn}");
        assert!(drawn.ends_with("\nOutcome: 100 broken, 0 fine\n"), "{drawn}");
        let place = Place { root: "/r".into(), data: "/r/.tidewheel".into() };
        assert_eq!(json(&place, &[], &findings)["findings"].as_array().map(Vec::len), Some(100));
    }
}
