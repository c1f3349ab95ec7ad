//! Twins: whatever is done to a store in memory and to one in SQLite, both give the same answers.

use std::sync::Arc;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::{
    Append, Claim, Clock as _, CommandId, DeadLetterId, Filter, Guard, Lease, Letter, Memory, NewDeadLetter,
    OwnerId, PutShared, Sqlite, Status, Store, StoreError, Wanted,
};
use tidewheel_testkit::{Dice, VirtualClock};

use crate::fixture::{Place, command, more, new_run};

/// What a random story has done so far: enough to go on with calls that mostly make sense.
struct Story {
    dice: Dice,
    clock: VirtualClock,
    leases: Vec<(Lease, u64)>,
    owners: Vec<OwnerId>,
}

/// Something to do to a store.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<Append>),
    Read(RunId, u64),
    Find(RunId),
    Definition(RunId),
    List(Filter),
    Delete(RunId),
    Checkpoint(RunId),
    Join(Span),
    Renew(OwnerId, Span),
    Leave(OwnerId),
    Owners,
    Claim(Claim),
    Release(Vec<Lease>),
    Send(RunId),
    Commands(OwnerId),
    CommandsOf(RunId),
    PutShared(Vec<PutShared>),
    Shared(String),
    AllShared,
    DeadLetters(Option<RunId>),
    Unbury(DeadLetterId),
}

#[tokio::test]
async fn memory_and_sqlite_answer_alike() {
    const STORIES: u64 = 15;
    const STEPS: usize = 150;
    for seed in 0..STORIES {
        let place = Place::new();
        let clock = VirtualClock::default();
        let memory = Memory::new(Arc::new(clock.clone()));
        let sqlite = Sqlite::open(place.path(), Arc::new(clock.clone())).unwrap();
        let mut story = Story { dice: Dice::new(seed), clock, leases: Vec::new(), owners: Vec::new() };
        for number in 0..STEPS {
            let step = story.step();
            let expected = answer(&memory, step.clone(), Some(&mut story)).await;
            let found = answer(&sqlite, step.clone(), None).await;
            assert_eq!(found, expected, "seed {seed}, step {number}: {step:?}");
        }
    }
}

/// Does a step, tells the story what came out, and returns the answer as text.
async fn answer(store: &dyn Store, step: Step, story: Option<&mut Story>) -> String {
    fn text<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
        // What a backend says of its errors is its own; that there is one is not.
        answer.map_or_else(|_| "an error".to_owned(), |answer| format!("{answer:?}"))
    }
    match step {
        Step::Append(appends) => {
            let versions: Vec<u64> =
                appends.iter().map(|append| append.expected + u64::from(append.events.len())).collect();
            let answers = store.append(appends).await;
            if let (Some(story), Ok(answers)) = (story, &answers) {
                for (answer, version) in answers.iter().zip(versions) {
                    if let Ok(lease) = answer {
                        story.leases.retain(|(known, _)| known != lease);
                        story.leases.push((lease.clone(), version));
                    }
                }
            }
            text(answers)
        }
        Step::Claim(claim) => {
            let claimed = store.claim(claim).await;
            if let (Some(story), Ok(claimed)) = (story, &claimed) {
                for (lease, record, _) in &claimed.runs {
                    story.leases.push((lease.clone(), record.version));
                }
            }
            text(claimed)
        }
        Step::Join(lease) => {
            let owner = store.join(lease).await;
            if let (Some(story), Ok(owner)) = (story, &owner) {
                story.owners.push(owner.owner);
            }
            text(owner)
        }
        Step::Read(run, from) => text(store.read(&run, from).await),
        Step::Find(run) => text(store.find(&run).await),
        Step::Definition(run) => text(store.definition(&run).await),
        Step::List(filter) => text(store.list(filter).await),
        Step::Delete(run) => text(store.delete(&run).await),
        Step::Checkpoint(run) => text(store.checkpoint(&run).await),
        Step::Renew(owner, lease) => text(store.renew(owner, lease).await),
        Step::Leave(owner) => text(store.leave(owner).await),
        Step::Owners => text(store.owners().await),
        Step::Release(leases) => text(store.release(leases).await),
        Step::Send(run) => text(store.send(command(run.as_str())).await),
        Step::Commands(owner) => text(store.commands(owner).await),
        Step::CommandsOf(run) => text(store.commands_of(&run).await),
        Step::PutShared(puts) => text(store.put_shared(puts).await),
        Step::Shared(name) => text(store.shared("kind", &name).await),
        Step::AllShared => text(store.all_shared("kind", None).await),
        Step::DeadLetters(run) => text(store.dead_letters(run.as_ref(), None).await),
        Step::Unbury(id) => text(store.unbury(id).await),
    }
}

impl Story {
    fn step(&mut self) -> Step {
        if self.dice.chance(20) {
            let millis = [1, 500, 10_000][self.dice.below(3)];
            self.clock.advance(Span::from_millis(millis));
        }
        match self.dice.below(34) {
            0..=8 => {
                let parts = 1 + self.dice.below(3);
                Step::Append((0..parts).map(|_| self.append()).collect())
            }
            9 => Step::Read(self.run(), self.dice.below(6) as u64),
            10 | 11 => Step::Find(self.run()),
            12 => Step::Definition(self.run()),
            13 | 14 => Step::List(self.filter()),
            15 => Step::Delete(self.run()),
            16 => Step::Checkpoint(self.run()),
            17 => Step::Join(Span::from_secs([5, 30][self.dice.below(2)])),
            18 => Step::Renew(self.owner(), Span::from_secs(30)),
            19 => Step::Leave(self.owner()),
            20..=22 => Step::Claim(self.claim()),
            23 => {
                let count = self.dice.below(3);
                Step::Release((0..count).filter_map(|_| self.lease()).map(|(lease, _)| lease).collect())
            }
            24 | 25 => Step::Send(self.run()),
            26 => Step::Commands(self.owner()),
            27 => Step::CommandsOf(self.run()),
            28 | 29 => {
                let puts = 1 + self.dice.below(2);
                Step::PutShared((0..puts).map(|_| self.put()).collect())
            }
            30 => match self.dice.below(2) {
                0 => Step::Shared(self.put().name),
                _ => Step::AllShared,
            },
            31 => Step::Owners,
            32 => {
                let run = self.run();
                Step::DeadLetters(self.dice.chance(50).then_some(run))
            }
            _ => Step::Unbury(DeadLetterId(self.dice.between(1, 9))),
        }
    }

    fn append(&mut self) -> Append {
        let lease = self.lease().filter(|_| self.dice.chance(75));
        let mut append = match lease {
            None => {
                let owner = self.owner();
                let owner = self.dice.chance(50).then_some(owner);
                let mut append = new_run(self.run().as_str(), owner);
                if let Guard::New(new) = &mut append.guard {
                    new.workflow = ["flow", "other"][self.dice.below(2)].to_owned();
                    new.workflow_version = 1 + u32::from(self.dice.chance(20));
                }
                append.expected = u64::from(self.dice.chance(5));
                append
            }
            Some((lease, version)) => {
                let late = u64::from(self.dice.chance(5));
                more(&lease, version + late)
            }
        };
        for _ in 0..self.dice.below(3) {
            append.events.push("{}");
        }
        if self.dice.chance(10) {
            append.events = tidewheel_store::Batch::new();
        }
        append.status = Status::ALL[self.dice.below(Status::ALL.len())];
        append.reason = self.dice.chance(20).then(|| "why".to_owned());
        append.wake_at = self.time();
        append.checkpoint = self.dice.chance(20).then(|| "[1]".to_owned());
        append.release = self.dice.chance(25);
        for _ in 0..self.dice.below(3) {
            append.handled.push(CommandId(self.dice.between(1, 12)));
        }
        for _ in 0..self.dice.below(3) {
            let work = ["1", "2", "3"][self.dice.below(3)].to_owned();
            append.letters.push(if self.dice.chance(70) {
                Letter::Bury(NewDeadLetter { work, node: "node".to_owned(), body: "{}".to_owned() })
            } else {
                Letter::Raise { work }
            });
        }
        append
    }

    fn put(&mut self) -> PutShared {
        let name = ["x", "y"][self.dice.below(2)].to_owned();
        let body = self.dice.chance(70).then(|| name.clone());
        PutShared { kind: "kind".to_owned(), name, expected: self.dice.below(4) as u64, body }
    }

    fn claim(&mut self) -> Claim {
        let owner = self.owner();
        if self.dice.chance(30) {
            return Claim { owner, wanted: Wanted::Run(self.run()) };
        }
        let mut workflows = vec![("flow".to_owned(), 1), ("other".to_owned(), 1), ("flow".to_owned(), 2)];
        workflows.truncate(self.dice.below(4));
        let limit = u32::try_from(self.dice.below(4)).unwrap();
        Claim { owner, wanted: Wanted::Due { workflows, limit } }
    }

    fn filter(&mut self) -> Filter {
        let mut filter = Filter::default();
        for _ in 0..self.dice.below(3) {
            filter.statuses.push(Status::ALL[self.dice.below(Status::ALL.len())]);
        }
        filter.workflow = self.dice.chance(30).then(|| "other".to_owned());
        filter.id_prefix = self.dice.chance(30).then(|| "run 1".to_owned());
        filter.limit = self.dice.chance(50).then_some(2);
        let after = self.dice.between(0, 9).to_string();
        filter.after = self.dice.chance(30).then_some(after);
        filter
    }

    fn time(&mut self) -> Option<Timestamp> {
        let now = self.clock.now();
        match self.dice.below(4) {
            0 => None,
            1 => Some(Timestamp::from_millis(1)),
            2 => Some(now),
            _ => Some(now.saturating_add(Span::from_secs(5))),
        }
    }

    fn run(&mut self) -> RunId {
        RunId::new(&format!("run {}", self.dice.below(12)))
    }

    /// Returns an owner that is or was one, or that never was.
    fn owner(&mut self) -> OwnerId {
        // The last ones are those that are still there most likely.
        let back = self.dice.below(3);
        self.owners.iter().rev().nth(back).copied().unwrap_or(OwnerId(99))
    }

    /// Returns a lease with the version that its run had with it; it may be over.
    fn lease(&mut self) -> Option<(Lease, u64)> {
        let back = self.dice.below(6);
        self.leases.iter().rev().nth(back).cloned()
    }
}
