//! Under which conditions was measured: the machine, the date, the commit, the toolchain, the commands and how long they
//! took; kept beside the figures, so that a page that is written later tells of then and not of now.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::step::workspace_root;

/// The conditions of one report. What could not be found out is not there.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Conditions {
    /// When it began, in seconds since 1970.
    pub(crate) began: u64,
    pub(crate) is_quick: bool,
    pub(crate) commit: Option<String>,
    /// Whether files differed from the commit.
    pub(crate) is_changed: bool,
    pub(crate) toolchain: Option<String>,
    pub(crate) processor: Option<String>,
    pub(crate) cores: Option<usize>,
    pub(crate) memory_kib: Option<u64>,
    pub(crate) kernel: Option<String>,
    /// How many processes wanted a core in the minute before the first measurement.
    pub(crate) load: Option<f64>,
    pub(crate) steps: Vec<Taken>,
}

/// One step that was taken, or tried.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Taken {
    pub(crate) name: String,
    /// As a person would type it.
    pub(crate) command: String,
    pub(crate) seconds: f64,
    /// Why it did not succeed.
    pub(crate) trouble: Option<String>,
}

impl Conditions {
    /// Looks at the machine and at the repository.
    pub(crate) fn now(is_quick: bool) -> Self {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self {
            began: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            is_quick,
            commit: said("git", &["rev-parse", "HEAD"]),
            is_changed: said("git", &["status", "--porcelain"]).is_some_and(|changes| !changes.is_empty()),
            toolchain: said("rustc", &["--version"]),
            processor: field(&file("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().ok().map(std::num::NonZero::get),
            memory_kib: field(&file("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.split(' ').next()?.parse().ok()),
            kernel: Some(file("/proc/sys/kernel/osrelease").trim().to_owned())
                .filter(|text| !text.is_empty()),
            load: load(),
            steps: Vec::new(),
        }
    }

    /// Reads the conditions that were kept; there are none if nothing was measured.
    pub(crate) fn kept(path: &Path) -> std::io::Result<Option<Self>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(serde_json::from_str(&text)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps the conditions for a page that is written later.
    pub(crate) fn keep(&self, path: &Path) -> std::io::Result<()> {
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")
    }

    /// Returns how long all steps took.
    pub(crate) fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.seconds).sum()
    }

    /// Waits until the machine has come to rest after what was built, but not for ever, and looks at its load again.
    pub(crate) fn come_to_rest(&mut self) {
        const PATIENCE: Duration = Duration::from_secs(240);
        const LOOK: Duration = Duration::from_secs(5);
        let calm = self.cores.unwrap_or(1) as f64 / 5.0;
        let began = Instant::now();
        self.load = load();
        while self.load.is_some_and(|load| load > calm) && began.elapsed() < PATIENCE {
            std::thread::sleep(LOOK);
            self.load = load();
        }
    }

    /// Returns whether others wanted much of the machine when it was measured.
    pub(crate) fn was_busy(&self) -> bool {
        let cores = self.cores.unwrap_or(1) as f64;
        self.load.is_some_and(|load| load > cores / 2.0)
    }
}

/// Returns how many processes wanted a core in the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Returns an instant as `2026-01-31 12:34 UTC`.
pub(crate) fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400, seconds / 60 % 1_440);
    // Years that begin in March have their leap day at the end; 400 of them always have the same length.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    let year = era * 400 + year;
    format!("{year:04}-{month:02}-{of_month:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

/// Returns what a program says, if it can be started and succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).current_dir(workspace_root()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Returns the first value of a field in a text with lines `name: value`.
fn field(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [0, 951_782_399, 951_782_400, 951_868_800, 1_767_225_599, 1_772_323_199, 4_107_542_400];
        assert_eq!(
            dates.map(date),
            [
                "1970-01-01 00:00 UTC",
                "2000-02-28 23:59 UTC",
                "2000-02-29 00:00 UTC",
                "2000-03-01 00:00 UTC",
                "2025-12-31 23:59 UTC",
                "2026-02-28 23:59 UTC",
                "2100-03-01 00:00 UTC",
            ]
        );
    }

    #[test]
    fn fields_are_read_as_linux_writes_them() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\nMemTotal:       8145028 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("Some CPU @ 2.50GHz"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("8145028 kB"));
        assert_eq!(field(text, "MemFree"), None);
    }

    #[test]
    fn half_of_the_cores_in_use_is_a_busy_machine() {
        let with = |load| Conditions { cores: Some(2), load, ..Conditions::default() };
        assert!(!with(Some(0.9)).was_busy() && with(Some(1.1)).was_busy() && !with(None).was_busy());
    }

    #[test]
    fn conditions_come_back_as_they_were_kept() {
        let step = Taken { name: "a".into(), command: "b".into(), seconds: 1.5, trouble: Some("c".into()) };
        let conditions = Conditions { began: 7, steps: vec![step], ..Conditions::now(true) };
        let text = serde_json::to_string(&conditions).unwrap();
        let back: Conditions = serde_json::from_str(&text).unwrap();
        assert_eq!(format!("{back:?}"), format!("{conditions:?}"));
        assert!(Conditions::kept(Path::new("/nonexistent/a")).unwrap().is_none());
    }
}
