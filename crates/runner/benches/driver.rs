//! What driving a piece of work under a policy costs over running it plainly: nanoseconds and allocations per
//! call. The work is async and does nothing, so that only the driver is measured.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that cannot be set up has failed")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidewheel_core::Runnable;
use tidewheel_core::policy::{Backoff, Policy, Resolved};
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{DriveOptions, drive};
use tidewheel_testkit::figure::{self, Unit};
use tidewheel_testkit::{CountingAllocator, allocations_in};
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const ROUNDS: usize = 301;
/// Few, so that a round is over before somebody else gets the processor.
const CALLS: u32 = 500;

fn main() {
    let runtime = Builder::new_current_thread().enable_time().build().unwrap();
    let workflow = Workflow::new("w").add(step("inc", |x: u64| async move { x + 1 })).build().unwrap();
    let policies = [
        ("default policy", Policy::new()),
        ("3 retries, unused", Policy::new().max_retries(3).backoff(Backoff::exponential())),
        ("timeout", Policy::new().timeout("10s")),
        ("timeout, 3 retries, fallback", Policy::llm().fallback_value(0)),
    ];
    let policies = policies.map(|(name, policy)| (name, Arc::new(policy.resolved().unwrap())));
    let mut plain = Vec::new();
    let mut driven: Vec<Vec<Duration>> = policies.iter().map(|_| Vec::new()).collect();
    // All of them in every round, so that a machine that gets slower is slower for each.
    for _ in 0..figure::quick_or(31, ROUNDS) {
        plain.push(run_plain(&runtime, pieces(&workflow)));
        for ((_, policy), times) in policies.iter().zip(&mut driven) {
            times.push(run_driven(&runtime, pieces(&workflow), policy));
        }
    }
    figure::took("driver/execute_async", CALLS as usize, &plain);
    let (plain_ns, best) = per_call(&mut plain);
    let (plain_allocations, _) = allocations_in(|| run_plain(&runtime, pieces(&workflow)));
    let (of_pieces, pieces_there) = allocations_in(|| pieces(&workflow));
    drop(pieces_there);
    println!("{:<30} {plain_ns:>6.0} ns, best {best:>6.0}", "execute_async");
    for ((name, policy), times) in policies.iter().zip(&mut driven) {
        figure::took(&format!("driver/{name}"), CALLS as usize, times);
        let (median, best_driven) = per_call(times);
        let (allocations, _) = allocations_in(|| run_driven(&runtime, pieces(&workflow), policy));
        let more = (allocations as f64 - plain_allocations as f64) / f64::from(CALLS);
        figure::measured(&format!("driver allocations/{name}"), Unit::Count, &[more]);
        let (over, over_best) = (median - plain_ns, best_driven - best);
        println!(
            "{name:<30} {median:>6.0} ns, over it {over:>6.0} ns, best {over_best:>6.0}; {more:.2} allocations more"
        );
    }
    let each = (plain_allocations - of_pieces) as f64 / f64::from(CALLS);
    println!("{:<30} {each:.2} allocations", "execute_async");
}

fn pieces(workflow: &Workflow) -> Vec<Runnable> {
    let mut run = workflow.run("r");
    for input in 0..u64::from(CALLS) {
        run.plan(input);
    }
    run.prepare()
}

fn run_plain(runtime: &Runtime, pieces: Vec<Runnable>) -> Duration {
    runtime.block_on(async {
        let start = Instant::now();
        for piece in pieces {
            drop(std::hint::black_box(piece.execute_async().await));
        }
        start.elapsed()
    })
}

fn run_driven(runtime: &Runtime, pieces: Vec<Runnable>, policy: &Arc<Resolved>) -> Duration {
    runtime.block_on(async {
        let start = Instant::now();
        for piece in pieces {
            let driven = drive(piece, Arc::clone(policy), DriveOptions::new()).await;
            drop(std::hint::black_box(driven.unwrap()));
        }
        start.elapsed()
    })
}

/// Returns the median and the best, per call.
fn per_call(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let of = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(CALLS);
    (of(times[times.len() / 2]), of(times[0]))
}
