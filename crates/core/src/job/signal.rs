//! Signals by their names, and what an exit code says of one. Numbers are those of Linux.

/// Returns a signal as people call it: `signal 9 (SIGKILL)`.
#[must_use]
pub fn signal_named(number: i32) -> String {
    match name(number) {
        Some(name) => format!("signal {number} ({name})"),
        None => format!("signal {number}"),
    }
}

/// Says which signal an exit code stands for, after a comma: that a process was killed by it, where its end says so
/// in `summary`, or that a shell tells it so of what it ran. `None` for all other codes.
#[must_use]
pub fn signal_told(exit_code: i32, summary: Option<&str>) -> Option<String> {
    let number = exit_code.checked_sub(SHELL).filter(|number| *number > 0)?;
    let named = signal_named(number);
    // With its code behind it, so that nothing that the process wrote itself is taken for it.
    let killed = format!("{} (exit {exit_code})", killed_by(number));
    if summary.is_some_and(|summary| summary.contains(&killed)) {
        return Some(format!("killed by {named}"));
    }
    name(number).map(|_| format!("which a shell gives for {named}"))
}

/// Says that a process was killed, as it is kept in the summary of its end.
#[must_use]
pub fn killed_by(number: i32) -> String {
    format!("was killed by {}", signal_named(number))
}

/// What shells, and we, add to the number of a signal.
const SHELL: i32 = 128;

const fn name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_told_as_the_signal_that_it_stands_for() {
        let killed = "command.run was killed by signal 9 (SIGKILL) (exit 137)";
        assert_eq!(signal_told(137, Some(killed)).as_deref(), Some("killed by signal 9 (SIGKILL)"));
        for summary in [None, Some("command.run failed (exit 137)")] {
            let told = signal_told(137, summary);
            assert_eq!(told.as_deref(), Some("which a shell gives for signal 9 (SIGKILL)"));
        }
        let odd = format!("x {} (exit 168)", killed_by(40));
        assert_eq!(signal_told(168, Some(&odd)).as_deref(), Some("killed by signal 40"));
        for code in [i32::MIN, -1, 0, 1, 124, 126, 127, 128, 168, 255, i32::MAX] {
            assert_eq!(signal_told(code, Some("what")), None, "{code}");
        }
    }
}
