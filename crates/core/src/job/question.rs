//! What gates have to know of the world, as questions and answers: the gates ask nobody themselves.

use std::collections::BTreeMap;

use super::artifact::Artifact;
use super::id::{Branch, JobId};

/// What a gate has to know of the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// Is there a marker of this custom artifact? [`Answer::Yes`] or [`Answer::No`].
    Marker {
        /// The contract.
        type_id: String,
        /// Which of its kind.
        key: String,
        /// Only markers of these jobs count; `None` for those of any.
        of: Option<Vec<JobId>>,
    },
    /// Is this artifact there, which is none of the custom ones? [`Answer::Yes`] or [`Answer::No`].
    Artifact(Artifact),
    /// At which commit does this branch stand? [`Answer::Text`], without one if there is no such branch.
    Head(Branch),
    /// Is nothing changed in the working tree? [`Answer::Yes`] or [`Answer::No`].
    CleanTree {
        /// Its root, relative to that of the repository; `None` for that itself.
        root: Option<String>,
    },
    /// Is there this branch, here and not at a remote? [`Answer::Yes`] or [`Answer::No`].
    BranchExists(Branch),
    /// Which branch is checked out? [`Answer::Text`], without one if none is.
    CurrentBranch,
    /// Which job has done the work with this key? [`Answer::Text`], without one if none has.
    KeyOwner(String),
}

/// What the world says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is so.
    Yes,
    /// It is not so.
    No,
    /// This is it.
    Text(Option<String>),
    /// Nobody could find out, and why.
    Failed(String),
}

/// What is known of the world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<Question, Answer>);

impl Facts {
    /// Returns the answer to a question, if somebody has asked it.
    #[must_use]
    pub fn get(&self, question: &Question) -> Option<&Answer> {
        self.0.get(question)
    }

    /// Adds an answer.
    pub fn add(&mut self, question: Question, answer: Answer) {
        self.0.insert(question, answer);
    }
}

impl FromIterator<(Question, Answer)> for Facts {
    fn from_iter<T: IntoIterator<Item = (Question, Answer)>>(answers: T) -> Self {
        Self(answers.into_iter().collect())
    }
}

impl Extend<(Question, Answer)> for Facts {
    fn extend<T: IntoIterator<Item = (Question, Answer)>>(&mut self, answers: T) {
        self.0.extend(answers);
    }
}
