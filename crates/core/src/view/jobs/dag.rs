//! The schedule as text: each shown job, and under it what it needs, as deep as was asked for.

use std::fmt::Write as _;

use super::graph::{Edge, To, What};
use super::schedule::{Schedule, state};
use crate::job::{Artifact, Brief};

/// What stands behind a job whose needs were drawn before.
const ABOVE: &str = " (see above)";

/// Pictures with so many edges are small: there, each job has all of its needs below it, even if other lines have said
/// them. In larger ones each edge is drawn once.
const SMALL: usize = 200;

/// So many lines of a small picture may say what other lines have said.
const MOST_REPEATED: usize = 1_000;

impl Schedule<'_> {
    /// Returns the lines of the picture; `is_present` tells whether an artifact that no job makes is there.
    pub fn dag(&self, is_present: &dyn Fn(&Artifact) -> bool) -> Vec<String> {
        let mut drawing = Drawing {
            schedule: self,
            is_present,
            lines: vec!["Schedule (DAG, verbose)".to_owned()],
            drawn: vec![0; self.graph.jobs.len()],
            on_way: vec![false; self.graph.jobs.len()],
            repeated: 0,
            most_repeated: if self.has_few_edges() { MOST_REPEATED } else { 0 },
        };
        // Of a job that was asked for, its own needs are drawn, as deep as was asked for and no deeper.
        let roots = if self.is_focused { self.shown.get(..1).unwrap_or_default() } else { &self.shown };
        for (index, root) in roots.iter().enumerate() {
            if index > 0 {
                drawing.lines.push(String::new());
            }
            drawing.tree(*root);
        }
        drawing.lines
    }

    fn has_few_edges(&self) -> bool {
        let mut edges = (0..self.graph.jobs.len()).map(|place| self.graph.edges(place).len());
        edges.try_fold(0_usize, |sum, count| Some(sum + count).filter(|sum| *sum <= SMALL)).is_some()
    }
}

struct Drawing<'s, 'a> {
    schedule: &'s Schedule<'a>,
    is_present: &'s dyn Fn(&Artifact) -> bool,
    lines: Vec<String>,
    /// How deep the needs of each job were drawn so far.
    drawn: Vec<usize>,
    /// The jobs between the root and here: a circle is not followed.
    on_way: Vec<bool>,
    repeated: usize,
    most_repeated: usize,
}

/// A job whose needs are being drawn.
struct Open {
    job: usize,
    next: usize,
    prefix: String,
    is_repeated: bool,
}

impl Drawing<'_, '_> {
    fn tree(&mut self, root: usize) {
        let graph = &self.schedule.graph;
        let line = headline(graph.jobs[root]);
        self.lines.push(line);
        let mut open: Vec<Open> = Vec::new();
        self.enter(&mut open, root, String::new());
        while let Some(top) = open.last_mut() {
            let edges = graph.edges(top.job);
            let Some(edge) = edges.get(top.next).copied() else {
                self.on_way[top.job] = false;
                open.pop();
                continue;
            };
            top.next += 1;
            let is_last = top.next == edges.len();
            let line = format!("{}{}{}", top.prefix, if is_last { "`-- " } else { "|-- " }, self.label(edge));
            let below = format!("{}{}", top.prefix, if is_last { "    " } else { "|   " });
            self.repeated += usize::from(top.is_repeated);
            self.lines.push(line);
            if let To::Job(to) = edge.to
                && !self.on_way[to]
            {
                self.enter(&mut open, to, below);
            }
        }
    }

    /// Begins to draw the needs of a job, unless it is too deep or they stand above.
    fn enter(&mut self, open: &mut Vec<Open>, job: usize, prefix: String) {
        let left = self.schedule.max_depth.saturating_sub(open.len());
        if left == 0 || self.schedule.graph.edges(job).is_empty() {
            return;
        }
        let is_repeated = self.drawn[job] >= left;
        if is_repeated && self.repeated >= self.most_repeated {
            if let Some(line) = self.lines.last_mut() {
                line.push_str(ABOVE);
            }
            return;
        }
        self.drawn[job] = self.drawn[job].max(left);
        self.on_way[job] = true;
        open.push(Open { job, next: 0, prefix, is_repeated });
    }

    fn label(&self, edge: Edge<'_>) -> String {
        let what = match edge.what {
            What::After(policy) => format!("after:{policy}"),
            What::Artifact(artifact) => artifact.to_string(),
        };
        match (edge.to, edge.what) {
            (To::Job(to), _) => {
                let job = self.schedule.graph.jobs[to];
                format!("{what} -> {} {}", job.id, job.status)
            }
            (To::Gone(id), _) => format!("{what} -> {id} missing"),
            (To::Nobody, What::Artifact(artifact)) => {
                format!("{what} -> [{}]", state((self.is_present)(artifact)))
            }
            (To::Nobody, What::After(_)) => what,
        }
    }
}

/// Says all of a job in one line.
fn headline(job: &Brief) -> String {
    let mut line = format!("{} {} [{}]", job.id, job.status, job.name);
    if let Some(wait) = job.wait() {
        let _ = write!(line, " [wait: {wait}]");
    }
    if !job.schedule.locks.is_empty() {
        let locks: Vec<String> = job.schedule.locks.iter().map(ToString::to_string).collect();
        let _ = write!(line, " [locks: {}]", locks.join(", "));
    }
    if let Some(pinned) = &job.schedule.pinned_head {
        let _ = write!(line, " [pinned: {pinned}]");
    }
    line
}
