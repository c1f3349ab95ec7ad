//! The configuration of jobs.

use tidewheel_core::job::{Config, DisplayFormat, KnownFields, script_shown};
use tidewheel_core::time::Span;

use super::world::messages;

fn parse(text: &str) -> Result<Config, Vec<String>> {
    let known = KnownFields { list: &["job", "status"], show: &[] };
    Config::parse(text, known).map_err(|problems| messages(&problems))
}

#[test]
fn everything_that_can_be_configured_is_read() {
    let config = parse(
        r#"
[commands]
draft = "file:.tidewheel/workflows/draft.toml"
[agents.default]
command = "my-agent"
args = ["-p"]
env = ["A"]
timeout = "10m"
cwd = "sub"
[agents.listed]
command = ["my-agent", "-p"]
args = ["x y"]
[secrets]
env = ["TOKEN", "PASSWORD"]
[scheduler]
capacity = 3
probe_interval = "250ms"
[jobs.cancel]
cleanup_worktree = true
[jobs.gc]
days = 30
[jobs.logs]
max_size = "2MiB"
[display.lists.jobs]
fields = ["status", "job"]
format = "table"
[display.lists.jobs_show]
fields = ["whatever"]
[[policies]]
match = { default = true }
max_retries = 1
"#,
    )
    .unwrap();
    assert_eq!(config.commands["draft"], "file:.tidewheel/workflows/draft.toml");
    let agent = &config.agents["default"];
    assert_eq!(script_shown(&agent.argv), ["sh", "-e", "-c", "my-agent \"$@\"", "sh", "-p"]);
    assert_eq!(config.agents["listed"].argv, ["my-agent", "-p", "x y"]);
    assert_eq!(agent.timeout, Some(Span::from_secs(600)));
    assert_eq!((agent.env.as_slice(), agent.cwd.as_deref()), (&["A".to_owned()][..], Some("sub")));
    assert_eq!(config.secrets, ["TOKEN", "PASSWORD"]);
    assert_eq!(config.capacity, Some(3));
    assert_eq!(config.probe_interval, Span::from_millis(250));
    assert!(config.cleanup_worktree);
    assert_eq!(config.gc_days, 30);
    assert_eq!(config.log_size, 2 * 1024 * 1024);
    assert_eq!(config.list.fields.as_deref().unwrap(), ["status", "job"]);
    assert_eq!(config.list.format, Some(DisplayFormat::Table));
    assert_eq!(config.show.fields.as_deref().unwrap(), ["whatever"]);
    assert_eq!(config.rules.as_slice().len(), 1);
}

#[test]
fn nothing_has_to_be_configured() {
    let config = parse("").unwrap();
    assert_eq!(config.capacity, None);
    assert_eq!(config.probe_interval, Span::from_secs(5));
    assert_eq!(config.gc_days, 7);
    assert_eq!(config.log_size, 64 * 1024 * 1024);
    assert!(!config.cleanup_worktree);
}

#[test]
fn what_means_nothing_is_refused_with_its_place() {
    let known = KnownFields { list: &["job", "status"], show: &[] };
    let text = "[scheduler]\ncapcity = 1\n[display.lists.jobs]\nfields = ['jobb']\n[surprise]\n";
    assert_eq!(
        Config::parse(text, known).unwrap_err().to_string(),
        "line 2, column 1: scheduler.capcity: is not a known field (did you mean `capacity`?)\n\
         line 4, column 11: display.lists.jobs.fields: has no field `jobb`; did you mean `job`? known are job, status\n\
         line 5, column 2: surprise: is not a known field (known are commands, agents, secrets, scheduler, jobs, display, policies)"
    );
    let bad = [
        ("[commands]\nx = 'draft.toml'", "commands.x: must be \"file:PATH\", got `draft.toml`"),
        ("[agents.x]\nargs = []", "agents.x.command: is missing"),
        ("[agents.x]\ncommand = ' '", "agents.x.command: must not be empty"),
        (
            "[agents.x]\ncommand = ['a']\nerrexit = false",
            "agents.x.errexit: does nothing: the command is a list, which no shell reads",
        ),
        (
            "[agents.x]\ncommand = '#!/usr/bin/python3'",
            "agents.x.command: begins with a `#!` line, and `sh` reads it all the same: write a list with the program first",
        ),
        (
            "[agents.x]\ncommand = [1]",
            "agents.x.command: must be a text for a shell, or a list with a program first",
        ),
        (
            "[agents.x]\ncommand = 'a'\ncwd = 'a/../..'",
            "agents.x.cwd: must be a directory in the repository, relative to its root",
        ),
        (
            "[agents.x]\ncommand = 'a'\nenv = ['A=b']",
            "agents.x.env: has `A=b`, which is no name of a variable",
        ),
        ("[secrets]\nTOKEN = 'x'", "secrets.TOKEN: is not a known field"),
        (
            "[scheduler]\ncapacity = 0",
            "scheduler.capacity: must be at least 1: with 0 nothing would ever run",
        ),
        ("[scheduler]\nprobe_interval = '0s'", "scheduler.probe_interval: must be longer than 0s"),
        ("[jobs.logs]\nmax_size = '64 parsecs'", "jobs.logs.max_size: must be a size such as \"64MiB\""),
        ("[jobs.logs]\nmax_size = '10B'", "jobs.logs.max_size: must be at least 4KiB"),
        ("[jobs.logs]\nmax_size = 0", "jobs.logs.max_size: must be a size such as \"64MiB\""),
        ("[jobs.gc]\ndays = -1", "jobs.gc.days: must be within 0..=4294967295, got -1"),
        (
            "[[policies]]\nmatch = { default = true }\nlog_level = 'info'",
            "policies[0].log_level: has no effect on a job: its log is what its process writes",
        ),
        ("policies = 1", "policies: must be a list of tables, found an integer"),
    ];
    for (text, message) in bad {
        assert_eq!(parse(text).unwrap_err(), [message], "{text}");
    }
}
