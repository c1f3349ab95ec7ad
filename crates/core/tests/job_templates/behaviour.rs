//! What was agreed on, one by one.

use super::world::{Find, expand_with, id, messages, node, problems, run};

#[test]
fn l_117_jobs_are_named_after_their_run_and_node() {
    let run = run(&(node("one", "") + &node("two", "") + &node("x.y/z", "")));
    let ids: Vec<&str> = run.records.iter().map(|record| record.id.as_str()).collect();
    let of = |word: &str| format!("wf-run_000000000000000000000000000000ab-{word}");
    assert_eq!(ids, [of("one"), of("two"), of("x-y-z")]);
    assert_eq!(run.manifest.run_id.as_str(), "run_000000000000000000000000000000ab");
}

#[test]
fn l_118_an_edge_on_success_is_an_after() {
    let run = run(&(node("a", "on.succeeded = ['b']") + &node("b", "")));
    assert_eq!(run.after("b"), ["a:success"]);
    assert_eq!(run.roots, [id("a")]);
    assert_eq!(run.sinks, [id("b")]);
}

#[test]
fn l_119_several_parents_on_success_are_a_join() {
    let run = run(&(node("a", "on.succeeded = ['c']") + &node("b", "on.succeeded = ['c']") + &node("c", "")));
    assert_eq!(run.after("c"), ["a:success", "b:success"]);
}

#[test]
fn l_121_an_unknown_target_of_an_edge_is_refused() {
    assert_eq!(
        problems(&node("a", "on.failed = ['zzz']")),
        ["template T@v1 node `a` references unknown on.failed target `zzz`"]
    );
    assert_eq!(
        problems(&node("a", "on.succeeded = ['zzz']")),
        ["template T@v1 node `a` references unknown on.succeeded target `zzz`"]
    );
}

#[test]
fn l_122_an_unknown_node_before_is_refused() {
    assert_eq!(
        problems(&node("a", "after = [{ node_id = 'zzz' }]")),
        ["template T@v1 node `a` references unknown after node `zzz`"]
    );
}

#[test]
fn l_123_an_undeclared_contract_is_refused() {
    let needs = "needs = [{ custom = { type_id = 'x', key = 'k' } }]";
    let message =
        "template T@v1 node `a` references artifact `custom:x:k` without declared artifact contract `x`";
    assert_eq!(problems(&node("a", needs)), [message]);
    let makes = "produces.failed = [{ custom = { type_id = 'x', key = 'k' } }]";
    assert_eq!(problems(&node("a", makes)), [message]);
}

#[test]
fn l_124_a_label_that_is_none_is_refused() {
    let text = "[[nodes]]\nid = 'n'\nuses = 'legacy.merge.integrate'";
    assert_eq!(
        problems(text),
        [
            "template T@v1 node `n` uses unknown label `legacy.merge.integrate`; declare one of cap.env.builtin.*, \
          cap.env.shell.*, cap.agent.invoke, or control.*"
        ]
    );
}

#[test]
fn l_125_a_kind_that_does_not_fit_is_refused() {
    let text = "[[nodes]]\nid = 'n'\nkind = 'builtin'\nuses = 'cap.env.shell.command.run'\nargs.script = 'x'";
    let message = "template T@v1 node `n` declares executor class `environment_shell` but kind `Builtin` requires \
                   `environment_builtin`";
    assert_eq!(problems(text), [message]);
    assert_eq!(problems(&text.replace("kind = 'builtin'\n", "")), [message], "builtin is the default");
    assert_eq!(
        problems("[[nodes]]\nid = 'n'\nkind = 'shell'\nuses = 'control.terminal'"),
        ["template T@v1 node `n` declares control policy `terminal` but kind `Shell` is not gate"]
    );
}

#[test]
fn l_126_a_control_node_with_a_command_is_refused() {
    for arg in ["command", "script"] {
        let text =
            format!("[[nodes]]\nid = 'n'\nkind = 'gate'\nuses = 'control.gate.cicd'\nargs.{arg} = 'x'");
        assert_eq!(
            problems(&text),
            ["template T@v1 node `n` declares control policy `gate.cicd` but also sets command/script args"]
        );
    }
}

#[test]
fn l_127_parameters_are_put_in_everywhere() {
    let text = r#"
[params]
msg = "hello"
n = 3
on = "yes"
[[artifact_contracts]]
id = "kind-${msg}"
version = "v${n}"
[[nodes]]
id = "single"
name = "say ${msg}"
kind = "shell"
uses = "cap.env.shell.cicd.run"
args = { script = "echo ${msg}", }
needs = [{ plan_branch = { slug = "${msg}" } }]
produces.succeeded = [{ custom = { type_id = "kind-${msg}", key = "${n}" } }]
locks = [{ key = "lock:${msg}", mode = "shared" }]
preconditions = [{ kind = "custom", id = "branch_exists", args = { branch = "b-${msg}" } }, { kind = "branch_exists", branch = "${msg}" }]
gates = [{ kind = "approval", required = "${on}" }]
retry = { mode = "on_failure", budget = "${n}" }
on.failed = ["single"]
"#;
    let run = run(text);
    let job = run.job("single");
    assert_eq!(job.name(), "say hello");
    assert_eq!(job.command[3], "echo hello");
    assert_eq!(job.schedule.dependencies[0].artifact.to_string(), "plan_branch:hello (draft/hello)");
    assert_eq!(job.schedule.artifacts[0].to_string(), "custom:kind-hello:3");
    assert_eq!(job.schedule.locks[0].key, "lock:hello");
    assert_eq!(
        serde_json::to_value(&job.schedule.preconditions).unwrap(),
        serde_json::json!([
            { "kind": "custom", "id": "branch_exists", "args": { "branch": "b-hello" } },
            { "kind": "branch_exists", "branch": "hello" },
        ])
    );
    assert!(job.schedule.approval.is_some());
    let node = run.manifest.nodes.values().next().unwrap();
    assert_eq!(node.retry.as_ref().unwrap().budget, 3);
    assert!(
        expand_with(text, &[("on", "no")]).unwrap().materialise(&super::world::wish()).unwrap().records[0]
            .schedule
            .approval
            .is_none()
    );
}

#[test]
fn l_127_what_cannot_be_put_in_is_named_with_its_field() {
    let cases = [
        (
            "needs = [{ plan_doc = { slug = '${missing}' } }]",
            "unresolved parameter `missing` in nodes[single].needs[0].plan_doc.slug",
        ),
        ("name = 'x ${missing}'", "unresolved parameter `missing` in nodes[single].name"),
        ("locks = [{ key = '${missing' }]", "unclosed parameter placeholder in nodes[single].locks[0].key"),
        (
            "gates = [{ kind = 'approval', required = 'maybe' }]",
            "invalid bool value `maybe` for nodes[single].gates[0].approval.required",
        ),
        ("retry = { budget = '-1' }", "invalid u32 value `-1` for nodes[single].retry.budget"),
        ("retry = { budget = -1 }", "invalid u32 value `-1` for nodes[single].retry.budget"),
        (
            "produces.succeeded = [{ custom = { type_id = '${missing}', key = 'k' } }]",
            "unresolved parameter `missing` in nodes[single].produces.succeeded[0].custom.type_id",
        ),
        (
            "preconditions = [{ kind = 'custom', id = 'x', args = { a = '${missing}' } }]",
            "unresolved parameter `missing` in nodes[single].preconditions[0].custom.args.a",
        ),
    ];
    for (field, message) in cases {
        assert_eq!(problems(&node("single", field)), [message]);
    }
    let text =
        "[[nodes]]\nid = 'single'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs.script = '${x}'";
    let found = problems(text);
    assert_eq!(found[0], "unresolved parameter `x` in nodes[single].args.script");
    for word in ["true", "1", "yes", "on", "FALSE", "0", "no", "off"] {
        let text = node("single", &format!("gates = [{{ kind = 'approval', required = '{word}' }}]"));
        assert!(super::world::expand(&text).is_ok(), "{word}");
    }
}

#[test]
fn l_130_what_a_run_is_after_holds_for_its_first_jobs() {
    let mut wish = super::world::wish();
    let other = tidewheel_core::job::JobId::new("other").unwrap();
    wish.after =
        vec![tidewheel_core::job::After { job_id: other, policy: tidewheel_core::job::AfterPolicy::Success }];
    wish.require_approval = true;
    let text = node("a", "on.succeeded = ['b']") + &node("b", "");
    let run = super::world::expand(&text).unwrap().materialise(&wish).unwrap();
    assert_eq!(run.after("a"), ["other:success"]);
    assert_eq!(run.after("b"), ["a:success"]);
    assert!(run.job("a").schedule.approval.is_some());
    assert!(run.job("b").schedule.approval.is_none());
}

#[test]
fn m_143_a_terminal_node_leads_nowhere() {
    let text = "[[nodes]]\nid = 'end'\nkind = 'gate'\nuses = 'control.terminal'\non.succeeded = ['a']\n";
    assert_eq!(
        problems(&(text.to_owned() + &node("a", ""))),
        ["template T@v1 node `end` terminal policy node must not declare outgoing routes"]
    );
}

#[test]
fn n_160_nodes_that_wait_for_each_other_are_refused() {
    let text = node("a", "after = [{ node_id = 'b' }]") + &node("b", "after = [{ node_id = 'a' }]");
    assert_eq!(problems(&text), ["template T@v1 has a cycle: a -> b -> a"]);
    assert_eq!(problems(&node("a", "after = ['a']")), ["template T@v1 has a cycle: a -> a"]);
}

#[test]
fn n_161_ids_that_would_be_one_job_are_refused() {
    assert_eq!(
        problems(&(node("a.b", "") + &node("a-b", ""))),
        ["template T@v1 has nodes `a.b` and `a-b`, which would both be job `wf-<run>-a-b`"]
    );
}

#[test]
fn n_162_a_name_that_could_leave_the_directory_is_refused() {
    let text =
        "[params]\nslug = ''\n".to_owned() + &node("a", "needs = [{ plan_doc = { slug = '${slug}' } }]");
    let found = expand_with(&text, &[("slug", "../../x")]).unwrap_err();
    let reason = "`../../x` is no slug: it must not begin with a dot or a dash";
    assert_eq!(messages(&found), [format!("params.slug: {reason}")]);
}
