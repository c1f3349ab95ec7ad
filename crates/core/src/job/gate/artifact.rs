//! The gate of artifacts: what a job needs has to be there, whoever made it.
//!
//! The artifacts are judged in the order in which they are listed, and the first that is missing decides. Of custom
//! artifacts that a job of the same run makes, only those of this run count; all others count wherever they come from.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::verdict::{Verdict, Wait};
use super::view::View;
use crate::job::artifact::Artifact;
use crate::job::id::RunId;
use crate::job::question::{Answer, Question};
use crate::job::schedule::{MissingProducer, WaitKind};
use crate::job::status::JobStatus;

/// What jobs need, who makes it, and how far each job has come.
pub(in crate::job) struct Needs<'a> {
    groups: Vec<Group<'a>>,
    /// What all jobs need, as places in `groups`, job by job.
    needed: Vec<usize>,
    /// By the number of the job.
    courses: Vec<Course>,
    /// The groups that each job makes something of.
    made: BTreeMap<usize, Vec<usize>>,
}

/// An artifact with those who make it, as far as they count for those who need it.
struct Group<'a> {
    artifact: &'a Artifact,
    makers: Vec<usize>,
    /// Whether only these makers count.
    is_of_run: bool,
    active: usize,
    succeeded: usize,
    /// Whether a job that makes it took over the result of another in this pass.
    is_taken_over: bool,
    presence: Option<Presence>,
    users: Vec<usize>,
}

/// The part of what is needed that a job needs and that is not known to be there.
#[derive(Clone, Copy, Default)]
struct Course {
    next: usize,
    end: usize,
}

/// An artifact that is found quickly: most of them differ in the number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Hashed<'a>(u64, &'a Artifact);

impl<'a> Hashed<'a> {
    fn new(artifact: &'a Artifact) -> Self {
        // Nothing depends on the number: it is made and forgotten in one pass.
        let mut hasher = DefaultHasher::new();
        artifact.hash(&mut hasher);
        Self(hasher.finish(), artifact)
    }
}

/// Those who make an artifact, and the place of their group once somebody needs it from them.
#[derive(Default)]
struct Makers {
    jobs: Vec<usize>,
    group: Option<usize>,
}

#[derive(Clone, Copy)]
enum Presence {
    There,
    Missing,
    /// Nobody could find out.
    Unknown,
    /// Somebody has to find out.
    Asked,
}

impl<'a> Needs<'a> {
    pub(in crate::job) fn new(view: &View<'a>) -> Self {
        let mut this = Self {
            groups: Vec::new(),
            needed: Vec::new(),
            courses: vec![Course::default(); view.jobs.len()],
            made: BTreeMap::new(),
        };
        let mut known: BTreeMap<Hashed<'_>, usize> = BTreeMap::new();
        for job in view.waiting() {
            let next = this.needed.len();
            for need in &view.jobs[job].schedule.dependencies {
                let count = known.len();
                this.needed.push(*known.entry(Hashed::new(&need.artifact)).or_insert(count));
            }
            this.courses[job] = Course { next, end: this.needed.len() };
        }
        if known.is_empty() {
            return this;
        }
        let mut makers: Vec<Makers> = std::iter::repeat_with(Makers::default).take(known.len()).collect();
        let mut of_run: BTreeMap<(usize, &RunId), Makers> = BTreeMap::new();
        for (index, job) in view.jobs.iter().enumerate() {
            for artifact in &job.schedule.artifacts {
                let Some(number) = known.get(&Hashed::new(artifact)) else { continue };
                let all = &mut makers[*number].jobs;
                // A job that lists an artifact twice makes it once.
                if all.last() == Some(&index) {
                    continue;
                }
                all.push(index);
                if let (Artifact::Custom { .. }, Some(run)) = (artifact, &job.run) {
                    of_run.entry((*number, run)).or_default().jobs.push(index);
                }
            }
        }
        for job in view.waiting() {
            let brief = view.jobs[job];
            let Course { next, .. } = this.courses[job];
            for (offset, need) in brief.schedule.dependencies.iter().enumerate() {
                let number = this.needed[next + offset];
                let own = brief.run.as_ref().and_then(|run| of_run.get_mut(&(number, run)));
                let is_of_run = own.is_some();
                let makers = own.unwrap_or(&mut makers[number]);
                let place = *makers.group.get_or_insert_with(|| {
                    let jobs = std::mem::take(&mut makers.jobs);
                    this.groups.push(Group::new(&need.artifact, jobs, is_of_run, view));
                    this.groups.len() - 1
                });
                this.groups[place].users.push(job);
                this.needed[next + offset] = place;
            }
        }
        for (place, group) in this.groups.iter().enumerate() {
            for maker in group.makers.iter().filter(|maker| view.is_waiting(**maker)) {
                this.made.entry(*maker).or_default().push(place);
            }
        }
        this
    }

    /// Says whether all that a job needs is there.
    pub(in crate::job) fn judge(&mut self, job: usize, view: &View<'_>) -> Verdict {
        let course = &mut self.courses[job];
        while course.next < course.end {
            let group = &mut self.groups[self.needed[course.next]];
            let mut questions = Vec::new();
            match group.presence(view, &mut questions) {
                Presence::There => course.next += 1,
                Presence::Missing => return group.missing(job, view),
                Presence::Unknown => return group.wait().watching(),
                Presence::Asked => {
                    // Everything that is listed after it is asked for at the same time.
                    for place in &self.needed[course.next + 1..course.end] {
                        self.groups[*place].presence(view, &mut questions);
                    }
                    return Verdict::Ask(questions);
                }
            }
        }
        Verdict::Open
    }

    /// A job ended in the pass: returns those who need what it makes and may have to be judged again.
    pub(in crate::job) fn ended(&mut self, job: usize, view: &View<'_>, woken: &mut Vec<usize>) {
        for place in self.made.get(&job).into_iter().flatten() {
            let group = &mut self.groups[*place];
            group.active = group.active.saturating_sub(1);
            if view.stands(job) == JobStatus::Succeeded {
                group.succeeded += 1;
                group.is_taken_over |= matches!(group.artifact, Artifact::Custom { .. });
                group.presence = None;
                woken.extend(&group.users);
            } else if group.active <= 1 {
                // One that is left may be the one that needs it.
                woken.extend(&group.users);
            }
        }
    }
}

impl<'a> Group<'a> {
    fn new(artifact: &'a Artifact, makers: Vec<usize>, is_of_run: bool, view: &View<'_>) -> Self {
        let active = makers.iter().filter(|maker| view.stands(**maker).is_active()).count();
        let succeeded = makers.iter().filter(|maker| view.stands(**maker) == JobStatus::Succeeded).count();
        let (presence, users) = (None, Vec::new());
        Self { artifact, makers, is_of_run, active, succeeded, is_taken_over: false, presence, users }
    }

    /// Says whether it is there. The first one who has to know it asks the question for all.
    fn presence(&mut self, view: &View<'_>, questions: &mut Vec<Question>) -> Presence {
        if let Some(presence) = self.presence {
            return presence;
        }
        let presence = match self.look(view) {
            Ok(presence) => presence,
            Err(question) => {
                questions.push(question);
                Presence::Asked
            }
        };
        self.presence = Some(presence);
        presence
    }

    /// Returns whether it is there, or what has to be known for that.
    fn look(&self, view: &View<'_>) -> Result<Presence, Question> {
        if self.is_taken_over {
            return Ok(Presence::There);
        }
        // A name that cannot be is never asked for: it would become part of a path.
        if self.artifact.check().is_err() {
            return Ok(Presence::Missing);
        }
        let question = match self.artifact {
            Artifact::Custom { type_id, key } => {
                let ids = || self.makers.iter().map(|maker| view.jobs[*maker].id.clone()).collect();
                Question::Marker { type_id: type_id.clone(), key: key.clone(), of: self.is_of_run.then(ids) }
            }
            Artifact::CommandPatch { job_id } => {
                if view.find(job_id).is_some_and(|job| view.stands(job) == JobStatus::Succeeded) {
                    return Ok(Presence::There);
                }
                Question::Artifact(self.artifact.clone())
            }
            Artifact::PlanBranch { .. }
            | Artifact::PlanDoc { .. }
            | Artifact::PlanCommits { .. }
            | Artifact::TargetBranch { .. }
            | Artifact::MergeSentinel { .. } => Question::Artifact(self.artifact.clone()),
        };
        match view.facts.get(&question) {
            Some(Answer::Yes | Answer::Text(Some(_))) => Ok(Presence::There),
            Some(Answer::No | Answer::Text(None)) => Ok(Presence::Missing),
            Some(Answer::Failed(_)) => Ok(Presence::Unknown),
            None => Err(question),
        }
    }

    fn wait(&self) -> Wait {
        let detail = format!("waiting on {}", self.artifact);
        Wait::new(JobStatus::WaitingOnDeps, WaitKind::Dependencies, detail)
    }

    /// Says what becomes of a job that needs it, since it is not there.
    fn missing(&self, job: usize, view: &View<'_>) -> Verdict {
        // Nobody waits for itself.
        let is_maker = usize::from(self.makers.binary_search(&job).is_ok());
        let (makers, active) = (self.makers.len() - is_maker, self.active.saturating_sub(is_maker));
        let artifact = self.artifact;
        if active > 0 {
            let wait = self.wait();
            // What only jobs can mark is told by them; anything else may be made by hand.
            return match artifact {
                Artifact::Custom { .. } => Verdict::Wait(wait),
                Artifact::PlanBranch { .. }
                | Artifact::PlanDoc { .. }
                | Artifact::PlanCommits { .. }
                | Artifact::TargetBranch { .. }
                | Artifact::MergeSentinel { .. }
                | Artifact::CommandPatch { .. } => wait.watching(),
            };
        }
        if makers == 0 && view.jobs[job].schedule.missing_producer == MissingProducer::Wait {
            let detail = format!("awaiting producer for {artifact}");
            return Wait::new(JobStatus::WaitingOnDeps, WaitKind::Dependencies, detail).watching();
        }
        if makers == 0 || self.succeeded > 0 {
            Verdict::block(WaitKind::Dependencies, format!("missing {artifact}"))
        } else {
            Verdict::block(WaitKind::Dependencies, format!("dependency failed for {artifact}"))
        }
    }
}
