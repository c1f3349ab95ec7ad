//! The labels that a node may use, all in one table.

use crate::policy::{Kind, word_enum};

word_enum! {
    /// Who executes a node.
    pub enum Class {
        /// The scheduler itself.
        Builtin = "environment_builtin",
        /// A shell.
        Shell = "environment_shell",
        /// An agent.
        Agent = "agent",
        /// Nobody: it only steers.
        Control = "control",
    }
}

/// One label that a node may use.
#[derive(Debug, PartialEq, Eq)]
pub struct Label {
    /// The whole label.
    pub uses: &'static str,
    /// Who executes it.
    pub class: Class,
    /// The operation or the control policy, without what stands before it in the label.
    pub operation: &'static str,
    /// The arguments that it reads.
    pub args: &'static [&'static str],
    /// The gates that act on it, beside an approval, which acts on all.
    pub gates: &'static [&'static str],
}

impl Label {
    /// Finds a label.
    #[must_use]
    pub fn find(uses: &str) -> Option<&'static Self> {
        LABELS.iter().find(|label| label.uses == uses)
    }

    /// Returns the kind that a node with this label has to be of.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.class {
            Class::Builtin => Kind::Builtin,
            Class::Shell => Kind::Shell,
            Class::Agent => Kind::Agent,
            Class::Control => Kind::Gate,
        }
    }

    /// Tells whether it takes an argument: a prompt has placeholders of any name.
    #[must_use]
    pub fn takes(&self, arg: &str) -> bool {
        self.args.contains(&arg) || self.operation == "prompt.resolve"
    }

    /// Returns whether it runs texts that a shell reads.
    #[must_use]
    pub fn runs_scripts(&self) -> bool {
        !self.gates.is_empty() || SCRIPT_ARGS.iter().any(|arg| self.args.contains(arg))
    }

    /// Tells whether it only steers.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.class == Class::Control
    }
}

const fn shell(uses: &'static str, operation: &'static str) -> Label {
    Label { uses, class: Class::Shell, operation, args: &[], gates: &[] }
}

const fn builtin(uses: &'static str, operation: &'static str) -> Label {
    Label { uses, class: Class::Builtin, operation, args: &[], gates: &[] }
}

const fn control(uses: &'static str, operation: &'static str) -> Label {
    Label { uses, class: Class::Control, operation, args: &[], gates: &[] }
}

/// The arguments that a shell reads where they are texts.
pub(super) const SCRIPT_ARGS: [&str; 4] =
    ["command", "script", "auto_resolve_command", "auto_resolve_script"];

/// Where a prompt may come from.
const PROMPT_ARGS: &[&str] = &["prompt_text", "prompt_file", "command", "script", "config"];

/// Every label there is.
pub const LABELS: &[Label] = &[
    Label { args: &["command", "script"], ..shell("cap.env.shell.command.run", "command.run") },
    Label {
        args: &["command", "script"],
        gates: &["script", "cicd"],
        ..shell("cap.env.shell.cicd.run", "cicd.run")
    },
    Label { args: PROMPT_ARGS, ..shell("cap.env.shell.prompt.resolve", "prompt.resolve") },
    Label { args: PROMPT_ARGS, ..builtin("cap.env.builtin.prompt.resolve", "prompt.resolve") },
    Label {
        args: &["branch", "slug", "plan", "base", "target", "purpose"],
        ..builtin("cap.env.builtin.worktree.prepare", "worktree.prepare")
    },
    Label { ..builtin("cap.env.builtin.worktree.cleanup", "worktree.cleanup") },
    Label {
        args: &[
            "slug",
            "plan",
            "branch",
            "base",
            "target",
            "spec",
            "spec_text",
            "spec_file",
            "plan_text",
            "plan_file",
        ],
        ..builtin("cap.env.builtin.plan.persist", "plan.persist")
    },
    Label { args: &["message"], ..builtin("cap.env.builtin.git.stage_commit", "git.stage_commit") },
    Label {
        args: &["source", "target", "slug", "plan", "squash", "delete_branch"],
        ..builtin("cap.env.builtin.git.integrate_plan_branch", "git.integrate_plan_branch")
    },
    Label { ..builtin("cap.env.builtin.git.save_worktree_patch", "git.save_worktree_patch") },
    Label {
        args: &["files_json"],
        ..builtin("cap.env.builtin.patch.pipeline_prepare", "patch.pipeline_prepare")
    },
    Label {
        args: &["files_json"],
        ..builtin("cap.env.builtin.patch.execute_pipeline", "patch.execute_pipeline")
    },
    Label {
        args: &["files_json"],
        ..builtin("cap.env.builtin.patch.pipeline_finalize", "patch.pipeline_finalize")
    },
    Label {
        args: &["build_id", "step_key", "slug", "branch", "target"],
        ..builtin("cap.env.builtin.build.materialize_step", "build.materialize_step")
    },
    Label {
        args: &["slug", "plan", "source", "target"],
        ..builtin("cap.env.builtin.merge.sentinel.write", "merge.sentinel.write")
    },
    Label {
        args: &["slug", "plan"],
        ..builtin("cap.env.builtin.merge.sentinel.clear", "merge.sentinel.clear")
    },
    Label { class: Class::Agent, args: &["agent"], ..builtin("cap.agent.invoke", "agent.invoke") },
    control("control.terminal", "terminal"),
    Label { args: &["required"], ..control("control.gate.approval", "gate.approval") },
    Label { gates: &["script"], ..control("control.gate.stop_condition", "gate.stop_condition") },
    Label {
        args: &[
            "slug",
            "plan",
            "auto_resolve",
            "auto_resolve_command",
            "auto_resolve_script",
            "auto_resolve_agent",
        ],
        ..control("control.gate.conflict_resolution", "gate.conflict_resolution")
    },
    Label {
        args: &["auto_resolve", "auto_resolve_command", "auto_resolve_script"],
        gates: &["script", "cicd"],
        ..control("control.gate.cicd", "gate.cicd")
    },
];
