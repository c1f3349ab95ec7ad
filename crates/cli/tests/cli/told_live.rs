//! What commands say of jobs that really run, compared with what a page says they say.
//!
//! Runs have names on a page, the beginnings of their ids: `run_8c1f…` in an output and `run_8c1f` in a command are
//! one run all over the page. Times, ages, process numbers and hashes are any. Which states on its way somebody sees
//! of a job depends on the moment, so that lines such as `build: running` are not compared, and those of the ends of
//! jobs in any order. Columns are as wide as the ids in them, so that several spaces are two.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;

use regex::{Captures, Regex};

/// The names of runs on a page.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// The ids, by their names.
    ids: BTreeMap<String, String>,
}

impl Names {
    /// Returns a command of a page with the ids of this time.
    pub(crate) fn put_into(&self, command: &str) -> String {
        let name = Regex::new(r"run_[0-9a-f]{4}\b").unwrap();
        let id = |found: &Captures<'_>| {
            self.ids.get(&found[0]).cloned().unwrap_or_else(|| panic!("no run {} was seen yet", &found[0]))
        };
        name.replace_all(command, id).into_owned()
    }

    /// Returns what was said, and what the page says, such that they are equal if they mean the same.
    pub(crate) fn compared(&mut self, said: &str, page: &str) -> (String, String) {
        let (mut said, page) = (plain(said), plain(page));
        let id = Regex::new(r"run_[0-9a-f]{32}").unwrap();
        let name = Regex::new(r"run_[0-9a-f]{4}…").unwrap();
        for (id, name) in id.find_iter(&said).zip(name.find_iter(&page)) {
            let name = name.as_str().trim_end_matches('…').to_owned();
            if !self.ids.values().any(|known| known == id.as_str()) {
                self.ids.entry(name).or_insert_with(|| id.as_str().to_owned());
            }
        }
        for (name, id) in &self.ids {
            said = said.replace(id, &format!("{name}…"));
        }
        (said, page)
    }
}

/// Puts a word in the place of everything that differs each time.
fn plain(text: &str) -> String {
    let differs = [
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\b\d+(\.\d+)?(ms|s|m|h)( \d+(ms|s|m))?\b", "SPAN"),
        (r"\b([0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{8}…)", "HASH"),
        (r#"(PID: |"pid": ")\d+"#, "${1}PID"),
        (r"(?m)[ ]+$", ""),
        (r"(\S)[ ]{2,}", "$1  "),
    ];
    let mut plain = text.to_owned();
    for (pattern, word) in differs {
        plain = Regex::new(pattern).unwrap().replace_all(&plain, word).into_owned();
    }
    let on_its_way = Regex::new(r"^[a-z][\w-]*: (queued|running|waiting_on_\w+)\b").unwrap();
    let end = Regex::new(r"^[a-z][\w-]*: (succeeded|failed|cancelled|skipped|blocked_by_\w+)\b").unwrap();
    let mut lines: Vec<&str> = plain.lines().filter(|line| !on_its_way.is_match(line)).collect();
    lines.chunk_by_mut(|one, next| end.is_match(one) && end.is_match(next)).for_each(<[&str]>::sort_unstable);
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn runs_keep_their_names_all_over_a_page() {
    let (one, other) = (format!("run_{:032x}", 1), format!("run_{:032x}", 2));
    let mut names = Names::default();
    let (said, page) = names.compared(&format!("Run: {one}\n"), "Run: run_aaaa…\n");
    assert_eq!(said, page);
    assert_eq!(names.put_into("tidewheel runs show run_aaaa"), format!("tidewheel runs show {one}"));
    let (said, page) = names.compared(&format!("{one} {other}\n"), "run_aaaa… run_bbbb…\n");
    assert_eq!(said, page);
    let (said, page) = names.compared(&format!("{other}\n"), "run_aaaa…\n");
    assert_ne!(said, page);
}

#[test]
fn what_differs_each_time_is_the_same_and_nothing_else_is() {
    let said =
        "a: running\nb: succeeded\na: succeeded\nRUN     AGE\nx  12ms ago  2026-03-01T12:00:00.5Z\nPID: 17\n";
    let page =
        "a: succeeded\nb: running\nb: succeeded\nRUN  AGE\nx   1.5s ago   2026-01-01T00:00:00Z\nPID: 4\n";
    assert_eq!(plain(said), plain(page));
    assert_ne!(plain("a: succeeded\n"), plain("a: failed (exit 1)\n"));
    assert_ne!(plain("Status: running\n"), plain("Status: queued\n"));
}
