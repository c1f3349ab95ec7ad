//! Many runs against a service that is flaky and then down for a while, on a clock that only the simulation moves:
//! the limits hold, nobody starves, everything ends, and the same seed gives the same log, byte for byte.

mod clocks;
mod service;
mod world;

use std::collections::BTreeMap;

use crate::world::{Level, Outcome, World};

/// Looks at everything that must be true of a simulation, whatever its seed.
fn check(world: &World, outcome: &Outcome) {
    let seed = world.seed;
    assert_eq!(outcome.runs.len(), world.runs, "seed {seed}: every run has an end");
    let calls = outcome.calls.len();
    // Never more than the limit, in any window.
    for (index, call) in outcome.calls.iter().enumerate() {
        let until = call.at.saturating_add(world.window);
        let inside = outcome.calls[index..].iter().take_while(|other| other.at < until).count();
        assert!(inside <= world.rate as usize, "seed {seed}: {inside} calls in a window from {}", call.at);
    }
    // Everything finished, or is put aside.
    let ends = outcome.runs.values().fold(BTreeMap::<&str, usize>::new(), |mut ends, run| {
        *ends.entry(run.status.name()).or_default() += 1;
        ends
    });
    let failed = ends.get("failed").copied().unwrap_or(0);
    assert_eq!(ends.get("completed").copied().unwrap_or(0) + failed, world.runs, "seed {seed}: {ends:?}");
    assert_eq!(outcome.letters, failed, "seed {seed}: what failed is put aside, and nothing else");
    assert!(failed > 0 && failed < world.runs, "seed {seed}: {failed} of {} failed", world.runs);
    // The breaker spares the service: while it is down, only probes and what was under way come through.
    let in_outage = outcome.calls.iter().filter(|call| service::is_down(call.at, world.began)).count() as u64;
    let resets = service::OUTAGE.as_millis() / world.reset.as_millis() + 1;
    let most = u64::from(world.threshold) + world.most_at_once as u64 + resets * u64::from(world.permits);
    assert!(
        in_outage <= most,
        "seed {seed}: {in_outage} of {calls} calls while it was down, {most} expected"
    );
    // Nobody starves: of those who ask first, low ones are not all after the high ones.
    let last =
        |level: Level| outcome.runs.values().filter(|run| run.level == level).map(|run| run.ended).max();
    let first =
        |level: Level| outcome.runs.values().filter(|run| run.level == level).map(|run| run.ended).min();
    assert!(first(Level::Low) < last(Level::High), "seed {seed}: low ones waited for all high ones");
    let mean = |level: Level| outcome.mean_end(level);
    assert!(mean(Level::High) < mean(Level::Low), "seed {seed}: high ones do not go first");
    // What the limit allows is used: all is over soon after the last call that it has to wait for.
    let at_best = service::OUTAGE_AFTER.as_millis()
        + service::OUTAGE.as_millis()
        + calls as u64 * world.window.as_millis() / u64::from(world.rate);
    let took = outcome.took(world.began);
    assert!(
        took.as_millis() < at_best + at_best / 5 + 30_000,
        "seed {seed}: {took} where {at_best} ms would do"
    );
    // The budget holds: not more retries than its tokens and what came back.
    let tokens = u64::from(world.tokens) + took.as_millis() / world.refill.as_millis() + 1;
    assert!(outcome.retries <= tokens, "seed {seed}: {} retries for {tokens} tokens", outcome.retries);
}

fn simulate(seed: u64, runs: usize) -> Outcome {
    let world = World::new(seed, runs);
    let outcome = world.run();
    check(&world, &outcome);
    outcome
}

/// How many seeds, and how many runs each: a person may ask for more.
fn wanted(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn limits_hold_and_everything_ends_whatever_the_seed() {
    let (seeds, runs) = (wanted("TIDEWHEEL_SEEDS", 10), wanted("TIDEWHEEL_RUNS", 1_000));
    for seed in 0..seeds {
        let outcome = simulate(seed as u64, runs);
        println!(
            "seed {seed}: {} calls, {} retries, {} put aside, {} of virtual time",
            outcome.calls.len(),
            outcome.retries,
            outcome.letters,
            outcome.took(World::new(0, 0).began)
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_log_and_another_one_does_not() {
    let runs = wanted("TIDEWHEEL_RUNS", 300);
    let (one, same, other) = (simulate(7, runs), simulate(7, runs), simulate(8, runs));
    assert_eq!(one.log.len(), same.log.len());
    for (run, (first, second)) in one.log.iter().zip(&same.log).enumerate() {
        assert_eq!(first, second, "log {run}");
    }
    assert_ne!(one.log, other.log);
}

#[test]
fn ten_thousand_runs_on_one_seed() {
    simulate(42, wanted("TIDEWHEEL_RUNS", 10_000));
}
