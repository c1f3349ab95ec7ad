//! What we know of the terminal: how wide it is and which characters it can show.

use std::env;
use std::io::IsTerminal as _;
use std::os::fd::AsFd;

use crate::view::timeline::Canvas;

/// The narrowest and the widest that anything is drawn for; beyond them nothing reads well.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=200;

/// The width where nobody knows: what terminals have had since there are terminals.
const USUAL_WIDTH: usize = 80;

/// Returns how many columns there are: what `COLUMNS` says, what the terminal says, or the usual.
pub(crate) fn width(stream: impl AsFd) -> usize {
    let asked = || {
        let size = rustix::termios::tcgetwinsize(stream).ok()?;
        Some(usize::from(size.ws_col))
    };
    let columns = given().or_else(asked).filter(|columns| *columns > 0);
    columns.unwrap_or(USUAL_WIDTH).clamp(*WIDTHS.start(), *WIDTHS.end())
}

/// Returns what there is to draw on.
pub(crate) fn canvas() -> Canvas {
    Canvas { width: width(std::io::stdout()), has_unicode: has_unicode() }
}

/// Returns what there is to draw a table on; `None` where nobody says how wide it may be, as in a pipe: then it is as
/// wide as it is.
pub(crate) fn table_canvas() -> Option<Canvas> {
    let is_given = given().is_some() || std::io::stdout().is_terminal();
    is_given.then(canvas)
}

/// Returns how many columns somebody wants.
fn given() -> Option<usize> {
    let columns = env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    columns.filter(|columns| *columns > 0)
}

/// Tells whether characters beyond ASCII can be shown.
pub(crate) fn has_unicode() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = variables.into_iter().filter_map(env::var_os).find(|value| !value.is_empty());
    // Where nothing is said, as in most containers, the terminal outside is one of our days.
    locale.is_none_or(|locale| is_utf8(&locale.to_string_lossy()))
}

/// Tells whether the terminal shows lines and nothing else.
pub(crate) fn is_dumb() -> bool {
    env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Tells whether lines of the output can be written over again.
pub(crate) fn is_live() -> bool {
    std::io::stdout().is_terminal() && env::var_os("TERM").is_some() && !is_dumb()
}

/// Returns how many lines there are: what the terminal says, or the usual.
pub(crate) fn height() -> usize {
    const USUAL: usize = 24;
    let rows = rustix::termios::tcgetwinsize(std::io::stdout()).map_or(0, |size| usize::from(size.ws_row));
    if rows == 0 { USUAL } else { rows }
}

/// Tells whether colours are wanted.
pub(crate) fn has_colour() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn is_utf8(locale: &str) -> bool {
    let locale = locale.to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_say_their_encoding() {
        for locale in ["C.UTF-8", "en_US.utf8", "de_CH.UTF-8@euro"] {
            assert!(is_utf8(locale), "{locale}");
        }
        for locale in ["C", "POSIX", "en_US.ISO-8859-1", "en_US"] {
            assert!(!is_utf8(locale), "{locale}");
        }
    }
}
