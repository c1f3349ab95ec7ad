//! The page: every figure beside what it is compared with, its goal and how it grows, and what is missing. Only says
//! what was measured; a figure that is not there is said to be missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::conditions::{Conditions, date};
use super::figures::{Figure, Figures};
use super::layout::{COMMIT, FLUSH, Plot, Row, Section, Series, Share};
use super::markdown::{code, plain, table};
use super::measure::BUILD;
use super::plot::{Line, Sheet, draw};
use super::quantity::{Unit, round, shown, thousands, times};

/// What the page is written from.
pub(crate) struct Report<'a> {
    pub(crate) sections: &'a [Section],
    pub(crate) figures: &'a Figures,
    pub(crate) conditions: &'a Conditions,
}

impl Report<'_> {
    /// Returns the page.
    pub(crate) fn page(&self) -> String {
        let mut text = String::from(
            "# Benchmarks\n\n\
             Written by `cargo xtask bench report`: every figure comes from the benchmarks, and only the explanations are \
             written by hand.\n",
        );
        self.warnings(&mut text);
        self.conditions(&mut text);
        self.goals(&mut text);
        for section in self.sections {
            self.section(&mut text, section);
        }
        self.missing(&mut text);
        self.commands(&mut text);
        self.everything(&mut text);
        text
    }

    /// Returns the plots with the names of their files.
    pub(crate) fn plots(&self) -> Vec<(String, String)> {
        let plots = self.sections.iter().flat_map(|section| section.plots);
        plots.map(|plot| (format!("{}.svg", plot.file), draw(&self.sheet(plot)))).collect()
    }

    fn warnings(&self, text: &mut String) {
        if self.conditions.is_quick {
            text.push_str(
                "\n**Short measurements** (`--quick`): the figures show that the benchmarks work, and little more.\n",
            );
        }
        if let (true, Some(load)) = (self.conditions.was_busy(), self.conditions.load) {
            let _ = write!(
                text,
                "\n**Others used the machine** while it was measured (load {load}), so that the figures say little.\n"
            );
        }
        text.push('\n');
    }

    fn conditions(&self, text: &mut String) {
        let conditions = self.conditions;
        let known = |value: Option<String>| value.unwrap_or_else(|| "not known".to_owned());
        let foreign = |value: &Option<String>| known(value.as_deref().map(plain));
        let commit = conditions.commit.as_deref().map(|commit| {
            format!("{}{}", code(commit), if conditions.is_changed { ", with changes" } else { "" })
        });
        let memory = conditions.memory_kib.map(|kib| format!("{:.1} GiB", kib as f64 / 1024.0 / 1024.0));
        let rows = [
            ("date", date(conditions.began)),
            ("commit", known(commit)),
            ("toolchain", foreign(&conditions.toolchain)),
            ("processor", foreign(&conditions.processor)),
            ("cores", known(conditions.cores.map(|cores| cores.to_string()))),
            ("memory", known(memory)),
            ("kernel", foreign(&conditions.kernel)),
            ("load before the first measurement", known(conditions.load.map(|load| load.to_string()))),
            ("write and flush of the disk (`fdatasync`)", self.measured(FLUSH)),
            ("commit of bare SQLite (WAL, FULL)", self.measured(COMMIT)),
            ("the whole report took", self.took()),
        ];
        let rows: Vec<Vec<String>> =
            rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect();
        text.push_str("## Conditions\n\n");
        text.push_str(&table(&["what", "value"], &rows));
        text.push_str(
            "A figure is the median of its samples, and ± is the median of their distances from it; one without ± is a \
             single sample.\n\
             What stands beside a figure was measured in the same run on the same machine, and the factor is the figure \
             divided by it: below one is quicker for times, above one is quicker for rates.\n\n",
        );
    }

    fn took(&self) -> String {
        let build = self.conditions.steps.iter().find(|step| step.name == BUILD);
        let build = build.map(|step| format!(", of which {} to build", minutes(step.seconds)));
        format!("{}{}", minutes(self.conditions.seconds()), build.unwrap_or_default())
    }

    fn goals(&self, text: &mut String) {
        text.push_str("## Goals\n\n");
        let (mut met, mut missed, mut unknown) = (0_usize, Vec::new(), 0_usize);
        for (id, goal) in &self.figures.goals {
            match self.figures.measured.get(id) {
                Some(figure) if figure.median <= *goal => met += 1,
                Some(figure) => missed.push(format!(
                    "- {}: {} instead of at most {}\n",
                    code(id),
                    shown(figure.median, figure.unit),
                    round(*goal, figure.unit)
                )),
                None => unknown += 1,
            }
        }
        let all = self.figures.goals.len();
        if all == 0 {
            text.push_str("No benchmark told a goal.\n\n");
            return;
        }
        let _ =
            writeln!(text, "{met} of {all} goals are met, {} missed, {unknown} not measured.", missed.len());
        if !missed.is_empty() {
            text.push_str("Missed:\n\n");
            text.extend(missed);
        }
        text.push('\n');
    }

    fn section(&self, text: &mut String, section: &Section) {
        let _ = write!(text, "## {}\n\n{}\n\n", section.title, section.about);
        for part in section.tables {
            let _ = write!(text, "{}\n\n", part.about);
            let rows: Vec<Vec<String>> = part.rows.iter().map(|row| self.row(row)).collect();
            text.push_str(&table(&["what", "measured", "goal", "beside it"], &rows));
        }
        for plot in section.plots {
            let _ = write!(text, "### {}\n\n", plot.title);
            if !plot.about.is_empty() {
                let _ = write!(text, "{}\n\n", plot.about);
            }
            let _ = write!(text, "![{}](images/{}.svg)\n\n", plot.title, plot.file);
            self.growth(text, plot);
        }
    }

    fn row(&self, row: &Row) -> Vec<String> {
        let figure = self.figures.measured.get(row.id);
        let beside = |(label, id): &(&str, &str)| {
            let factor = figure
                .zip(self.figures.measured.get(*id))
                .filter(|(ours, other)| ours.unit == other.unit)
                .and_then(|(ours, other)| times(ours.median, other.median));
            let factor = factor.map(|factor| format!(" ({factor})")).unwrap_or_default();
            format!("{label}: {}{factor}", self.measured(id))
        };
        let beside: Vec<String> = row.beside.iter().map(beside).collect();
        vec![row.label.to_owned(), self.measured(row.id), self.goal(row.id), beside.join("<br>")]
    }

    fn goal(&self, id: &str) -> String {
        let Some(goal) = self.figures.goals.get(id) else { return String::new() };
        match self.figures.measured.get(id) {
            None => "not measured".to_owned(),
            Some(figure) => {
                let verdict = if figure.median <= *goal { "met" } else { "**missed**" };
                format!("at most {}: {verdict}", round(*goal, figure.unit))
            }
        }
    }

    /// Returns a figure as it is shown, or why it is not there.
    fn measured(&self, id: &str) -> String {
        match (self.figures.measured.get(id), self.figures.skipped.get(id)) {
            (Some(figure), _) => with_spread(figure),
            (None, Some(why)) => format!("not measured: {}", plain(why)),
            (None, None) => "not measured".to_owned(),
        }
    }

    /// Shows the lines of a plot as a table, with what an item costs at the last size beside the first.
    fn growth(&self, text: &mut String, plot: &Plot) {
        let lines: Vec<(&Series, Vec<(u64, Figure)>)> =
            plot.series.iter().map(|series| (series, self.points(series))).collect();
        let sizes: BTreeSet<u64> =
            lines.iter().flat_map(|(_, points)| points).map(|(size, _)| *size).collect();
        if sizes.is_empty() {
            text.push_str("Nothing of this was measured.\n\n");
            return;
        }
        let numbers: Vec<String> = sizes.iter().map(|size| thousands(*size)).collect();
        let mut head = vec![plot.of];
        head.extend(numbers.iter().map(String::as_str));
        head.push("last / first");
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|(series, points)| {
                let mut cells = vec![series.label.to_owned()];
                let at: BTreeMap<u64, Figure> = points.iter().copied().collect();
                for size in &sizes {
                    cells.push(
                        at.get(size).map_or_else(String::new, |figure| shown(figure.median, figure.unit)),
                    );
                }
                cells.push(match &points[..] {
                    [] => "not measured".to_owned(),
                    [_] => String::new(),
                    [(_, first), .., (_, last)] => times(last.median, first.median).unwrap_or_default(),
                });
                cells
            })
            .collect();
        text.push_str(&table(&head, &rows));
    }

    fn points(&self, series: &Series) -> Vec<(u64, Figure)> {
        let mut points = self.figures.by_size(series.prefix);
        if series.share == Share::PerItem {
            for (size, figure) in &mut points {
                let items = (*size).max(1) as f64;
                figure.median /= items;
                figure.spread = figure.spread.map(|spread| spread / items);
            }
        }
        points
    }

    fn sheet<'p>(&self, plot: &'p Plot) -> Sheet<'p> {
        let mut unit = Unit::Nanos;
        let mut lines = Vec::with_capacity(plot.series.len());
        for series in plot.series {
            let points = self.points(series);
            if let Some((_, figure)) = points.first() {
                unit = figure.unit;
            }
            let points = points.into_iter().map(|(size, figure)| (size, figure.median)).collect();
            lines.push(Line { label: series.label, points });
        }
        Sheet { title: plot.title, of: plot.of, cost: plot.cost, unit, lines }
    }

    fn missing(&self, text: &mut String) {
        let mut told = Vec::new();
        for step in &self.conditions.steps {
            if let Some(trouble) = &step.trouble {
                told.push(format!("- {}: {}\n", plain(&step.name), plain(trouble)));
            }
        }
        for (id, why) in &self.figures.skipped {
            told.push(format!("- {}: {}\n", code(id), plain(why)));
        }
        for what in &self.figures.unreadable {
            told.push(format!("- {}: cannot be read\n", plain(what)));
        }
        let rows = self.sections.iter().flat_map(|section| section.tables).flat_map(|table| table.rows);
        let wanted: BTreeSet<&str> = rows
            .flat_map(|row| row.beside.iter().map(|(_, id)| *id).chain([row.id]))
            .chain([FLUSH, COMMIT])
            .collect();
        let untold = if self.conditions.is_quick {
            "no benchmark told it; short measurements leave large sizes out"
        } else {
            "no benchmark told it"
        };
        for id in wanted {
            if !self.figures.measured.contains_key(id) && !self.figures.skipped.contains_key(id) {
                told.push(format!("- {}: {untold}\n", code(id)));
            }
        }
        let plots = self.sections.iter().flat_map(|section| section.plots).flat_map(|plot| plot.series);
        for series in plots.filter(|series| self.figures.by_size(series.prefix).is_empty()) {
            told.push(format!(
                "- {}: no benchmark told it for any size\n",
                code(series.prefix.trim_end_matches('/'))
            ));
        }
        text.push_str("## Not measured\n\n");
        if told.is_empty() {
            text.push_str("Everything was measured.");
        }
        text.extend(told);
        text.push_str("\n\n");
        while text.ends_with("\n\n\n") {
            text.pop();
        }
    }

    fn commands(&self, text: &mut String) {
        text.push_str("## Commands\n\n");
        let all = if self.conditions.is_quick {
            "cargo xtask bench report --quick"
        } else {
            "cargo xtask bench report"
        };
        let _ = write!(text, "{} runs these, one after the other:\n\n", code(all));
        let steps = self.conditions.steps.iter();
        let rows: Vec<Vec<String>> =
            steps.map(|step| vec![plain(&step.name), code(&step.command), minutes(step.seconds)]).collect();
        text.push_str(&table(&["step", "command", "took"], &rows));
    }

    fn everything(&self, text: &mut String) {
        text.push_str("## All figures\n\n");
        let count = self.figures.measured.len();
        let _ = write!(text, "<details><summary>All {count} figures by their names</summary>\n\n");
        let rows: Vec<Vec<String>> = self
            .figures
            .measured
            .iter()
            .map(|(id, figure)| {
                let samples =
                    if figure.samples == 0 { "criterion's".to_owned() } else { thousands(figure.samples) };
                vec![code(id), with_spread(figure), samples, self.goal(id)]
            })
            .collect();
        text.push_str(&table(&["figure", "measured", "samples", "goal"], &rows));
        text.push_str("</details>\n");
    }
}

fn with_spread(figure: &Figure) -> String {
    let spread = figure.spread.map(|spread| format!(" ± {}", shown(spread, figure.unit))).unwrap_or_default();
    format!("{}{spread}", shown(figure.median, figure.unit))
}

/// Returns a length of time as minutes and seconds.
pub(crate) fn minutes(seconds: f64) -> String {
    let whole = std::time::Duration::from_secs_f64(seconds.max(0.0).round()).as_secs();
    if whole < 60 { format!("{whole} s") } else { format!("{} min {} s", whole / 60, whole % 60) }
}

#[cfg(test)]
mod tests {
    use super::super::conditions::Taken;
    use super::super::layout::{SECTIONS, Table};
    use super::super::plot::tests::check;
    use super::*;

    const SAMPLE: [Section; 1] = [Section {
        title: "Core",
        about: "What it is.",
        tables: &[Table {
            about: "One item:",
            rows: &[
                Row {
                    label: "chain",
                    id: "chain/1000",
                    beside: &[("by hand", "by hand"), ("ninja", "ninja")],
                },
                Row { label: "rules", id: "rules/1000", beside: &[("by hand", "by hand")] },
                Row { label: "rate", id: "rate", beside: &[("by hand", "by hand")] },
            ],
        }],
        plots: &[Plot {
            file: "bench-core",
            title: "It grows",
            about: "How it grows.",
            of: "items",
            cost: "time per item",
            series: &[
                Series { label: "chain", prefix: "chain/", share: Share::Whole },
                Series { label: "list", prefix: "list/", share: Share::PerItem },
                Series { label: "nowhere", prefix: "nowhere/", share: Share::Whole },
            ],
        }],
    }];

    const LINES: &str = r#"
{"id":"machine/fdatasync","unit":"ns","median":210000,"spread":9000,"samples":300}
{"id":"chain/1000","unit":"ns","median":250,"spread":3,"samples":101}
{"id":"chain/100000","unit":"ns","median":275,"spread":5,"samples":5}
{"id":"chain/1000","goal":500}
{"id":"list/100","unit":"ns","median":100000,"spread":null,"samples":1}
{"id":"list/10000","unit":"ns","median":12000000,"spread":null,"samples":1}
{"id":"list/10000","goal":10000000}
{"id":"rate","unit":"per_second","median":123456,"spread":null,"samples":1}
{"id":"by hand","unit":"ns","median":50,"spread":1,"samples":9}
{"id":"ninja","skipped":"ninja is not installed"}
{"id":"lost","goal":1}
"#;

    fn figures() -> Figures {
        let mut figures = Figures::default();
        figures.add_lines(LINES);
        figures
    }

    fn conditions() -> Conditions {
        let step = |name: &str, seconds, trouble: Option<&str>| Taken {
            name: name.to_owned(),
            command: format!("cargo bench --bench {name}"),
            seconds,
            trouble: trouble.map(str::to_owned),
        };
        Conditions {
            began: 1_794_830_400,
            is_quick: false,
            commit: Some("0123abcd".to_owned()),
            is_changed: false,
            toolchain: Some("rustc 1.95.0".to_owned()),
            processor: Some("Some | CPU".to_owned()),
            cores: Some(2),
            memory_kib: Some(8_145_028),
            kernel: None,
            load: Some(0.25),
            steps: vec![
                step("build", 300.0, None),
                step("growth", 61.2, None),
                step("append", 9.0, Some("failed after 9.0 s (exit status: 101)")),
            ],
        }
    }

    #[test]
    fn the_page_shows_every_figure_its_comparison_its_goal_and_what_is_missing() {
        let (figures, conditions) = (figures(), conditions());
        let report = Report { sections: &SAMPLE, figures: &figures, conditions: &conditions };
        insta::assert_snapshot!(report.page(), @r#"
        # Benchmarks

        Written by `cargo xtask bench report`: every figure comes from the benchmarks, and only the explanations are written by hand.

        ## Conditions

        | what | value |
        | --- | --- |
        | date | 2026-11-16 12:00 UTC |
        | commit | `0123abcd` |
        | toolchain | rustc 1.95.0 |
        | processor | Some \| CPU |
        | cores | 2 |
        | memory | 7.8 GiB |
        | kernel | not known |
        | load before the first measurement | 0.25 |
        | write and flush of the disk (`fdatasync`) | 210 µs ± 9.00 µs |
        | commit of bare SQLite (WAL, FULL) | not measured |
        | the whole report took | 6 min 10 s, of which 5 min 0 s to build |

        A figure is the median of its samples, and ± is the median of their distances from it; one without ± is a single sample.
        What stands beside a figure was measured in the same run on the same machine, and the factor is the figure divided by it: below one is quicker for times, above one is quicker for rates.

        ## Goals

        1 of 3 goals are met, 1 missed, 1 not measured.
        Missed:

        - `list/10000`: 12.0 ms instead of at most 10 ms

        ## Core

        What it is.

        One item:

        | what | measured | goal | beside it |
        | --- | --- | --- | --- |
        | chain | 250 ns ± 3.00 ns | at most 500 ns: met | by hand: 50.0 ns ± 1.00 ns (5.00 ×)<br>ninja: not measured: ninja is not installed |
        | rules | not measured |  | by hand: 50.0 ns ± 1.00 ns |
        | rate | 123,000 /s |  | by hand: 50.0 ns ± 1.00 ns |

        ### It grows

        How it grows.

        ![It grows](images/bench-core.svg)

        | items | 100 | 1,000 | 10,000 | 100,000 | last / first |
        | --- | --- | --- | --- | --- | --- |
        | chain |  | 250 ns |  | 275 ns | 1.10 × |
        | list | 1.00 µs |  | 1.20 µs |  | 1.20 × |
        | nowhere |  |  |  |  | not measured |

        ## Not measured

        - append: failed after 9.0 s (exit status: 101)
        - `ninja`: ninja is not installed
        - `machine/bare commit`: no benchmark told it
        - `rules/1000`: no benchmark told it
        - `nowhere`: no benchmark told it for any size

        ## Commands

        `cargo xtask bench report` runs these, one after the other:

        | step | command | took |
        | --- | --- | --- |
        | build | `cargo bench --bench build` | 5 min 0 s |
        | growth | `cargo bench --bench growth` | 1 min 1 s |
        | append | `cargo bench --bench append` | 9 s |

        ## All figures

        <details><summary>All 7 figures by their names</summary>

        | figure | measured | samples | goal |
        | --- | --- | --- | --- |
        | `by hand` | 50.0 ns ± 1.00 ns | 9 |  |
        | `chain/1000` | 250 ns ± 3.00 ns | 101 | at most 500 ns: met |
        | `chain/100000` | 275 ns ± 5.00 ns | 5 |  |
        | `list/100` | 100 µs | 1 |  |
        | `list/10000` | 12.0 ms | 1 | at most 10 ms: **missed** |
        | `machine/fdatasync` | 210 µs ± 9.00 µs | 300 |  |
        | `rate` | 123,000 /s | 1 |  |

        </details>
        "#);
    }

    #[test]
    fn short_measurements_and_a_busy_machine_are_said_first() {
        let figures = figures();
        let conditions = Conditions { is_quick: true, load: Some(3.5), ..conditions() };
        let page = Report { sections: &SAMPLE, figures: &figures, conditions: &conditions }.page();
        let (head, _) = page.split_once("## Conditions").unwrap();
        assert!(head.contains("**Short measurements** (`--quick`)"), "{head}");
        assert!(head.contains("**Others used the machine** while it was measured (load 3.5)"), "{head}");
        assert!(page.contains("`cargo xtask bench report --quick` runs these"), "{page}");
        let left_out = "- `rules/1000`: no benchmark told it; short measurements leave large sizes out\n";
        assert!(page.contains(left_out), "{page}");
    }

    #[test]
    fn without_figures_every_row_of_the_real_page_says_that_it_was_not_measured() {
        let (figures, conditions) = (Figures::default(), Conditions::default());
        let report = Report { sections: &SECTIONS, figures: &figures, conditions: &conditions };
        let page = report.page();
        let rows = SECTIONS.iter().flat_map(|section| section.tables).flat_map(|table| table.rows);
        for row in rows {
            assert!(page.contains(&format!("| {} | not measured |", row.label)), "{}", row.label);
            assert!(page.contains(&format!("- {}: no benchmark told it\n", code(row.id))), "{}", row.id);
        }
        assert!(page.contains("No benchmark told a goal."));
        assert!(page.contains("| toolchain | not known |"));
        let plots = report.plots();
        assert_eq!(page.matches("Nothing of this was measured.").count(), plots.len());
        for (name, drawn) in plots {
            assert!(check(&drawn).iter().any(|text| text == "Nothing was measured."), "{name}");
            assert!(page.contains(&format!("](images/{name})")), "{name}");
        }
    }

    #[test]
    fn plots_are_drawn_from_the_figures() {
        let (figures, conditions) = (figures(), conditions());
        let report = Report { sections: &SAMPLE, figures: &figures, conditions: &conditions };
        let [(name, drawn)] = &report.plots()[..] else { panic!("there is one plot") };
        assert_eq!(name, "bench-core.svg");
        let texts = check(drawn);
        for seen in [
            "chain, 100,000: 275 ns",
            "list, 100: 1.00 µs",
            "list, 10,000: 1.20 µs",
            "nowhere (not measured)",
        ] {
            assert!(texts.iter().any(|text| text == seen), "{seen} in {texts:?}");
        }
    }

    #[test]
    fn a_whole_page_says_that_nothing_is_missing() {
        let mut figures = figures();
        figures.skipped.clear();
        figures.add_lines(
            "{\"id\":\"ninja\",\"unit\":\"ns\",\"median\":1}\n{\"id\":\"rules/1000\",\"unit\":\"ns\",\"median\":1}\n\
             {\"id\":\"machine/bare commit\",\"unit\":\"ns\",\"median\":1}\n{\"id\":\"nowhere/1\",\"unit\":\"ns\",\"median\":1}",
        );
        let conditions = Conditions::default();
        let page = Report { sections: &SAMPLE, figures: &figures, conditions: &conditions }.page();
        assert!(page.contains("## Not measured\n\nEverything was measured.\n\n## Commands"), "{page}");
    }
}
