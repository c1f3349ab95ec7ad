//! The gate of other jobs: each job that this one is after has to end, in the way that its policy says.
//!
//! The jobs are judged in the order of their ids, and the first that is not as it should be decides. Handlers are edges
//! that ask for an end other than success: one of them is enough, because each outcome leads to its handler by itself.

use super::verdict::Verdict;
use super::view::View;
use crate::job::outcome::NodeOutcome;
use crate::job::schedule::{After, AfterPolicy, WaitKind};
use crate::job::status::JobStatus;

/// The edges between jobs, and how far each job has come along its own.
///
/// Whatever is met stays met during a pass, so that each edge is passed once however often a job is judged.
pub(in crate::job) struct Afters<'a> {
    edges: Vec<Edge<'a>>,
    /// By the number of the job.
    courses: Vec<Course>,
    /// The first edge that leads away from each job.
    first_out: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Edge<'a> {
    after: &'a After,
    on: Option<u32>,
    /// The job that waits.
    of: u32,
    /// The next edge that leads away from the same job.
    next_out: u32,
}

#[derive(Clone, Copy, Default)]
struct Course {
    next: u32,
    end: u32,
    /// Whether one of its handler edges is met.
    is_called: bool,
    /// A handler edge that is not met and never will be.
    not_called_by: Option<u32>,
    /// A handler edge from a job of which nothing is known.
    not_known: Option<u32>,
}

const NONE: u32 = u32::MAX;

impl<'a> Afters<'a> {
    pub(in crate::job) fn new(view: &View<'a>) -> Self {
        let count = view.jobs.len();
        let mut this = Self {
            edges: Vec::with_capacity(count),
            courses: vec![Course::default(); count],
            first_out: vec![NONE; count],
        };
        let mut sorted: Vec<&After> = Vec::new();
        for job in view.waiting() {
            sorted.clear();
            sorted.extend(&view.jobs[job].schedule.after);
            sorted.sort_unstable();
            sorted.dedup();
            let begin = number(this.edges.len());
            let mut is_called = false;
            for after in &sorted {
                let on = view.find(after.job_id.as_str());
                let mut next_out = NONE;
                if let Some(on) = on {
                    is_called |= is_handler(after.policy) && calls(after, on, view);
                    if view.is_waiting(on) {
                        next_out = std::mem::replace(&mut this.first_out[on], number(this.edges.len()));
                    }
                }
                this.edges.push(Edge { after, on: on.map(number), of: number(job), next_out });
            }
            let end = number(this.edges.len());
            this.courses[job] = Course { next: begin, end, is_called, not_called_by: None, not_known: None };
        }
        this
    }

    /// Says whether all that a job is after has ended as it should.
    pub(in crate::job) fn judge(&mut self, job: usize, view: &View<'_>) -> Verdict {
        let course = &mut self.courses[job];
        while course.next < course.end {
            let edge = self.edges[course.next as usize];
            let after = edge.after;
            if is_handler(after.policy) && course.is_called {
                course.next += 1;
                continue;
            }
            let Some(on) = edge.on else {
                if !is_handler(after.policy) {
                    return unknown(after, view);
                }
                // Another one may still call it.
                course.not_known.get_or_insert(course.next);
                course.next += 1;
                continue;
            };
            let stands = view.stands(on as usize);
            let is_other_run = is_of_another_run(job, on as usize, view);
            if stands.is_active() {
                return Verdict::wait_on_deps(
                    WaitKind::Dependencies,
                    format!("waiting on job {}", after.job_id),
                );
            }
            let is_met =
                after.policy.is_met_by(stands) || (is_other_run && is_optional(after, on as usize, view));
            if !is_met {
                if !is_handler(after.policy) {
                    return unmet(after, stands, is_other_run);
                }
                course.not_called_by = Some(course.next);
            }
            course.next += 1;
        }
        if course.is_called {
            return Verdict::Open;
        }
        if let Some(edge) = course.not_known {
            return unknown(self.edges[edge as usize].after, view);
        }
        let Some(edge) = course.not_called_by else { return Verdict::Open };
        let edge = self.edges[edge as usize];
        let stands = edge.on.map(|on| view.stands(on as usize));
        not_needed(edge.after, stands.unwrap_or(JobStatus::Skipped))
    }

    /// A job ended in the pass: returns those that are after it.
    pub(in crate::job) fn ended(&mut self, job: usize, view: &View<'_>, woken: &mut Vec<usize>) {
        let mut at = self.first_out[job];
        while at != NONE {
            let edge = self.edges[at as usize];
            let waiting = edge.of as usize;
            if is_handler(edge.after.policy) && calls(edge.after, job, view) {
                self.courses[waiting].is_called = true;
            }
            woken.push(waiting);
            at = edge.next_out;
        }
    }
}

/// Tells whether an edge asks for an end other than success.
const fn is_handler(policy: AfterPolicy) -> bool {
    match policy {
        AfterPolicy::Success | AfterPolicy::Completion => false,
        AfterPolicy::Failed | AfterPolicy::Blocked | AfterPolicy::Cancelled | AfterPolicy::Failure => true,
    }
}

/// Returns whether a job that ended calls a handler. One whose loop gave up, or never came back to it, has failed, though
/// it is on record as blocked.
fn calls(after: &After, before: usize, view: &View<'_>) -> bool {
    let stands = view.stands(before);
    let schedule = &view.jobs[before].schedule;
    let gave_up = schedule.gave_up || schedule.looped_on == Some(NodeOutcome::Failed);
    let has_failed = after.policy == AfterPolicy::Failed && gave_up && stands.is_blocked();
    stands.is_terminal() && (after.policy.is_met_by(stands) || has_failed)
}

fn unknown(after: &After, view: &View<'_>) -> Verdict {
    let id = &after.job_id;
    let detail = match view.unreadable.get(id.as_str()) {
        Some(error) => format!("scheduler data error for job dependency {id}: {error}"),
        None => format!("missing job dependency {id}"),
    };
    Verdict::block(WaitKind::Dependencies, detail)
}

/// Returns whether the job before belongs to another run: `--after` and `--repeat` make such edges.
fn is_of_another_run(job: usize, before: usize, view: &View<'_>) -> bool {
    view.jobs[job].run != view.jobs[before].run
}

/// Returns whether a run goes on after a job of another one that did not succeed: its policy said that its failure is to
/// be skipped.
pub(in crate::job) fn is_optional(after: &After, before: usize, view: &View<'_>) -> bool {
    after.policy == AfterPolicy::Success
        && view.stands(before) == JobStatus::Skipped
        && view.jobs[before].is_skipped_failure()
}

fn unmet(after: &After, stands: JobStatus, is_other_run: bool) -> Verdict {
    // Within a run, what follows a job that was not needed is not needed either. A run that waits for another one is
    // blocked instead: skipped as a whole, it would be called a success.
    if stands == JobStatus::Skipped && !is_other_run {
        return not_needed(after, stands);
    }
    let detail = format!("dependency failed for job {} ({stands})", after.job_id);
    Verdict::block(WaitKind::Dependencies, detail)
}

fn not_needed(after: &After, stands: JobStatus) -> Verdict {
    let detail = format!("not needed after job {} ({stands})", after.job_id);
    Verdict::end(JobStatus::Skipped, WaitKind::Dependencies, detail)
}

fn number(index: usize) -> u32 {
    u32::try_from(index).expect("invariant: there are fewer jobs and edges than a u32 counts")
}
