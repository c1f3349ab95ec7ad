//! Texts as others write them at their worst, and what must hold of everything that is shown of them. Only for tests.
//!
//! A few by default; a million through each place with `TIDEWHEEL_STORM=full`, which is what `cargo xtask crash` sets.

use tidewheel_core::view::steers;

use crate::view::columns::columns_of;
use crate::view::timeline::Canvas;

/// What is shown, and what was promised of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Shown<'a> {
    pub(crate) text: &'a str,
    /// How wide its lines are at most; one word may be wider.
    pub(crate) width: Option<usize>,
    /// How many lines there are.
    pub(crate) lines: Option<usize>,
    /// Whether there may be tabs.
    pub(crate) has_tabs: bool,
}

impl Shown<'_> {
    /// Fails if a promise is broken. `from` is what was written, for whoever looks into it.
    #[track_caller]
    pub(crate) fn check(self, from: &impl std::fmt::Debug) {
        let plain = OURS.iter().fold(self.text.to_owned(), |text, ours| text.replace(ours, ""));
        let is_bad = |c: char| steers(c) && c != '\n' && !(self.has_tabs && c == '\t');
        if let Some(bad) = plain.chars().find(|c| is_bad(*c)) {
            panic!("{bad:?} of {from:?} is shown:\n{plain}\n{plain:?}");
        }
        let lines: Vec<&str> = plain.strip_suffix('\n').unwrap_or(&plain).split('\n').collect();
        if let Some(count) = self.lines {
            assert_eq!(lines.len(), count, "{from:?} is shown as:\n{plain}");
        }
        let width = self.width.unwrap_or(usize::MAX);
        for line in lines {
            let is_one_word = !line.trim().contains(' ');
            assert!(is_one_word || columns_of(line) <= width, "{width}: {line:?} of {from:?} in:\n{plain}");
        }
    }
}

/// The styles that we write ourselves. Nobody else writes just these.
const OURS: [&str; 12] = [
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[35m",
    "\u{1b}[36m",
    "\u{1b}[90m",
    "\u{1b}[91m",
    "\u{1b}[94m",
    "\u{1b}[96m",
];

/// What breaks screens, and what stands between it.
const PIECES: [&[u8]; 66] = [
    b"\x1b[38;5;196m",
    b"\x1b[2J",
    b"\x1b[7m",
    b"\x1b[1;1H",
    b"\x1b]8;;http://example.org/\x1b\\",
    b"\x1b]0;title\x07",
    b"\x1bP1$r\x1b\\",
    b"\x1b",
    b"\x1bc",
    b"\x1b[",
    b"\xc2\x9b2J",
    b"\xc2\x9d0;t\xc2\x9c",
    b"\xc2\x85",
    b"\x9b31m",
    b"\r",
    b"\r\n",
    b"\n",
    b"\n\n",
    b"\t",
    b"\x08\x08",
    b"\0",
    b"\x07",
    b"\x0b",
    b"\x0c",
    b"\x0e",
    b"\x7f",
    b"\xed\xa0\x80",
    b"\xed\xb0\x80",
    b"\xf0\x9f",
    b"\xff\xfe",
    b"\xc0\xaf",
    "\u{202e}".as_bytes(),
    "\u{2066}x\u{2069}".as_bytes(),
    "\u{200f}".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{200b}".as_bytes(),
    "\u{feff}".as_bytes(),
    "\u{ad}".as_bytes(),
    "\u{3164}".as_bytes(),
    "\u{e0041}".as_bytes(),
    "\u{fffe}".as_bytes(),
    "订单".as_bytes(),
    "🦀".as_bytes(),
    "👩\u{200d}👩\u{200d}👧".as_bytes(),
    "❤\u{fe0f}".as_bytes(),
    "\u{fe0f}".as_bytes(),
    "1\u{fe0f}\u{20e3}".as_bytes(),
    "🇨🇭".as_bytes(),
    "e\u{301}\u{302}\u{303}\u{304}".as_bytes(),
    "\u{301}".as_bytes(),
    "لا".as_bytes(),
    "한국".as_bytes(),
    "ﷺ".as_bytes(),
    b"\"",
    b"'",
    b"\\",
    b"\\n",
    b"&amp;",
    b"<b>]]>",
    b"<!--",
    b"#quot;",
    b"`*_[x](y)_*`",
    b"--> |x| ; } %%",
    b" ",
    b"word ",
    b"a",
];

/// Where texts come from.
pub(crate) struct Foreign(u64);

impl Foreign {
    /// Returns the same texts for the same name each time.
    pub(crate) fn new(name: &str) -> Self {
        Self(name.bytes().fold(0x9e37_79b9_7f4a_7c15, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(31)))
    }

    /// Returns a number below another.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % bound.max(1) as u64).unwrap_or(0)
    }

    /// Returns bytes, most of them bad ones.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..self.below(12) {
            match self.below(8) {
                0 => bytes.push(u8::try_from(self.below(256)).unwrap_or(0)),
                1 => {
                    let any = u32::try_from(self.below(0x2_0000)).ok().and_then(char::from_u32);
                    bytes.extend_from_slice(any.unwrap_or(' ').to_string().as_bytes());
                }
                _ => bytes.extend_from_slice(PIECES[self.below(PIECES.len())]),
            }
        }
        // Few are long, and those are very long.
        if self.below(64) == 0 { bytes.repeat(100) } else { bytes }
    }

    /// Returns them as whoever reads them as text gets them.
    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Returns something to draw on.
    pub(crate) fn canvas(&mut self) -> Canvas {
        Canvas { width: 40 + self.below(161), has_unicode: self.below(2) == 0 }
    }
}

/// Returns how many texts go through a place.
pub(crate) fn count() -> usize {
    const FULL: usize = 1_000_000;
    const PART: usize = 500;
    if std::env::var("TIDEWHEEL_STORM").is_ok_and(|size| size == "full") { FULL } else { FULL / PART }
}
