//! All lines, and which of them have something to do. Whoever has the lock around them asks nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use tidewheel_core::policy::Resolved;

use super::gates::{Gates, Name, Rows};
use super::line::{Ask, Line, Report};
use super::pass::{self, Here, Passed, Waiting};
use crate::driver::Known;
use crate::pool::ByNumber;

#[derive(Default)]
pub(super) struct Lines {
    /// The lines of policies that were here lately, by their addresses: those of policies that are held, if only
    /// weakly, are nobody else's.
    places: ByNumber<(Weak<Resolved>, Arc<str>, usize)>,
    by_gates: BTreeMap<Arc<Gates>, usize>,
    by_name: BTreeMap<Name, Vec<usize>>,
    pub(super) all: Vec<Line>,
    /// How often lines had their turn.
    pub(super) turns: u64,
    /// The shared states, where no store has them.
    pub(super) rows: Rows,
    /// Lines with something to do.
    pub(super) wanted: BTreeSet<usize>,
    /// Whether somebody does it.
    pub(super) is_busy: bool,
}

/// What one line has to do, and what comes of it.
pub(super) struct Batch {
    pub(super) line: usize,
    pub(super) gates: Arc<Gates>,
    pub(super) reports: Vec<Report>,
    pub(super) known: Vec<Known>,
    pub(super) passed: Passed,
}

/// As many policies are remembered; runs may bring their own.
const MOST_PLACES: usize = 4_096;
/// As many are let in together: whoever has to write it down writes no more at once.
const MOST_AT_ONCE: usize = 256;

impl Lines {
    pub(super) fn line(&mut self, workflow: &Arc<str>, policy: &Arc<Resolved>) -> usize {
        let address = Arc::as_ptr(policy).addr() as u64;
        if let Some((_, of, line)) = self.places.get(&address)
            && (Arc::ptr_eq(of, workflow) || of == workflow)
        {
            return *line;
        }
        let gates = Arc::new(Gates::of(workflow, policy));
        let next = self.all.len();
        let line = *self.by_gates.entry(Arc::clone(&gates)).or_insert(next);
        if line == next {
            let mut rivals = BTreeSet::new();
            for name in gates.contended() {
                let lines = self.by_name.entry(name.clone()).or_default();
                rivals.extend(lines.iter().copied());
                lines.push(next);
            }
            for rival in &rivals {
                self.all[*rival].rivals.push(next);
            }
            self.all.push(Line::new(gates, rivals.into_iter().collect()));
        }
        if self.places.len() >= MOST_PLACES {
            self.places.clear();
        }
        self.places.insert(address, (Arc::downgrade(policy), Arc::clone(workflow), line));
        line
    }

    /// Tells whether nobody waits for what a line needs, and nobody does anything.
    pub(super) fn is_quiet(&self, line: usize) -> bool {
        let row = &self.all[line];
        !self.is_busy && row.is_empty() && row.rivals.iter().all(|rival| self.all[*rival].is_empty())
    }

    /// Takes what is to be done. Whoever needs some of the same as somebody who has something to do gets a turn, too:
    /// what one gives back another may have.
    pub(super) fn take_wanted(&mut self) -> Vec<Batch> {
        let mut wanted = std::mem::take(&mut self.wanted);
        let rivals = wanted.iter().flat_map(|line| &self.all[*line].rivals).copied();
        let waiting: Vec<usize> = rivals.filter(|rival| !self.all[*rival].is_empty()).collect();
        wanted.extend(waiting);
        let mut wanted: Vec<usize> = wanted.into_iter().collect();
        wanted.sort_by_key(|line| self.all[*line].served);
        wanted.into_iter().map(|line| self.take(line)).collect()
    }

    fn take(&mut self, line: usize) -> Batch {
        let row = &mut self.all[line];
        let reports = std::mem::take(&mut row.reports);
        Batch { line, gates: Arc::clone(&row.gates), reports, known: Vec::new(), passed: Passed::default() }
    }

    /// Does what is to be done with the states that are here.
    pub(super) fn pass_here(&mut self, mut batches: Vec<Batch>, here: Here) -> Vec<Batch> {
        let Self { all, rows, .. } = self;
        for batch in &mut batches {
            batch.count_reports(rows, here);
        }
        in_turns(&mut batches, |batch| {
            let Batch { line, gates, passed, .. } = batch;
            pass::let_next_in(gates, rows, &mut all[*line], here, passed)
        });
        batches
    }
}

impl Batch {
    pub(super) fn count_reports(&mut self, rows: &mut Rows, here: Here) {
        let Self { gates, reports, known, passed, .. } = self;
        known.extend(reports.iter().map(|one| pass::report(gates, rows, one, here, passed)));
    }
}

/// Lets one of each line in, and again, until nobody may begin any more.
pub(super) fn in_turns(batches: &mut [Batch], mut let_in: impl FnMut(&mut Batch) -> bool) {
    let mut open: Vec<&mut Batch> = batches.iter_mut().collect();
    while !open.is_empty() {
        open.retain_mut(|batch| let_in(batch) && batch.passed.admitted.len() < MOST_AT_ONCE);
    }
}

impl Waiting for Line {
    fn take(&mut self) -> Option<Ask> {
        loop {
            let ask = self.pop()?;
            // Whoever has not waited yet wants it.
            if ask.told.is_none() || ask.is_wanted() {
                return Some(ask);
            }
        }
    }

    fn put_back(&mut self, ask: Ask) {
        self.put_back(ask);
    }
}
