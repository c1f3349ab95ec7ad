//! What a command says, compared with a page that leaves some of it out.
//!
//! A line `…` or `[...]` on a page stands for any lines, also none; `[...]` inside a line stands for any part of it.
//! A `…` inside a line is just that: tables end long cells with it, and runs are named by it.

/// Says whether a page leaves something out.
pub(crate) fn is_elided(page: &str) -> bool {
    page.contains(PART) || page.lines().any(|line| line.trim() == "…")
}

const PART: &str = "[...]";

/// Says whether what was said is what a page says, but for what the page leaves out.
pub(crate) fn fits(said: &str, page: &str) -> bool {
    let said: Vec<&str> = said.lines().collect();
    let page: Vec<&str> = page.lines().collect();
    let is_any = |line: &&str| matches!(line.trim(), "…" | PART);
    is_matched(&said, &page, is_any, line_fits)
}

/// Returns a text in one line, with what it leaves out as parts of it.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().map(|word| if word == "…" { PART } else { word });
    words.collect::<Vec<_>>().join(" ")
}

fn line_fits(said: &str, page: &str) -> bool {
    let Some((first, rest)) = page.split_once(PART) else { return said == page };
    let Some(mut said) = said.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(PART).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, behind)) = said.split_once(part) else { return false };
        said = behind;
    }
    said.ends_with(last)
}

/// Matches items with a pattern, some items of which stand for any number of items.
fn is_matched<'a>(
    items: &[&'a str],
    pattern: &[&'a str],
    is_any: impl Fn(&&str) -> bool,
    is_same: impl Fn(&str, &str) -> bool,
) -> bool {
    let (mut item, mut at) = (0, 0);
    // Where to go on when it does not fit: what the last wildcard stands for gets one item longer.
    let mut again: Option<(usize, usize)> = None;
    while item < items.len() {
        if at < pattern.len() && is_any(&pattern[at]) {
            again = Some((at, item));
            at += 1;
        } else if at < pattern.len() && is_same(items[item], pattern[at]) {
            item += 1;
            at += 1;
        } else if let Some((wildcard, from)) = again {
            again = Some((wildcard, from + 1));
            at = wildcard + 1;
            item = from + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(is_any)
}

#[test]
fn lines_and_parts_may_be_left_out_and_nothing_else() {
    assert!(fits("a\nb\nc\n", "a\n…\nc\n"));
    assert!(fits("a\nc\n", "a\n[...]\nc\n"));
    assert!(fits("a\nb\nc\nb\nc\n", "a\n…\nc\n"));
    assert!(fits("took 13 of 20 s, all well\n", "took [...] of [...], all well\n"));
    assert!(!fits("a\nb\nd\n", "a\n…\nc\n"));
    assert!(!fits("a\nb\n", "a\n"));
    assert!(!fits("took 13 s, all bad\n", "took [...], all well\n"));
    assert!(!fits("a long cell\n", "a long…\n"), "such dots are what a table prints");
    assert_ne!(fits("a b\nc\n", "a\nb c\n"), fits(&one_line("a b\nc\n"), &one_line("a\nb c\n")));
    assert!(fits(&one_line("a, in 3 s\nand 5\nb\n"), &one_line("a, [...]\n…\nb\n")));
    assert!(!fits(&one_line("a, in 3 s\nc\n"), &one_line("a, [...]\n…\nb\n")));
    assert!(is_elided("a\n…\n") && is_elided("[...] b\n") && !is_elided("a long…\n"));
}
