//! Cells on a real terminal, whole lines at a time: a line that changed is written from its beginning to its end, so
//! that no half of a wide character stays, and so that what is written is text to whoever reads it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui::backend::{Backend, ClearType, WindowSize};
use ratatui::buffer::{Buffer, Cell};
use ratatui::layout::{Position, Rect, Size};
use ratatui::style::{Color, Modifier};

use crate::view::columns::columns_of;

/// A terminal that is written line by line.
pub(super) struct Sheet<W> {
    out: W,
    /// What stands there.
    cells: Buffer,
    /// What is sent next.
    held: String,
    /// How large it is; asked each time, as it may change.
    size: fn() -> io::Result<Size>,
    is_cursor_shown: bool,
}

/// Until the end of it the terminal shows what it showed before; those that do not know it ignore it.
const BEGIN: &str = "\u{1b}[?2026h";
const END: &str = "\u{1b}[?2026l";

impl<W: Write> Sheet<W> {
    /// Returns a sheet on a terminal that is clear.
    pub(super) fn new(out: W, size: fn() -> io::Result<Size>) -> Self {
        let (cells, held) = (Buffer::empty(Rect::ZERO), String::new());
        Self { out, cells, held, size, is_cursor_shown: true }
    }

    fn line(&mut self, row: u16) {
        let width = self.cells.area().width;
        let is_blank = |cell: &Cell| cell.symbol() == " " && cell.modifier.is_empty();
        let written = (0..width).rev().find(|x| !is_blank(&self.cells[(*x, row)])).map_or(0, |x| x + 1);
        let _ = write!(self.held, "\u{1b}[{};1H", u32::from(row) + 1);
        let mut last = (Color::Reset, Modifier::empty());
        let mut x = 0;
        while x < written {
            let cell = &self.cells[(x, row)];
            let style = (cell.fg, cell.modifier);
            if style != last {
                self.held.push_str(&sequence(cell.fg, cell.modifier));
                last = style;
            }
            self.held.push_str(cell.symbol());
            // A wide character covers the cell behind it.
            x += u16::try_from(columns_of(cell.symbol())).unwrap_or(1).max(1);
        }
        if last != (Color::Reset, Modifier::empty()) {
            self.held.push_str("\u{1b}[0m");
        }
        // In the last column the cursor stands on what was written last.
        if x < width {
            self.held.push_str("\u{1b}[K");
        }
    }
}

/// Returns the sequence for a style, whatever was before.
fn sequence(colour: Color, modifier: Modifier) -> String {
    let mut text = "\u{1b}[0".to_owned();
    let modifiers = [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")];
    for (_, number) in modifiers.into_iter().filter(|(one, _)| modifier.contains(*one)) {
        text.push_str(number);
    }
    text.push_str(match colour {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Magenta => ";35",
        Color::Cyan => ";36",
        // No other is drawn.
        _ => "",
    });
    text.push('m');
    text
}

impl<W: Write> Backend for Sheet<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let size = self.size()?;
        let area = Rect::new(0, 0, size.width, size.height);
        if *self.cells.area() != area {
            self.cells.resize(area);
        }
        let mut changed: BTreeSet<u16> = BTreeSet::new();
        for (x, y, cell) in content {
            let Some(here) = self.cells.cell_mut((x, y)) else { continue };
            here.clone_from(cell);
            changed.insert(y);
            // Nobody tells of the cells that a wide character covers, and what stood there is gone.
            for covered in 1..u16::try_from(columns_of(cell.symbol())).unwrap_or(1) {
                if let Some(cell) = self.cells.cell_mut((x.saturating_add(covered), y)) {
                    cell.reset();
                }
            }
        }
        for row in changed {
            self.line(row);
        }
        Ok(())
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_cursor_shown) {
            self.held.push_str("\u{1b}[?25l");
        }
        Ok(())
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_cursor_shown, true) {
            self.held.push_str("\u{1b}[?25h");
        }
        Ok(())
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        // Nobody asks the terminal, as its answer would be read as keys.
        Ok(Position::ORIGIN)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        let Position { x, y } = position.into();
        let _ = write!(self.held, "\u{1b}[{};{}H", u32::from(y) + 1, u32::from(x) + 1);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.held.push_str("\u{1b}[2J");
        self.cells.reset();
        Ok(())
    }

    fn clear_region(&mut self, _: ClearType) -> io::Result<()> {
        self.clear()
    }

    fn size(&self) -> io::Result<Size> {
        (self.size)()
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: (self.size)()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        let held = std::mem::take(&mut self.held);
        self.out.write_all(format!("{BEGIN}{held}{END}").as_bytes())?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{InMemoryTerm, TermLike as _};
    use ratatui::Terminal;
    use ratatui::style::Style;
    use std::cell::RefCell;
    use std::rc::Rc;

    /// Somewhere to write to, and to read from.
    #[derive(Clone, Default)]
    struct Paper(Rc<RefCell<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "the signature is that of a terminal")]
    const fn size() -> io::Result<Size> {
        Ok(Size { width: 20, height: 3 })
    }

    #[test]
    fn lines_are_written_as_a_whole_and_nothing_of_wide_characters_stays() {
        let paper = Paper::default();
        let mut terminal = Terminal::new(Sheet::new(paper.clone(), size)).unwrap();
        let screen = InMemoryTerm::new(3, 20);
        let mut shown = |lines: [&str; 3]| {
            let drawn = terminal.draw(|frame| {
                for (y, line) in (0..).zip(lines) {
                    frame.buffer_mut().set_string(0, y, line, Style::new());
                }
            });
            drawn.unwrap();
            let text = String::from_utf8(std::mem::take(&mut *paper.0.borrow_mut())).unwrap();
            screen.write_str(&text).unwrap();
            (text, screen.contents())
        };
        let (written, seen) = shown(["two words", "abcdefgh", "last"]);
        assert!(written.contains("two words"), "{written:?}");
        assert_eq!(seen, "two words\nabcdefgh\nlast");
        assert_eq!(shown(["two words", "订单处理", "last"]).1, "two words\n订单处理\nlast");
        assert_eq!(shown(["two words", "a单b处", "last"]).1, "two words\na单b处\nlast");
        let (written, seen) = shown(["two words", "", "last"]);
        assert_eq!(seen, "two words\n\nlast");
        assert!(!written.contains("words"), "what has not changed is not written: {written:?}");
        let full = "12345678901234567890";
        assert_eq!(shown([full, "订", full]).1, format!("{full}\n订\n{full}"));
        let (written, _) = shown([full, "订", full]);
        assert_eq!(written, "", "nothing changed");
    }
}
