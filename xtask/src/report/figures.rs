//! What the benchmarks measured, read from the lines that they wrote and from the estimates of criterion; computes no
//! figure of its own, except the cost of one item where criterion was told how many there were.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::quantity::Unit;

/// One figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) unit: Unit,
    pub(crate) median: f64,
    /// The median of how far the samples are from their median; one sample has none.
    pub(crate) spread: Option<f64>,
    pub(crate) samples: u64,
}

/// All that was measured, what it should be and what was left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) measured: BTreeMap<String, Figure>,
    /// What a figure may be at most.
    pub(crate) goals: BTreeMap<String, f64>,
    /// Why a figure is not there, as the benchmark told.
    pub(crate) skipped: BTreeMap<String, String>,
    /// What could not be read.
    pub(crate) unreadable: BTreeSet<String>,
}

impl Figures {
    /// Reads the lines of a file, and all estimates of criterion in a folder; what is not there was not measured.
    pub(crate) fn read(lines: &Path, criterion: &Path) -> io::Result<Self> {
        let mut figures = Self::default();
        match std::fs::read_to_string(lines) {
            Ok(text) => figures.add_lines(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        for folder in estimated(criterion)? {
            let read = |name: &str| std::fs::read_to_string(folder.join(name));
            figures.add_estimate(&read("benchmark.json")?, &read("estimates.json")?);
        }
        Ok(figures)
    }

    /// Adds lines of JSON; a later figure of the same name takes the place of an earlier one.
    pub(crate) fn add_lines(&mut self, text: &str) {
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let Ok(told) = serde_json::from_str::<Told>(line) else {
                self.unreadable.insert(format!("line {} of the figures", index + 1));
                continue;
            };
            if let Some(goal) = told.goal {
                self.goals.insert(told.id.clone(), goal);
            }
            if let Some(why) = told.skipped {
                self.skipped.insert(told.id.clone(), why);
            }
            if let (Some(unit), Some(median)) = (told.unit, told.median) {
                let figure = Figure { unit, median, spread: told.spread, samples: told.samples.unwrap_or(1) };
                self.measured.insert(told.id, figure);
            }
        }
    }

    /// Adds what criterion keeps of one benchmark.
    pub(crate) fn add_estimate(&mut self, benchmark: &str, estimates: &str) {
        let Ok(benchmark) = serde_json::from_str::<Benchmark>(benchmark) else {
            self.unreadable.insert("a benchmark of criterion".to_owned());
            return;
        };
        let Ok(estimates) = serde_json::from_str::<Estimates>(estimates) else {
            self.unreadable.insert(format!("the estimates of {}", benchmark.full_id));
            return;
        };
        let items = benchmark.throughput.and_then(|throughput| throughput.elements).unwrap_or(1).max(1);
        let figure = Figure {
            unit: Unit::Nanos,
            median: estimates.median.point_estimate / items as f64,
            spread: Some(estimates.median_abs_dev.point_estimate / items as f64),
            // Criterion says how sure it is of them, and not how many there were.
            samples: 0,
        };
        self.measured.insert(benchmark.full_id, figure);
    }

    /// Returns the figures whose name is the prefix and a size, by their sizes.
    pub(crate) fn by_size(&self, prefix: &str) -> Vec<(u64, Figure)> {
        let size = |(id, figure): (&String, &Figure)| {
            let size: u64 = id.strip_prefix(prefix)?.parse().ok()?;
            Some((size, *figure))
        };
        let mut sizes: Vec<(u64, Figure)> = self.measured.iter().filter_map(size).collect();
        sizes.sort_by_key(|(size, _)| *size);
        sizes
    }
}

/// A line of a benchmark.
#[derive(Deserialize)]
struct Told {
    id: String,
    unit: Option<Unit>,
    median: Option<f64>,
    spread: Option<f64>,
    samples: Option<u64>,
    goal: Option<f64>,
    skipped: Option<String>,
}

/// What criterion calls a benchmark, as far as we need it.
#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
    throughput: Option<Throughput>,
}

#[derive(Deserialize)]
struct Throughput {
    #[serde(rename = "Elements")]
    elements: Option<u64>,
}

/// What criterion estimates, as far as we need it.
#[derive(Deserialize)]
struct Estimates {
    median: Estimate,
    median_abs_dev: Estimate,
}

#[derive(Deserialize)]
struct Estimate {
    point_estimate: f64,
}

/// Returns the folders `new` below a folder of criterion, which hold what was measured last.
fn estimated(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        if folder.ends_with("new") && folder.join("estimates.json").is_file() {
            found.push(folder);
            continue;
        }
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_figures_goals_and_what_was_left_out() {
        let mut figures = Figures::default();
        figures.add_lines(concat!(
            r#"{"id":"chain/10","unit":"ns","median":4.5,"spread":0.5,"samples":7}"#,
            "\n\n",
            r#"{"id":"chain/10","goal":5}"#,
            "\nnot a line\n",
            r#"{"id":"ninja","skipped":"ninja is not installed"}"#,
            "\n",
            r#"{"id":"rate","unit":"per_second","median":9,"spread":null,"samples":1}"#,
        ));
        let chain = Figure { unit: Unit::Nanos, median: 4.5, spread: Some(0.5), samples: 7 };
        assert_eq!(figures.measured["chain/10"], chain);
        assert_eq!(figures.measured["rate"].spread, None);
        assert_eq!(figures.goals["chain/10"], 5.0);
        assert_eq!(figures.skipped["ninja"], "ninja is not installed");
        assert_eq!(Vec::from_iter(&figures.unreadable), ["line 4 of the figures"]);
    }

    #[test]
    fn the_figure_that_was_measured_last_counts() {
        let mut figures = Figures::default();
        figures.add_lines(r#"{"id":"a","unit":"ns","median":1}"#);
        figures.add_lines(r#"{"id":"a","unit":"ns","median":2}"#);
        assert_eq!(figures.measured["a"].median, 2.0);
    }

    #[test]
    fn criterion_tells_the_cost_of_one_item_where_it_knows_how_many_there_are() {
        let estimate = r#"{"mean":{"point_estimate":9.0},"median":{"point_estimate":5000.0},
            "median_abs_dev":{"point_estimate":100.0}}"#;
        let mut figures = Figures::default();
        figures.add_estimate(r#"{"full_id":"settle/chain/100","throughput":{"Elements":100}}"#, estimate);
        figures.add_estimate(r#"{"full_id":"kernel/retry","throughput":null}"#, estimate);
        figures.add_estimate(r#"{"full_id":"kernel/broken","throughput":null}"#, "{}");
        assert_eq!(figures.measured["settle/chain/100"].median, 50.0);
        assert_eq!(figures.measured["settle/chain/100"].spread, Some(1.0));
        assert_eq!(figures.measured["kernel/retry"].median, 5_000.0);
        assert_eq!(Vec::from_iter(&figures.unreadable), ["the estimates of kernel/broken"]);
    }

    #[test]
    fn sizes_are_found_by_number_and_not_by_letter() {
        let mut figures = Figures::default();
        for id in ["a/1000", "a/200", "a/b/3", "a/", "ab/1"] {
            figures.add_lines(&format!(r#"{{"id":"{id}","unit":"ns","median":1}}"#));
        }
        let sizes: Vec<u64> = figures.by_size("a/").into_iter().map(|(size, _)| size).collect();
        assert_eq!(sizes, [200, 1_000]);
    }

    #[test]
    fn what_is_not_there_was_not_measured() {
        let nowhere = Path::new("/nonexistent");
        let figures = Figures::read(&nowhere.join("a"), &nowhere.join("b")).unwrap();
        assert!(figures.measured.is_empty() && figures.unreadable.is_empty());
    }
}
