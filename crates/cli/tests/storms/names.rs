//! Names that want to be more than names, wherever one is taken.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use tidewheel_core::job::{Branch, JobId, NodeId, RunId, Slug};
use tidewheel_testkit::figure;

use crate::random::Random;
use crate::size;
use crate::world::{Ran, World};

/// What hostile names are made of.
const PIECES: &[&str] = &[
    "..",
    ".",
    "/",
    "\\",
    "\n",
    "\r",
    "\t",
    " ",
    "\u{1b}[2J",
    "\u{1b}]0;x\u{7}",
    "\u{9b}2J",
    "\u{202e}",
    "-",
    "--",
    "~",
    "$HOME",
    "${HOME}",
    "$(touch pwned)",
    "`touch pwned`",
    ";touch pwned;",
    "&",
    "|",
    "%2e%2e%2f",
    "\u{ff0e}\u{ff0e}",
    "\u{2215}",
    "*",
    "?",
    "[",
    "{",
    "}",
    "'",
    "\"",
    "#",
    "@{",
    ".lock",
    ".git",
    "job.json",
    "run.lock",
    "runs",
    "artifacts",
    "index.live",
    "scheduler.lock",
    "secret",
    "outside",
    "config.toml",
    "tmp-worktrees",
    "x",
    "é",
    "🌊",
    "a",
    "0",
    "../../../secret",
    "../secret",
    "file:",
    "run:",
    "=",
    ",",
    ":",
    "null",
    "\u{0}",
    "\u{7f}",
    "\u{feff}",
];

fn name(random: &mut Random) -> String {
    let count = 1 + random.below(5);
    let mut name: String = (0..count).map(|_| *random.one_of(PIECES)).collect();
    if random.below(40) == 0 {
        name = name.repeat(80);
    }
    name
}

/// Everything around the directory: names, contents and times.
fn around(world: &World) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut seen = BTreeMap::new();
    let mut left = vec![world.outside().to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let of = entry.path().symlink_metadata().unwrap();
            if entry.path() == world.path("").join("") || entry.path() == world.outside().join("world") {
                continue;
            }
            let content = if of.is_dir() { Vec::new() } else { fs::read(entry.path()).unwrap() };
            seen.insert(entry.path(), (content, of.modified().unwrap()));
            if of.is_dir() {
                left.push(entry.path());
            }
        }
    }
    seen
}

/// Returns a world with things around it that nobody may touch: what a name that escapes would find.
fn world() -> World {
    let world = World::new();
    for directory in ["secret", "outside/secret", "secret/secret"] {
        let directory = world.outside().join(directory);
        fs::create_dir_all(&directory).unwrap();
        let record = json!({
            "id": "secret", "version": 1, "status": "queued", "child_args": ["--version"],
            "created_at": "2026-02-01T12:00:00Z", "schedule": {},
        });
        fs::write(directory.join("job.json"), record.to_string()).unwrap();
        fs::write(directory.join("stdout.log"), "the secret\n").unwrap();
        fs::write(directory.join("command.patch"), "the secret\n").unwrap();
    }
    fs::write(world.outside().join("secret.json"), "{}").unwrap();
    fs::write(world.outside().join("secret.toml"), template("", "n", "true")).unwrap();
    world
}

fn template(more: &str, node: &str, script: &str) -> String {
    format!(
        "id = \"T\"\nversion = \"v1\"\n[[artifact_contracts]]\nid = \"t\"\nversion = \"v1\"\n[[nodes]]\nid = {}\n\
         kind = \"shell\"\nuses = \"cap.env.shell.command.run\"\nargs = {{ script = \"{script}\" }}\n{more}\n",
        quoted(node)
    )
}

/// Writes a text so that TOML reads the same.
fn quoted(text: &str) -> String {
    let escape = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escape).collect::<String>())
}

/// Fails if a command did more than refuse.
#[track_caller]
fn is_civil(ran: &Ran, world: &World) {
    assert!(matches!(ran.code, Some(0 | 1 | 2 | 10)), "{ran:?}");
    assert!(!ran.err.contains("panicked"), "{ran:?}");
    for said in [&ran.out, &ran.err] {
        assert!(!said.contains(['\u{1b}', '\u{7}', '\u{9b}']), "{ran:?}");
        assert!(!said.contains("the secret"), "{ran:?}");
    }
    assert!(!world.path("pwned").exists(), "{ran:?}");
}

#[test]
fn a_name_that_is_taken_is_one_step_of_a_path() {
    let mut random = Random::new("names");
    for _ in 0..size(1_000_000) {
        let name = name(&mut random);
        for taken in [JobId::new(&name).is_ok(), Slug::new(&name).is_ok(), RunId::new(&name).is_ok()] {
            let steps: Vec<Component<'_>> = Path::new(&name).components().collect();
            let is_plain = matches!(steps[..], [Component::Normal(step)] if step == name.as_str());
            assert!(!taken || is_plain && name.len() < 240, "{name:?}");
        }
        if Branch::new(&name).is_ok() {
            assert!(
                Path::new(&name).components().all(|step| matches!(step, Component::Normal(_))),
                "{name:?}"
            );
            assert!(!name.starts_with('-') && !name.contains(char::is_control), "{name:?}");
        }
        if let Ok(node) = NodeId::new(&name) {
            let id = JobId::of_node(&RunId::of_bits(7), &node).unwrap();
            assert_eq!(Path::new(id.as_str()).components().count(), 1, "{name:?}");
        }
    }
    figure::counted("hostile names/types", size(1_000_000));
}

#[test]
fn hostile_names_on_the_command_line_reach_nothing() {
    let mut random = Random::new("names of commands");
    let world = world();
    let params = "needs = [{ merge_sentinel = { slug = \"${slug}\" } }]\n\
                  locks = [{ key = \"branch:${slug}\", mode = \"shared\" }]\n[cli]\npositional = [\"slug\"]\n\
                  named = { slug = \"slug\" }\n[params]\nslug = \"ok\"\n";
    world.flow("good", &template(params, "n", "touch pwned"));
    let before = around(&world);
    for _ in 0..size(5_000) {
        let name = name(&mut random).replace('\0', "");
        let set = format!("slug={name}");
        let run = format!("run:{name}");
        let arguments: Vec<&str> = match random.below(20) {
            0 => vec!["jobs", "status", &name],
            1 => vec!["jobs", "show", &name],
            2 => vec!["jobs", "tail", &name],
            3 => vec!["jobs", "cancel", &name],
            4 => vec!["jobs", "retry", &name],
            5 => vec!["jobs", "approve", &name],
            6 => vec!["jobs", "reject", &name, "--reason", &name],
            7 => vec!["jobs", "wait", &name],
            8 => vec!["jobs", "schedule", "--job", &name],
            9 => vec!["runs", "show", &name],
            10 => vec!["runs", "cancel", &name],
            11 => vec!["runs", "retry", &name],
            12 => vec!["run", "good", "--set", &set],
            13 => vec!["run", "good", &name],
            14 => vec!["run", "good", "--after", &name],
            15 => vec!["run", "good", "--after", &run],
            16 => vec!["run", &name],
            17 => vec!["run", "good", "--pin", &name],
            18 => vec!["run", "good", "--slug", &name],
            _ => vec!["__workflow-node", "--job-id", &name],
        };
        let ran = world.run(&arguments);
        is_civil(&ran, &world);
    }
    assert!(around(&world) == before, "something around the directory was changed");
    figure::counted("hostile names/command line", size(5_000));
}

#[test]
fn hostile_names_in_templates_reach_nothing() {
    let mut random = Random::new("names in templates");
    let world = world();
    let before = around(&world);
    for _ in 0..size(3_000) {
        let name = name(&mut random);
        let text = quoted(&name);
        let of = |more: &str| template(more, "n", "touch pwned");
        let (flow, config) = match random.below(13) {
            0 => (template("", &name, "touch pwned"), None),
            1 => (of(&format!("needs = [{{ plan_doc = {{ slug = {text}, branch = \"\" }} }}]")), None),
            2 => (of(&format!("needs = [{{ plan_branch = {{ slug = \"s\", branch = {text} }} }}]")), None),
            3 => (of(&format!("needs = [{{ target_branch = {{ name = {text} }} }}]")), None),
            4 => (of(&format!("needs = [{{ merge_sentinel = {{ slug = {text} }} }}]")), None),
            5 => (of(&format!("needs = [{{ command_patch = {{ job_id = {text} }} }}]")), None),
            6 => (of(&format!("needs = [{{ custom = {{ type_id = \"t\", key = {text} }} }}]")), None),
            7 => (of(&format!("after = [{text}]")), None),
            8 => (of(&format!("on.failed = [{text}]")), None),
            9 => (of(&format!("preconditions = [{{ kind = \"branch_exists\", branch = {text} }}]")), None),
            10 => (of(&format!("[[imports]]\nname = \"i\"\npath = {text}")), None),
            11 => (of(&format!("[[imports]]\nname = {text}\npath = \"good.toml\"")), None),
            _ => (of(""), Some(format!("[commands]\nalias = {}\n", quoted(&format!("file:{name}"))))),
        };
        world.flow("bad", &flow.replacen("id = \"T\"", &format!("id = {text}"), random.below(2)));
        world.file(".tidewheel/config.toml", &config.clone().unwrap_or_default());
        // Whatever is taken waits for an approval that never comes: nothing may run.
        let flow = if config.is_some() { "alias" } else { "bad" };
        let ran = world.run(&["run", flow, "--require-approval"]);
        is_civil(&ran, &world);
    }
    world.file(".tidewheel/config.toml", "");
    is_civil(&world.run(&["tick"]), &world);
    assert!(around(&world) == before, "something around the directory was changed");
    figure::counted("hostile names/templates", size(3_000));
}

#[test]
fn hostile_records_reach_nothing() {
    let mut random = Random::new("names in records");
    let world = world();
    let before = around(&world);
    let count = size(2_000);
    for index in 0..count {
        let name = name(&mut random);
        let id = format!("job-{index}");
        let mut record = json!({
            "id": id, "version": 1, "status": "queued", "child_args": ["--version"], "command": [name],
            "created_at": "2026-02-01T12:00:00Z", "metadata": {}, "schedule": {},
        });
        // Whoever takes a hostile name as it is finds what is around the directory, and starts the job.
        let escape = *random.one_of(&["../../../secret", "../../../../secret", "../../../secret/secret"]);
        let text = if random.below(2) == 0 { name.as_str() } else { escape };
        let needs = |artifact: Value| json!({"dependencies": [{"artifact": artifact}]});
        match random.below(10) {
            0 => record["schedule"] = json!({"after": [{"job_id": text, "policy": "success"}]}),
            1 => record["schedule"] = needs(json!({"plan_doc": {"slug": text, "branch": "main"}})),
            2 => record["schedule"] = needs(json!({"merge_sentinel": {"slug": text}})),
            3 => record["schedule"] = needs(json!({"command_patch": {"job_id": text}})),
            4 => record["schedule"] = needs(json!({"target_branch": {"name": text}})),
            5 => record["schedule"] = needs(json!({"custom": {"type_id": text, "key": text}})),
            6 => record["schedule"] = json!({"pinned_head": {"branch": text, "oid": text}}),
            7 => record["schedule"] = json!({"preconditions": [{"kind": "branch_exists", "branch": text}]}),
            8 => {
                record["metadata"] = json!({
                    "worktree_owned": true, "worktree_path": text, "execution_root": text, "worktree_name": text,
                });
                record["status"] = json!("failed");
                record["stdout_path"] = json!(format!("{text}/stdout.log"));
                record["outcome_path"] = json!(format!("{text}/outcome.json"));
            }
            _ => record["metadata"] = json!({"workflow_run_id": text, "workflow_node_id": text}),
        }
        let directory = world.in_jobs(&id);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("job.json"), record.to_string()).unwrap();
    }
    // Directories with such names, and links that lead away.
    for index in 0..100 {
        let name = name(&mut random).replace(['/', '\0'], "_");
        // A directory in the place of a file of the scheduler is no name any more, but a broken scheduler.
        let is_taken =
            [".", "..", "runs", "artifacts", "index.live", "scheduler.lock"].contains(&name.as_str());
        let is_ours = ["secret", "linked"].contains(&name.as_str());
        if is_taken || is_ours || name.len() > 200 || world.in_jobs(&name).exists() {
            continue;
        }
        if index % 2 == 0 {
            symlink(world.outside().join("secret"), world.in_jobs(&name)).unwrap();
        } else {
            let record = json!({"id": name, "status": "queued", "child_args": ["--version"], "created_at": "2026-02-01T12:00:00Z"});
            fs::create_dir(world.in_jobs(&name)).unwrap();
            fs::write(world.in_jobs(&name).join("job.json"), record.to_string()).unwrap();
        }
    }
    symlink(world.outside().join("secret"), world.in_jobs("secret")).unwrap();
    let of_linked = json!({
        "id": "of-linked", "status": "queued", "child_args": ["--version"], "created_at": "2026-02-01T12:00:00Z",
        "schedule": {"dependencies": [{"artifact": {"command_patch": {"job_id": "secret"}}}]},
    });
    fs::create_dir(world.in_jobs("of-linked")).unwrap();
    fs::write(world.in_jobs("of-linked/job.json"), of_linked.to_string()).unwrap();
    fs::create_dir(world.in_jobs("linked")).unwrap();
    symlink(world.outside().join("secret/job.json"), world.in_jobs("linked/job.json")).unwrap();

    let ticked = world.run(&["tick", "--format", "json"]);
    assert!(matches!(ticked.code, Some(0 | 1)), "{ticked:?}");
    let started = ticked.json()["started"].clone();
    for id in started.as_array().unwrap() {
        let id = id.as_str().unwrap();
        let record = world.record(id);
        assert!(record["schedule"].get("dependencies").is_none(), "{record}");
        assert!(record["schedule"].get("after").is_none(), "{record}");
        assert!(JobId::new(id).is_ok() && id != "secret" && id != "linked", "{id}");
    }
    for arguments in [
        &["jobs", "list", "--all"][..],
        &["jobs", "schedule", "--all"],
        &["jobs", "schedule", "--all", "--format", "dag"],
        &["jobs", "tail", "secret"],
        &["runs", "list"],
    ] {
        is_civil(&world.run(arguments), &world);
    }
    for index in 0..count {
        let id = format!("job-{index}");
        if !world.record(&id)["metadata"]["worktree_owned"].is_null() {
            for arguments in [&["jobs", "tail", &id][..], &["jobs", "retry", &id]] {
                is_civil(&world.run(arguments), &world);
            }
        }
    }
    is_civil(&world.run(&["jobs", "gc", "--days", "0"]), &world);
    assert!(around(&world) == before, "something around the directory was changed");
    figure::counted("hostile names/records", count);
}
