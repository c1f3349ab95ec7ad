//! The names in the headers of a patch, as they are written there: git changes some of them before it says them. It
//! applies nothing.

/// The names in the headers of a patch.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    /// All of them, with whatever stands in front of the path.
    pub(super) all: Vec<String>,
    /// What files are renamed or copied from.
    pub(super) sources: Vec<String>,
}

/// Reads the headers of a patch. What is in the files themselves may look like one, and is left out.
pub(super) fn names(patch: &[u8]) -> Names {
    let lines: Vec<_> = patch.split(|byte| *byte == b'\n').map(String::from_utf8_lossy).collect();
    let mut names = Names::default();
    let mut at = 0;
    let mut is_of_git = false;
    while let Some(line) = lines.get(at) {
        at += 1;
        let line = line.trim_end_matches('\r');
        if let Some(hunk) = Hunk::of(line) {
            at += hunk.length(&lines[at..]);
        } else if line.starts_with("diff --git ") {
            is_of_git = true;
        } else if is_of_git && let Some(name) = named(line, &["rename from ", "copy from "]) {
            names.sources.push(name.clone());
            names.all.push(name);
        } else if is_of_git && let Some(name) = named(line, &["rename to ", "copy to "]) {
            names.all.push(name);
        } else if is_of_git && let Some(name) = named(line, &["--- ", "+++ "]) {
            names.all.push(without_time(name));
        } else if let (Some(old), Some(new)) = (named(line, &["--- "]), lines.get(at)) {
            // Text before a patch may have such a line, too, but not all three.
            let new = named(new.trim_end_matches('\r'), &["+++ "]);
            if let Some(new) = new.filter(|_| lines.get(at + 1).is_some_and(|line| line.starts_with("@@ -")))
            {
                names.all.extend([old, new].map(without_time));
            }
        }
    }
    names
}

/// Tells whether a name in a header leads to the root of the machine, with or without a prefix such as `a/`.
pub(super) fn is_absolute(name: &str) -> bool {
    let is_prefixed =
        name.split_once('/').is_some_and(|(first, rest)| first.len() == 1 && rest.starts_with('/'));
    (name.starts_with('/') && name != "/dev/null") || is_prefixed
}

/// How many lines of the old and of the new file are in a hunk.
#[derive(Debug)]
struct Hunk {
    old: usize,
    new: usize,
}

impl Hunk {
    /// Reads `@@ -1,2 +3,4 @@`.
    fn of(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        let count = |range: &str| match range.split_once(',') {
            Some((_, count)) => count.parse().ok(),
            None => Some(1),
        };
        Some(Self { old: count(old)?, new: count(new)? })
    }

    /// Returns how many lines belong to it, of those that follow.
    fn length<L: AsRef<str>>(mut self, lines: &[L]) -> usize {
        let mut length = 0;
        for line in lines {
            let (old, new) = match line.as_ref().as_bytes().first() {
                Some(b'-') => (1, 0),
                Some(b'+') => (0, 1),
                // Some programs leave out the blank of an empty line.
                Some(b' ' | b'\r') | None => (1, 1),
                Some(b'\\') => (0, 0),
                Some(_) => break,
            };
            let is_over = self.old == 0 && self.new == 0;
            if (is_over && old + new > 0) || old > self.old || new > self.new {
                break;
            }
            (self.old, self.new) = (self.old - old, self.new - new);
            length += 1;
        }
        length
    }
}

/// Returns the name behind one of these words.
fn named(line: &str, words: &[&str]) -> Option<String> {
    let name = words.iter().find_map(|word| line.strip_prefix(word))?;
    // What cannot be read stays as it is written.
    Some(unquoted(name).unwrap_or_else(|| name.to_owned()))
}

/// Takes away the time that some programs write behind a name.
fn without_time(name: String) -> String {
    match name.split_once('\t') {
        Some((name, _)) => unquoted(name).unwrap_or_else(|| name.to_owned()),
        None => name,
    }
}

/// Reads a name as git writes it: with quotes and escapes where it has to.
fn unquoted(name: &str) -> Option<String> {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return Some(name.to_owned());
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            digit @ b'0'..=b'3' => {
                let octal = |digit: u8| (b'0'..=b'7').contains(&digit).then(|| digit - b'0');
                (octal(digit)? << 6) | (octal(rest.next()?)? << 3) | octal(rest.next()?)?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_git_writes_them() {
        assert_eq!(unquoted("a b").unwrap(), "a b");
        assert_eq!(unquoted(r#""\303\244\t\"x\"""#).unwrap(), "ä\t\"x\"");
        assert_eq!(unquoted(r#""\3""#), None);
        let patch = b"diff --git a/a b/b\nrename from a\nrename to b\ncopy from \"c\\td\"\n+copy from e\n";
        assert_eq!(names(patch).sources, ["a", "c\td"]);
        assert_eq!(names(patch).all, ["a", "b", "c\td"]);
    }

    #[test]
    fn only_headers_have_names() {
        let patch = b"--- /etc/in a letter\n\n--- a/x\t2026-01-01\n+++ \"/b c\"\n@@ -1,2 +1,2 @@\n--- /old\n+++ /new\n \n\
            diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +0,0 @@\n--- /gone\n\\ No newline\n--- p\r\n+++ q\r\n@@ -1 +1 @@\n";
        assert_eq!(names(patch).all, ["a/x", "/b c", "a/y", "b/y", "p", "q"]);
    }

    #[test]
    fn a_name_is_absolute_with_and_without_a_prefix() {
        for name in ["/tmp/x", "//x", "b//tmp/x"] {
            assert!(is_absolute(name), "{name}");
        }
        for name in ["/dev/null", "a/x", "x", "dir//x"] {
            assert!(!is_absolute(name), "{name}");
        }
    }
}
