//! `tidewheel policy check`: every problem at its place, and for each node the rule that wins.

use insta::assert_snapshot;
use serde_json::Value;

use crate::home::{Home, Ran};

fn check(source: &str, arguments: &[&str]) -> Ran {
    let home = Home::new();
    home.file("policies.toml", source);
    home.run(&[&["policy", "check", "policies.toml"], arguments].concat())
}

const RULES: &str = r#"
[[policies]]
match = { name = "fetch_user" }
max_retries = 4
backoff = { kind = "exponential", coefficient = 1.5 }
base_delay = "200ms"
timeout = "5s"
on_failure = "skip"

[[policies]]
match = { pattern = "^llm_" }
max_retries = 20
backoff = "jitter"
timeout_ms = 30000
total_timeout = "10m"
retryable_errors = [429, "timeout"]
circuit_breaker = { name = "model" }
metadata = { team = "search", cost = 2 }

[[policies]]
match = { tag = "slow" }

[[policies]]
match = { kinds = ["map", "reduce"] }
max_retries = 2
"#;

#[test]
fn the_rules_are_listed_in_order() {
    assert_snapshot!(check(RULES, &[]).succeeded(), @r#"
    policies.toml: 4 rules, no problems.

    policies[0] (name fetch_user)
      max_retries = 4
      backoff     = { coefficient = 1.5, kind = "exponential" }
      base_delay  = "200ms"
      timeout     = "5s"
      on_failure  = "skip"

    policies[1] (pattern ^llm_)
      max_retries      = 20
      backoff          = "exponential"
      jitter           = "full"
      timeout          = "30s"
      total_timeout    = "10m"
      retryable_errors = [429, "timeout"]
      circuit_breaker  = { failure_threshold = 5, half_open_permits = 1, name = "model", on_open = "wait", reset_timeout = "1m" }
      metadata         = { cost = 2, team = "search" }

    policies[2] (tag slow)
      says nothing: the defaults

    policies[3] (kinds map, reduce)
      max_retries = 2
    "#);
}

#[test]
fn a_node_gets_the_first_rule_that_matches() {
    assert_snapshot!(check(RULES, &["--name", "fetch_user", "--tag", "slow"]).succeeded(), @r#"
    policies.toml: 4 rules, no problems.

    fetch_user (step, tag slow): policies[0] (name fetch_user) wins

      max_retries          = 4           # policies[0]
      backoff              = { coefficient = 1.5, kind = "exponential" }  # policies[0]
      jitter               = "none"      # default
      base_delay           = "200ms"     # policies[0]
      max_delay            = "30s"       # default
      timeout              = "5s"        # policies[0]
      total_timeout        = "infinity"  # default
      deadline             = "infinity"  # default
      on_failure           = "skip"      # policies[0]
      fallback             = -           # default
      compensation         = -           # default
      retryable_errors     = -           # default
      non_retryable_errors = []          # default
      retry_budget         = -           # default
      circuit_breaker      = -           # default
      execution_mode       = -           # default
      priority             = "normal"    # default
      idempotency_key      = -           # default
      queue_timeout        = -           # default
      concurrency_limit    = -           # default
      rate_limit           = -           # default
      delay                = -           # default
      scheduled_at         = -           # default
      heartbeat            = -           # default
      checkpoint_after     = false       # default
      telemetry_prefix     = -           # default
      log_level            = -           # default
      metadata             = {}          # default

      delays before retries: 200ms, 300ms, 450ms, 675ms

    No node above matches policies[1] (pattern ^llm_), policies[3] (kinds map, reduce).
    "#);
}

#[test]
fn several_nodes_share_their_kind_and_their_tags() {
    let ran =
        check(RULES, &["--name", "a", "--name", "llm_judge", "--kind", "map", "--tag", "x", "--tag", "y"]);
    let headings: Vec<&str> =
        ran.lines().into_iter().filter(|line| line.contains(": ") && !line.contains('=')).collect();
    assert_snapshot!(headings.join("\n"), @"
    policies.toml: 4 rules, no problems.
    a (map, tags x, y): policies[3] (kinds map, reduce) wins
      delays before retries: 0s, 0s
    llm_judge (map, tags x, y): policies[1] (pattern ^llm_) wins
      delays before retries: 65ms, 523ms, 337ms, 576ms, 1s 556ms, 11s 894ms, 25s
    ");
}

#[test]
fn a_node_without_a_name_is_described_by_its_kind_or_tags() {
    let heading = |arguments: &[&str]| check(RULES, arguments).succeeded().lines()[2].to_owned();
    assert_eq!(heading(&["--tag", "slow"]), "unnamed (step, tag slow): policies[2] (tag slow) wins");
    assert_eq!(heading(&["--kind", "reduce"]), "unnamed (reduce): policies[3] (kinds map, reduce) wins");
    assert_eq!(heading(&["--kind", "join"]), "unnamed (join): no rule, the defaults");
}

/// Returns the last line for a policy: its retries.
fn retries(policy: &str) -> String {
    let ran = check(&format!("[[policies]]\nmatch.default = true\n{policy}"), &["--name", "n"]).succeeded();
    let (_, retries) = ran.out.rsplit_once("\n\n").expect("the retries stand apart");
    retries.trim().to_owned()
}

#[test]
fn the_delays_before_retries_are_those_of_the_kernel() {
    let linear = "backoff = 'linear'\nbase_delay = '1s'\nmax_retries =";
    assert_eq!(retries(""), "no retries");
    assert_eq!(retries("max_retries = 2"), "delays before retries: 0s, 0s");
    assert_eq!(retries(&format!("{linear} 3")), "delays before retries: 1s, 2s, 3s");
    assert_eq!(
        retries(&format!("{linear} 10")),
        "delays before retries: 1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s and 2 more"
    );
    assert_eq!(
        retries(&format!("{linear} 4000000000")),
        "delays before retries: 1s, 2s, 3s, 4s, 5s, 6s, 7s, 8s and 3999999992 more"
    );
    assert_eq!(
        retries(&format!("{linear} 9\ntotal_timeout = '4s'")),
        "delays before retries: 1s, 2s, then SCHED_TIMEOUT"
    );
    assert_eq!(
        retries(&format!("{linear} 9\ndeadline = '500ms'")),
        "no retries: the first would start too late (SCHED_DEADLINE_EXCEEDED)"
    );
    assert_eq!(
        retries("backoff = 'jitter'\nmax_retries = 2"),
        "delays before retries: 292ms, 33ms; jitter gives other runs other delays"
    );
}

#[test]
fn rules_that_can_never_win_are_told() {
    let source = "[[policies]]\nmatch.pattern = '^a'\n[[policies]]\nmatch.name = 'ab'\n\
                  [[policies]]\nmatch.default = true\n[[policies]]\nmatch.tag = 'x'\n";
    assert_snapshot!(check(source, &[]), @"
    policies.toml: 4 rules, no problems.

    policies[0] (pattern ^a)
      says nothing: the defaults

    policies[1] (name ab)
      says nothing: the defaults

    policies[2] (default)
      says nothing: the defaults

    policies[3] (tag x)
      says nothing: the defaults
    --- stderr
    warning: policies[1] (name ab) can never win: policies[0] (pattern ^a) comes first and matches all that it matches.
    warning: policies[3] (tag x) can never win: policies[2] (default) comes first and matches all that it matches.
    ");
}

#[test]
fn all_problems_are_shown_at_once() {
    let source = "[[policies]]\nmatch = { name = \"fetch\" }\nmax_retrys = 3\ntimeout = 30\n\n\
                  [[policies]]\nmatch = { pattern = \"(\", }\npriority = \"urgent\"\n\n\
                  [[policies]]\nbase_delay = \"1s\"\nmax_delay = \"10ms\"\n\nother = 1\n";
    assert_snapshot!(check(source, &[]), @r#"
    --- stderr
    error: policies[0].max_retrys: is not a known field
     --> policies.toml:3:1
      |
    3 | max_retrys = 3
      | ^^^^^^^^^^
      |
      = help: did you mean `max_retries`?

    error: policies[0].timeout: 30 has no unit
     --> policies.toml:4:11
      |
    4 | timeout = 30
      |           ^^
      |
      = help: write timeout = "30s" or timeout_ms = 30

    error: policies[1].match.pattern: `(` is no regular expression: unclosed group
     --> policies.toml:7:21
      |
    7 | match = { pattern = "(", }
      |                     ^^^

    error: policies[1].priority: must be one of high, normal, low, got `urgent`
     --> policies.toml:8:12
      |
    8 | priority = "urgent"
      |            ^^^^^^^^

    error: policies[2].match: is missing
      --> policies.toml:10:1
       |
    10 | [[policies]]
       | ^^^^^^^^^^^^
       |
       = help: write match = { name = "…" } or match = { default = true }

    error: policies[2].base_delay: has no effect: there is no delay without backoff
      --> policies.toml:11:14
       |
    11 | base_delay = "1s"
       |              ^^^^
       |
       = help: set backoff, or leave base_delay out

    error: policies[2].max_delay: has no effect: there is no delay without backoff
      --> policies.toml:12:13
       |
    12 | max_delay = "10ms"
       |             ^^^^^^
       |
       = help: set backoff, or leave max_delay out

    error: policies[2].other: is not a known field
      --> policies.toml:14:1
       |
    14 | other = 1
       | ^^^^^

    config error[TW0007]: `policies.toml` has 8 problems.
    --- exit code 1
    "#);
}

#[test]
fn the_caret_stands_under_the_place_behind_any_characters() {
    let source = "[[policies]]\nmatch.default = true\n\
                  \tmetadata = { \"größe\" = \"日本語 👍🏽\" }\n\
                  fallback = { value = \"ñandú 日本\", valeu = 1 }\n\
                  \t\trate_limit = { count = 1, window = \"1\" }\r\n";
    assert_snapshot!(check(source, &[]), @r#"
    --- stderr
    error: policies[0].fallback.valeu: is not a known field
     --> policies.toml:4:34
      |
    4 | fallback = { value = "ñandú 日本", valeu = 1 }
      |                                    ^^^^^
      |
      = help: did you mean `value`?

    error: policies[0].rate_limit.window: `1` is no span of time: it has no unit: write 30s or 500ms
     --> policies.toml:5:38
      |
    5 |         rate_limit = { count = 1, window = "1" }
      |                                            ^^^

    config error[TW0007]: `policies.toml` has 2 problems.
    --- exit code 1
    "#);
}

#[test]
fn what_is_no_toml_has_one_problem() {
    assert_snapshot!(check("[[policies]]\nmatch = { name = \"a\" \ntimeout = \"1s\"\n", &[]), @r#"
    --- stderr
    error: missing comma between key-value pairs, expected `,`
     --> policies.toml:3:1
      |
    3 | timeout = "1s"
      | ^
      |
      = help: perhaps the table before it is not closed with `}`

    config error[TW0007]: `policies.toml` has 1 problem.
    --- exit code 1
    "#);
    assert_snapshot!(check("", &[]), @"
    --- stderr
    error: policies: is missing
     --> policies.toml:1:1
      |
    1 |
      | ^
      |
      = help: write one table of `policies` for each rule

    config error[TW0007]: `policies.toml` has 1 problem.
    --- exit code 1
    ");
    assert_snapshot!(check("policies = 7", &[]), @"
    --- stderr
    error: policies: must be a list of tables, found an integer
     --> policies.toml:1:12
      |
    1 | policies = 7
      |            ^
      |
      = help: write one table for each rule

    config error[TW0007]: `policies.toml` has 1 problem.
    --- exit code 1
    ");
}

#[test]
fn a_template_is_told_to_be_one() {
    assert_snapshot!(check(crate::yard::FLOW, &[]), @"
    --- stderr
    error: this is a template of jobs, and no file of policies
      --> policies.toml:10:3
       |
    10 | [[nodes]]
       |   ^^^^^
       |
       = help: `tidewheel run FILE --check` checks it, with its policies

    config error[TW0007]: `policies.toml` has 1 problem.
    --- exit code 1
    ");
}

#[test]
fn json_is_read_by_the_name_of_the_file() {
    let home = Home::new();
    home.file("rules.json", r#"{"policies": [{"match": {"default": true}, "timeout": "5s", "retries": 3}]}"#);
    home.file("Rules.JSON", "\u{feff}{\"policies\": []}").file("torn.json", "{\"policies\": [\n  {,");
    assert_snapshot!(home.run(&["policy", "check", "rules.json"]), @r#"
    --- stderr
    error: policies[0].retries: is not a known field
     --> rules.json:1:61
      |
    1 | {"policies": [{"match": {"default": true}, "timeout": "5s", "retries": 3}]}
      |                                                             ^^^^^^^^^
      |
      = help: did you mean `max_retries`?

    config error[TW0007]: `rules.json` has 1 problem.
    --- exit code 1
    "#);
    assert_snapshot!(home.run(&["policy", "check", "torn.json"]), @"
    --- stderr
    error: key must be a string
     --> torn.json:2:4
      |
    2 |   {,
      |    ^

    config error[TW0007]: `torn.json` has 1 problem.
    --- exit code 1
    ");
    assert_snapshot!(home.run(&["policy", "check", "Rules.JSON"]).succeeded(), @"Rules.JSON: no rules, no problems.");
}

#[test]
fn a_dash_is_toml_from_the_standard_input() {
    let home = Home::new();
    let ran = home.feed(&["policy", "check", "-"], "\u{feff}policies = [{match.default = true}]").succeeded();
    assert!(ran.out.starts_with("standard input: 1 rule, no problems.\n"), "{ran}");
    let ran = home.feed(&["policy", "check", "-"], "{\"policies\": []}");
    assert_eq!(ran.code, Some(1), "{ran}");
}

#[test]
fn many_problems_are_counted_and_the_first_are_drawn() {
    let source: String = (0..60).map(|n| format!("x{n} = 1\n")).collect();
    let ran = check(&source, &[]);
    assert_eq!(ran.err.matches("\n --> ").count() + ran.err.matches("\n  --> ").count(), 50);
    let end: Vec<&str> = ran.err.lines().rev().take(2).collect();
    assert_eq!(
        end,
        [
            "hint: Only the first 50 are shown; --format json lists all.",
            "config error[TW0007]: `policies.toml` has 61 problems."
        ]
    );
    let json: Value = serde_json::from_str(&check(&source, &["--format", "json"]).out).expect("JSON");
    assert_eq!(json["problems"].as_array().map(Vec::len), Some(61));
}

#[test]
fn an_unknown_kind_is_refused_with_the_kinds() {
    assert_snapshot!(check(RULES, &["--kind", "stepp"]), @"
    --- stderr
    error: invalid value 'stepp' for '--kind <KIND>'
      [possible values: step, condition, rule, join, map, reduce, accumulator, state_machine, compensation, builtin, shell, agent, gate]

      tip: a similar value exists: 'step'

    For more information, try '--help'.
    --- exit code 2
    ");
    assert_eq!(check(RULES, &["--name", ""]).code, Some(2));
    assert_eq!(check(RULES, &["--format", "yaml"]).code, Some(2));
}

#[test]
fn programs_get_the_problems_as_data() {
    let ran = check("[[policies]]\nmatch.default = true\ntimeout = 30\n\nx = 1\n", &["--format", "json"]);
    assert_snapshot!(ran, @r#"
    {
      "version": 1,
      "valid": false,
      "problems": [
        {
          "path": "policies[0].timeout",
          "message": "30 has no unit",
          "help": "write timeout = \"30s\" or timeout_ms = 30",
          "line": 3,
          "column": 11
        },
        {
          "path": "policies[0].x",
          "message": "is not a known field",
          "help": null,
          "line": 5,
          "column": 1
        }
      ]
    }
    --- exit code 1
    "#);
}

#[test]
fn programs_get_the_winners_as_data() {
    let ran = check(RULES, &["--name", "llm_judge", "--format", "json"]).succeeded();
    let report: Value = serde_json::from_str(&ran.out).expect("JSON");
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&report), ["nodes", "rules", "unmatched", "unreachable", "valid", "version"]);
    assert_eq!(report["unmatched"], serde_json::json!([0, 2, 3]));
    assert_eq!((&report["version"], &report["valid"]), (&1.into(), &true.into()));
    let node = &report["nodes"][0];
    assert_eq!(keys(node), ["kind", "name", "policy", "retries", "rule", "said", "tags"]);
    assert_eq!(keys(&node["policy"]).len(), tidewheel_core::policy::Policy::FIELDS.len());
    assert_snapshot!(serde_json::to_string_pretty(node).expect("JSON"), @r#"
    {
      "kind": "step",
      "name": "llm_judge",
      "policy": {
        "backoff": "exponential",
        "base_delay": "500ms",
        "checkpoint_after": false,
        "circuit_breaker": {
          "failure_threshold": 5,
          "half_open_permits": 1,
          "name": "model",
          "on_open": "wait",
          "reset_timeout": "1m"
        },
        "compensation": null,
        "concurrency_limit": null,
        "deadline": "infinity",
        "delay": null,
        "execution_mode": null,
        "fallback": null,
        "heartbeat": null,
        "idempotency_key": null,
        "jitter": "full",
        "log_level": null,
        "max_delay": "30s",
        "max_retries": 20,
        "metadata": {
          "cost": 2,
          "team": "search"
        },
        "non_retryable_errors": [],
        "on_failure": "halt",
        "priority": "normal",
        "queue_timeout": null,
        "rate_limit": null,
        "retry_budget": null,
        "retryable_errors": [
          429,
          "timeout"
        ],
        "scheduled_at": null,
        "telemetry_prefix": null,
        "timeout": "30s",
        "total_timeout": "10m"
      },
      "retries": {
        "delays_ms": [
          65,
          523,
          337,
          576,
          1556,
          11894,
          25298,
          9624
        ],
        "ends_with": null,
        "more": 12
      },
      "rule": 1,
      "said": [
        "backoff",
        "circuit_breaker",
        "jitter",
        "max_retries",
        "metadata",
        "retryable_errors",
        "timeout",
        "total_timeout"
      ],
      "tags": []
    }
    "#);
}

#[test]
fn colours_mark_what_the_rule_said_and_can_be_refused() {
    let home = Home::new();
    home.file("a.toml", "[[policies]]\nmatch.default = true\nmax_retries = 1\n").file("b.toml", "x = 1");
    let check = |variables: &[(&str, &str)], file| {
        home.run_under(variables, &["policy", "check", file, "--name", "n"])
    };
    let shown = check(&[("CLICOLOR_FORCE", "1")], "a.toml").out.replace('\u{1b}', "<ESC>");
    let lines: Vec<&str> = shown.lines().skip(2).take(4).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    <ESC>[1mn (step): policies[0] (default) wins<ESC>[0m

      max_retries          = 1           <ESC>[2m# policies[0]<ESC>[0m
      <ESC>[2mbackoff              = "none"      <ESC>[0m<ESC>[2m# default<ESC>[0m
    "#);
    let problems = check(&[("CLICOLOR_FORCE", "1")], "b.toml").err;
    assert!(problems.contains('\u{1b}'));
    for variables in [&[][..], &[("NO_COLOR", "1")], &[("TERM", "dumb")]] {
        assert!(!check(variables, "a.toml").out.contains('\u{1b}'));
        assert!(!check(variables, "b.toml").err.contains('\u{1b}'));
    }
}
