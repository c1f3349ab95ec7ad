//! Tables with one line for each row. Where they do not fit, long cells are cut, and then the columns that matter least
//! are left out; names are cut last, because somebody wants to copy them.

use std::fmt::Write as _;

use anstyle::Style;

use super::columns::{columns_of, cut, cut_inside, padded};
use super::timeline::{Canvas, HEADING};
use crate::output::harmless;

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    heading: String,
    kind: Kind,
    /// How much it matters: the highest goes first.
    rank: usize,
}

/// What is in a column, which says how it gets narrower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An id, which is cut last of all, and in its middle.
    Name,
    /// A word or an instant, of which a part says little.
    Word,
    /// A number, which stands to the right.
    Number,
    /// Text, of which the beginning says most.
    Text,
}

/// What stands in a row under a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// Between two columns.
const GAP: usize = 2;

/// As many columns are there in any case.
const LEAST_COLUMNS: usize = 2;

impl Column {
    /// Returns a column with a heading. Those with a lower rank stay longer.
    pub(crate) fn new(heading: impl Into<String>, kind: Kind, rank: usize) -> Self {
        Self { heading: heading.into(), kind, rank }
    }
}

impl Kind {
    const ALL: [Self; 4] = [Self::Name, Self::Word, Self::Number, Self::Text];

    /// Returns how narrow it gets, at most, before something worse is done.
    const fn least(self) -> usize {
        match self {
            Self::Name => 8,
            Self::Word => 7,
            Self::Number => 6,
            Self::Text => 20,
        }
    }
}

impl Cell {
    /// Returns a cell with a style, which goes away where nobody could see it. Blanks at the end say nothing.
    pub(crate) fn styled(text: &str, style: Style) -> Self {
        Self { text: harmless(text.trim_end()).into_owned(), style }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::styled(&text, Style::new())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::styled(text, Style::new())
    }
}

impl Table {
    /// Returns a table without rows.
    pub(crate) const fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, with a cell for each column.
    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Writes the table as wide as the canvas at most; without one, as wide as it is.
    pub(crate) fn drawn(&self, canvas: Option<Canvas>) -> String {
        let widths = self.widths(canvas.map(|canvas| canvas.width));
        let shown = canvas.unwrap_or(Canvas { width: usize::MAX, has_unicode: true });
        let mut text = String::new();
        let headings: Vec<Cell> =
            self.columns.iter().map(|column| Cell::styled(&column.heading, HEADING)).collect();
        for row in std::iter::once(&headings).chain(&self.rows) {
            self.line(row, &widths, shown, &mut text);
        }
        text
    }

    fn line(&self, row: &[Cell], widths: &[Option<usize>], canvas: Canvas, text: &mut String) {
        let cells = self.columns.iter().zip(row).zip(widths);
        let cells = cells.filter_map(|((column, cell), width)| Some((column.kind, cell, (*width)?)));
        // Blanks are owed until something follows them: no line ends with one.
        let mut owed = 0;
        for (kind, Cell { text: cell, style }, width) in cells {
            let cell = match kind {
                Kind::Name => cut_inside(cell, width, canvas),
                Kind::Word | Kind::Number | Kind::Text => cut(cell, width, canvas),
            };
            let taken = columns_of(&cell);
            let mut blank = width.saturating_sub(taken);
            if kind == Kind::Number {
                owed += std::mem::take(&mut blank);
            }
            if taken > 0 {
                let _ = write!(text, "{}{style}{cell}{style:#}", padded("", owed));
                owed = 0;
            }
            owed += blank + GAP;
        }
        text.push('\n');
    }

    /// Returns how wide each column is; `None` for those that are left out.
    fn widths(&self, room: Option<usize>) -> Vec<Option<usize>> {
        let widest = |index: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| columns_of(&cell.text));
            cells.chain([columns_of(&self.columns[index].heading)]).max().unwrap_or(0)
        };
        let natural: Vec<usize> = (0..self.columns.len()).map(widest).collect();
        let Some(room) = room else { return natural.into_iter().map(Some).collect() };
        // No column is wider than all of them may be, however long a text is.
        let mut widths: Vec<Option<usize>> = natural.iter().map(|width| Some((*width).min(room))).collect();
        loop {
            let mut tried = widths.clone();
            if self.narrowed(&mut tried, room, &[Kind::Text]) {
                return tried;
            }
            let left = (0..widths.len()).filter(|index| widths[*index].is_some());
            let least = left.clone().max_by_key(|index| self.columns[*index].rank);
            match least.filter(|_| left.count() > LEAST_COLUMNS) {
                Some(index) => widths[index] = None,
                None => {
                    let _ = self.narrowed(&mut tried, room, &[Kind::Text, Kind::Word, Kind::Number])
                        || self.narrowed(&mut tried, room, &Kind::ALL);
                    return tried;
                }
            }
        }
    }

    /// Takes from the widest of the columns of some kinds until all of them fit, and tells whether they do.
    fn narrowed(&self, widths: &mut [Option<usize>], room: usize, kinds: &[Kind]) -> bool {
        let gaps = widths.iter().flatten().count().saturating_sub(1) * GAP;
        let room = room.saturating_sub(gaps);
        while widths.iter().flatten().sum::<usize>() > room {
            let gives = |index: &usize| {
                let kind = self.columns[*index].kind;
                kinds.contains(&kind) && widths[*index].is_some_and(|width| width > kind.least())
            };
            let widest = (0..widths.len()).filter(gives).max_by_key(|index| widths[*index]);
            let Some(width) = widest.and_then(|index| widths[index].as_mut()) else { return false };
            *width -= 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};

    #[test]
    fn foreign_text_breaks_no_table() {
        let mut foreign = Foreign::new("tables");
        for round in 0..foreign::count() / 4 {
            let texts: Vec<String> = (0..4).map(|_| foreign.text()).collect();
            let kinds = [Kind::Name, Kind::Text, Kind::Word];
            let heads = ["ONE", "TWO", "THREE"].into_iter().zip(kinds).enumerate();
            let mut table =
                Table::new(heads.map(|(rank, (head, kind))| Column::new(head, kind, rank)).collect());
            for row in texts.chunks(2) {
                table.row(vec![row[0].as_str().into(), row[1].as_str().into(), "last".into()]);
            }
            let whole = table.drawn(None);
            Shown { text: &whole, lines: Some(3), ..Shown::default() }.check(&texts);
            // What stands behind is where it should be, whatever stands before it.
            let behind = |line: &str| columns_of(line.trim_end_matches(char::is_alphabetic));
            let widths: Vec<usize> = whole.lines().map(behind).collect();
            assert!(widths.windows(2).skip(1).all(|two| two[0] == two[1]), "{whole}");
            let width = 60 + round % 141;
            let fitted = table.drawn(Some(Canvas { width, has_unicode: true }));
            Shown { text: &fitted, width: Some(width), lines: Some(3), ..Shown::default() }.check(&texts);
        }
    }

    const STATUS: &str = "blocked_by_dependency";

    fn columns() -> Vec<Column> {
        vec![
            Column::new("#", Kind::Word, 4),
            Column::new("Name", Kind::Text, 3),
            Column::new("Status", Kind::Word, 1),
            Column::new("Wait", Kind::Text, 2),
            Column::new("Job", Kind::Name, 0),
        ]
    }

    fn table(rows: &[[&str; 5]]) -> Table {
        let mut table = Table::new(columns());
        for row in rows {
            table.row(row.iter().map(|cell| Cell::from(*cell)).collect());
        }
        table
    }

    fn lines(table: &Table, width: usize) -> Vec<String> {
        let drawn = table.drawn(Some(Canvas { width, has_unicode: true }));
        anstream::adapter::strip_str(&drawn).to_string().lines().map(str::to_owned).collect()
    }

    /// Numbers that are the same every time.
    struct Draws(u64);

    impl Draws {
        fn below(&mut self, most: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(self.0 >> 33).unwrap_or_default() % most.max(1)
        }

        /// Returns a text as somebody could have written it, who means well or not.
        fn text(&mut self, longest: usize) -> String {
            const PIECES: [&str; 18] = [
                "a",
                "build ",
                "x-1",
                "订单",
                "処理",
                "é",
                "e\u{301}",
                "\u{301}",
                "👩‍👩‍👧‍👦",
                "☎\u{fe0f}",
                "🇨🇭",
                "👍🏽",
                "\u{1b}[2J",
                "\n",
                "\u{202e}",
                "\u{200b}",
                "\u{ad}",
                "한국",
            ];
            let count = self.below(longest);
            (0..count).map(|_| PIECES[self.below(PIECES.len())]).collect()
        }
    }

    #[test]
    fn no_line_is_wider_than_the_room_whatever_others_wrote() {
        for width in 60..=200 {
            let mut draws = Draws(width as u64);
            for _ in 0..20 {
                let rows: Vec<[String; 5]> = (0..draws.below(6))
                    .map(|_| {
                        let long = draws.below(80);
                        [
                            draws.text(3),
                            draws.text(long),
                            STATUS.to_owned(),
                            draws.text(long),
                            draws.text(long),
                        ]
                    })
                    .collect();
                let rows: Vec<[&str; 5]> =
                    rows.iter().map(|row| row.each_ref().map(String::as_str)).collect();
                let found = lines(&table(&rows), width);
                assert_eq!(found.len(), rows.len() + 1);
                for line in &found {
                    assert!(columns_of(line) <= width, "{width}: {} {line:?}", columns_of(line));
                    assert!(!line.contains(['\u{1b}', '\u{202e}']) && !line.ends_with(' '), "{line:?}");
                }
            }
        }
    }

    #[test]
    fn what_matters_most_survives() {
        let id = format!("wf-run_{}-build", "5c".repeat(16));
        let wait = format!("waiting on job {id}");
        let table = table(&[["1", "build the whole thing", STATUS, &wait, &id]]);
        assert_eq!(lines(&table, 60), ["Status         Job", &format!("blocked_by_d…  {id}")]);
        let found = lines(&table, 90);
        assert!(
            found[0].starts_with("Status                 Wait ") && found[0].ends_with("  Job"),
            "{found:?}"
        );
        assert!(found[1].starts_with("blocked_by_dependency  waiting on job wf-"), "{found:?}");
        assert!(found[1].ends_with(&format!("…  {id}")) && columns_of(&found[1]) == 90, "{found:?}");
        let whole = anstream::adapter::strip_str(&table.drawn(None)).to_string();
        assert_eq!(
            whole.lines().nth(1),
            Some(format!("1  build the whole thing  {STATUS}  {wait}  {id}").as_str())
        );
    }

    #[test]
    fn an_id_is_cut_in_its_middle_and_only_if_nothing_else_can_be() {
        let long = "x".repeat(70) + "-the-end";
        let found = lines(&table(&[["1", "", STATUS, "", &long]]), 60);
        assert!(found[1].starts_with("blocke…  xxx") && found[1].ends_with("-the-end"), "{found:?}");
        assert!(found[1].contains("x…x") && columns_of(&found[1]) == 60, "{found:?}");
    }

    #[test]
    fn short_rows_have_no_blanks_at_their_ends() {
        let found = lines(&table(&[["1", "a", "running", "", ""], ["2", "b", "queued", "locks", "j"]]), 60);
        assert_eq!(found, ["#  Name  Status   Wait   Job", "1  a     running", "2  b     queued   locks  j"]);
    }
}
