//! Policies of jobs.

use std::collections::BTreeMap;

use tidewheel_core::job::NodeId;
use tidewheel_core::job::template::Run;
use tidewheel_core::policy::{self, OnFailure, Policy, Priority, Rules};
use tidewheel_core::time::Timestamp;

use super::world::{Find, expand, load, messages, node, problems, run, whole, wish};

fn retries(run: &Run, of: &str) -> u32 {
    let kept = &run.manifest.nodes[&NodeId::new(of).expect("it is an id")];
    kept.policy().expect("it is a policy").resolved().expect("it is right").max_retries
}

fn with(rule: &str, nodes: &str) -> String {
    format!("[[policies]]\n{rule}\n{nodes}")
}

#[test]
fn the_first_rule_that_fits_counts_and_the_configuration_comes_last() {
    let inner = whole(
        &("[[policies]]\nmatch = { name = 'b' }\nmax_retries = 4\n".to_owned()
            + &node("b", "")
            + &node("c", "")),
    );
    let main = whole(
        &("[[imports]]\nname = 'x'\npath = 'inner.toml'\n[[policies]]\nmatch = { name = 'a' }\nmax_retries = 1\n[[policies]]\nmatch = { tag = 'slow' }\nmax_retries = 2\n[[policies]]\nmatch = { kind = 'gate' }\nmax_retries = 3\n".to_owned()
            + &node("a", "tags = ['slow']")
            + &node("s", "tags = ['slow']")
            + &node("z", "")
            + "[[nodes]]\nid = 'end'\nkind = 'gate'\nuses = 'control.terminal'\n"),
    );
    let config = Rules::new([(policy::default(), Policy::new().max_retries(9))]).unwrap();
    let template = load(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap();
    let run = template.expand(&BTreeMap::new(), &config).unwrap().materialise(&wish()).unwrap();
    let found: Vec<u32> = ["a", "s", "end", "x__b", "x__c", "z"].iter().map(|of| retries(&run, of)).collect();
    assert_eq!(found, [1, 2, 3, 4, 9, 9]);
}

#[test]
fn limits_have_their_names_and_times() {
    let text = with(
        "match = { default = true }\npriority = 'high'\nqueue_timeout = '1m'\ndeadline = '1h'\ndelay = '10s'\nconcurrency_limit = 2\nrate_limit = { count = 3, window = '1s', name = 'api' }\nidempotency_key = '${what}-${node_id}'\nmetadata = { team = 'x' }",
        &(node("a", "") + &node("b", "")),
    );
    let run = run(&format!("[params]\nwhat = 'w'\n{text}"));
    let schedule = &run.job("a").schedule;
    assert_eq!(schedule.not_before, None, "a delay counts from when the job could begin");
    assert_eq!(schedule.limits.as_ref().unwrap().delay_ms, Some(10_000));
    let limits = schedule.limits.as_ref().unwrap();
    assert_eq!(limits.priority, Some(Priority::High));
    assert_eq!(limits.queue_timeout_ms, Some(60_000));
    assert_eq!(limits.deadline, Some(Timestamp::from_millis(1_000_000 + 3_600_000)));
    assert_eq!(limits.rate.as_ref().unwrap().name.as_deref(), Some("api"));
    assert_eq!(limits.idempotency_key.as_deref(), Some("T/a:w-a"));
    let name = limits.concurrency.as_ref().unwrap().name.clone().unwrap();
    assert!(name.starts_with("T:"), "{name}");
    let other = run.job("b").schedule.limits.as_ref().unwrap();
    assert_eq!(other.concurrency.as_ref().unwrap().name, Some(name), "one rule has one limit");
    assert_eq!(run.job("a").metadata.get("policy_metadata"), Some(&serde_json::json!({ "team": "x" })));
}

#[test]
fn a_node_without_a_policy_has_no_limits() {
    let run = run(&node("a", ""));
    assert_eq!(run.job("a").schedule.limits, None);
    assert_eq!(run.job("a").schedule.not_before, None);
    assert_eq!(retries(&run, "a"), 0);
}

#[test]
fn what_cannot_act_on_a_job_is_refused_by_name() {
    let refused = |field: &str| {
        let found = problems(&with(
            &format!("match = {{ name = 'a' }}\n{field}"),
            &(node("a", "") + &node("undo", "")),
        ));
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].split(": ").next().unwrap().to_owned()
    };
    for mode in ["sync", "async", "durable"] {
        assert_eq!(refused(&format!("execution_mode = '{mode}'")), "policies[0].execution_mode");
    }
    assert_eq!(refused("checkpoint_after = true"), "policies[0].checkpoint_after");
    assert_eq!(refused("telemetry_prefix = 'x'"), "policies[0].telemetry_prefix");
    assert_eq!(refused("log_level = 'info'"), "policies[0].log_level");
    assert_eq!(refused("fallback = { overrides = { x = 1 } }"), "policies[0].fallback");
    let overrides = "fallback = { overrides = { args = { script = 'true' } } }";
    assert_eq!(refused(&format!("execution_mode = 'external'\n{overrides}")), "policies[0].fallback");
    assert_eq!(refused("compensation = 'undo'"), "policies[0].compensation");
    assert_eq!(refused("on_failure = 'compensate'"), "policies[0].on_failure");
    assert_eq!(refused("max_retrys = 1"), "policies[0].max_retrys");
    for errors in ["['tiemout', 75]", "['Timeout']", "[429, 503]", "[-1]", "['BadRequest']"] {
        let lists = [format!("retryable_errors = {errors}"), format!("non_retryable_errors = {errors}")];
        for list in lists {
            let field = list.split(' ').next().unwrap_or_default();
            assert_eq!(refused(&format!("max_retries = 1\n{list}")), format!("policies[0].{field}"));
        }
    }
    assert_eq!(refused("timeout = '1s'\ntimeout_ms = 1000"), "policies[0].timeout");
    for good in [
        "execution_mode = 'external'",
        "fallback = { value = 1 }",
        "max_retries = 1\nretryable_errors = ['timeout', 'lost', 'heartbeat', 75]",
        // A rule that steps of the library share.
        "max_retries = 1\nretryable_errors = [429, 75, 'RateLimited']",
        "fallback = { overrides = { args = { script = 'x' } } }",
    ] {
        assert!(
            expand(&with(&format!("match = {{ default = true }}\n{good}"), &node("a", ""))).is_ok(),
            "{good}"
        );
    }
    assert_eq!(
        problems(&with(
            "match = { default = true }\nfallback = { overrides = { args = { scrpt = 'x' } } }",
            &node("a", "")
        )),
        [
            "template T@v1 node `a` has a policy whose fallback sets `scrpt`, which is not an argument of command.run"
        ]
    );
}

#[test]
fn the_arguments_of_a_fallback_are_filled_and_checked_like_those_of_the_node() {
    let rule = |args: &str| {
        let rule = format!("match = {{ default = true }}\nfallback = {{ overrides = {{ args = {args} }} }}");
        "[params]\nwho = 'you'\n".to_owned() + &with(&rule, &node("a", ""))
    };
    let run = run(&rule("{ script = 'echo ${who} $${who}' }"));
    let kept = &run.manifest.nodes[&NodeId::new("a").unwrap()].policy;
    assert!(kept.contains("echo you ${who}"), "{kept}");
    for (args, message) in [
        (
            "{ script = 5 }",
            "has a policy whose fallback.overrides.args.script must be a text, found a number",
        ),
        (
            "{ command = [] }",
            "has a policy whose fallback.overrides.args.command must be a list of words, a program first",
        ),
        (
            "{ script = '${whom}' }",
            "has a policy with an unresolved parameter `whom` in fallback.overrides.args.script",
        ),
        (
            "{ command = ['x'], script = 'x' }",
            "has a policy whose fallback sets both command and script args",
        ),
        ("{}", "has a policy whose fallback sets no argument: it would only try the same again"),
    ] {
        assert_eq!(problems(&rule(args)), [format!("template T@v1 node `a` {message}")]);
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_told_once() {
    let found =
        problems(&with("match = { name = 'a' }\nmax_retries = 2\nbase_delay = '50ms'", &node("a", "")));
    assert_eq!(found, ["policies[0].base_delay: has no effect: there is no delay without backoff"]);
}

#[test]
fn rules_of_the_configuration_are_refused_like_those_of_a_template() {
    let config = Rules::new([
        (policy::predicate(|_| true), Policy::new()),
        (policy::default(), Policy::new().checkpoint_after(true)),
    ])
    .unwrap();
    let found = load(&[("main.toml", &whole(&node("a", "")))])
        .unwrap()
        .expand(&BTreeMap::new(), &config)
        .unwrap_err();
    assert_eq!(
        messages(&found),
        [
            "configuration: policies[0].match: is a predicate, which a job cannot be asked",
            "configuration: policies[1].checkpoint_after: has no effect on a job: each record is kept as a whole",
        ]
    );
}

#[test]
fn a_rule_for_a_node_that_is_not_there_is_refused() {
    let text = with("match = { name = 'biuld' }\nmax_retries = 1", &node("build", ""));
    let found = expand(&text).unwrap_err();
    assert_eq!(messages(&found), ["policies[0].match.name: matches nothing: no node is named `biuld`"]);
    assert_eq!(found.all()[0].help.as_deref(), Some("did you mean `build`?"));
    assert!(found.all()[0].location.is_some(), "it has its place");
}

#[test]
fn a_rule_of_a_template_that_never_acts_is_refused_at_its_place() {
    let written = |rules: &[&str]| {
        let rules: String = rules
            .iter()
            .map(|rule| format!("[[policies]]\nmatch = {{ {rule} }}\nmax_retries = 1\n"))
            .collect();
        rules + &node("build", "tags = ['slow']") + &node("test", "")
    };
    let rules = |rules: &[&str]| problems(&written(rules));
    assert_eq!(
        rules(&["tag = 'slwo'", "kind = 'gate'", "pattern = '^deploy_'", "kind = 'step'"]),
        [
            "policies[0].match.tag: matches nothing: no node has the tag `slwo`",
            "policies[1].match.kind: matches nothing: no node that runs is of the kind gate",
            "policies[3].match.kind: matches nothing: no node that runs is of the kind step",
        ]
    );
    assert_eq!(
        rules(&["default = true", "name = 'build'"]),
        [
            "policies[1].match: never acts: policies[0] (default) comes first and matches all that `name build` matches"
        ]
    );
    assert_eq!(
        rules(&["tag = 'slow'", "name = 'build'"]),
        [
            "policies[1].match: never acts: policies[0] (tag slow) comes first and matches all that `name build` matches"
        ]
    );
    let good = ["name = 'build'", "tag = 'slow'", "pattern = '^deploy_'", "default = true"];
    assert!(expand(&written(&good)).is_ok(), "a pattern is for a family of names, which may be empty");
}

#[test]
fn rules_of_a_configuration_and_those_that_an_importing_file_overrides_may_never_act() {
    let rule = |rule: &str| format!("[[policies]]\nmatch = {{ {rule} }}\nmax_retries = 2\n");
    let inner = whole(&(rule("name = 'b'") + &rule("default = true") + &node("b", "")));
    let main = whole(
        &("[[imports]]\nname = 'x'\npath = 'inner.toml'\n".to_owned()
            + &rule("default = true")
            + &node("a", "")),
    );
    let config = Rules::new([
        (policy::name("nowhere"), Policy::new().max_retries(9)),
        (policy::tag("none"), Policy::new().max_retries(9)),
    ])
    .unwrap();
    let template = load(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap();
    assert!(template.expand(&BTreeMap::new(), &config).is_ok());
}

#[test]
fn a_node_that_steers_is_given_to_no_worker_outside() {
    let gates = [
        ("control.terminal", ""),
        ("control.gate.cicd", "gates = [{ kind = 'cicd', script = 'true' }]"),
        ("control.gate.approval", ""),
        ("control.gate.stop_condition", "gates = [{ kind = 'script', script = 'true' }]"),
    ];
    for (uses, more) in gates {
        let gate = format!("[[nodes]]\nid = 'end'\nkind = 'gate'\nuses = '{uses}'\n{more}\n");
        let text = with("match = { default = true }\nexecution_mode = 'external'", &(node("a", "") + &gate));
        assert_eq!(
            problems(&text),
            [format!(
                "template T@v1 node `end` has a policy with execution_mode external, but a worker outside cannot do \
                 what `{uses}` does"
            )]
        );
        let rule = "match = { name = 'a' }\nexecution_mode = 'external'";
        let found = expand(&with(rule, &(node("a", "") + &gate)));
        assert!(found.is_ok(), "{uses}: {found:?}");
    }
}

#[test]
fn a_key_that_names_nothing_is_refused() {
    let text = with("match = { default = true }\nidempotency_key = '${zzz}'", &node("a", ""));
    assert_eq!(
        problems(&text),
        [
            "template T@v1 node `a` has a policy with an unresolved parameter `zzz` in policies.idempotency_key"
        ]
    );
}

#[test]
fn what_undoes_a_node_runs_when_that_has_failed() {
    let rule = "match = { name = 'pay' }\non_failure = 'compensate'\ncompensation = 'refund'";
    let run = run(&with(rule, &(node("pay", "") + &node("refund", ""))));
    assert_eq!(run.after("refund"), ["pay:failed"]);
    let kept = &run.manifest.nodes[&NodeId::new("pay").unwrap()];
    assert_eq!(kept.policy().unwrap().resolved().unwrap().on_failure, OnFailure::Compensate);
    assert_eq!(
        problems(&with(rule, &node("pay", ""))),
        ["template T@v1 node `pay` has compensation `refund`, which is no node"]
    );
    assert_eq!(
        problems(&with(rule, &(node("refund", "on.failed = ['pay']") + &node("pay", "")))),
        ["template T@v1 node `pay` has compensation `refund`, which comes before it"]
    );
}

#[test]
fn files_that_share_a_name_say_the_same_of_it() {
    let rule = |count: u32| {
        format!(
            "[[policies]]\nmatch = {{ default = true }}\nrate_limit = {{ count = {count}, window = '1s', name = 'api' }}\n"
        )
    };
    let inner = whole(&(rule(3) + &node("b", "")));
    let main =
        whole(&("[[imports]]\nname = 'x'\npath = 'inner.toml'\n".to_owned() + &rule(2) + &node("a", "")));
    let template = load(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap();
    let found = template.expand(&BTreeMap::new(), &Rules::default()).unwrap_err();
    assert_eq!(found.all().len(), 1);
    assert_eq!(found.all()[0].file.as_deref(), Some("inner.toml"));
    assert!(found.to_string().contains("shares the name `api`"), "{found}");
}
