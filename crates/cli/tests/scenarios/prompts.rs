//! Prompts, and the agents that get them.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::fs;

use serde_json::{Value, json};

use crate::by_hand::Desk;
use crate::world::{Ran, eventually, processes_with};

/// A template with a prompt and the agent that gets it, each with more of it.
pub(crate) fn talk(prompt: &str, agent: &str) -> String {
    format!(
        r#"
id = "T"
version = "v1"
[params]
slug = "alpha"
[[artifact_contracts]]
id = "answer"
version = "v1"
[[nodes]]
id = "ask"
uses = "cap.env.builtin.prompt.resolve"
produces.succeeded = [{{ custom = {{ type_id = "prompt_text", key = "k" }} }}]
{prompt}
[[nodes]]
id = "agent"
kind = "agent"
uses = "cap.agent.invoke"
needs = [{{ custom = {{ type_id = "prompt_text", key = "k" }} }}]
produces.succeeded = [{{ custom = {{ type_id = "answer", key = "k" }} }}]
{agent}
"#
    )
}

/// Configures the default agent: a script, and more of it.
pub(crate) fn configure(desk: &Desk, script: &str, more: &str) {
    desk.file("agent.sh", script);
    let config = "[scheduler]\ncapacity = 64\n[agents.default]\ncommand = [\"sh\", \"AGENT\"]\n";
    let config = config.replace("AGENT", desk.path("agent.sh").to_str().unwrap());
    desk.file(".tidewheel/config.toml", &format!("{config}{more}\n"));
}

/// Runs a template to its end, and returns the id of its run with what was said.
#[track_caller]
pub(crate) fn followed(desk: &Desk, text: &str) -> (String, Ran) {
    desk.flow("flow", text);
    let ran = desk.run(&["run", "flow", "--follow", "--format", "json"]);
    let run = ran.json()["run_id"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned();
    (run, ran)
}

/// Returns the payload that a node of a run wrote; nothing is null.
pub(crate) fn payload(desk: &Desk, run: &str, node: &str, (type_id, key): (&str, &str)) -> Value {
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let path = format!("artifacts/data/{}/{}/wf-{run}-{node}.json", hex(type_id), hex(key));
    let text = fs::read_to_string(desk.in_jobs(&path)).unwrap_or_else(|_| "null".to_owned());
    serde_json::from_str(&text).unwrap()
}

/// Returns how a node of a run ended, and what was said of it.
#[track_caller]
pub(crate) fn end_of(desk: &Desk, run: &str, node: &str) -> (String, Option<i64>, String) {
    let id = format!("wf-{run}-{node}");
    let record = desk.record(&id);
    let outcome =
        fs::read_to_string(desk.in_jobs(&id).join("outcome.json")).unwrap_or_else(|_| "{}".to_owned());
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    let summary = outcome["summary"].as_str().unwrap_or("").to_owned();
    (record["status"].as_str().unwrap().to_owned(), record["exit_code"].as_i64(), summary)
}

#[track_caller]
fn refused(desk: &Desk, text: &str, says: &[&str]) {
    desk.flow("bad", text);
    for arguments in [&["run", "bad"][..], &["run", "bad", "--check"]] {
        let ran = desk.run(arguments);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for says in says {
            assert!(ran.err.contains(says), "{says}:\n{}", ran.err);
        }
        assert_eq!(desk.job_dirs(), [""; 0]);
    }
}

#[test]
fn m_144_a_prompt_reaches_the_agent_and_its_answer_is_kept() {
    let desk = Desk::new();
    configure(&desk, "echo thinking >&2; printf 'you said: '; cat; exit 0", "");
    let text = talk("args = { prompt_text = \"fix {{slug}}\", slug = \"${slug}\" }", "");
    let (run, ran) = followed(&desk, &text);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let prompt = payload(&desk, &run, "ask", ("prompt_text", "k"));
    let fields: Vec<&str> = prompt.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["key", "text", "type_id", "written_at"]);
    assert_eq!((&prompt["type_id"], &prompt["key"]), (&json!("prompt_text"), &json!("k")));
    assert_eq!(prompt["text"], "fix alpha");
    assert!(prompt["written_at"].as_str().unwrap().contains('T'));
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "you said: fix alpha");
    let id = format!("wf-{run}-agent");
    assert_eq!(fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).unwrap(), "you said: fix alpha");
    assert_eq!(fs::read_to_string(desk.in_jobs(&id).join("stderr.log")).unwrap(), "thinking\n");
    let metadata = desk.record(&id)["metadata"].clone();
    assert_eq!((&metadata["agent_exit_code"], &metadata["agent_name"]), (&json!(0), &json!("default")));
    assert_eq!(metadata["workflow_executor_class"], "agent");
    assert_eq!(metadata["workflow_executor_operation"], "agent.invoke");
    assert_eq!(metadata["workflow_payload_refs"], json!(["custom:answer:k"]));
}

#[test]
fn m_144_an_agent_that_fails_keeps_its_code() {
    let desk = Desk::new();
    configure(&desk, "echo no >&2; exit 7", "");
    let (run, ran) = followed(&desk, &talk("args = { prompt_text = \"x\" }", ""));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (status, code, summary) = end_of(&desk, &run, "agent");
    assert_eq!(
        (status.as_str(), code, summary.as_str()),
        ("failed", Some(7), "agent.invoke failed (exit 7)")
    );
    assert_eq!(desk.record(&format!("wf-{run}-agent"))["metadata"]["agent_exit_code"], 7);
    assert!(payload(&desk, &run, "agent", ("answer", "k")).is_null());
}

#[test]
fn m_144_an_agent_that_takes_too_long_ends_with_124() {
    let desk = Desk::new();
    configure(&desk, "exec sleep 600", "timeout = \"50ms\"");
    let (run, ran) = followed(&desk, &talk("args = { prompt_text = \"x\" }", ""));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (status, code, _) = end_of(&desk, &run, "agent");
    assert_eq!((status.as_str(), code), ("failed", Some(124)));
    assert_eq!(desk.record(&format!("wf-{run}-agent"))["metadata"]["agent_exit_code"], 124);
    assert_eq!(processes_with(&format!("TIDEWHEEL_JOB_ID=wf-{run}-agent")), []);
}

#[test]
fn m_144_a_large_prompt_is_read_in_full_or_not_at_all() {
    let desk = Desk::new();
    let prompt = "0123456789abcde\n".repeat(200_000);
    desk.file("large.txt", &prompt);
    let text = talk("args = { prompt_file = \"large.txt\" }", "");
    configure(&desk, "wc -c | tr -d ' '", "");
    let (run, ran) = followed(&desk, &text);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "3200000\n");
    let made = talk("args = { script = \"yes 'a \\\"line\\\"' | head -c 6000000\" }", "");
    let (run, ran) = followed(&desk, &made);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "6000000\n");
    // Who does not read it, or only the beginning, is in nobody's way.
    for (script, answer) in [("exec <&-; echo deaf", "deaf\n"), ("head -c 3", "012"), ("true", "")] {
        configure(&desk, script, "");
        let (run, ran) = followed(&desk, &text);
        assert_eq!(ran.code, Some(0), "{script}: {ran:?}");
        assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], answer);
    }
}

#[test]
fn m_144_nodes_choose_their_agents_and_what_these_may_know() {
    let desk = Desk::new();
    configure(&desk, "cat", "");
    let tools = "[agents.sees]\ncommand = \"env | sort | cut -d= -f1 | tr '\\\\n' ' '; pwd\"\nenv = [\"SEEN\"]\n\
                 [agents.here]\ncommand = \"pwd\"\nargs = [\"-P\"]\ncwd = \"sub/dir\"\n";
    configure(&desk, "cat", tools);
    fs::create_dir_all(desk.path("sub/dir")).unwrap();
    let answer = |agent: &str| {
        desk.flow(
            "flow",
            &talk("args = { prompt_text = \"x\" }", &format!("args = {{ agent = \"{agent}\" }}")),
        );
        let mut command = desk.command(&["run", "flow", "--follow", "--format", "json"]);
        let ran = Ran::of(command.env("SEEN", "1").env("UNSEEN", "1"));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let run = ran.json()["run_id"].as_str().unwrap().to_owned();
        payload(&desk, &run, "agent", ("answer", "k"))["text"].as_str().unwrap().to_owned()
    };
    let seen = answer("sees");
    let names: Vec<&str> = seen.split(' ').collect();
    for name in ["SEEN", "PATH", "HOME", "TIDEWHEEL_JOB_ID"] {
        assert!(names.contains(&name), "{name}: {seen}");
    }
    for name in ["UNSEEN", "TW_WORLD"] {
        assert!(!names.contains(&name), "{name}: {seen}");
    }
    assert_eq!(answer("here").trim_end(), desk.path("sub/dir").canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn an_agent_is_tried_again_as_its_policy_says() {
    let desk = Desk::new();
    configure(&desk, "cat >/dev/null; echo \"try $TIDEWHEEL_ATTEMPT\"; test $TIDEWHEEL_ATTEMPT -ge 3", "");
    let policy = "[[policies]]\nmatch = { kind = \"agent\" }\nmax_retries = 3\nbackoff = \"none\"\n";
    let (run, ran) = followed(&desk, &(talk("args = { prompt_text = \"x\" }", "") + policy));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let record = desk.record(&format!("wf-{run}-agent"));
    assert_eq!(record["metadata"]["workflow_node_attempt"], 3);
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "try 3\n");
    let log = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-agent/stdout.log"))).unwrap();
    assert_eq!(log, "try 1\ntry 2\ntry 3\n");
}

#[test]
fn a_slow_agent_that_is_cancelled_leaves_nothing_behind() {
    let desk = Desk::new();
    configure(&desk, "echo begun; sleep 600 & sleep 601; echo never", "");
    desk.flow("flow", &talk("args = { prompt_text = \"x\" }", ""));
    let run = desk.enqueue(&["flow"]);
    let id = format!("wf-{run}-agent");
    eventually("the agent says something", || {
        fs::read_to_string(desk.in_jobs(&id).join("stdout.log")).is_ok_and(|log| log == "begun\n")
    });
    assert_eq!(desk.run(&["jobs", "cancel", &id]).code, Some(0));
    assert_eq!(end_of(&desk, &run, "agent").1, Some(143));
    assert_eq!(processes_with(&format!("TIDEWHEEL_JOB_ID={id}")), []);
    assert!(payload(&desk, &run, "agent", ("answer", "k")).is_null());
    assert!(!desk.in_jobs(&format!("artifacts/custom/616e73776572/6b/{id}.json")).exists());
}

#[test]
fn m_145_placeholders_stand_for_arguments_and_files() {
    let desk = Desk::new();
    configure(&desk, "cat", "");
    desk.file("README.md", "Read {{me}}.").file(".tidewheel/prompts/plan.md", "Plan {{slug}}");
    let said = |args: &str| {
        let other = "[[nodes]]\nid = \"persist_plan\"\nkind = \"shell\"\nuses = \"cap.env.shell.prompt.resolve\"\n\
            args = { script = \"echo 'from a script: {{spec_text}}'\", spec_text = \"do {{it}}\" }\n\
            produces.succeeded = [{ custom = { type_id = \"prompt_text\", key = \"other\" } }]\n";
        let (run, ran) = followed(&desk, &(talk(&format!("args = {args}"), "") + other));
        let text = payload(&desk, &run, "ask", ("prompt_text", "k"))["text"].as_str().map(str::to_owned);
        let summary = end_of(&desk, &run, "ask").2;
        if text.is_none() && !args.contains("script") {
            // Nobody else would say why.
            let log = fs::read_to_string(desk.in_jobs(&format!("wf-{run}-ask/stderr.log"))).unwrap();
            assert_eq!(log, format!("{summary}\n"));
        }
        let other = payload(&desk, &run, "persist_plan", ("prompt_text", "other"))["text"].clone();
        assert_eq!(other, "from a script: do {{it}}\n", "{ran:?}");
        (text, summary)
    };
    let text = |args: &str| said(args).0.unwrap_or_else(|| panic!("{:?}", said(args)));
    assert_eq!(
        text("{ prompt_text = \"a {{slug}} {{ slug }} \\\\{{b}}\", slug = \"x{{y}}\" }"),
        "a x{{y}} x{{y}} {{b}}"
    );
    assert_eq!(text("{ prompt_text = \"{{persist_plan.spec_text}}\" }"), "do {{it}}");
    assert_eq!(text("{ prompt_text = \"<{{file:README.md}}>\" }"), "<Read {{me}}.>");
    assert_eq!(text("{ prompt_text = \"[{{empty}}]\", empty = \"\" }"), "[]");
    assert_eq!(text("{ prompt_file = \"README.md\", me = \"you\" }"), "Read you.");
    assert_eq!(text("{ config = \"plan\", slug = \"beta\" }"), "Plan beta");
    assert_eq!(text("{ command = [\"printf\", \"%s\", \"a b\"] }"), "a b");
    std::os::unix::fs::symlink("/etc/hostname", desk.path("out")).unwrap();
    for (args, says) in [
        ("{ prompt_text = \"a {{zzz}}\" }", "prompt.resolve unresolved placeholder `{{zzz}}`"),
        (
            "{ prompt_text = \"{{persist_plan.none}}\" }",
            "prompt.resolve unresolved placeholder `{{persist_plan.none}}`",
        ),
        ("{ prompt_text = \"{{file:../x}}\" }", "prompt.resolve cannot read `{{file:../x}}`: it leads out"),
        ("{ prompt_text = \"{{file:/etc/passwd}}\" }", "`{{file:/etc/passwd}}`: it leads out"),
        ("{ prompt_text = \"{{file:out}}\" }", "`{{file:out}}`: it leads out"),
        ("{ prompt_text = \"{{file:none}}\" }", "`{{file:none}}`: there is no such file"),
        ("{ config = \"../config.toml\" }", "cannot read prompt `../config.toml`: it leads out"),
        ("{ config = \"none\" }", "finds no prompt `none`: .tidewheel/prompts has plan.md"),
        ("{ script = \"echo half; exit 3\" }", "prompt.resolve failed (exit 3)"),
    ] {
        let (text, summary) = said(args);
        assert_eq!(text, None, "{args}");
        assert!(summary.contains(says), "{args}: {summary}");
    }
}

#[test]
fn m_144_counts_of_prompts_and_missing_agents_are_told_before_anything_is_written() {
    let desk = Desk::new();
    let good = talk("args = { prompt_text = \"x\" }", "");
    refused(
        &desk,
        &good,
        &["node `agent` needs agent `default`, which is not configured", "flow", "write [agents.default]"],
    );
    configure(&desk, "cat", "");
    let prompt = "{ custom = { type_id = \"prompt_text\", key = \"k\" } }";
    let two = format!("[{prompt}, {}]", prompt.replace("\"k\"", "\"l\""));
    for (text, says) in [
        (
            good.replace(&format!("produces.succeeded = [{prompt}]"), ""),
            "node `ask` must produce exactly one artifact custom:prompt_text:<key>, and produces 0",
        ),
        (
            good.replace(&format!("produces.succeeded = [{prompt}]"), &format!("produces.succeeded = {two}")),
            "node `ask` must produce exactly one artifact custom:prompt_text:<key>, and produces 2",
        ),
        (
            good.replace(&format!("needs = [{prompt}]"), ""),
            "node `agent` must need exactly one artifact custom:prompt_text:<key>, and needs 0",
        ),
        (
            good.replace(&format!("needs = [{prompt}]"), &format!("needs = {two}")),
            "node `agent` must need exactly one artifact custom:prompt_text:<key>, and needs 2",
        ),
        (good.replace("args = { prompt_text = \"x\" }", ""), "needs one of the args prompt_text"),
        (
            good.replace("prompt_text = \"x\" }", "prompt_text = \"x\", script = \"y\" }"),
            "sets the args prompt_text and script",
        ),
        (talk("args = { prompt_text = \"x\" }", "args = { agent = \"nobody\" }"), "needs agent `nobody`"),
        (
            talk("args = { prompt_text = \"x\" }", "args = { model = \"y\" }"),
            "is not an argument of agent.invoke",
        ),
    ] {
        refused(&desk, &text, &[says]);
    }
    assert_eq!(desk.run(&["run", "bad", "--check"]).code, Some(1));
    desk.flow("good", &good);
    assert_eq!(desk.run(&["run", "good", "--check"]).code, Some(0));
}

#[test]
fn c_40_the_agent_reads_the_payload_of_the_newest_marker() {
    let desk = Desk::new();
    configure(&desk, "cat", "");
    let alone = talk("args = { prompt_text = \"x\" }", "");
    let (head, tail) = (alone.find("[[nodes]]").unwrap(), alone.rfind("[[nodes]]").unwrap());
    let alone = format!("{}{}", &alone[..head], &alone[tail..]);
    let put = |job: &str, seconds: u64, text: Option<&str>| {
        let key = "70726f6d70745f74657874/6b";
        let marker = format!(".tidewheel/jobs/artifacts/custom/{key}/{job}.json");
        desk.file(&marker, "{}");
        let at = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000 + seconds);
        fs::File::options().write(true).open(desk.path(&marker)).unwrap().set_modified(at).unwrap();
        if let Some(text) = text {
            desk.file(
                &format!(".tidewheel/jobs/artifacts/data/{key}/{job}.json"),
                &json!({ "text": text }).to_string(),
            );
        }
    };
    put("p2", 2, Some("newer"));
    put("p1", 1, Some("older"));
    let (run, ran) = followed(&desk, &alone);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "newer");
    put("p3", 3, None);
    let (run, ran) = followed(&desk, &alone);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (_, _, summary) = end_of(&desk, &run, "agent");
    assert_eq!(summary, "agent.invoke finds no text in `custom:prompt_text:k`");
    // A node of the own run makes the prompt, so that nobody else's counts.
    put("p9", 2_000_000_000, Some("of somebody else"));
    let (run, ran) = followed(&desk, &talk("args = { prompt_text = \"own\" }", ""));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "own");
}

#[test]
fn a_payload_that_does_not_fit_its_contract_fails_the_job_and_names_the_place() {
    let desk = Desk::new();
    configure(&desk, "cat", "");
    let schema = "schema = { type = \"object\", required = [\"score\"], \
                  properties = { score = { type = \"integer\", maximum = 10 } } }";
    let flow = |prompt: &str| {
        let text = talk(&format!("args = {{ prompt_text = '{prompt}' }}"), "");
        text.replace(
            "id = \"answer\"\nversion = \"v1\"",
            &format!("id = \"answer\"\nversion = \"v1\"\n{schema}"),
        )
    };
    let (run, ran) = followed(&desk, &flow("{\"score\": 7}"));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let kept = payload(&desk, &run, "agent", ("answer", "k"));
    assert_eq!((&kept["value"], &kept["text"]), (&json!({ "score": 7 }), &json!("{\"score\": 7}")));
    for (prompt, says) in [
        (
            "{\"score\": 11}",
            "the payload of `custom:answer:k` does not fit its contract: $.score: must be at most 10",
        ),
        ("{}", "$: has no field `score`"),
        ("a word", "$: is no JSON"),
    ] {
        let (run, ran) = followed(&desk, &flow(prompt));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let (status, code, summary) = end_of(&desk, &run, "agent");
        assert_eq!((status.as_str(), code), ("failed", Some(1)));
        assert!(summary.contains(says), "{summary}");
        assert!(payload(&desk, &run, "agent", ("answer", "k")).is_null());
        assert!(!desk.in_jobs(&format!("artifacts/custom/616e73776572/6b/wf-{run}-agent.json")).exists());
    }
    let wrong = flow("x").replace("maximum = 10", "maximun = 10");
    let desk = Desk::new();
    configure(&desk, "cat", "");
    refused(
        &desk,
        &wrong,
        &["is no word of a schema that is checked here", "^^^^^^^", "did you mean `maximum`?"],
    );
}

#[test]
fn m_152_a_step_of_a_build_gets_its_place_and_its_branch() {
    let desk = Desk::with_git();
    let node = |args: &str| {
        format!(
            "id = \"T\"\nversion = \"v1\"\n[[nodes]]\nid = \"n\"\n\
             uses = \"cap.env.builtin.build.materialize_step\"\nargs = {{ {args} }}\n"
        )
    };
    let all = [
        "build_id = \"b1\"",
        "step_key = \"s1\"",
        "slug = \"alpha\"",
        "branch = \"build/b1-s1\"",
        "target = \"main\"",
    ];
    let (run, ran) = followed(&desk, &node(&all.join(", ")));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let path = ".tidewheel/implementation-plans/builds/b1/steps/s1/materialized.json";
    let step: Value = serde_json::from_str(&fs::read_to_string(desk.path(path)).unwrap()).unwrap();
    let main = desk.git(&["rev-parse", "main"]);
    for (name, value) in [
        ("build_id", "b1"),
        ("step_key", "s1"),
        ("slug", "alpha"),
        ("branch", "build/b1-s1"),
        ("target", "main"),
    ] {
        assert_eq!(step[name], value, "{step}");
    }
    assert_eq!((&step["branch_oid"], &step["job_id"]), (&json!(main), &json!(format!("wf-{run}-n"))));
    assert_eq!(desk.git(&["rev-parse", "build/b1-s1"]), main);
    // A branch that is there stays where it stands.
    desk.file("more", "x");
    desk.commit("second");
    assert_eq!(followed(&desk, &node(&all.join(", "))).1.code, Some(0));
    assert_eq!(desk.git(&["rev-parse", "build/b1-s1"]), main);
    let (run, _) = followed(&desk, &node(&all.join(", ").replace("\"main\"", "\"none\"")));
    assert!(end_of(&desk, &run, "n").2.contains("required branch `none` does not exist"));
    let desk = Desk::with_git();
    for left_out in 0..all.len() {
        let some: Vec<&str> =
            all.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, arg)| *arg).collect();
        refused(&desk, &node(&some.join(", ")), &["for build.materialize_step", "missing are"]);
    }
    refused(&desk, &node(&all.join(", ").replace("\"b1\"", "\"../../x\"")), &["args.build_id"]);
    assert!(!desk.outside().join("x").exists());
}

#[test]
fn an_agent_whose_answer_was_lost_with_its_supervisor_has_not_succeeded() {
    let desk = Desk::new();
    configure(&desk, "echo asked >>asked; echo answer", "");
    let text = talk("args = { prompt_text = \"say it\" }", "");
    let (run, ran) = followed(&desk, &text);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    // The supervisor was killed when its events were written, and neither its artifacts nor its record.
    let id = format!("wf-{run}-agent");
    let mut record = desk.record(&id);
    record["status"] = json!("running");
    for field in ["finished_at", "exit_code", "outcome_path"] {
        record[field] = Value::Null;
    }
    fs::remove_file(desk.in_jobs(&id).join("outcome.json")).unwrap();
    for kind in ["custom", "data"] {
        fs::remove_dir_all(desk.in_jobs(&format!("artifacts/{kind}/616e73776572"))).unwrap();
    }
    desk.put(crate::by_hand::Job(record)).abandon(&id);
    desk.tick();
    let record = desk.record(&id);
    assert_eq!(
        (&record["status"], &record["metadata"]["process_liveness_state"]),
        (&json!("failed"), &json!("stale_not_running")),
        "{record}"
    );
    assert_eq!(desk.run(&["jobs", "retry", &id]).code, Some(0));
    desk.wait(&id);
    assert_eq!(desk.status(&id), "succeeded");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "answer\n");
    assert_eq!(desk.lines("asked"), ["asked", "asked"]);
}

#[test]
fn a_placeholder_of_a_file_that_nobody_named_is_nothing() {
    let desk = Desk::new();
    configure(&desk, "cat", "");
    let text = talk("args = { prompt_text = \"[{{file:${file}}}]\" }", "")
        .replace("[params]", "[params]\nfile = \"\"");
    let (run, ran) = followed(&desk, &text);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(payload(&desk, &run, "agent", ("answer", "k"))["text"], "[]");
}

#[test]
fn an_agent_whose_directory_leads_out_is_named() {
    let desk = Desk::new();
    configure(&desk, "pwd", "cwd = \"out\"");
    std::os::unix::fs::symlink(desk.outside(), desk.path("out")).unwrap();
    let (run, ran) = followed(&desk, &talk("args = { prompt_text = \"x\" }", ""));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let (status, _, summary) = end_of(&desk, &run, "agent");
    assert_eq!(status, "failed");
    assert!(summary.starts_with("cwd `out` of agent `default` leads to "), "{summary}");
    assert!(summary.contains("outside repository root") && !summary.contains("metadata"), "{summary}");
}
