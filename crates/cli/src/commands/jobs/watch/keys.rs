//! Keys, as the terminal sends them and as they are meant.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::pages::Move;
use super::state::Room;
use super::update::Input;

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// Whatever is shown: leave.
    Interrupt,
    Go(Move),
    Left,
    Right,
    Enter,
    Escape,
    Tab,
    Backspace,
    /// Forget what was written.
    Clear,
    Char(char),
}

/// Returns what an event of the terminal means; `None` where it means nothing.
pub(super) fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Input::Key(of(key)?)),
        Event::Resize(width, height) => {
            Some(Input::Room(Room { width: usize::from(*width), height: usize::from(*height) }))
        }
        Event::Key(_) | Event::FocusGained | Event::FocusLost | Event::Mouse(_) => None,
    }
}

fn of(key: &KeyEvent) -> Option<Key> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Key::Interrupt),
            KeyCode::Char('b') => Some(Key::Go(Move::PageUp)),
            KeyCode::Char('f') => Some(Key::Go(Move::PageDown)),
            KeyCode::Char('u') => Some(Key::Clear),
            KeyCode::Char('h') => Some(Key::Backspace),
            _ => None,
        };
    }
    match key.code {
        KeyCode::Up => Some(Key::Go(Move::Up)),
        KeyCode::Down => Some(Key::Go(Move::Down)),
        KeyCode::PageUp => Some(Key::Go(Move::PageUp)),
        KeyCode::PageDown => Some(Key::Go(Move::PageDown)),
        KeyCode::Home => Some(Key::Go(Move::Home)),
        KeyCode::End => Some(Key::Go(Move::End)),
        KeyCode::Left => Some(Key::Left),
        KeyCode::Right => Some(Key::Right),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Escape),
        KeyCode::Tab => Some(Key::Tab),
        KeyCode::Backspace => Some(Key::Backspace),
        KeyCode::Char(c) if !c.is_control() => Some(Key::Char(c)),
        _ => None,
    }
}
