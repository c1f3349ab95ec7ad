//! Lines that change in place while somebody waits for jobs, below those that stay. It draws what it is given.

use std::io;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::progress::Board;
use crate::view::columns::cut;
use crate::view::timeline::Canvas;

/// The lines that change.
pub(super) struct Live {
    multi: MultiProgress,
    lines: Vec<ProgressBar>,
    whole: ProgressBar,
    line_style: ProgressStyle,
}

/// How the lines look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looks {
    /// Whether there are colours.
    pub(super) has_colour: bool,
    /// Whether there are characters beyond ASCII.
    pub(super) has_unicode: bool,
}

impl Live {
    /// Returns lines on a terminal.
    pub(super) fn new(target: ProgressDrawTarget, looks: Looks) -> Self {
        let multi = MultiProgress::with_draw_target(target);
        let whole = multi.add(ProgressBar::new(0));
        let (bar, signs, spins) = match looks.has_unicode {
            true => ("{bar:20", "█░", "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "),
            false => ("{bar:20", "#.", r"-\|/ "),
        };
        let (bar_colour, spin_colour) = if looks.has_colour { (".green", ".cyan") } else { ("", "") };
        whole.set_style(style(&format!("{bar}{bar_colour}}} {{pos}}/{{len}} {{msg}}")).progress_chars(signs));
        let line_style = style(&format!("{{spinner{spin_colour}}} {{wide_msg}}")).tick_chars(spins);
        Self { multi, lines: Vec::new(), whole, line_style }
    }

    /// Draws what there is now.
    pub(super) fn show(&mut self, board: &Board, canvas: Canvas) {
        while self.lines.len() > board.lines.len()
            && let Some(line) = self.lines.pop()
        {
            line.finish_and_clear();
            self.multi.remove(&line);
        }
        while self.lines.len() < board.lines.len() {
            let line = ProgressBar::new_spinner().with_style(self.line_style.clone());
            self.lines.push(self.multi.insert_before(&self.whole, line));
        }
        for (line, text) in self.lines.iter().zip(&board.lines) {
            line.set_message(fitted(text, canvas));
            line.tick();
        }
        self.whole.set_length(board.whole.total);
        self.whole.set_position(board.whole.done);
        // A Ctrl-C is shown behind the last line, and must not begin another one: nobody would know of that.
        let beside = format!("{:20} {}/{} ^C", "", board.whole.done, board.whole.total).len() + 1;
        let room = canvas.width.saturating_sub(beside);
        self.whole.set_message(cut(&board.whole.said, room, canvas));
        self.whole.tick();
    }

    /// Writes a line that stays, above the others.
    pub(super) fn print(&self, line: &str) -> io::Result<()> {
        self.multi.println(line)
    }

    /// Takes the lines away.
    pub(super) fn clear(&self) {
        // Where the terminal is gone there is nothing to take away.
        self.multi.clear().ok();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        for line in &self.lines {
            line.finish_and_clear();
        }
        self.whole.finish_and_clear();
        self.clear();
    }
}

/// Cuts a line so that it is one: behind the sign before it, and without the last column, which leads to the next line.
fn fitted(text: &str, canvas: Canvas) -> String {
    cut(text, canvas.width.saturating_sub(3), canvas)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("invariant: the templates are ours and well formed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use crate::jobs::progress::Whole;
    use crate::output::harmless;
    use crate::view::columns::{columns_of, columns_of_char};
    use indicatif::InMemoryTerm;

    const CANVAS: Canvas = Canvas { width: 60, has_unicode: false };

    fn live(rows: u16, columns: u16) -> (Live, InMemoryTerm) {
        let term = InMemoryTerm::new(rows, columns);
        let target = ProgressDrawTarget::term_like_with_hz(Box::new(term.clone()), 255);
        (Live::new(target, Looks { has_colour: false, has_unicode: false }), term)
    }

    fn board(lines: &[&str], done: u64) -> Board {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        Board { lines, whole: Whole { done, total: 4, said: "1 failed, 5s".to_owned() } }
    }

    /// Returns what is seen, with each spinner as one that stands.
    fn seen(term: &InMemoryTerm) -> String {
        let line = |line: &str| match line.split_once(' ') {
            Some((sign, rest)) if ["-", "\\", "|", "/"].contains(&sign) => format!("* {rest}"),
            _ => line.to_owned(),
        };
        term.contents().lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn lines_come_and_go_above_the_bar_and_what_is_over_stays_above_all() {
        let (mut live, term) = live(10, 60);
        live.show(&board(&["build  5s", "test  2s"], 1), CANVAS);
        assert_eq!(seen(&term), "* build  5s\n* test  2s\n#####............... 1/4 1 failed, 5s");
        live.print("build: succeeded").unwrap();
        live.show(&board(&["test  3s"], 2), CANVAS);
        assert_eq!(seen(&term), "build: succeeded\n* test  3s\n##########.......... 2/4 1 failed, 5s");
        live.show(&board(&["test  4s", "pack  retry 2 of 5 in 12s: exit 75"], 2), CANVAS);
        assert!(
            seen(&term).contains("* test  4s\n* pack  retry 2 of 5 in 12s: exit 75\n####"),
            "{}",
            seen(&term)
        );
        drop(live);
        assert_eq!(seen(&term), "build: succeeded");
    }

    #[test]
    fn foreign_text_leaves_lines_where_they_are() {
        let mut foreign = Foreign::new("live");
        for _ in 0..foreign::count() {
            let (text, canvas) = (harmless(&foreign.text()).into_owned(), foreign.canvas());
            let line = fitted(&text, canvas);
            Shown { text: &line, lines: Some(1), ..Shown::default() }.check(&text);
            // However a terminal counts, there is room for the sign before it and the cursor behind it.
            let columns: usize = line.chars().map(columns_of_char).sum();
            assert!(columns.max(columns_of(&line)) + 3 <= canvas.width, "{line:?}");
        }
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let (mut live, term) = live(6, 30);
        live.show(&board(&["订单处理 ".repeat(20).as_str(), "b"], 0), Canvas { width: 30, ..CANVAS });
        let seen = seen(&term);
        assert_eq!(seen.lines().count(), 3, "{seen}");
        assert!(seen.lines().all(|line| columns_of(line) <= 30), "{seen}");
    }
}
