//! What named conditions say of one fact. Rules that are handed out like steps ask each condition once between them:
//! the first asks, and the others wait for its answer. It knows no clock and starts nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::event::FactIx;
use crate::policy::Failure;
use crate::workflow::NodeIx;

type Answer = Result<bool, Failure>;

/// How often work was given all its attempts again, and which of them this is.
pub(crate) type Turn = (u32, u32);

/// The answers about one fact, by condition.
#[derive(Debug, Default)]
pub(crate) struct Verdicts(Mutex<BTreeMap<NodeIx, Slot>>);

#[derive(Debug)]
enum Slot {
    /// Some piece of work asks; these wait for its answer.
    Asking(Vec<Waker>),
    /// The answer, and the attempt at which it was given. A failure is no answer to a later attempt.
    Known(Answer, Turn),
}

impl Verdicts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeIx, Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the answer of a condition that is known.
    pub(crate) fn known(&self, condition: NodeIx) -> Option<Answer> {
        match self.lock().get(&condition) {
            Some(Slot::Known(answer, _)) => Some(answer.clone()),
            Some(Slot::Asking(_)) | None => None,
        }
    }

    /// Keeps the answer of a condition that was looked at where it stands.
    pub(crate) fn keep(&self, condition: NodeIx, answer: &Answer) {
        self.lock().entry(condition).or_insert_with(|| Slot::Known(answer.clone(), (0, 0)));
    }

    /// Returns the answer of a condition, asking for it unless it is known or asked for already.
    pub(crate) async fn answer(
        &self,
        condition: NodeIx,
        turn: Turn,
        ask: impl Future<Output = Answer>,
    ) -> Answer {
        let known = std::future::poll_fn(|task| {
            let mut slots = self.lock();
            match slots.get_mut(&condition) {
                Some(Slot::Asking(waiting)) => {
                    waiting.push(task.waker().clone());
                    Poll::Pending
                }
                Some(Slot::Known(answer, at)) if answer.is_ok() || turn <= *at => {
                    Poll::Ready(Some(answer.clone()))
                }
                Some(Slot::Known(..)) | None => {
                    slots.insert(condition, Slot::Asking(Vec::new()));
                    Poll::Ready(None)
                }
            }
        });
        if let Some(answer) = known.await {
            return answer;
        }
        let mut asker = Asker { verdicts: self, condition, answer: None };
        let answer = ask.await;
        asker.answer = Some((answer.clone(), turn));
        drop(asker);
        answer
    }
}

/// The one that asks. When it is dropped without an answer, as after a timeout, the next one asks.
struct Asker<'v> {
    verdicts: &'v Verdicts,
    condition: NodeIx,
    answer: Option<(Answer, Turn)>,
}

impl Drop for Asker<'_> {
    fn drop(&mut self) {
        let mut slots = self.verdicts.lock();
        let before = match self.answer.take() {
            Some((answer, turn)) => slots.insert(self.condition, Slot::Known(answer, turn)),
            None => slots.remove(&self.condition),
        };
        drop(slots);
        if let Some(Slot::Asking(waiting)) = before {
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// The answers that a run keeps while a rule may still ask for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptVerdicts {
    facts: BTreeMap<FactIx, (u32, Arc<Verdicts>)>,
    /// Facts that nothing asked about when they were noted here.
    idle: Vec<FactIx>,
}

impl KeptVerdicts {
    /// A condition about a fact is to be looked at.
    pub(crate) fn open(&mut self, fact: FactIx) {
        self.facts.entry(fact).or_default().0 += 1;
    }

    /// It was looked at.
    pub(crate) fn close(&mut self, fact: FactIx) {
        if let Some((open, _)) = self.facts.get_mut(&fact) {
            *open = open.saturating_sub(1);
            if *open == 0 {
                self.idle.push(fact);
            }
        }
    }

    pub(crate) fn of(&self, fact: FactIx) -> Option<&Arc<Verdicts>> {
        if self.facts.is_empty() { None } else { self.facts.get(&fact).map(|(_, verdicts)| verdicts) }
    }

    /// Forgets the answers about facts that nothing asks about any more.
    pub(crate) fn forget_idle(&mut self) {
        for fact in self.idle.drain(..) {
            if self.facts.get(&fact).is_some_and(|(open, _)| *open == 0) {
                self.facts.remove(&fact);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Context;

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_condition_is_asked_once_and_a_failure_is_asked_about_again_by_a_later_attempt() {
        let (verdicts, asked) = (Verdicts::default(), AtomicU32::new(0));
        let ask = |answer: Answer| {
            let asked = &asked;
            async move {
                asked.fetch_add(1, Ordering::Relaxed);
                answer
            }
        };
        let failed = || Err(Failure::new("no"));
        assert_eq!(poll(pin!(verdicts.answer(0, (0, 0), ask(failed())))), Poll::Ready(failed()));
        assert_eq!(poll(pin!(verdicts.answer(0, (0, 0), ask(Ok(true))))), Poll::Ready(failed()));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        assert_eq!(poll(pin!(verdicts.answer(0, (0, 1), ask(Ok(true))))), Poll::Ready(Ok(true)));
        assert_eq!(poll(pin!(verdicts.answer(0, (0, 5), ask(failed())))), Poll::Ready(Ok(true)));
        assert_eq!(asked.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn those_who_come_meanwhile_wait_and_one_of_them_asks_if_the_first_is_given_up() {
        let verdicts = Verdicts::default();
        let mut second = pin!(verdicts.answer(0, (0, 0), async { Ok(true) }));
        {
            let mut first = pin!(verdicts.answer(0, (0, 0), std::future::pending()));
            assert!(poll(first.as_mut()).is_pending());
            assert!(poll(second.as_mut()).is_pending());
        }
        assert_eq!(poll(second), Poll::Ready(Ok(true)));
    }
}
