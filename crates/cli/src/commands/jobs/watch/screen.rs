//! The watch on a real terminal: the only part that touches it. Whatever ends it, the terminal is as it was before.

use std::io::{self, Stdout, Write as _};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::layout::Size;
use tidewheel_runner::job::wait::Watch;

use super::act::act;
use super::draw::draw;
use super::given_back::GivenBack;
use super::keys;
use super::look::{Reading, look};
use super::sheet::Sheet;
use super::state::{Room, State, Wants};
use super::update::{Action, Input};
use super::why::why;
use crate::commands::jobs::schedule::Arguments;
use crate::error::{Code, CommandError, Ending, cause};
use crate::exit::Exit;
use crate::jobs::{Opened, latest};
use crate::output::harmless;
use crate::terminal;

/// Shows the jobs until somebody leaves.
pub(super) fn run(opened: &Opened, arguments: &Arguments) -> Result<Exit, Ending> {
    // What is wrong from the beginning is told as any other command tells it.
    let seen = look(opened, arguments)?;
    let wants = Wants {
        top: arguments.top(),
        interval_ms: arguments.interval_ms(),
        has_colour: terminal::has_colour(),
        has_unicode: terminal::has_unicode(),
    };
    let room = room().map_err(|error| CommandError::of_output(&error))?;
    let (sender, heard) = mpsc::channel();
    // Whoever ends the process from here on finds the terminal as it was.
    listen_to_signals(&sender);
    let screen = enter().map_err(|error| CommandError::of_output(&error))?;
    listen(opened, &sender).map_err(|error| {
        let message = format!("the system has no thread to listen to keys: {}.", cause(&error));
        CommandError::new(Code::JobsUnavailable, message)
    })?;
    let watch = Loop { opened, arguments, state: State::new(wants, room, seen), reading: None, sender };
    let exit = watch.run(&heard);
    drop(screen);
    exit
}

/// Something that woke the loop.
enum Heard {
    /// Something to be taken.
    Input(Input),
    /// The jobs may have changed.
    Changed,
    /// The process is to end.
    Ended(Exit),
}

/// Looking at the jobs takes at most one part in so many of the time of a processor.
const SHARE: u32 = 25;

/// News of the jobs that come faster are taken together.
const TOGETHER: Duration = Duration::from_millis(100);

/// How often logs are read while they are shown.
const LOGS: Duration = Duration::from_millis(200);

struct Loop<'a> {
    opened: &'a Opened,
    arguments: &'a Arguments,
    state: State,
    reading: Option<Reading>,
    sender: Sender<Heard>,
}

impl Loop<'_> {
    fn run(mut self, heard: &Receiver<Heard>) -> Result<Exit, Ending> {
        let sheet = Sheet::new(io::stdout(), size);
        let mut terminal = Terminal::new(sheet).map_err(|error| CommandError::of_output(&error))?;
        let interval = Duration::from_millis(self.arguments.interval_ms());
        let mut looked = Instant::now();
        let mut rest = Duration::ZERO;
        let mut is_changed = false;
        self.read_latest();
        loop {
            self.measure()?;
            terminal
                .draw(|frame| draw(&self.state, frame))
                .map_err(|error| CommandError::of_output(&error))?;
            let due = looked + rest.max(if is_changed { TOGETHER.min(interval) } else { interval });
            let soon = if self.reading.is_some() { due.min(Instant::now() + LOGS) } else { due };
            match heard.recv_timeout(soon.saturating_duration_since(Instant::now())) {
                Ok(Heard::Ended(exit)) => return Ok(exit),
                Ok(Heard::Changed) => is_changed = true,
                Ok(Heard::Input(input)) => {
                    if self.take(input) {
                        return Ok(Exit::Succeeded);
                    }
                    self.read_latest();
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Some(reading) = &mut self.reading {
                let logged = reading.more();
                self.state.update(Input::Logged(logged));
            }
            let now = Instant::now();
            if now >= due {
                let seen = look(self.opened, self.arguments);
                self.state.update(match seen {
                    Ok(seen) => Input::Seen(seen),
                    Err(error) => Input::Unseen(harmless(&error.message).into_owned()),
                });
                self.read_latest();
                rest = now.elapsed() * SHARE;
                looked = now;
                is_changed = false;
            }
        }
    }

    /// Asks how large the terminal is: not every terminal tells when that changes.
    fn measure(&mut self) -> Result<(), Ending> {
        let room = room().map_err(|error| CommandError::of_output(&error))?;
        if room != self.state.room {
            self.state.update(Input::Room(room));
        }
        Ok(())
    }

    /// Takes something, does what follows, and tells whether somebody leaves.
    fn take(&mut self, input: Input) -> bool {
        match self.state.update(input) {
            None => {}
            Some(Action::Leave) => return true,
            Some(Action::Open(job)) => self.reading = Some(Reading::new(self.opened, &job)),
            Some(Action::Close) => self.reading = None,
            Some(Action::Explain(job)) => {
                let (place, settings) = (self.opened.place.clone(), self.opened.settings.clone());
                let sender = self.sender.clone();
                // The repository may be asked many things, and the screen shall go on meanwhile.
                let asked = thread::Builder::new().spawn(move || {
                    let page = why(place, settings, &job);
                    sender.send(Heard::Input(Input::Told(job, page))).ok();
                });
                self.tell_refusal(asked);
            }
            Some(Action::Do(verb, job)) => {
                let (place, settings) = (self.opened.place.clone(), self.opened.settings.clone());
                let sender = self.sender.clone();
                // Ending processes takes its time, and the screen shall go on meanwhile.
                let asked = thread::Builder::new().spawn(move || {
                    let message = match Opened::at(place, settings) {
                        Ok(opened) => act(&opened, verb, &job),
                        Err(error) => super::state::Message { text: error.message, is_error: true },
                    };
                    // Where nobody listens any more, nobody has to be told.
                    sender.send(Heard::Input(Input::Done(message))).ok();
                    sender.send(Heard::Changed).ok();
                });
                self.tell_refusal(asked);
            }
        }
        false
    }

    /// Says on the screen that the system has no thread for what was asked.
    fn tell_refusal<T>(&mut self, asked: std::io::Result<T>) {
        if let Err(error) = asked {
            let text = format!("the system has no thread for it: {}", cause(&error));
            self.state.update(Input::Done(super::state::Message { text, is_error: true }));
        }
    }

    fn read_latest(&mut self) {
        if let Some(job) = self.state.watched() {
            let line = latest(&self.opened.place.data.join("jobs").join(job.as_str()));
            self.state.update(Input::Latest(job, line));
        }
    }
}

/// Begins to listen to keys and to changes.
fn listen(opened: &Opened, sender: &Sender<Heard>) -> std::io::Result<()> {
    let keys = sender.clone();
    thread::Builder::new().spawn(move || {
        // Where no key can be read, a signal still ends it.
        while let Ok(event) = crossterm::event::read() {
            if let Some(input) = keys::input(&event)
                && keys.send(Heard::Input(input)).is_err()
            {
                return;
            }
        }
    })?;
    let changes = sender.clone();
    let watch = Watch::directory(&opened.place.data.join("jobs"));
    thread::Builder::new().spawn(move || {
        loop {
            watch.wait(None);
            if changes.send(Heard::Changed).is_err() {
                return;
            }
            thread::sleep(TOGETHER);
        }
    })?;
    Ok(())
}

/// Begins to listen to signals, and returns when it does.
fn listen_to_signals(sender: &Sender<Heard>) {
    let signals = sender.clone();
    let (ready, is_ready) = mpsc::channel();
    // A thread that does not start listens to nothing: then a signal ends the process as it always does.
    drop(thread::Builder::new().spawn(move || {
        if let Some(exit) = signalled(ready) {
            signals.send(Heard::Ended(exit)).ok();
        }
    }));
    // Nothing is ever sent: whoever waits is told by the end of the other side, whatever came of it.
    is_ready.recv().unwrap_or(());
}

/// Waits for a signal that ends the process, and returns how it ends. Once it would hear one, it drops what it is given.
fn signalled(ready: Sender<()>) -> Option<Exit> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = crate::runtime::current_thread().ok()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt()).ok()?;
        let mut terminate = signal(SignalKind::terminate()).ok()?;
        let mut hang_up = signal(SignalKind::hangup()).ok()?;
        drop(ready);
        let exit = tokio::select! {
            _ = interrupt.recv() => Exit::Succeeded,
            _ = terminate.recv() => Exit::Failed,
            _ = hang_up.recv() => Exit::Failed,
        };
        Some(exit)
    })
}

/// Returns how large the terminal is; what terminals have had since there are terminals where it does not say.
fn size() -> io::Result<Size> {
    let size = rustix::termios::tcgetwinsize(io::stdout())?;
    let or = |given: u16, usual: u16| if given == 0 { usual } else { given };
    Ok(Size { width: or(size.ws_col, 80), height: or(size.ws_row, 24) })
}

fn room() -> io::Result<Room> {
    let size = size()?;
    Ok(Room { width: usize::from(size.width), height: usize::from(size.height) })
}

/// Another screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";

/// What a frame that was cut off may have left, then the screen from before and its cursor.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[0m\x1b[?25h\x1b[?1049l";

/// Takes the terminal until what is returned is dropped.
fn enter() -> io::Result<GivenBack> {
    let screen = GivenBack::by(restore);
    // Without a keyboard there is nothing to see through, and the schedule is shown all the same.
    crossterm::terminal::enable_raw_mode().ok();
    let mut out: Stdout = io::stdout();
    out.write_all(ENTER)?;
    out.flush()?;
    Ok(screen)
}

/// Gives the terminal back.
fn restore() {
    let mut out = io::stdout();
    out.write_all(LEAVE).and_then(|()| out.flush()).ok();
    crossterm::terminal::disable_raw_mode().ok();
}
