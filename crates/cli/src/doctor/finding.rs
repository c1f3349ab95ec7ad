//! What a judgement comes to: each finding with its level, its file and what to do. Data only.

/// One thing that was looked at, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) check: Check,
    pub(crate) level: Level,
    /// The file or directory that it is about.
    pub(crate) file: Option<String>,
    /// How it is.
    pub(crate) message: String,
    /// What a person can do about it.
    pub(crate) todo: Option<String>,
    /// What can be done about it without a person.
    pub(crate) repair: Option<Repair>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Fine,
    /// It works, and somebody should look at it.
    Warning,
    /// Something does not work until somebody does something.
    Broken,
}

/// What is looked at, in the order in which it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Check {
    Place,
    Rights,
    Space,
    Clock,
    Lock,
    Records,
    Runs,
    Index,
    Supervisors,
    Leftovers,
    Worktrees,
    Sentinels,
    Git,
    Config,
    Templates,
    Agents,
    Store,
}

/// What can be done without a person, in the order in which it is done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Repair {
    /// Removes an empty directory where a file should be, beneath the data directory. All others may need that file.
    Folder(String),
    /// Removes what writers that died have left.
    Sweep,
    /// Builds the index anew.
    Index,
    /// Removes enqueues that did not finish, as gc does.
    Unfinished,
    /// Makes one pass of the scheduler.
    Tick,
    /// Removes what a job that is gone left among the worktrees, by its name.
    Worktree(String),
}

impl Level {
    /// Returns its word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Warning => "warning",
            Self::Broken => "broken",
        }
    }
}

impl Check {
    /// Returns its word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Place => "place",
            Self::Rights => "rights",
            Self::Space => "space",
            Self::Clock => "clock",
            Self::Lock => "lock",
            Self::Records => "records",
            Self::Runs => "runs",
            Self::Index => "index",
            Self::Supervisors => "supervisors",
            Self::Leftovers => "leftovers",
            Self::Worktrees => "worktrees",
            Self::Sentinels => "sentinels",
            Self::Git => "git",
            Self::Config => "config",
            Self::Templates => "templates",
            Self::Agents => "agents",
            Self::Store => "store",
        }
    }
}

impl Repair {
    /// Returns what it is about.
    pub(crate) fn check(&self) -> Check {
        match self {
            Self::Folder(path) if path.starts_with("jobs/index.") => Check::Index,
            Self::Folder(_) => Check::Lock,
            Self::Sweep => Check::Leftovers,
            Self::Index => Check::Index,
            Self::Unfinished => Check::Records,
            Self::Tick => Check::Supervisors,
            Self::Worktree(_) => Check::Worktrees,
        }
    }
}

impl Finding {
    /// Says that something is as it should be.
    pub(crate) fn fine(check: Check, message: impl Into<String>) -> Self {
        Self { check, level: Level::Fine, file: None, message: message.into(), todo: None, repair: None }
    }

    /// Says that somebody should look at something.
    pub(crate) fn warning(check: Check, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, file: Some(file.into()), ..Self::fine(check, message) }
    }

    /// Says that something does not work.
    pub(crate) fn broken(check: Check, file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: Level::Broken, ..Self::warning(check, file, message) }
    }

    /// Adds what to do.
    pub(crate) fn todo(mut self, todo: impl Into<String>) -> Self {
        self.todo = Some(todo.into());
        self
    }

    /// Adds what can be done without a person.
    pub(crate) fn repair(mut self, repair: Repair) -> Self {
        self.repair = Some(repair);
        self
    }
}
