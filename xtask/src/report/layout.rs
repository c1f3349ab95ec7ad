//! What stands where on the page, and what is said about it: names of figures, and no figure; explanations are written
//! here and nowhere else.

mod engine;
mod jobs;
mod runner;
mod store;

/// A part of the page.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) tables: &'static [Table],
    pub(crate) plots: &'static [Plot],
}

/// Figures, each beside what it is compared with.
pub(crate) struct Table {
    pub(crate) about: &'static str,
    pub(crate) rows: &'static [Row],
}

/// One figure.
pub(crate) struct Row {
    pub(crate) label: &'static str,
    pub(crate) id: &'static str,
    /// What was measured in the same run for comparison: what it is, and its figure.
    pub(crate) beside: &'static [(&'static str, &'static str)],
}

/// Figures over sizes.
pub(crate) struct Plot {
    /// The name of the picture, without its ending.
    pub(crate) file: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// What a size counts.
    pub(crate) of: &'static str,
    /// What is drawn upwards.
    pub(crate) cost: &'static str,
    pub(crate) series: &'static [Series],
}

/// The figures whose names are a prefix and a size.
pub(crate) struct Series {
    pub(crate) label: &'static str,
    pub(crate) prefix: &'static str,
    pub(crate) share: Share,
}

/// What of a figure is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// As it was measured.
    Whole,
    /// What falls to each of the items that the size counts.
    PerItem,
}

/// How long a write takes until the disk has it.
pub(crate) const FLUSH: &str = "machine/fdatasync";
/// How long SQLite takes for a commit.
pub(crate) const COMMIT: &str = "machine/bare commit";

const fn row(label: &'static str, id: &'static str) -> Row {
    Row { label, id, beside: &[] }
}

const fn beside(
    label: &'static str,
    id: &'static str,
    beside: &'static [(&'static str, &'static str)],
) -> Row {
    Row { label, id, beside }
}

const fn whole(label: &'static str, prefix: &'static str) -> Series {
    Series { label, prefix, share: Share::Whole }
}

const fn each(label: &'static str, prefix: &'static str) -> Series {
    Series { label, prefix, share: Share::PerItem }
}

/// The page, from what decides to what people type.
pub(crate) const SECTIONS: [Section; 6] =
    [engine::DECISION, engine::CORE, runner::DURABLE, runner::MEMORY, store::STORE, jobs::JOBS];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_picture_has_a_name_of_its_own_and_few_lines() {
        let mut names = BTreeSet::new();
        for plot in SECTIONS.iter().flat_map(|section| section.plots) {
            assert!(names.insert(plot.file), "{}", plot.file);
            assert!((1..=6).contains(&plot.series.len()), "{}", plot.file);
            assert!(plot.series.iter().all(|series| series.prefix.ends_with('/')), "{}", plot.file);
        }
    }

    #[test]
    fn no_row_stands_twice_in_a_section() {
        for section in &SECTIONS {
            let rows: Vec<&str> =
                section.tables.iter().flat_map(|table| table.rows).map(|row| row.id).collect();
            assert_eq!(BTreeSet::from_iter(&rows).len(), rows.len(), "{}", section.title);
        }
    }
}
