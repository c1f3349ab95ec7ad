//! What a key, or news of the jobs, changes: the state becomes another, and something may have to be done. Pure.

use tidewheel_core::job::JobId;
use tidewheel_core::view::jobs::Bucket;

use super::ask::{Ask, Verb};
use super::help;
use super::keys::Key;
use super::pages::{Logged, Logs, Move, Page};
use super::state::{Doing, Message, Mode, Room, Seen, State};

/// Something that happened.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// A key was pressed.
    Key(Key),
    /// The terminal has another size.
    Room(Room),
    /// The jobs were looked at.
    Seen(Seen),
    /// They could not be.
    Unseen(String),
    /// The last line of a job was read.
    Latest(JobId, Option<String>),
    /// More was read of the logs that are shown.
    Logged(Logged),
    /// Here is why a job is where it is.
    Told(JobId, Page),
    /// What was asked of a job is done, or was refused.
    Done(Message),
}

/// Something that has to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Leave.
    Leave,
    /// Read the logs of a job from now on.
    Open(JobId),
    /// Read them no longer.
    Close,
    /// Find out why a job is where it is.
    Explain(JobId),
    /// Ask something of a job.
    Do(Verb, JobId),
}

impl State {
    /// Takes what happened, and returns what has to be done.
    pub(super) fn update(&mut self, input: Input) -> Option<Action> {
        match input {
            Input::Key(key) => self.press(key),
            Input::Room(room) => {
                self.room = room;
                self.settle(|_| {});
                None
            }
            Input::Seen(seen) => {
                self.trouble = None;
                self.settle(|state| state.seen = seen);
                None
            }
            Input::Unseen(text) => {
                self.trouble = Some(text);
                None
            }
            Input::Latest(job, line) => {
                self.latest = line.map(|line| (job, line));
                None
            }
            Input::Logged(logged) => {
                if let Mode::Logs(logs) = &mut self.mode {
                    logs.take(logged);
                }
                None
            }
            Input::Told(job, page) => {
                // Whoever went on meanwhile does not want to know any more.
                if let Mode::Page(shown) = &mut self.mode
                    && shown.job.as_ref() == Some(&job)
                {
                    *shown = page.about(job);
                }
                None
            }
            Input::Done(message) => {
                self.message = Some(message);
                let doing = self.doing.take();
                doing.is_some_and(|doing| doing.leaves).then_some(Action::Leave)
            }
        }
    }

    fn press(&mut self, key: Key) -> Option<Action> {
        if key == Key::Interrupt {
            return self.leave();
        }
        match &self.mode {
            Mode::Rows => self.press_in_rows(key),
            Mode::Filter => {
                self.press_in_filter(key);
                None
            }
            Mode::Ask(ask) => {
                let ask = ask.clone();
                self.answer(&ask, key)
            }
            Mode::Logs(_) => self.press_in_logs(key),
            Mode::Page(_) => self.press_in_page(key),
        }
    }

    /// Leaves, or remembers to when what is being done is done. Whoever insists leaves at once.
    fn leave(&mut self) -> Option<Action> {
        match &mut self.doing {
            Some(doing) if !doing.leaves => {
                doing.leaves = true;
                None
            }
            Some(_) | None => Some(Action::Leave),
        }
    }

    fn press_in_rows(&mut self, key: Key) -> Option<Action> {
        self.message = None;
        match key {
            Key::Go(to) => self.go(to),
            Key::Char('k') => self.go(Move::Up),
            Key::Char('j') => self.go(Move::Down),
            Key::Char('g') => self.go(Move::Home),
            Key::Char('G') => self.go(Move::End),
            Key::Char('q') => return self.leave(),
            Key::Char('/') => self.mode = Mode::Filter,
            Key::Char('?') => self.mode = Mode::Page(help::page()),
            Key::Char('s') => self.refine(|state| state.bucket = next(state.bucket)),
            Key::Escape => self.refine(|state| {
                state.text.clear();
                state.bucket = None;
            }),
            Key::Enter | Key::Char('l') => {
                let line = self.chosen()?.clone();
                self.mode = Mode::Logs(Logs::new(line.id.clone(), line.name));
                return Some(Action::Open(line.id));
            }
            Key::Char('w') => {
                let line = self.chosen()?.clone();
                let page =
                    Page::new(format!("Why {} is {}", line.name, line.status), vec!["(looking)".to_owned()]);
                self.mode = Mode::Page(page.about(line.id.clone()));
                return Some(Action::Explain(line.id));
            }
            Key::Char(c) => self.ask(Verb::of(c)?),
            Key::Left | Key::Right | Key::Tab | Key::Backspace | Key::Clear | Key::Interrupt => {}
        }
        None
    }

    fn ask(&mut self, verb: Verb) {
        if let Some(doing) = &self.doing {
            self.message = Some(Message { text: format!("still {}", doing.what), is_error: true });
        } else if let Some(line) = self.chosen() {
            match verb.refused(line, &self.seen.jobs) {
                Some(text) => self.message = Some(Message { text, is_error: true }),
                None => self.mode = Mode::Ask(Ask::of(verb, line, &self.seen.jobs)),
            }
        }
    }

    fn answer(&mut self, ask: &Ask, key: Key) -> Option<Action> {
        match key {
            Key::Char('y' | 'Y') => {
                let what = format!("{} {}", ask.verb.doing(), ask.job);
                self.mode = Mode::Rows;
                self.doing = Some(Doing { what, leaves: false });
                Some(Action::Do(ask.verb, ask.job.clone()))
            }
            Key::Char('n' | 'N' | 'q') | Key::Escape => {
                self.mode = Mode::Rows;
                None
            }
            // Whoever meant something else has to say so: a question does not go away by accident.
            _ => None,
        }
    }

    fn press_in_filter(&mut self, key: Key) {
        match key {
            Key::Char(c) => self.refine(|state| state.text.push(c)),
            Key::Backspace => self.refine(|state| {
                state.text.pop();
            }),
            Key::Clear => self.refine(|state| state.text.clear()),
            Key::Enter => self.mode = Mode::Rows,
            Key::Escape => {
                self.refine(|state| state.text.clear());
                self.mode = Mode::Rows;
            }
            Key::Go(to @ (Move::Up | Move::Down | Move::PageUp | Move::PageDown)) => self.go(to),
            Key::Go(Move::Home | Move::End) | Key::Left | Key::Right | Key::Tab | Key::Interrupt => {}
        }
    }

    fn press_in_logs(&mut self, key: Key) -> Option<Action> {
        let height = self.page_height();
        let Mode::Logs(logs) = &mut self.mode else { return None };
        match key {
            Key::Escape | Key::Char('q' | 'l') => {
                self.mode = Mode::Rows;
                return Some(Action::Close);
            }
            Key::Char('f') => logs.toggle(height),
            Key::Tab => logs.turn(),
            Key::Left => logs.shift(false),
            Key::Right => logs.shift(true),
            key => logs.go(scroll(key)?, height),
        }
        None
    }

    fn press_in_page(&mut self, key: Key) -> Option<Action> {
        let (canvas, height) = (self.canvas(), self.page_height());
        let Mode::Page(page) = &mut self.mode else { return None };
        match key {
            Key::Escape | Key::Enter | Key::Char('q' | '?' | 'w') => self.mode = Mode::Rows,
            key => page.go(scroll(key)?, canvas, height),
        }
        None
    }

    /// Returns how many lines of a page there are, under its title and over the last line.
    pub(super) const fn page_height(&self) -> usize {
        self.room.height.saturating_sub(2)
    }

    fn go(&mut self, to: Move) {
        let rows = self.rows();
        let place = to.from(self.place(&rows), self.parts().rows, rows.len().saturating_sub(1));
        self.cursor = rows.get(place).map(|line| line.id.clone());
        self.settle(|_| {});
    }

    /// Changes the filters. Whoever stood on a job that they hide stands on the first that they do not.
    fn refine(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        let rows = self.rows();
        if !rows.iter().any(|line| Some(&line.id) == self.cursor.as_ref()) {
            self.cursor = None;
            self.first = 0;
        }
        self.settle(|_| {});
    }

    /// Changes something, and keeps the cursor where it is: on its job, or on its place if that is gone.
    fn settle(&mut self, change: impl FnOnce(&mut Self)) {
        let place = self.place(&self.rows());
        change(self);
        let rows = self.rows();
        let is_there = |id: &JobId| rows.iter().any(|line| line.id == *id);
        let cursor = match &self.cursor {
            Some(id) if !is_there(id) => {
                rows.get(place.min(rows.len().saturating_sub(1))).map(|line| line.id.clone())
            }
            cursor => cursor.clone(),
        };
        let (count, height) = (rows.len(), self.parts().rows.max(1));
        let at = cursor.as_ref().and_then(|id| rows.iter().position(|line| line.id == *id)).unwrap_or(0);
        let first = self.first.min(count.saturating_sub(height));
        // As little is scrolled as shows the cursor.
        self.first = first.min(at).max((at + 1).saturating_sub(height));
        self.cursor = cursor;
    }
}

fn scroll(key: Key) -> Option<Move> {
    match key {
        Key::Go(to) => Some(to),
        Key::Char('k') => Some(Move::Up),
        Key::Char('j') => Some(Move::Down),
        Key::Char('g') => Some(Move::Home),
        Key::Char('G') => Some(Move::End),
        Key::Char(' ') => Some(Move::PageDown),
        Key::Char(_)
        | Key::Interrupt
        | Key::Left
        | Key::Right
        | Key::Enter
        | Key::Escape
        | Key::Tab
        | Key::Backspace
        | Key::Clear => None,
    }
}

/// Returns the kind that is shown next when somebody goes round; after the last, all.
fn next(bucket: Option<Bucket>) -> Option<Bucket> {
    let place = bucket.and_then(|bucket| Bucket::ALL.iter().position(|other| *other == bucket));
    Bucket::ALL.get(place.map_or(0, |place| place + 1)).copied()
}

#[cfg(test)]
mod tests {
    use super::super::pages::{LogLine, Stream};
    use super::super::sample::{job, seen, some, state};
    use super::*;
    use serde_json::json;

    fn press(state: &mut State, keys: &str) -> Option<Action> {
        keys.chars().fold(None, |_, key| state.update(Input::Key(Key::Char(key))))
    }

    fn chosen(state: &State) -> &str {
        state.chosen().map_or("nobody", |line| line.id.as_str())
    }

    fn watched(state: &State) -> String {
        state.watched().map_or_else(|| "nobody".to_owned(), |job| job.to_string())
    }

    #[test]
    fn k_109_the_focused_running_job_wins_and_else_the_first_in_sight() {
        let many = |running: &str| -> Vec<_> {
            let id = |n: usize| format!("j{n:02}");
            let status = |id: &str| if running.contains(id) { "running" } else { "queued" };
            (0..30).map(|n| job(&id(n), status(&id(n)), json!({}))).collect()
        };
        let mut state = state(many("j03 j25"), (80, 40));
        assert_eq!(watched(&state), "j03");
        // Around the focus is nobody else, so the rows are those of all.
        let mut focused = seen(many("j03 j25"), None);
        focused.focus = Some(JobId::new("j25").unwrap());
        state.update(Input::Seen(focused));
        assert_eq!(watched(&state), "j25");
        state.update(Input::Seen(seen(many("j25"), None)));
        assert_eq!(watched(&state), "nobody");
        // Whoever goes there sees it.
        state.update(Input::Key(Key::Go(Move::End)));
        assert_eq!(watched(&state), "j25");
    }

    #[test]
    fn the_cursor_goes_through_all_rows_and_stays_on_its_job() {
        let many = |from: usize| {
            (from..30).map(|n| job(&format!("j{n:02}"), "queued", json!({}))).collect::<Vec<_>>()
        };
        let mut state = state(many(0), (80, 40));
        assert_eq!(chosen(&state), "j00");
        press(&mut state, "jjk");
        assert_eq!(chosen(&state), "j01");
        state.update(Input::Key(Key::Go(Move::PageDown)));
        assert_eq!((chosen(&state), state.first), ("j11", 2));
        press(&mut state, "G");
        assert_eq!((chosen(&state), state.first), ("j29", 20));
        state.update(Input::Seen(seen(many(10), None)));
        assert_eq!((chosen(&state), state.first), ("j29", 10));
        press(&mut state, "gk");
        assert_eq!((chosen(&state), state.first), ("j10", 0));
        // Its job is gone; the one in its place has it.
        state.update(Input::Seen(seen(many(12), None)));
        assert_eq!(chosen(&state), "j12");
        state.update(Input::Room(Room { width: 60, height: 10 }));
        press(&mut state, "jjjjj");
        assert_eq!((chosen(&state), state.first), ("j17", 2));
        state.update(Input::Seen(seen(Vec::new(), None)));
        assert_eq!(chosen(&state), "nobody");
        assert_eq!(press(&mut state, "jlwac"), None);
    }

    #[test]
    fn rows_are_filtered_by_text_and_by_kind() {
        let mut state = state(some(), (80, 40));
        let ids = |state: &State| state.rows().iter().map(|line| line.id.to_string()).collect::<Vec<_>>();
        press(&mut state, "/ALPHAx");
        state.update(Input::Key(Key::Backspace));
        assert_eq!(ids(&state), ["c-test"]);
        state.update(Input::Key(Key::Enter));
        assert_eq!(chosen(&state), "c-test");
        state.update(Input::Key(Key::Escape));
        press(&mut state, "ss");
        assert_eq!(ids(&state), ["b-deploy", "d-pack"]);
        press(&mut state, "s");
        assert_eq!(ids(&state), ["a-build", "c-test"]);
        press(&mut state, "sss");
        assert_eq!(ids(&state).len(), 5);
        // In a filter the letters are letters.
        assert_eq!(press(&mut state, "/q"), None);
        assert_eq!(state.text, "q");
    }

    #[test]
    fn nothing_is_done_without_a_yes() {
        let mut state = state(some(), (80, 40));
        press(&mut state, "j");
        for (key, verb) in
            [('a', Verb::Approve), ('x', Verb::Reject), ('r', Verb::Retry), ('c', Verb::Cancel)]
        {
            for no in ["n", "q"] {
                assert_eq!(press(&mut state, &format!("{key}z{no}")), None);
                assert!(matches!(state.mode, Mode::Rows));
            }
            let done = press(&mut state, &format!("{key}y"));
            assert_eq!(done, Some(Action::Do(verb, JobId::new("b-deploy").unwrap())));
            // One thing at a time.
            assert_eq!(press(&mut state, "a"), None);
            assert!(state.message.as_ref().is_some_and(|message| message.is_error));
            state.update(Input::Done(Message { text: "done".to_owned(), is_error: false }));
            assert_eq!(state.message.as_ref().unwrap().text, "done");
        }
    }

    #[test]
    fn a_retry_says_how_many_jobs_go_along() {
        let mut state = state(some(), (80, 40));
        state.seen = seen(
            vec![
                job("a", "failed", json!({})),
                job("b", "queued", json!({ "schedule": { "after": [{ "job_id": "a" }] } })),
            ],
            None,
        );
        press(&mut state, "r");
        let Mode::Ask(ask) = &state.mode else { panic!("{:?}", state.mode) };
        assert_eq!(ask.text, "retry a: it and 1 job after it run again");
    }

    #[test]
    fn whoever_leaves_while_something_is_done_leaves_after_it_or_insists() {
        let mut state = state(some(), (80, 40));
        assert_eq!(press(&mut state, "q"), Some(Action::Leave));
        press(&mut state, "cy");
        assert_eq!(press(&mut state, "q"), None);
        let mut patient = state.clone();
        let done = Message { text: String::new(), is_error: false };
        assert_eq!(patient.update(Input::Done(done)), Some(Action::Leave));
        assert_eq!(state.update(Input::Key(Key::Interrupt)), Some(Action::Leave));
    }

    #[test]
    fn logs_are_opened_read_and_closed() {
        let mut state = state(some(), (80, 40));
        let id = JobId::new("a-build").unwrap();
        assert_eq!(press(&mut state, "l"), Some(Action::Open(id.clone())));
        let lines = vec![LogLine { stream: Stream::Stdout, text: "hello".to_owned() }];
        state.update(Input::Logged(Logged { lines, rest: Vec::new() }));
        let Mode::Logs(logs) = &state.mode else { panic!("{:?}", state.mode) };
        assert_eq!(logs.in_sight(9)[0].text, "hello");
        assert_eq!(state.update(Input::Key(Key::Escape)), Some(Action::Close));
        // What comes late changes nothing.
        state.update(Input::Logged(Logged::default()));
        assert!(matches!(state.mode, Mode::Rows));
        assert_eq!(press(&mut state, "w"), Some(Action::Explain(id)));
    }
}
