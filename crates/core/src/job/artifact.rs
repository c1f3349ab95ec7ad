//! What jobs make and need, beside each other's success.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::{Branch, JobId, Slug};

/// Something that is there or not: made by a job, or by hand.
///
/// Fields of a later release are passed over, as everywhere in a record; templates have a reader of their own, which
/// refuses them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", try_from = "Form")]
pub enum Artifact {
    /// The branch of a plan exists.
    PlanBranch {
        /// The plan.
        slug: String,
        /// Its branch; empty for `draft/<slug>`.
        #[serde(default)]
        branch: String,
    },
    /// The document of a plan is on its branch.
    PlanDoc {
        /// The plan.
        slug: String,
        /// Its branch; empty for `draft/<slug>`.
        #[serde(default)]
        branch: String,
    },
    /// The branch of a plan exists, and with it its commits.
    PlanCommits {
        /// The plan.
        slug: String,
        /// Its branch; empty for `draft/<slug>`.
        #[serde(default)]
        branch: String,
    },
    /// A branch to merge into exists.
    TargetBranch {
        /// The branch.
        name: String,
    },
    /// A merge of this plan stopped at a conflict.
    MergeSentinel {
        /// The plan.
        slug: String,
    },
    /// A job left a patch.
    CommandPatch {
        /// The job.
        job_id: String,
    },
    /// What a template declares.
    Custom {
        /// The contract.
        type_id: String,
        /// Which of its kind.
        key: String,
    },
}

/// An artifact as it is read: fields of a later release may stand beside the one that says what it is.
#[derive(Deserialize)]
struct Form {
    plan_branch: Option<Plan>,
    plan_doc: Option<Plan>,
    plan_commits: Option<Plan>,
    target_branch: Option<Target>,
    merge_sentinel: Option<Sentinel>,
    command_patch: Option<Patch>,
    custom: Option<Declared>,
}

#[derive(Deserialize)]
struct Plan {
    slug: String,
    #[serde(default)]
    branch: String,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Sentinel {
    slug: String,
}

#[derive(Deserialize)]
struct Patch {
    job_id: String,
}

#[derive(Deserialize)]
struct Declared {
    type_id: String,
    key: String,
}

impl TryFrom<Form> for Artifact {
    type Error = String;

    fn try_from(form: Form) -> Result<Self, Self::Error> {
        let Form {
            plan_branch,
            plan_doc,
            plan_commits,
            target_branch,
            merge_sentinel,
            command_patch,
            custom,
        } = form;
        let found = [
            plan_branch.map(|Plan { slug, branch }| Self::PlanBranch { slug, branch }),
            plan_doc.map(|Plan { slug, branch }| Self::PlanDoc { slug, branch }),
            plan_commits.map(|Plan { slug, branch }| Self::PlanCommits { slug, branch }),
            target_branch.map(|Target { name }| Self::TargetBranch { name }),
            merge_sentinel.map(|Sentinel { slug }| Self::MergeSentinel { slug }),
            command_patch.map(|Patch { job_id }| Self::CommandPatch { job_id }),
            custom.map(|Declared { type_id, key }| Self::Custom { type_id, key }),
        ];
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(artifact), None) => Ok(artifact),
            (None, _) => Err(format!("an artifact is one of {KINDS}, and this is none of them")),
            (Some(_), Some(_)) => Err(format!("an artifact is one of {KINDS}, and this is two of them")),
        }
    }
}

const KINDS: &str =
    "plan_branch, plan_doc, plan_commits, target_branch, merge_sentinel, command_patch and custom";

/// Why an artifact cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("artifact {label}: {reason}")]
pub struct ArtifactError {
    /// The artifact.
    pub label: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Artifact {
    /// Checks every name in it, before any of them touches a path.
    ///
    /// # Errors
    /// A name is none.
    pub fn check(&self) -> Result<(), ArtifactError> {
        let fail = |reason: String| ArtifactError { label: self.to_string(), reason };
        let slug = |slug: &str| Slug::new(slug).map(drop).map_err(|error| fail(error.to_string()));
        match self {
            Self::PlanBranch { slug: name, branch }
            | Self::PlanDoc { slug: name, branch }
            | Self::PlanCommits { slug: name, branch } => {
                slug(name)?;
                if branch.is_empty() {
                    return Ok(());
                }
                Branch::new(branch).map(drop).map_err(|error| fail(error.to_string()))
            }
            Self::TargetBranch { name } => {
                Branch::new(name).map(drop).map_err(|error| fail(error.to_string()))
            }
            Self::MergeSentinel { slug: name } => slug(name),
            Self::CommandPatch { job_id } => {
                JobId::new(job_id).map(drop).map_err(|error| fail(error.to_string()))
            }
            Self::Custom { type_id, key } => {
                // Both become file names in hexadecimal digits, so that only their length matters.
                const MAX: usize = 120;
                let bad = [("type_id", type_id), ("key", key)].into_iter().find_map(|(what, text)| {
                    if text.is_empty() {
                        Some(format!("{what} is empty"))
                    } else if text.len() > MAX {
                        Some(format!("{what} is longer than {MAX} bytes"))
                    } else if text.chars().any(char::is_control) {
                        Some(format!("{what} has control characters"))
                    } else {
                        None
                    }
                });
                bad.map_or(Ok(()), |reason| Err(fail(reason)))
            }
        }
    }

    /// Returns the branch of a plan: the one that is given, or `draft/<slug>`.
    #[must_use]
    pub fn plan_branch(slug: &str, branch: &str) -> String {
        if branch.is_empty() { format!("draft/{slug}") } else { branch.to_owned() }
    }

    /// Returns the plan that it is of.
    #[must_use]
    pub fn slug(&self) -> Option<&str> {
        match self {
            Self::PlanBranch { slug, .. }
            | Self::PlanDoc { slug, .. }
            | Self::PlanCommits { slug, .. }
            | Self::MergeSentinel { slug } => Some(slug),
            Self::TargetBranch { .. } | Self::CommandPatch { .. } | Self::Custom { .. } => None,
        }
    }
}

/// Writes the label that wait reasons and views use.
impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = |f: &mut fmt::Formatter<'_>, kind: &str, slug: &str, branch: &str| {
            write!(f, "{kind}:{slug} ({})", Self::plan_branch(slug, branch))
        };
        match self {
            Self::PlanBranch { slug, branch } => plan(f, "plan_branch", slug, branch),
            Self::PlanDoc { slug, branch } => plan(f, "plan_doc", slug, branch),
            Self::PlanCommits { slug, branch } => plan(f, "plan_commits", slug, branch),
            Self::TargetBranch { name } => write!(f, "target_branch:{name}"),
            Self::MergeSentinel { slug } => write!(f, "merge_sentinel:{slug}"),
            Self::CommandPatch { job_id } => write!(f, "command_patch:{job_id}"),
            Self::Custom { type_id, key } => write!(f, "custom:{type_id}:{key}"),
        }
    }
}
