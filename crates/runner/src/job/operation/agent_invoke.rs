//! `agent.invoke`: an agent, which is a program, gets a prompt and says something. Which program is configured.

use serde_json::Value;
use tidewheel_core::job::{Agent, Artifact, Metadata, NodeOutcome, script_shown};

use super::around::AgentProgram;
use super::execution_root::{ExecutionRootError, beneath_root, execution_root};
use super::names::{Done, stopped};
use super::node::{Execute, Node, NodeEnd};
use super::task::Task;
use super::texts::{self, MOST_TEXT, PROMPT};
use crate::process::Program;

pub(super) fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    let name = node.arg("agent").and_then(Value::as_str).unwrap_or(Agent::DEFAULT);
    let agent = match configured(node, name) {
        Ok(agent) => agent,
        Err(end) => return *end,
    };
    let prompt = match prompt(node) {
        Ok(prompt) => prompt,
        Err(what) => return NodeEnd::failed(what, 1).non_retryable(),
    };
    let directory = match &agent.cwd {
        Some(cwd) => beneath_root(node.root, cwd),
        None => execution_root(node.root, &node.record.metadata),
    };
    let directory = match directory {
        Ok(directory) => directory,
        Err(error) => return wrong_place(name, agent, error),
    };
    let task = Task {
        program: program(agent).current_dir(directory),
        input: Some(prompt.into_bytes()),
        timeout: agent.timeout,
        keeps: Some(MOST_TEXT),
    };
    let ended = execute(task);
    let mut end = NodeEnd::of("agent.invoke", &ended);
    end.metadata.push((Metadata::AGENT_NAME, name.into()));
    end.metadata.push((Metadata::AGENT_COMMAND, script_shown(&agent.argv).join(" ").into()));
    let Ok(ended) = ended else { return end };
    end.metadata.push((Metadata::AGENT_EXIT_CODE, ended.end.exit_code().into()));
    let made = if ended.stdout.is_truncated && node.node.produces.contains_key(&end.outcome) {
        Err(format!("it wrote more than {} MiB, and no payload holds more", MOST_TEXT >> 20))
    } else {
        texts::payloads(node, end.outcome, &String::from_utf8_lossy(&ended.stdout.bytes))
    };
    match (made, end.outcome) {
        (Ok(payloads), _) => NodeEnd { payloads, ..end },
        (Err(why), NodeOutcome::Succeeded) => {
            let failed = NodeEnd::failed(format!("agent.invoke failed: {why}"), 1);
            NodeEnd { metadata: end.metadata, log_error: end.log_error, ..failed }
        }
        // It has failed of something else, which says more.
        (
            Err(_),
            NodeOutcome::Failed | NodeOutcome::Blocked | NodeOutcome::Cancelled | NodeOutcome::Skipped,
        ) => end,
    }
}

/// Returns the end of a node whose agent cannot run where it should.
fn wrong_place(name: &str, agent: &AgentProgram, error: ExecutionRootError) -> NodeEnd {
    let Some(cwd) = &agent.cwd else { return error.into() };
    let why = match error {
        ExecutionRootError::Outside { path, root } => {
            format!("leads to {}, which is outside repository root {}", path.display(), root.display())
        }
        ExecutionRootError::Gone { path, .. } => format!("cannot be used: {} is gone", path.display()),
        ExecutionRootError::Invalid { source, .. } => format!("cannot be used: {source}"),
    };
    NodeEnd::failed(format!("cwd `{cwd}` of agent `{name}` {why}"), 1).non_retryable()
}

/// Returns how an agent is called.
pub(super) fn configured<'a>(node: &Node<'a>, name: &str) -> Done<&'a AgentProgram> {
    node.around.agent(name).ok_or_else(|| {
        stopped(format!(
            "agent `{name}` is not configured; write [agents.{name}] with a `command` into .tidewheel/config.toml"
        ))
    })
}

/// Returns the program of an agent, with nothing in its environment but what it may know.
pub(super) fn program(agent: &AgentProgram) -> Program {
    let program = Program::new(agent.argv.iter().map(String::as_str)).env_clear();
    agent.env.iter().fold(program, |program, (name, value)| program.env(name.clone(), value.clone()))
}

/// Returns the prompt that the node needs: the newest one of its own run if a node of it makes it, or else of any.
fn prompt(node: &Node<'_>) -> Result<String, String> {
    let needed = node.record.schedule.dependencies.iter().map(|needed| &needed.artifact);
    let prompts: Vec<&Artifact> = needed
        .filter(|artifact| matches!(artifact, Artifact::Custom { type_id, .. } if type_id == PROMPT))
        .collect();
    let [artifact] = prompts.as_slice() else {
        let count = prompts.len();
        return Err(format!(
            "agent.invoke needs exactly one artifact custom:{PROMPT}:<key>, and has {count}"
        ));
    };
    let payload = node.around.payload(artifact);
    let payload = payload.map_err(|error| format!("agent.invoke cannot read `{artifact}`: {error}"))?;
    let text = payload.as_ref().and_then(texts::text_of).map(str::to_owned);
    text.ok_or_else(|| format!("agent.invoke finds no text in `{artifact}`"))
}
