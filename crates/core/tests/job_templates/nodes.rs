//! What a node may say, and what it may not.

use tidewheel_core::job::template::{LABELS, Label};
use tidewheel_core::job::{Branch, PinnedHead};

use super::world::{Find, expand, node, problems, run, whole, wish};

fn using(uses: &str, kind: &str, more: &str) -> String {
    format!("[[nodes]]\nid = 'n'\nkind = '{kind}'\nuses = '{uses}'\n{more}\n")
}

#[test]
fn every_problem_is_reported_at_once_with_its_place() {
    let text = whole(
        "nodez = 1\n[[nodes]]\nid = 'a'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs = { scrpt = 'x', script = 'y' }\nafterr = []\n",
    );
    let found = super::world::load(&[("main.toml", &text)]).unwrap();
    let found = found
        .expand(&std::collections::BTreeMap::new(), &tidewheel_core::policy::Rules::default())
        .unwrap_err();
    let lines: Vec<String> = found.to_string().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "main.toml, line 3, column 1: nodez: is not a known field (did you mean `nodes`?)",
            "main.toml, line 8, column 18: nodes[a].args.scrpt: is not an argument of command.run (did you mean `script`?)",
            "main.toml, line 9, column 1: nodes[a].afterr: is not a known field (did you mean `after`?)",
        ]
    );
}

#[test]
fn one_mistake_is_complained_about_once() {
    let text = node("b c", "") + &node("a", "after = ['b c']");
    assert_eq!(
        problems(&text),
        ["nodes[0].id: `b c` is no node id: only letters, digits, `_`, `-`, `.`, `/` and `:` are allowed"]
    );
    let text = "[[artifact_contracts]]\nid = '${zzz}'\nversion = 'v1'\n".to_owned()
        + &node("a", "needs = [{ custom = { type_id = 'x', key = 'k' } }]");
    assert_eq!(problems(&text), ["unresolved parameter `zzz` in artifact_contracts[0].id"]);
}

#[test]
fn a_template_without_nodes_is_refused() {
    assert_eq!(problems(""), ["template T@v1 has no nodes"]);
}

#[test]
fn a_node_id_that_is_there_twice_is_refused() {
    assert_eq!(problems(&(node("a", "") + &node("a", ""))), ["template T@v1 has duplicate node id `a`"]);
}

#[test]
fn a_command_needs_exactly_one_of_its_arguments() {
    let uses = "cap.env.shell.command.run";
    let neither = ["template T@v1 node `n` needs a command or script arg for command.run"];
    assert_eq!(problems(&using(uses, "shell", "")), neither);
    assert_eq!(problems(&using(uses, "shell", "args = { script = ' ' }")), neither);
    assert_eq!(
        problems(&using(uses, "shell", "args = { script = 'a', command = 'b' }")),
        ["template T@v1 node `n` sets both command and script args for command.run"]
    );
    assert!(expand(&using(uses, "shell", "args = { script = 'a', command = '' }")).is_ok());
    for bad in ["[]", "['']", "['a', 1]"] {
        assert_eq!(
            problems(&using(uses, "shell", &format!("args = {{ command = {bad} }}"))),
            ["nodes[n].args.command: must be a list of words, a program first"]
        );
    }
    assert_eq!(
        problems(&using(uses, "shell", "args = { script = 7 }")),
        ["nodes[n].args.script: must be a text, found a number"]
    );
}

#[test]
fn checks_take_their_script_from_a_gate_too() {
    let uses = "cap.env.shell.cicd.run";
    let nothing =
        "template T@v1 node `n` needs a command or script arg, or a gate with a script, for cicd.run";
    assert_eq!(problems(&using(uses, "shell", "")), [nothing]);
    assert_eq!(problems(&using(uses, "shell", "gates = [{ kind = 'cicd' }]")), [nothing]);
    let run = run(&using(uses, "shell", "gates = [{ kind = 'cicd', script = 'make check' }]"));
    let kept = run.manifest.nodes.values().next().unwrap();
    assert_eq!(
        kept.gates,
        [serde_json::json!({ "kind": "cicd", "script": "make check", "auto_resolve": false })]
    );
}

#[test]
fn a_gate_that_does_nothing_is_refused() {
    assert_eq!(
        problems(&node("a", "gates = [{ kind = 'script', script = 'x' }]")),
        ["template T@v1 node `a` has a script gate, which does nothing for command.run"]
    );
    assert_eq!(
        problems(&node("a", "gates = [{ kind = 'custom', id = 'x' }]")),
        ["nodes[a].gates[0].kind: must be one of approval, script, cicd, got `custom`"]
    );
    assert_eq!(
        problems(&node("a", "gates = [{ kind = 'approval', policy = 'retry' }]")),
        ["nodes[a].gates[0].approval.policy: is not a known field"]
    );
}

#[test]
fn a_gate_of_approval_waits_for_a_person_unless_it_need_not() {
    let asks = |more: &str| {
        let run = run(&using("control.gate.approval", "gate", more));
        run.records[0].schedule.approval.is_some()
    };
    assert!(asks(""));
    assert!(asks("args.required = 'on'"));
    assert!(!asks("args.required = 'false'"));
    assert!(!asks("args.required = false"));
    assert!(!asks("gates = [{ kind = 'approval', required = 'no' }]"));
    assert!(!asks("args.required = false\ngates = [{ kind = 'approval', required = true }]"));
    assert_eq!(
        problems(&using("control.gate.approval", "gate", "args.required = 'maybe'")),
        ["invalid bool value `maybe` for nodes[n].args.required"]
    );
}

#[test]
fn control_nodes_say_which_policy_they_are() {
    let run = run(&using(
        "control.gate.stop_condition",
        "gate",
        "gates = [{ kind = 'script', script = 'test -f x' }]",
    ));
    let metadata = &run.records[0].metadata;
    assert_eq!(metadata.text("workflow_control_policy"), Some("gate.stop_condition"));
    assert_eq!(metadata.text("workflow_executor_class"), None);
    assert_eq!(run.records[0].command, ["control.gate.stop_condition"]);
    assert_eq!(metadata.get("workflow_gates"), Some(&serde_json::json!(["script(script=test -f x)"])));
}

#[test]
fn every_operation_and_control_policy_is_known() {
    let operations: Vec<&str> = LABELS.iter().map(|label| label.operation).collect();
    let known = [
        "command.run",
        "cicd.run",
        "prompt.resolve",
        "prompt.resolve",
        "worktree.prepare",
        "worktree.cleanup",
        "plan.persist",
        "git.stage_commit",
        "git.integrate_plan_branch",
        "git.save_worktree_patch",
        "patch.pipeline_prepare",
        "patch.execute_pipeline",
        "patch.pipeline_finalize",
        "build.materialize_step",
        "merge.sentinel.write",
        "merge.sentinel.clear",
        "agent.invoke",
        "terminal",
        "gate.approval",
        "gate.stop_condition",
        "gate.conflict_resolution",
        "gate.cicd",
    ];
    assert_eq!(operations, known);
    assert_eq!(Label::find("cap.env.builtin.command.run"), None);
}

#[test]
fn names_of_plans_and_branches_are_refused_where_they_stand() {
    let prepare = |args: &str| problems(&using("cap.env.builtin.worktree.prepare", "builtin", args));
    assert_eq!(
        prepare("args = { slug = '../x', branch = 'a..b', base = '-x', purpose = 'a/b' }"),
        [
            "nodes[n].args.slug: `../x` is no slug: it must not begin with a dot or a dash",
            "nodes[n].args.branch: `a..b` is no branch name: it has `..`, `//` or `@{`",
            "nodes[n].args.base: `-x` is no branch name: it must not begin with a dash",
            "nodes[n].args.purpose: `a/b` is no slug: only letters, digits, `_`, `-` and `.` are allowed",
        ]
    );
    // What would be no branch is no plan either.
    assert_eq!(
        prepare("args = { slug = 'a..b' }"),
        ["nodes[n].args.slug: `draft/a..b` is no branch name: it has `..`, `//` or `@{`"]
    );
    run(&using("cap.env.builtin.worktree.prepare", "builtin", "args = { slug = 'alpha', base = 'feat/x' }"));
    let merge = |args: &str| problems(&using("cap.env.builtin.git.integrate_plan_branch", "builtin", args));
    assert_eq!(
        merge("args = { slug = 'alpha' }"),
        ["template T@v1 node `n` needs a target arg for git.integrate_plan_branch"]
    );
    let args = "args = { slug = 'alpha', target = 'main', squash = 'off', delete_branch = true }";
    run(&using("cap.env.builtin.git.integrate_plan_branch", "builtin", args));
    // Those that a fallback brings along, too.
    let policy =
        "[[policies]]\nmatch = { default = true }\nfallback = { overrides = { args = { slug = '..' } } }";
    let text = using("cap.env.builtin.worktree.prepare", "builtin", "args = { slug = 'alpha' }") + policy;
    assert!(problems(&text)[0].contains("`..` is no slug"), "{:?}", problems(&text));
}

#[test]
fn bad_locks_and_preconditions_are_refused() {
    assert_eq!(
        problems(&node("a", "locks = [{ key = 'k', mode = 'exlusive' }]")),
        ["nodes[a].locks[0].mode: must be one of shared, exclusive, got `exlusive`"]
    );
    assert_eq!(problems(&node("a", "locks = [{ key = ' ' }]")), ["nodes[a].locks[0].key: must not be empty"]);
    assert_eq!(
        problems(&node("a", "locks = [{ key = 'k' }, { key = 'k', mode = 'shared' }]")),
        ["nodes[a].locks[1].key: is `k`, which the node locks already"]
    );
    assert_eq!(
        problems(&node("a", "preconditions = [{ kind = 'weather' }]")),
        [
            "nodes[a].preconditions[0].kind: must be one of clean_worktree, branch_exists, pinned_head, custom, got `weather`"
        ]
    );
    assert_eq!(
        problems(&node("a", "preconditions = [{ kind = 'branch_exists', branch = 'a..b' }]")),
        ["nodes[a].preconditions[0].branch: `a..b` is no branch name: it has `..`, `//` or `@{`"]
    );
    assert_eq!(
        problems(&node("a", "preconditions = [{ kind = 'clean_worktree', branch = 'x' }]")),
        ["nodes[a].preconditions[0].branch: is not a known field"]
    );
}

#[test]
fn a_pinned_head_is_the_commit_at_the_time_of_enqueueing() {
    let text = node("a", "preconditions = [{ kind = 'pinned_head', branch = 'main' }]")
        + &node("b", "preconditions = [{ kind = 'pinned_head' }, { kind = 'clean_worktree' }]")
        + &node("c", "");
    let expanded = expand(&text).unwrap();
    let main = Branch::new("main").unwrap();
    assert_eq!(expanded.pins(), [None, Some(main.clone())]);
    let mut wish = wish();
    let missing = expanded.materialise(&wish).unwrap_err().to_string();
    assert_eq!(
        missing,
        "nodes[a].preconditions: the commit of branch `main` is not known\nnodes[b].preconditions: the current branch is not known"
    );
    let head = |branch: &str, oid: &str| PinnedHead { branch: branch.to_owned(), oid: oid.to_owned() };
    wish.heads = [(Some(main), head("main", "1")), (None, head("feat", "2"))].into_iter().collect();
    let run = expanded.materialise(&wish).unwrap();
    assert_eq!(run.job("a").schedule.pinned_head, Some(head("main", "1")));
    assert_eq!(run.job("b").schedule.pinned_head, Some(head("feat", "2")));
    assert_eq!(run.job("b").schedule.preconditions.len(), 1);
    assert_eq!(run.job("c").schedule.pinned_head, None);
    wish.pin = Some(head("main", "1"));
    let refused = expanded.materialise(&wish).unwrap_err().to_string();
    assert_eq!(refused, "nodes[b].preconditions: pins `feat`, and the run is to be pinned to `main`");
}

#[test]
fn a_run_can_be_pinned_from_outside_at_its_first_jobs() {
    let mut wish = wish();
    wish.pin = Some(PinnedHead { branch: "main".to_owned(), oid: "1".to_owned() });
    let text = node("a", "") + &node("b", "after = ['a']");
    let run = expand(&text).unwrap().materialise(&wish).unwrap();
    assert_eq!(run.job("a").schedule.pinned_head, wish.pin);
    assert_eq!(run.job("b").schedule.pinned_head, None);
}

#[test]
fn a_missing_producer_blocks_or_is_waited_for() {
    let run = run(&("[policy.dependencies]\nmissing_producer = 'wait'\n".to_owned() + &node("a", "")));
    assert_eq!(run.records[0].schedule.missing_producer, tidewheel_core::job::MissingProducer::Wait);
    assert_eq!(
        problems(&("[policy]\nfailure_mode = 'x'\n".to_owned() + &node("a", ""))),
        ["policy.failure_mode: is not a known field"]
    );
}

#[test]
fn artifacts_of_every_outcome_have_their_producer() {
    let text = "[[artifact_contracts]]\nid = 'x'\nversion = 'v1'\n".to_owned()
        + &node(
            "a",
            "produces.succeeded = [{ custom = { type_id = 'x', key = 'ok' } }, { target_branch = { name = 'main' } }]\nproduces.failed = [{ custom = { type_id = 'x', key = 'bad' } }]",
        );
    let labels: Vec<String> =
        run(&text).records[0].schedule.artifacts.iter().map(ToString::to_string).collect();
    assert_eq!(labels, ["custom:x:ok", "target_branch:main", "custom:x:bad"]);
}

#[test]
fn contracts_say_nothing_that_does_not_act() {
    let contract =
        |schema: &str| format!("[[artifact_contracts]]\nid = 'x'\nversion = 'v1'\nschema = {schema}\n");
    let makes = node("a", "produces.succeeded = [{ custom = { type_id = 'x', key = 'k' } }]");
    let schemas =
        |text: &str| run(text).manifest.nodes.values().map(|node| node.schemas.len()).sum::<usize>();
    assert_eq!(schemas(&(contract("{ type = 'object' }") + &node("a", ""))), 0);
    assert_eq!(
        problems(&(contract("{ type = 'object' }") + &makes)),
        [
            "template T@v1 node `a` produces `custom:x:k`, whose contract has a schema, and command.run writes no payload"
        ]
    );
    let found = problems(&(contract("{ type = 'object', allOf = [] }") + &node("a", "")));
    assert_eq!(found, ["artifact_contracts[0].schema.allOf: is no word of a schema that is checked here"]);
    // A value that stands for the work of an agent has to fit, too.
    let agent = "[[nodes]]\nid = 'b'\nkind = 'agent'\nuses = 'cap.agent.invoke'\n\
                 needs = [{ custom = { type_id = 'prompt_text', key = 'k' } }]\n\
                 produces.succeeded = [{ custom = { type_id = 'x', key = 'k' } }]\n\
                 [[policies]]\nmatch = { name = 'b' }\non_failure = 'fallback'\nfallback = { value = 'text' }\n";
    assert_eq!(
        problems(&(contract("{ type = 'object' }") + agent)),
        [
            "template T@v1 node `b` has a fallback whose value does not fit the contract `x`: $: must be of type object, found a string"
        ]
    );
    assert_eq!(schemas(&(contract("{ type = 'string' }") + agent)), 1);
}

#[test]
fn artifacts_are_of_one_kind_that_is_known() {
    assert_eq!(
        problems(&node("a", "needs = [{ plan_dok = { slug = 'x' } }]")),
        ["nodes[a].needs[0].plan_dok: is not a known field"]
    );
    assert_eq!(
        problems(&node("a", "needs = [{}]")),
        [
            "nodes[a].needs[0]: must have exactly one of plan_branch, plan_doc, plan_commits, target_branch, merge_sentinel, command_patch, custom"
        ]
    );
    assert_eq!(
        problems(&node("a", "needs = [{ plan_doc = { slug = '../x' } }]")),
        [
            "nodes[a].needs[0]: artifact plan_doc:../x (draft/../x): `../x` is no slug: it must not begin with a dot or a dash"
        ]
    );
}

#[test]
fn scripts_end_at_the_first_line_that_fails_unless_the_node_says_otherwise() {
    let errexit = |text: &str| run(text).manifest.nodes.values().next().unwrap().errexit;
    assert!(errexit(&node("a", "")));
    assert!(!errexit(&node("a", "errexit = false")));
    assert!(errexit(&node("a", "errexit = 'yes'")));
    assert!(!errexit(&(node("a", "errexit = '${stop}'") + "[params]\nstop = 'off'")));
    assert_eq!(run(&node("a", "")).records[0].command, ["sh", "-e", "-c", "true"]);
    assert_eq!(run(&node("a", "errexit = false")).records[0].command, ["sh", "-c", "true"]);
    // What runs no script has nothing to say about it.
    assert!(!errexit(&using("control.terminal", "gate", "")));
    let hash = |text: &str| run(text).manifest.policy_snapshot_hash;
    assert_ne!(hash(&node("a", "")), hash(&node("a", "errexit = false")));
}

#[test]
fn errexit_without_a_script_is_refused() {
    assert_eq!(
        problems(&using("cap.env.shell.command.run", "shell", "args.command = ['a']\nerrexit = false")),
        ["template T@v1 node `n` sets errexit, but has no script"]
    );
    assert_eq!(
        problems(&using("control.terminal", "gate", "errexit = true")),
        ["template T@v1 node `n` sets errexit, which does nothing for terminal"]
    );
    assert_eq!(
        problems(&node("a", "errexit = 'maybe'")),
        ["invalid bool value `maybe` for nodes[a].errexit"]
    );
    // The script of a fallback is one, too.
    let fallback = "[[policies]]\nmatch = { name = 'n' }\non_failure = 'fallback'\n\
                    fallback = { overrides = { args = { script = 'b' } } }";
    let text = using("cap.env.shell.command.run", "shell", "args.command = ['a']\nerrexit = false");
    assert!(expand(&(text + fallback)).is_ok());
    let wrong = using("cap.env.shell.command.run", "shell", "args = { script = 'a', errexit = false }");
    assert_eq!(
        expand(&wrong).unwrap_err().to_string(),
        "main.toml, line 7, column 34: nodes[n].args.errexit: is not an argument of command.run \
         (it is a field of the node: write `errexit = …` beside `args`)"
    );
}

#[test]
fn a_script_for_another_program_than_the_shell_is_refused_with_its_place() {
    let wrong = using("cap.env.shell.command.run", "shell", "args.script = '#!/usr/bin/env python3'");
    assert_eq!(
        expand(&wrong).unwrap_err().to_string(),
        "main.toml, line 7, column 15: template T@v1 node `n` has a script for `python3`, and `sh` runs every script \
         (write command = [\"python3\", …], or put the script into a file of its own and run that)"
    );
    let gate = "gates = [{ kind = 'script', script = '#!/bin/bash' }]";
    assert_eq!(
        problems(&using("control.gate.stop_condition", "gate", gate)),
        ["template T@v1 node `n` has a script for `bash`, and `sh` runs every script"]
    );
    assert!(expand(&node("a", "").replace("'true'", "'#!/bin/sh'")).is_ok());
}

#[test]
fn a_fix_that_is_never_tried_and_the_wish_for_one_that_is_not_there_are_refused() {
    let gate = |more: &str| using("control.gate.cicd", "gate", more);
    let nothing = ["template T@v1 node `n` sets auto_resolve, but nothing that resolves"];
    assert_eq!(problems(&gate("gates = [{ kind = 'cicd', script = 'x', auto_resolve = true }]")), nothing);
    let script = "gates = [{ kind = 'cicd', script = 'x' }]\n";
    assert_eq!(problems(&gate(&format!("{script}args.auto_resolve = true"))), nothing);
    assert!(expand(&gate(&format!("{script}args.auto_resolve = false"))).is_ok());
    let fix = "args.auto_resolve_script = 'y'\n";
    assert_eq!(
        problems(&gate(&format!("{script}{fix}"))),
        ["template T@v1 node `n` sets auto_resolve_script, which is run only with auto_resolve"]
    );
    assert_eq!(
        problems(&gate(&format!("args.auto_resolve = true\n{fix}"))),
        ["template T@v1 node `n` sets auto_resolve_script, but has no script that could fail"]
    );
    assert!(expand(&gate(&format!("{script}args.auto_resolve = true\n{fix}"))).is_ok());
    // A parameter without a value is a run without a fix.
    let open = "args.auto_resolve = true\nargs.auto_resolve_script = '${fix}'\n[params]\nfix = ''";
    assert!(expand(&gate(&format!("{script}{open}"))).is_ok());
    let checks = "gates = [{ kind = 'cicd', script = 'x', auto_resolve = true }]";
    assert_eq!(
        problems(&using("cap.env.shell.cicd.run", "shell", checks)),
        ["template T@v1 node `n` sets auto_resolve, which does nothing for cicd.run"]
    );
}
