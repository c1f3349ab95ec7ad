//! The state as cells of a screen. It decides nothing and reads nothing; the same state gives the same cells.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Position;
use ratatui::style::{Color, Modifier, Style};
use tidewheel_core::job::JobStatus;
use tidewheel_core::view::absolute;
use tidewheel_core::view::jobs::Buckets;

use super::columns::{COUNT, GAP, HEADINGS, STATUS, cells, fitted, widths, wrapped};
use super::pages::{Logs, Page, Stream, Streams};
use super::state::{Mode, Parts, Room, State};
use crate::view::columns::{columns_of, columns_of_char, cut, padded};
use crate::view::page::Looks;

/// Draws the state.
pub(super) fn draw(state: &State, frame: &mut Frame<'_>) {
    let mut pen = Pen { buffer: frame.buffer_mut(), state, row: 0 };
    match &state.mode {
        Mode::Rows | Mode::Filter | Mode::Ask(_) => pen.rows(),
        Mode::Logs(logs) => pen.logs(logs),
        Mode::Page(page) => pen.page(page),
    }
    let cursor = pen.last_line();
    if let Some(position) = cursor {
        frame.set_cursor_position(position);
    }
}

/// Writes lines from the top, in the width that there is.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    state: &'a State,
    row: u16,
}

const PLAIN: Style = Style::new();
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// The keys, where there is room for all of them, and where there is not.
const KEYS: [&str; 2] = [
    "? keys  l logs  w why  a approve  x reject  r retry  c cancel  / s filter  q leave",
    "? keys  l logs  w why  a x r c act  / s filter  q leave",
];

impl Pen<'_> {
    fn rows(&mut self) {
        let state = self.state;
        let Buckets { queued, waiting, running, blocked, terminal } = state.buckets();
        self.line(
            &format!(
                "Schedule Watch | refreshed {} | interval={}ms | top={}",
                absolute(state.seen.at),
                state.wants.interval_ms,
                state.wants.top
            ),
            STRONG,
        );
        self.line(
            &format!(
                "State: queued={queued} waiting={waiting} running={running} blocked={blocked} terminal={terminal}"
            ),
            PLAIN,
        );
        let Parts { rows: height, has_gaps, has_titles } = state.parts();
        self.gap(has_gaps);
        if has_titles {
            self.line(&format!("Schedule (Summary){}", self.filters()), STRONG);
        }
        self.table(height);
        self.gap(has_gaps);
        if has_titles {
            self.line("Running Job Output", STRONG);
        }
        match state.watched() {
            Some(job) => {
                let latest = state.latest.as_ref().filter(|(of, _)| *of == job);
                let latest = latest.map_or("(no output yet)", |(_, line)| line.as_str());
                self.line(&format!("Running job: {job}"), PLAIN);
                self.line(&format!("Latest line: {latest}"), PLAIN);
            }
            None => {
                self.line("No running job", PLAIN);
                self.line("Latest line: (none)", PLAIN);
            }
        }
    }

    /// Says which rows are shown, where not all are.
    fn filters(&self) -> String {
        let state = self.state;
        let rows = state.rows();
        let mut said = Vec::new();
        let (first, count) = (state.first, rows.len());
        let last = (first + state.parts().rows).min(count);
        if count > last - first.min(last) {
            said.push(format!("{}-{last} of {count}", first + 1));
        }
        if let Some(bucket) = state.bucket {
            said.push(format!("only {}", bucket.name()));
        }
        if !state.text.is_empty() {
            said.push(format!("only with `{}`", state.text));
        }
        if state.seen.unreadable > 0 {
            said.push(format!("{} unreadable", state.seen.unreadable));
        }
        if said.is_empty() { String::new() } else { format!("  {}", said.join(", ")) }
    }

    fn table(&mut self, height: usize) {
        const MARK: usize = 2;
        let state = self.state;
        let rows = state.rows();
        if rows.is_empty() {
            let hides = !state.seen.rows.is_empty();
            self.line(if hides { "(no job passes the filters)" } else { "(no scheduled jobs)" }, PLAIN);
            return;
        }
        let place = state.place(&rows);
        let shown: Vec<_> = rows.iter().skip(state.first).take(height).collect();
        let texts: Vec<[String; COUNT]> = shown.iter().map(|line| cells(line)).collect();
        let widths = widths(&texts, state.room.width.saturating_sub(MARK));
        let row = |pen: &mut Self, mark: &str, cells: &[String; COUNT], styles: [Style; COUNT]| {
            let mut column = pen.at(0, mark, styles[0]) + MARK - columns_of(mark);
            for (index, cell) in cells.iter().enumerate() {
                let text = fitted(index, cell, widths[index], pen.state.wants);
                pen.at(column, &text, styles[index]);
                column += widths[index] + GAP;
            }
            pen.row += 1;
        };
        // In one piece, so that whoever reads what was written finds the headings as they are.
        let headings: Vec<String> =
            HEADINGS.iter().zip(widths).map(|(name, width)| padded(name, width)).collect();
        let headings = headings.join(&" ".repeat(GAP));
        self.line(&format!("{:MARK$}{}", "", headings.trim_end()), STRONG);
        for (index, (line, cells)) in shown.iter().zip(&texts).enumerate() {
            let is_chosen = state.first + index == place;
            let style = if is_chosen { CHOSEN } else { PLAIN };
            let mut styles = [style; COUNT];
            styles[STATUS] = style.patch(self.colour(status(line.status)));
            if is_chosen {
                let blank = " ".repeat(state.room.width);
                self.at(0, &blank, CHOSEN);
            }
            row(self, if is_chosen { ">" } else { " " }, cells, styles);
        }
    }

    fn logs(&mut self, logs: &Logs) {
        let height = self.state.page_height();
        let (first, count) = logs.place(height);
        let sight = logs.in_sight(height);
        let follows = if logs.follows { ", following" } else { "" };
        let (from, to) = (if count == 0 { 0 } else { first + 1 }, first + sight.len());
        let title =
            format!("Logs of {} | {} | {from}-{to} of {count}{follows}", logs.name, logs.streams.name());
        self.line(&title, STRONG);
        if sight.is_empty() {
            self.line("(no output yet)", FAINT);
        }
        for line in sight {
            let prefix = match logs.streams {
                Streams::Both => format!("[{}] ", line.stream.name()),
                Streams::Only(_) => String::new(),
            };
            let style = match line.stream {
                Stream::Stdout => PLAIN,
                Stream::Stderr => self.colour(Some(Color::Red)),
            };
            let column = self.at(0, &prefix, style);
            self.at(column, &without(&line.text, logs.left), PLAIN);
            self.row += 1;
        }
    }

    fn page(&mut self, page: &Page) {
        self.line(&page.title, STRONG);
        for line in page.in_sight(self.state.canvas(), self.state.page_height()) {
            let style = match line.looks {
                Looks::Plain => PLAIN,
                Looks::Heading => STRONG,
                Looks::Faint => FAINT,
            };
            self.line(&line.text, style);
        }
    }

    /// Writes the last line: a question, what is being written, what came of something, or the keys. Returns where the
    /// cursor is, if somebody writes.
    fn last_line(&mut self) -> Option<Position> {
        let state = self.state;
        let (red, yellow) = (self.colour(Some(Color::Red)), self.colour(Some(Color::Yellow)));
        match (&state.mode, &state.doing, &state.message, &state.trouble) {
            (Mode::Ask(ask), ..) => {
                self.bottom(&format!("{}? [y/n]", ask.text), yellow.add_modifier(Modifier::BOLD));
            }
            (Mode::Filter, ..) => {
                self.bottom("", PLAIN);
                self.row = self.row.saturating_sub(1);
                let column = self.at(0, "Only with: ", STRONG);
                let column = self.at(column, &state.text, PLAIN);
                return Some(Position { x: u16::try_from(column).unwrap_or(u16::MAX), y: self.row });
            }
            (Mode::Logs(_), ..) => self.hint("esc back  tab streams  f follow  arrows scroll"),
            (Mode::Page(_), ..) => self.hint("esc back  arrows scroll"),
            (Mode::Rows, Some(doing), ..) => {
                let leaves = if doing.leaves { ", then leaving" } else { "" };
                let dots = if state.wants.has_unicode { "…" } else { "..." };
                self.bottom(&format!("{}{leaves}{dots}", doing.what), yellow);
            }
            (Mode::Rows, None, Some(message), _) => {
                self.bottom(&message.text, if message.is_error { red } else { STRONG });
            }
            (Mode::Rows, None, None, Some(trouble)) => self.bottom(trouble, red),
            (Mode::Rows, None, None, None) => {
                let [long, short] = KEYS;
                let fits = columns_of(long) <= state.room.width;
                self.hint(if fits { long } else { short });
            }
        }
        None
    }

    /// Says in the last line which keys there are.
    fn hint(&mut self, text: &str) {
        let text = cut(text, self.state.room.width, self.state.canvas());
        self.bottom(&text, FAINT);
    }

    /// Writes a text at the bottom, over as many lines as it takes, but not over many.
    fn bottom(&mut self, text: &str, style: Style) {
        const MOST: usize = 3;
        let Room { width, height } = self.state.room;
        let mut lines = wrapped(text, width);
        if lines.len() > MOST {
            // The end of it is what an answer, or a cause, stands in.
            lines.drain(1..lines.len() - (MOST - 1));
        }
        self.row = u16::try_from(height.saturating_sub(lines.len())).unwrap_or(u16::MAX);
        let blank = " ".repeat(width);
        for line in lines {
            self.at(0, &blank, PLAIN);
            self.line(&line, style);
        }
    }

    fn line(&mut self, text: &str, style: Style) {
        let text = cut(text, self.state.room.width, self.state.canvas());
        self.at(0, &text, style);
        self.row = self.row.saturating_add(1);
    }

    fn gap(&mut self, is_there: bool) {
        self.row = self.row.saturating_add(u16::from(is_there));
    }

    /// Writes from a column on, as far as there is room, and returns where the next text begins.
    fn at(&mut self, column: usize, text: &str, style: Style) -> usize {
        let area = *self.buffer.area();
        let width = usize::from(area.width);
        if self.row >= area.height || column >= width {
            return column;
        }
        // A tab takes no cell of its own; what follows it would move.
        let text = cut(&text.replace('\t', " "), width - column, self.state.canvas());
        let x = u16::try_from(column).unwrap_or(u16::MAX);
        let (x, _) = self.buffer.set_stringn(x, self.row, &text, width - column, style);
        usize::from(x)
    }

    fn colour(&self, colour: Option<Color>) -> Style {
        match colour {
            Some(colour) if self.state.wants.has_colour => Style::new().fg(colour),
            Some(_) | None => PLAIN,
        }
    }
}

/// Returns the colour of a status, one of those that every terminal has and its owner chose to be legible.
const fn status(status: JobStatus) -> Option<Color> {
    match status {
        JobStatus::Queued | JobStatus::Skipped => None,
        JobStatus::WaitingOnDeps | JobStatus::WaitingOnApproval | JobStatus::WaitingOnLocks => {
            Some(Color::Yellow)
        }
        JobStatus::Running => Some(Color::Cyan),
        JobStatus::Succeeded => Some(Color::Green),
        JobStatus::Failed | JobStatus::BlockedByDependency | JobStatus::BlockedByApproval => Some(Color::Red),
        JobStatus::Cancelled => Some(Color::Magenta),
    }
}

/// Returns a text without so many columns at its beginning.
fn without(text: &str, columns: usize) -> String {
    let mut left = columns;
    let is_left_out = |c: &char| {
        let is_out = left > 0;
        left = left.saturating_sub(columns_of_char(*c));
        is_out
    };
    text.chars().skip_while(is_left_out).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ask::{Ask, Verb};
    use super::super::help;
    use super::super::keys::Key;
    use super::super::pages::{LogLine, Logged, Move};
    use super::super::sample::{job, some, state};
    use super::super::state::Message;
    use super::super::update::Input;
    use super::super::why;
    use super::*;
    use crate::foreign::{self, Foreign, Shown};
    use crate::output::harmless;
    use crate::view::logs::plain;
    use crate::view::page::page;
    use crate::view::timeline::Canvas;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};
    use tidewheel_core::job::{Facts, JobId};
    use tidewheel_core::view::jobs::explain::{Line, Part, Subject, Told, World, explain_job};

    /// Returns what is drawn, as text.
    fn drawn(state: &State) -> String {
        let size = |columns: usize| u16::try_from(columns).unwrap();
        let backend = TestBackend::new(size(state.room.width), size(state.room.height));
        let mut terminal = Terminal::new(backend).unwrap();
        terminal.draw(|frame| draw(state, frame)).unwrap();
        let text = terminal.backend().to_string();
        // Behind the quotes stands what wide characters hide.
        let line = |line: &str| line.split('"').nth(1).unwrap_or_default().trim_end().to_owned();
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn k_109_everything_has_its_place() {
        let mut state = state(some(), (90, 20));
        state.update(Input::Latest(state.watched().unwrap(), Some("[stderr] half done".to_owned())));
        insta::assert_snapshot!(drawn(&state), @r"
        Schedule Watch | refreshed 2026-02-01T12:00:05Z | interval=500ms | top=10
        State: queued=0 waiting=2 running=2 blocked=0 terminal=1

        Schedule (Summary)
          #  Slug   Name                Status               Wait                     Job
        > 1         订单 build          running                                       a-build
          2         b-deploy            waiting_on_approval  awaiting human approval  b-deploy
          3  alpha  c-test              running                                       c-test
          4         d-pack              waiting_on_deps      waiting on job a-build   d-pack
          5         lint \u{1b}[31mred  failed                                        e-lint

        Running Job Output
        Running job: a-build
        Latest line: [stderr] half done





        ? keys  l logs  w why  a approve  x reject  r retry  c cancel  / s filter  q leave
        ");
    }

    #[test]
    fn a_small_terminal_shows_what_matters() {
        insta::assert_snapshot!(drawn(&state(some(), (60, 10))), @r"
        Schedule Watch | refreshed 2026-02-01T12:00:05Z | interval=…
        State: queued=0 waiting=2 running=2 blocked=0 terminal=1
          #  Slug   Name      Status               Wait     Job
        > 1         订单 bu…  running                       a-build
          2         b-deploy  waiting_on_approval  awaiti…  b-deploy
          3  alpha  c-test    running                       c-test
          4         d-pack    waiting_on_deps      waitin…  d-pack
        Running job: a-build
        Latest line: (no output yet)
        ? keys  l logs  w why  a x r c act  / s filter  q leave
        ");
    }

    #[test]
    fn nothing_to_watch_is_said() {
        insta::assert_snapshot!(drawn(&state(Vec::new(), (60, 14))), @r"
        Schedule Watch | refreshed 2026-02-01T12:00:05Z | interval=…
        State: queued=0 waiting=0 running=0 blocked=0 terminal=0
        Schedule (Summary)
        (no scheduled jobs)
        Running Job Output
        No running job
        Latest line: (none)






        ? keys  l logs  w why  a x r c act  / s filter  q leave
        ");
    }

    #[test]
    fn a_question_names_the_job_and_what_will_happen() {
        let mut state = state(some(), (60, 16));
        let line = state.rows()[0].clone();
        for (verb, says) in [
            (Verb::Approve, "approve 订单 build (a-build): it starts when its other\ngates are open? [y/n]"),
            (Verb::Cancel, "cancel 订单 build (a-build): all its processes are ended?\n[y/n]"),
        ] {
            state.mode = Mode::Ask(Ask::of(verb, &line, &state.seen.jobs));
            let text = drawn(&state);
            assert!(text.ends_with(says), "{text}");
        }
    }

    #[test]
    fn a_long_error_keeps_its_beginning_and_its_end() {
        let mut state = state(some(), (60, 16));
        let text = format!("error[TW0021]: {} is the cause", "no ".repeat(200));
        state.message = Some(Message { text, is_error: true });
        let text = drawn(&state);
        let last: Vec<&str> = text.lines().rev().take(3).collect();
        assert!(last[2].starts_with("error[TW0021]: no"), "{text}");
        assert!(last[0].ends_with("is the cause"), "{text}");
    }

    #[test]
    fn the_keys_can_be_read_on_a_small_terminal() {
        let mut state = state(Vec::new(), (60, 10));
        state.mode = Mode::Page(help::page());
        insta::assert_snapshot!(drawn(&state), @r"
        Keys
        In the list of jobs
          up, k         the job before
          down, j       the job after
          page up/down  a page of jobs
          home, g       the first job
          end, G        the last job
          /             only jobs with a text; esc shows all again
          s             only jobs of one kind, then of the next
        esc back  arrows scroll
        ");
    }

    #[test]
    fn w_shows_the_page_that_explains_the_job() {
        let mut state = state(some(), (60, 20));
        let jobs = state.seen.jobs.clone();
        let (id, told) = (JobId::new("d-pack").unwrap(), Told::default());
        let facts = Facts::default();
        let (now, unreadable) = (state.seen.at, BTreeMap::new());
        let world = World {
            briefs: &jobs,
            unreadable: &unreadable,
            lost: &BTreeSet::new(),
            last_words: &|_| None,
            facts: &facts,
            capacity: 4,
            now,
            may_ask: true,
        };
        let subject = Subject { job: &jobs[&id], dead_letter: None, told: &told };
        let explained = explain_job(world, subject).unwrap();
        for key in "jjjw".chars() {
            state.update(Input::Key(Key::Char(key)));
        }
        assert!(drawn(&state).starts_with("Why d-pack is waiting_on_deps\n(looking)\n"), "{}", drawn(&state));
        // What another one was asked for does not come between.
        let other = Page::new("Why a-build is running", vec!["other".to_owned()]);
        state.update(Input::Told(JobId::new("a-build").unwrap(), other));
        assert!(drawn(&state).contains("(looking)"), "{}", drawn(&state));
        state.update(Input::Told(id.clone(), why::page(&explained, vec!["stdout is gone".to_owned()])));
        let text = drawn(&state);
        let lines = ["Why d-pack is waiting_on_deps\nwarning: stdout is gone"];
        assert!(lines.iter().all(|line| text.contains(line)), "{text}");
        let canvas = Canvas { width: 60, has_unicode: true };
        let printed = anstream::adapter::strip_str(&page(explained.page(), canvas)).to_string();
        for key in std::iter::once(Key::Go(Move::Home)).chain([Key::Go(Move::Down); 40]) {
            state.update(Input::Key(key));
        }
        let end: Vec<&str> = printed.lines().rev().take(10).collect();
        let text = drawn(&state);
        assert!(end.iter().all(|line| text.contains(line.trim_end())), "{text}\n-- and not --\n{printed}");
        state.update(Input::Key(Key::Escape));
        state.update(Input::Told(id, Page::new("late", Vec::new())));
        assert!(drawn(&state).starts_with("Schedule Watch"), "{}", drawn(&state));
    }

    #[test]
    fn foreign_text_breaks_no_screen() {
        let mut foreign = Foreign::new("screens");
        let told = |foreign: &mut Foreign| {
            let line = Line::Output { stream: "stdout", text: foreign.text() };
            vec![Line::Sentence(foreign.text()), Line::Command(foreign.text()), line]
        };
        for round in 0..foreign::count() / 16 {
            let room = (20 + foreign.below(100), 3 + foreign.below(20));
            let mut texts = || foreign.text();
            let jobs = (0..8)
                .map(|n| {
                    let schedule = json!({ "wait_reason": { "kind": "approval", "detail": texts() } });
                    let (name, slug) = (texts(), texts());
                    let rest = json!({ "name": name, "slug": slug, "schedule": schedule });
                    job(&format!("j{n}"), "queued", rest)
                })
                .collect();
            let mut state = state(jobs, room);
            let log = |text: String| LogLine { stream: Stream::Stderr, text: plain(&text) };
            match round % 4 {
                0 => {}
                1 => {
                    let mut logs = Logs::new(JobId::new("j0").unwrap(), state.rows()[0].name.clone());
                    logs.take(Logged {
                        lines: (0..8).map(|_| log(foreign.text())).collect(),
                        rest: Vec::new(),
                    });
                    logs.left = foreign.below(20);
                    state.mode = Mode::Logs(logs);
                }
                2 => {
                    let parts = vec![Part { heading: Some("Next"), lines: told(&mut foreign) }];
                    state.mode = Mode::Page(Page::of_parts(harmless(&foreign.text()), parts));
                }
                _ => {
                    state.mode = Mode::Ask(Ask::of(Verb::Cancel, &state.rows()[0].clone(), &state.seen.jobs));
                }
            }
            let size = |columns: usize| u16::try_from(columns).unwrap();
            let backend = TestBackend::new(size(state.room.width), size(state.room.height));
            let mut terminal = Terminal::new(backend).unwrap();
            terminal.draw(|frame| draw(&state, frame)).unwrap();
            let buffer = terminal.backend().buffer();
            for y in 0..buffer.area().height {
                let mut x = 0;
                let mut line = String::new();
                while x < buffer.area().width {
                    let symbol = buffer[(x, y)].symbol();
                    line.push_str(symbol);
                    x += size(columns_of(symbol).max(1));
                }
                Shown { text: &line, lines: Some(1), ..Shown::default() }.check(&y);
                assert!(columns_of(&line) <= room.0, "{}: {line:?}", room.0);
            }
        }
    }

    #[test]
    fn any_size_can_be_drawn_and_nothing_steers_the_terminal() {
        let mut jobs = some();
        jobs.extend((0..40).map(|n| {
            job(
                &format!("z-{n}"),
                "queued",
                json!({ "name": "订单\u{9b}处理\u{202e}".repeat(n), "slug": "\u{1b}c" }),
            )
        }));
        for width in (1..70).chain([100, 200]) {
            for height in (1..14).chain([24, 60]) {
                let text = drawn(&state(jobs.clone(), (width, height)));
                assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text}");
                assert!(text.lines().all(|line| columns_of(line) <= width), "{width}: {text}");
            }
        }
    }
}
