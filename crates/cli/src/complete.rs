//! Completion of command lines: how one goes on, asked by the scripts of `tidewheel completions`. It only reads, and
//! what cannot be read is no candidate.

mod candidates;

use std::ffi::{OsStr, OsString};
use std::io;

use clap_complete::engine;
use clap_complete::env::{EnvCompleter, Shells};

use crate::exit::Exit;
use crate::output;

/// The variable by which a script says which shell asks.
const VARIABLE: &str = "_TIDEWHEEL_COMPLETE";
/// Where bash breaks words beside blanks, and gives the breaks as words of their own.
const BREAKS: [&str; 3] = ["=", ":", "::"];

/// A shell that can ask.
pub(crate) struct Shell(&'static dyn EnvCompleter);

impl Shell {
    /// Returns the shell with that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        const KNOWN: Shells<'static> = Shells::builtins();
        KNOWN.0.iter().copied().find(|shell| shell.is(name)).map(Self)
    }
}

/// Returns the script of a shell.
pub(crate) fn script(shell: &Shell) -> io::Result<Vec<u8>> {
    let mut script = Vec::new();
    // The binary is found as the shell finds it when something is completed.
    shell.0.write_registration(VARIABLE, "tidewheel", "tidewheel", "tidewheel", &mut script)?;
    if shell.0.is("zsh") {
        let text = String::from_utf8_lossy(&script);
        return Ok(ZSH
            .iter()
            .fold(text.into_owned(), |text, (old, new)| text.replace(old, new))
            .into_bytes());
    }
    Ok(script)
}

/// What is different in the script for zsh: behind `name=` comes its value, and no blank.
const ZSH: [(&str, &str); 3] = [
    ("        local -a other=()\n", "        local -a other=()\n        local -a begun=()\n"),
    (
        "            else\n                other+=(",
        "            elif [[ \"$value\" == *= ]]; then\n                begun+=(\"$completion\")\n            \
         else\n                other+=(",
    ),
    (
        "        [[ -n $other ]] &&",
        "        [[ -n $begun ]] && _describe -V 'values' begun -S ''\n        [[ -n $other ]] &&",
    ),
];

/// Answers a script, if one asks. The command line is only built if it is needed.
pub(crate) fn answered(arguments: &[OsString], command: impl FnOnce() -> clap::Command) -> Option<Exit> {
    let shell = Shell::named(&std::env::var(VARIABLE).ok()?)?;
    let words = arguments.get(2..).filter(|_| arguments[1] == "--")?;
    // Nobody at a prompt reads errors: what cannot be completed is not.
    let mut answer = Vec::new();
    let written = if shell.0.is("bash") {
        let index = std::env::var("_CLAP_COMPLETE_INDEX").ok().and_then(|index| index.parse().ok());
        let end = std::env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        bash(words, index.unwrap_or_default(), command).map(|found| answer = found.join(&end).into_bytes())
    } else {
        let mut command = candidates::added(command(), words);
        let here = std::env::current_dir().ok();
        shell.0.write_complete(&mut command, words.to_vec(), here.as_deref(), &mut answer)
    };
    let is_told = written.is_ok() && output::bytes(&answer).is_ok();
    Some(if is_told { Exit::Succeeded } else { Exit::Failed })
}

/// Completes for bash, which breaks words at more than blanks and replaces only what stands behind the last break.
fn bash(
    words: &[OsString],
    index: usize,
    command: impl FnOnce() -> clap::Command,
) -> io::Result<Vec<String>> {
    let Whole { words, index, before } = Whole::of(words, index);
    let mut command = candidates::added(command(), &words);
    let here = std::env::current_dir().ok();
    let found = engine::complete(&mut command, words, index, here.as_deref())?;
    let values = found.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned());
    Ok(values.filter_map(|value| value.strip_prefix(&before).map(str::to_owned)).collect())
}

/// Words as they were typed, put together from what bash makes of them.
#[derive(Debug, PartialEq, Eq)]
struct Whole {
    words: Vec<OsString>,
    /// Which of them is to be completed.
    index: usize,
    /// What stands in that word before what bash replaces.
    before: String,
}

impl Whole {
    fn of(given: &[OsString], wanted: usize) -> Self {
        let is_break = |word: &OsStr| BREAKS.iter().any(|known| word == *known);
        let mut whole = Self { words: Vec::new(), index: 0, before: String::new() };
        let mut joins = false;
        for (number, word) in given.iter().enumerate() {
            let breaks = is_break(word) && number > 1;
            match whole.words.last_mut() {
                Some(last) if breaks || joins => {
                    if number == wanted {
                        // A break at the end is not replaced, but stands before what comes.
                        whole.before = last.to_string_lossy().into_owned();
                        if breaks {
                            whole.before.push_str(&word.to_string_lossy());
                        }
                    }
                    last.push(word);
                }
                _ => whole.words.push(word.clone()),
            }
            joins = breaks;
            if number == wanted {
                whole.index = whole.words.len() - 1;
            }
        }
        if wanted >= given.len() {
            whole.index = whole.words.len();
            whole.words.push(OsString::new());
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(line: &str, wanted: usize) -> (Vec<String>, usize, String) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let Whole { words, index, before } = Whole::of(&words, wanted);
        (words.iter().map(|word| word.to_string_lossy().into_owned()).collect(), index, before)
    }

    #[test]
    fn what_bash_breaks_is_put_together() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(whole("tidewheel run x", 2), (words(&["tidewheel", "run", "x"]), 2, String::new()));
        assert_eq!(
            whole("tidewheel run x --format = js", 5),
            (words(&["tidewheel", "run", "x", "--format=js"]), 3, "--format=".to_owned())
        );
        assert_eq!(
            whole("tidewheel run x --after run : ru --fo", 7),
            (words(&["tidewheel", "run", "x", "--after", "run:ru", "--fo"]), 5, String::new())
        );
        assert_eq!(
            whole("tidewheel run x --after run :", 5),
            (words(&["tidewheel", "run", "x", "--after", "run:"]), 4, "run:".to_owned())
        );
        assert_eq!(whole("tidewheel", 1), (words(&["tidewheel", ""]), 1, String::new()));
    }
}
