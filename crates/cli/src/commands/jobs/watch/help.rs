//! The keys, for whoever asks.

use super::pages::Page;

/// Returns the page with the keys.
pub(super) fn page() -> Page {
    let line = |(keys, what): &(&str, &str)| {
        if keys.is_empty() { (*what).to_owned() } else { format!("  {keys:<14}{what}") }
    };
    Page::new("Keys", KEYS.iter().map(line).collect())
}

const KEYS: [(&str, &str); 25] = [
    ("", "In the list of jobs"),
    ("up, k", "the job before"),
    ("down, j", "the job after"),
    ("page up/down", "a page of jobs"),
    ("home, g", "the first job"),
    ("end, G", "the last job"),
    ("/", "only jobs with a text; esc shows all again"),
    ("s", "only jobs of one kind, then of the next"),
    ("enter, l", "the logs of the job"),
    ("w", "why the job is where it is"),
    ("", ""),
    ("", "What the job is asked for, after y for yes"),
    ("a", "approve it"),
    ("x", "reject it"),
    ("r", "retry it, with all that comes after it"),
    ("c", "cancel it"),
    ("", ""),
    ("", "In logs and texts"),
    ("up, down, ...", "scroll; left and right go sideways"),
    ("tab", "both streams, or one of them"),
    ("f, end", "stay at the end of the log"),
    ("esc", "back to the list"),
    ("", ""),
    ("?", "this page"),
    ("q, ctrl-c", "leave; the jobs go on"),
];
