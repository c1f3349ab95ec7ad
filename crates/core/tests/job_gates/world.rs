//! A world of jobs without a disk: what gates ask is answered from a list, and each pass is checked.

use std::collections::{BTreeMap, BTreeSet};

use tidewheel_core::job::{
    After, AfterPolicy, Answer, Approval, Artifact, Brief, Facts, JobId, JobStatus, Limits, Lock, LockMode,
    Needed, PinnedHead, Precondition, Question, Record, RunId, Settled, Shared, WaitKind, World, settle,
};
use tidewheel_core::time::{Span, Timestamp};

/// Returns an instant, that many seconds after the beginning.
pub(crate) fn at(secs: u64) -> Timestamp {
    Timestamp::parse("2026-02-01T10:00:00Z").unwrap().saturating_add(Span::from_secs(secs))
}

pub(crate) fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

pub(crate) fn custom(key: &str) -> Artifact {
    Artifact::Custom { type_id: "acme.exec".into(), key: key.into() }
}

pub(crate) fn patch(job: &str) -> Artifact {
    Artifact::CommandPatch { job_id: job.into() }
}

/// A job in the making.
#[derive(Clone)]
pub(crate) struct Job(pub(crate) Brief);

/// Returns a job that could start at once.
pub(crate) fn job(name: &str) -> Job {
    let mut record = Record::new(id(name), at(0));
    record.child_args = vec!["true".into()];
    Job(Brief::from(&record))
}

impl Job {
    pub(crate) fn status(mut self, status: JobStatus) -> Self {
        self.0.status = status;
        self
    }

    pub(crate) fn after(self, other: &str) -> Self {
        self.after_with(other, AfterPolicy::Success)
    }

    pub(crate) fn after_with(mut self, other: &str, policy: AfterPolicy) -> Self {
        self.0.schedule.after.push(After { job_id: id(other), policy });
        self
    }

    pub(crate) fn needs(mut self, artifact: Artifact) -> Self {
        self.0.schedule.dependencies.push(Needed { artifact });
        self
    }

    pub(crate) fn makes(mut self, artifact: Artifact) -> Self {
        self.0.schedule.artifacts.push(artifact);
        self
    }

    pub(crate) fn exclusive(self, key: &str) -> Self {
        self.lock(key, LockMode::Exclusive)
    }

    pub(crate) fn shared(self, key: &str) -> Self {
        self.lock(key, LockMode::Shared)
    }

    pub(crate) fn lock(mut self, key: &str, mode: LockMode) -> Self {
        self.0.schedule.locks.push(Lock { key: key.into(), mode });
        self
    }

    pub(crate) fn run(mut self, bits: u128) -> Self {
        self.0.run = Some(RunId::of_bits(bits));
        self
    }

    pub(crate) fn pinned(mut self, branch: &str, oid: &str) -> Self {
        self.0.schedule.pinned_head = Some(PinnedHead { branch: branch.into(), oid: oid.into() });
        self
    }

    pub(crate) fn precondition(mut self, precondition: Precondition) -> Self {
        self.0.schedule.preconditions.push(precondition);
        self
    }

    pub(crate) fn approval(mut self, approval: Approval) -> Self {
        self.0.schedule.approval = Some(approval);
        self
    }

    pub(crate) fn limits(mut self, limits: Limits) -> Self {
        self.0.schedule.limits = Some(Box::new(limits));
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Brief)) -> Self {
        change(&mut self.0);
        self
    }
}

/// Jobs, and what is so in the world.
pub(crate) struct Scene {
    pub(crate) jobs: BTreeMap<JobId, Brief>,
    pub(crate) unreadable: BTreeMap<String, String>,
    /// Running jobs whose supervisors are gone.
    pub(crate) lost: BTreeSet<JobId>,
    pub(crate) truth: BTreeMap<Question, Answer>,
    /// The markers that are there.
    pub(crate) marks: BTreeSet<(JobId, Artifact)>,
    pub(crate) shared: Shared,
    pub(crate) capacity: u32,
    pub(crate) now: Timestamp,
    /// What was asked in the last pass.
    pub(crate) asked: BTreeSet<Question>,
}

/// Returns a world with these jobs, enqueued one second after the other.
pub(crate) fn scene(jobs: impl IntoIterator<Item = Job>) -> Scene {
    let mut scene = Scene {
        jobs: BTreeMap::new(),
        unreadable: BTreeMap::new(),
        lost: BTreeSet::new(),
        truth: BTreeMap::new(),
        marks: BTreeSet::new(),
        shared: Shared::default(),
        capacity: 1_000_000,
        now: at(1_000),
        asked: BTreeSet::new(),
    };
    for job in jobs {
        scene.add(job);
    }
    scene
}

impl Scene {
    pub(crate) fn add(&mut self, mut job: Job) {
        job.0.created_at = at(u64::try_from(self.jobs.len()).unwrap());
        self.jobs.insert(job.0.id.clone(), job.0);
    }

    /// Lets something be so.
    pub(crate) fn is(mut self, question: Question, answer: Answer) -> Self {
        self.truth.insert(question, answer);
        self
    }

    pub(crate) fn has(self, artifact: &Artifact) -> Self {
        let question = question_of(artifact);
        self.is(question, Answer::Yes)
    }

    /// Settles, answering what is asked, and checks what holds for every pass.
    pub(crate) fn settle(&mut self) -> Settled {
        let mut facts = Facts::default();
        self.asked.clear();
        loop {
            let (before, shared) = (self.jobs.clone(), self.shared.clone());
            let settled = settle(&mut World {
                jobs: &mut self.jobs,
                unreadable: &self.unreadable,
                facts: &facts,
                shared: &mut self.shared,
                capacity: self.capacity,
                now: self.now,
            });
            if settled.questions.is_empty() {
                check(&before, &self.jobs, &settled);
                return settled;
            }
            assert_eq!(self.jobs, before, "whoever asks changes nothing");
            assert_eq!(self.shared, shared, "whoever asks changes nothing that is shared");
            for question in settled.questions {
                assert!(self.asked.insert(question.clone()), "{question:?} was answered");
                let answer = self.answer(&question);
                facts.add(question, answer);
            }
        }
    }

    /// Says how something is.
    pub(crate) fn answer(&self, question: &Question) -> Answer {
        self.truth.get(question).cloned().unwrap_or_else(|| self.usual(question))
    }

    fn usual(&self, question: &Question) -> Answer {
        match question {
            Question::Marker { type_id, key, of } => {
                let counts = |id: &JobId| of.as_ref().is_none_or(|ids| ids.contains(id));
                let asked = Artifact::Custom { type_id: type_id.clone(), key: key.clone() };
                let is_there = self.marks.iter().any(|(id, artifact)| *artifact == asked && counts(id));
                if is_there { Answer::Yes } else { Answer::No }
            }
            Question::Artifact(_) | Question::BranchExists(_) => Answer::No,
            Question::CleanTree { .. } => Answer::Yes,
            Question::Head(_) | Question::CurrentBranch | Question::KeyOwner(_) => Answer::Text(None),
        }
    }

    /// Settles, and starts what starts.
    pub(crate) fn tick(&mut self) -> Settled {
        let settled = self.settle();
        for id in &settled.starts {
            let job = self.jobs.get_mut(id).unwrap();
            job.status = JobStatus::Running;
            job.started_at = Some(self.now);
            job.attempt += 1;
            job.schedule.wait_reason = None;
            job.schedule.ready_at = None;
            job.schedule.not_before = None;
        }
        settled
    }

    pub(crate) fn job(&self, name: &str) -> &Brief {
        &self.jobs[&id(name)]
    }

    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Brief)) {
        change(self.jobs.get_mut(&id(name)).unwrap());
    }

    pub(crate) fn set(&mut self, name: &str, status: JobStatus) {
        self.change(name, |job| job.status = status);
    }

    pub(crate) fn status(&self, name: &str) -> JobStatus {
        self.job(name).status
    }

    /// Returns the kind and the detail of what a job waits for.
    pub(crate) fn wait(&self, name: &str) -> Option<(WaitKind, &str)> {
        self.job(name).schedule.wait_reason.as_ref().map(|reason| (reason.kind, reason.detail.as_str()))
    }

    pub(crate) fn detail(&self, name: &str) -> &str {
        self.wait(name).map_or("", |(_, detail)| detail)
    }
}

/// Returns the ids as texts.
pub(crate) fn names<'a>(ids: impl IntoIterator<Item = &'a JobId>) -> Vec<&'a str> {
    ids.into_iter().map(JobId::as_str).collect()
}

pub(crate) fn question_of(artifact: &Artifact) -> Question {
    match artifact {
        Artifact::Custom { type_id, key } => {
            Question::Marker { type_id: type_id.clone(), key: key.clone(), of: None }
        }
        other => Question::Artifact(other.clone()),
    }
}

/// Checks that every change is in the table, and that `changed` tells of it.
fn check(before: &BTreeMap<JobId, Brief>, after: &BTreeMap<JobId, Brief>, settled: &Settled) {
    for (id, old) in before {
        let new = &after[id];
        assert_eq!(old != new, settled.changed.contains(id), "{id}: {old:?} became {new:?}");
        if old.status != new.status {
            assert!(old.status.way_to(new.status).is_some(), "{id}: {} to {}", old.status, new.status);
        }
        if old.status.is_terminal() || old.status == JobStatus::Running {
            assert_eq!(old, new, "nobody touches what runs or is over");
        }
        let mut kinds = new.schedule.waited_on.clone();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), new.schedule.waited_on.len(), "{id}: each kind once");
        assert!(new.schedule.waited_on.starts_with(&old.schedule.waited_on), "{id}: nothing is forgotten");
    }
    for id in &settled.starts {
        assert!(before[id].status.is_active() && before[id].status != JobStatus::Running, "{id} starts");
        assert!(before[id].is_runnable, "{id} could start");
    }
}
