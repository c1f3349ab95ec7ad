//! How the text of a script is handed to a shell: which flags it gets, and what stands before it. Nothing is run here.

/// Sets `pipefail` in a shell that has it, and does nothing in one that has not.
///
/// `set` is a special builtin, whose error would end the shell; `command` takes that away. Nothing is forked, and the
/// script begins on the same line, so that the line numbers of its messages are those of the script.
const PIPEFAIL: &str = "command set -o pipefail 2>/dev/null || :; ";

/// Returns the command line that runs a script.
///
/// With `errexit` the script ends at its first line that fails, and at a pipe with a part that fails where the shell
/// has `pipefail`.
///
/// ```
/// use tidewheel_core::job::script_argv;
///
/// assert_eq!(script_argv("make", false), ["sh", "-c", "make"]);
/// assert_eq!(script_argv("make", true)[..3], ["sh", "-e", "-c"]);
/// ```
#[must_use]
pub fn script_argv(script: &str, errexit: bool) -> Vec<String> {
    match errexit {
        true => vec!["sh".to_owned(), "-e".to_owned(), "-c".to_owned(), format!("{PIPEFAIL}{script}")],
        false => vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()],
    }
}

/// Returns a command line as people see it: a script without what [`script_argv`] puts before it.
#[must_use]
pub fn script_shown(argv: &[String]) -> Vec<String> {
    argv.iter().map(|word| word.strip_prefix(PIPEFAIL).unwrap_or(word).to_owned()).collect()
}

/// Returns the program that the first line of a script asks for, unless it is `sh`, which runs every script.
///
/// ```
/// use tidewheel_core::job::foreign_interpreter;
///
/// assert_eq!(foreign_interpreter("#!/usr/bin/env python3\nprint(1)"), Some("python3"));
/// assert_eq!(foreign_interpreter("#!/bin/sh\ntrue"), None);
/// ```
#[must_use]
pub fn foreign_interpreter(script: &str) -> Option<&str> {
    let line = script.trim_start().strip_prefix("#!")?.lines().next()?;
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    let first = words.next()?;
    let program = match first {
        "env" => words.find(|word| !word.starts_with('-') && !word.contains('=')).unwrap_or(first),
        other => other,
    };
    (program != "sh").then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_script_stays_its_first_line() {
        let argv = script_argv("one\ntwo", true);
        assert_eq!(argv[3].lines().count(), 2);
        assert!(argv[3].ends_with("one\ntwo"));
        assert_eq!(script_shown(&argv), ["sh", "-e", "-c", "one\ntwo"]);
        assert_eq!(script_shown(&script_argv("one", false)), ["sh", "-c", "one"]);
    }

    #[test]
    fn only_a_first_line_that_names_another_program_is_foreign() {
        let cases = [
            ("#!/bin/bash\nx", Some("bash")),
            ("\n#!/usr/bin/env -S python3 -u\nx", Some("python3")),
            ("#! /bin/sh -x\nx", None),
            ("#!/usr/bin/env sh", None),
            ("# a comment", None),
            ("echo '#!/bin/bash'", None),
            ("#!", None),
        ];
        for (script, expected) in cases {
            assert_eq!(foreign_interpreter(script), expected, "{script:?}");
        }
    }
}
