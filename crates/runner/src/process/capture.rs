//! What becomes of a stream that a process writes: so much of it is kept, and whoever listens gets all of it.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;

type Listener = dyn FnMut(&[u8]) -> ControlFlow<()> + Send;

/// Takes what a process writes.
pub struct Capture {
    keeps: Keeps,
    limit: usize,
    bytes: VecDeque<u8>,
    is_truncated: bool,
    listener: Option<Box<Listener>>,
}

#[derive(Clone, Copy, Debug)]
enum Keeps {
    Whole,
    Tail,
}

impl Capture {
    /// Keeps everything, for which it has room for so many bytes; a process that writes more is stopped.
    #[must_use]
    pub fn whole(limit: usize) -> Self {
        Self::new(Keeps::Whole, limit)
    }

    /// Keeps the last bytes, however many come.
    #[must_use]
    pub fn tail(limit: usize) -> Self {
        Self::new(Keeps::Tail, limit)
    }

    fn new(keeps: Keeps, limit: usize) -> Self {
        Self { keeps, limit, bytes: VecDeque::new(), is_truncated: false, listener: None }
    }

    /// Calls a function with every piece as it comes. With `Break` the process is stopped; what it still writes
    /// then comes here, too.
    #[must_use]
    pub fn listener(mut self, listener: impl FnMut(&[u8]) -> ControlFlow<()> + Send + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    pub(crate) fn take(&mut self, piece: &[u8]) -> ControlFlow<()> {
        let heard = self.listener.as_mut().map_or(ControlFlow::Continue(()), |listener| listener(piece));
        match self.keeps {
            Keeps::Whole => {
                let room = self.limit - self.bytes.len();
                self.bytes.extend(&piece[..room.min(piece.len())]);
                self.is_truncated |= piece.len() > room;
                if self.is_truncated { ControlFlow::Break(()) } else { heard }
            }
            Keeps::Tail => {
                self.bytes.extend(piece);
                let surplus = self.bytes.len().saturating_sub(self.limit);
                self.bytes.drain(..surplus);
                self.is_truncated |= surplus > 0;
                heard
            }
        }
    }

    pub(crate) fn into_captured(self) -> Captured {
        Captured { bytes: self.bytes.into(), is_truncated: self.is_truncated }
    }
}

impl fmt::Debug for Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture")
            .field("keeps", &self.keeps)
            .field("limit", &self.limit)
            .field("kept", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

/// What was kept of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether there were more.
    pub is_truncated: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_is_kept_up_to_its_limit_and_then_it_is_enough() {
        let mut whole = Capture::whole(4);
        assert!(whole.take(b"abcd").is_continue(), "it fits");
        assert!(whole.take(b"e").is_break());
        assert!(whole.take(b"").is_break(), "it stays enough");
        let kept = whole.into_captured();
        assert_eq!((kept.bytes, kept.is_truncated), (b"abcd".to_vec(), true));
    }

    #[test]
    fn of_a_tail_the_last_bytes_are_kept() {
        let mut tail = Capture::tail(3);
        for piece in ["a", "bcdefg", "", "h"] {
            assert!(tail.take(piece.as_bytes()).is_continue());
        }
        let kept = tail.into_captured();
        assert_eq!((kept.bytes, kept.is_truncated), (b"fgh".to_vec(), true));
        assert!(!Capture::tail(3).into_captured().is_truncated);
    }

    #[test]
    fn a_listener_hears_everything_and_may_say_that_it_is_enough() {
        let (told, heard) = std::sync::mpsc::channel();
        let mut tail = Capture::tail(1).listener(move |piece| {
            told.send(piece.to_vec()).expect("the test listens");
            if piece == b"stop" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(tail.take(b"go").is_continue());
        assert!(tail.take(b"stop").is_break());
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), [b"go".to_vec(), b"stop".to_vec()]);
    }
}
