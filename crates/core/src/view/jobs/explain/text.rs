//! Small words that all parts of an explanation share: instants for programs, names and lists for people.

use crate::job::{Brief, RunId, lost_told, signal_told};
use crate::time::Timestamp;

/// Writes an instant as text.
#[expect(clippy::ref_option, reason = "the signature is serde's")]
pub(super) fn instant<S: serde::Serializer>(
    at: &Option<Timestamp>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serializer.collect_str(at),
        None => serializer.serialize_none(),
    }
}

/// Returns what a job is called where a run is spoken of: its node if it is of that run, else its id.
pub(super) fn called(job: &Brief, run: Option<&RunId>) -> String {
    match &job.node {
        Some(node) if job.run.is_some() && job.run.as_ref() == run => node.to_string(),
        Some(_) | None => job.id.to_string(),
    }
}

/// Says with which exit code something ended, and which signal that stands for; what was lost ended with none.
pub(super) fn exit(code: Option<i32>, summary: Option<&str>) -> String {
    let Some(code) = code else { return String::new() };
    if lost_told(summary).is_some() {
        return ", lost with its supervisor".to_owned();
    }
    match signal_told(code, summary) {
        Some(signal) => format!(" with exit code {code}, {signal}"),
        None => format!(" with exit code {code}"),
    }
}

/// Says the same where the summary itself is told beside it, and says that something was killed or lost.
pub(super) fn exit_beside(code: Option<i32>, summary: Option<&str>) -> String {
    if lost_told(summary).is_some() {
        return String::new();
    }
    let said = exit(code, summary);
    match said.split_once(", killed by ") {
        Some((code, _)) => code.to_owned(),
        None => said,
    }
}

/// Joins names as people do, as many as can be read: `a, b and c`, `a, b, c and 9 more`.
pub(super) fn listed(names: &[String]) -> String {
    const MOST: usize = 4;
    match names {
        [] => String::new(),
        [one] => one.clone(),
        _ if names.len() > MOST => {
            format!("{} and {} more", names[..MOST - 1].join(", "), names.len() - (MOST - 1))
        }
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}

/// Counts jobs in words: `1 job`, `12 jobs`.
pub(super) fn jobs(count: usize) -> String {
    if count == 1 { "1 job".to_owned() } else { format!("{} jobs", super::super::counted_number(count)) }
}

/// Returns a command as people type it.
pub(super) fn command(words: &str) -> String {
    format!("tidewheel {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_as_long_as_people_read() {
        let names: Vec<String> = (0..9).map(|number| format!("n{number}")).collect();
        assert_eq!(listed(&names[..1]), "n0");
        assert_eq!(listed(&names[..2]), "n0 and n1");
        assert_eq!(listed(&names[..4]), "n0, n1, n2 and n3");
        assert_eq!(listed(&names), "n0, n1, n2 and 6 more");
    }
}
