//! One answer for each question of a gate.

use std::path::{Path, PathBuf};

use tidewheel_core::job::{Answer, Artifact, JobId, JobStatus, Question, Slug};
use tidewheel_store::jobs::JobStore;

use crate::git::{GitError, Repository};

/// What changes all the time and is nobody's work: it does not make a tree unclean.
pub const EPHEMERAL: [&str; 4] =
    [".tidewheel/jobs", ".tidewheel/sessions", ".tidewheel/tmp", ".tidewheel/tmp-worktrees"];

/// Answers the questions of one pass.
pub struct Prober<'s> {
    root: PathBuf,
    data: PathBuf,
    store: &'s dyn JobStore,
}

impl<'s> Prober<'s> {
    /// Returns a prober of a repository, its data directory and its jobs.
    #[must_use]
    pub fn new(root: &Path, data: &Path, store: &'s dyn JobStore) -> Self {
        Self { root: root.to_owned(), data: data.to_owned(), store }
    }

    /// Looks.
    #[must_use]
    pub fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Marker { type_id, key, of } => {
                yes_or_no(self.store.has_marker(type_id, key, of.as_deref()))
            }
            Question::Artifact(artifact) => self.artifact(artifact),
            Question::Head(branch) => text(self.git().head_of(branch.as_str())),
            Question::CleanTree { root } => {
                let git =
                    root.as_ref().map_or_else(|| self.git(), |root| Repository::at(&self.root.join(root)));
                yes_or_no(git.is_clean_beside(&EPHEMERAL))
            }
            Question::BranchExists(branch) => self.branch(branch.as_str()),
            Question::CurrentBranch => text(self.git().current_branch()),
            // Whoever holds the turn knows the keys, and answers this.
            Question::KeyOwner(_) => Answer::Text(None),
        }
    }

    fn artifact(&self, artifact: &Artifact) -> Answer {
        if let Err(error) = artifact.check() {
            return Answer::Failed(error.to_string());
        }
        match artifact {
            Artifact::PlanBranch { slug, branch } | Artifact::PlanCommits { slug, branch } => {
                self.branch(&Artifact::plan_branch(slug, branch))
            }
            Artifact::PlanDoc { slug, branch } => {
                let path = format!(".tidewheel/implementation-plans/{slug}.md");
                yes_or_no(self.git().has_file(&Artifact::plan_branch(slug, branch), &path))
            }
            Artifact::TargetBranch { name } => self.branch(name),
            Artifact::MergeSentinel { slug } => match Slug::new(slug) {
                Ok(slug) => self.file(&format!("tmp/merge-conflicts/{slug}.json")),
                Err(error) => Answer::Failed(error.to_string()),
            },
            Artifact::CommandPatch { job_id } => match JobId::new(job_id) {
                Ok(id) => self.patch(&id),
                Err(error) => Answer::Failed(error.to_string()),
            },
            Artifact::Custom { type_id, key } => yes_or_no(self.store.has_marker(type_id, key, None)),
        }
    }

    /// A patch is there if its file is, or if the job that should have made it succeeded.
    fn patch(&self, id: &JobId) -> Answer {
        if self.file(&format!("jobs/{id}/command.patch")) == Answer::Yes {
            return Answer::Yes;
        }
        yes_or_no(
            self.store
                .record(id)
                .map(|record| record.is_some_and(|record| record.status == JobStatus::Succeeded)),
        )
    }

    /// A file of the data directory is there if no link leads to it: what lies behind one is not its own.
    fn file(&self, path: &str) -> Answer {
        let mut reached = self.data.clone();
        let mut is_file = false;
        for part in Path::new(path) {
            reached.push(part);
            match reached.symlink_metadata() {
                Ok(found) if !found.is_symlink() => is_file = found.is_file(),
                _ => return Answer::No,
            }
        }
        if is_file { Answer::Yes } else { Answer::No }
    }

    fn branch(&self, name: &str) -> Answer {
        yes_or_no(self.git().head_of(name).map(|head| head.is_some()))
    }

    fn git(&self) -> Repository {
        Repository::at(&self.root)
    }
}

fn yes_or_no<E: std::error::Error>(result: Result<bool, E>) -> Answer {
    match result {
        Ok(true) => Answer::Yes,
        Ok(false) => Answer::No,
        Err(error) => Answer::Failed(error.to_string()),
    }
}

fn text(result: Result<Option<String>, GitError>) -> Answer {
    match result {
        Ok(text) => Answer::Text(text),
        Err(error) => Answer::Failed(error.to_string()),
    }
}
