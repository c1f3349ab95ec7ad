//! Which operation a node is.

use super::node::{Execute, Node, NodeEnd};
use super::{
    agent_invoke, approval, cicd_gate, cicd_run, command_run, conflict_gate, integrate, materialize_step,
    patch, plan_persist, prompt_resolve, save_patch, sentinel, stage_commit, stop_condition, terminal,
    worktree_cleanup, worktree_prepare,
};

/// Does what a node is for.
pub fn run(node: &Node<'_>, execute: &mut Execute<'_>) -> NodeEnd {
    match node.node.uses.as_str() {
        "cap.env.shell.command.run" => command_run::run(node, execute),
        "cap.env.shell.prompt.resolve" | "cap.env.builtin.prompt.resolve" => {
            prompt_resolve::run(node, execute)
        }
        "cap.agent.invoke" => agent_invoke::run(node, execute),
        "cap.env.builtin.patch.pipeline_prepare" => patch::prepare(node),
        "cap.env.builtin.patch.execute_pipeline" => patch::execute(node),
        "cap.env.builtin.patch.pipeline_finalize" => patch::finalize(node),
        "cap.env.builtin.build.materialize_step" => materialize_step::run(node),
        "cap.env.shell.cicd.run" => cicd_run::run(node, execute),
        "cap.env.builtin.worktree.prepare" => worktree_prepare::run(node, execute),
        "cap.env.builtin.worktree.cleanup" => worktree_cleanup::run(node, execute),
        "cap.env.builtin.plan.persist" => plan_persist::run(node),
        "cap.env.builtin.git.stage_commit" => stage_commit::run(node, execute),
        "cap.env.builtin.git.integrate_plan_branch" => integrate::run(node, execute),
        "cap.env.builtin.git.save_worktree_patch" => save_patch::run(node, execute),
        "cap.env.builtin.merge.sentinel.write" => sentinel::write(node),
        "cap.env.builtin.merge.sentinel.clear" => sentinel::clear(node),
        "control.gate.conflict_resolution" => conflict_gate::run(node, execute),
        "control.terminal" => terminal::run(node),
        "control.gate.approval" => approval::run(node),
        "control.gate.stop_condition" => stop_condition::run(node, execute),
        "control.gate.cicd" => cicd_gate::run(node, execute),
        other => NodeEnd::failed(format!("this release has no operation `{other}`"), 1).non_retryable(),
    }
}
