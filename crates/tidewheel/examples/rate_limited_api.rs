//! Twelve pages of an API that is slow to forgive: it takes two calls in a second, and is down for a while. A rate
//! limit, a breaker and a retry budget keep the pipeline polite; the timeline shows what each of them did.
//!
//! `cargo run --example rate_limited_api`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidewheel::prelude::*;
use tokio::time::{Instant, sleep};

/// An API that takes two calls in a second and is down from its second to its eighth one. It remembers who called.
#[derive(Clone, Debug)]
struct Api {
    began: Instant,
    calls: Arc<Mutex<Vec<Call>>>,
}

#[derive(Clone, Debug, PartialEq)]
struct Call {
    at_ms: u64,
    page: u32,
    attempt: u32,
    answer: u16,
}

impl Api {
    fn new() -> Self {
        Self { began: Instant::now(), calls: Arc::default() }
    }

    async fn fetch(self, context: Context, page: u32) -> Result<u32, Failure> {
        let answer = self.answer(context.attempt(), page);
        sleep(Duration::from_millis(100)).await;
        match answer {
            200 => Ok(10 * page),
            429 => Err(Failure::new("too many requests").code(429)),
            other => Err(Failure::new("down for maintenance").code(i64::from(other))),
        }
    }

    /// Decides what to answer, and writes it down.
    fn answer(&self, attempt: u32, page: u32) -> u16 {
        let at_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = calls.iter().filter(|call| call.answer != 429 && call.at_ms + 1_000 > at_ms).count();
        let answer = match at_ms {
            _ if lately >= 2 => 429,
            2_000..8_000 => 503,
            _ => 200,
        };
        calls.push(Call { at_ms, page, attempt, answer });
        answer
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The graph: fetch every page, add up what is on them. Not a word about limits.
fn pipeline(api: &Api, policy: Policy) -> Result<Workflow, BuildErrors> {
    let api = api.clone();
    Workflow::new("pages")
        .add(map("fetch", move |context: Context, page: u32| api.clone().fetch(context, page)))
        .add(reduce("sum", 0, |sum: u32, rows: u32| sum + rows).after("fetch"))
        .policy(name("fetch"), policy)
        .build()
}

/// Retries, and nothing that keeps them in check.
fn impatient() -> Policy {
    Policy::new().max_retries(5).backoff(Backoff::Fixed).base_delay("200ms")
}

/// Two calls in a second; two failures in a row stop everybody for three seconds; and of retries there are few.
fn polite() -> Policy {
    let breaker = CircuitBreaker {
        failure_threshold: 2,
        reset_timeout: Span::from_secs(3),
        ..CircuitBreaker::new("api")
    };
    impatient().shared_rate_limit("api", 2, "1s").circuit_breaker(breaker).retry_budget("api", 6, "10s")
}

/// Fetches all pages under a policy, and returns the sum, if there is one, and how long it took.
async fn fetch_all(api: &Api, policy: Policy) -> Result<(Option<u32>, Duration), Box<dyn Error>> {
    let runner = Runner::in_memory(RunnerOptions::new()).await?;
    let run = runner.run("run-1", &pipeline(api, policy)?, (1..=12).collect::<Vec<u32>>()).await?;
    run.wait().await?;
    let sum = run.results("sum").await?.first().copied();
    let took = api.began.elapsed();
    runner.shutdown().await;
    Ok((sum, took))
}

fn show(call: &Call) -> String {
    let seconds = Duration::from_millis(call.at_ms).as_secs_f64();
    format!("{seconds:>5.1} s  page {:>2}, attempt {}: {}", call.page, call.attempt, call.answer)
}

// The clock stands still while there is work and jumps where there is none, so it takes no time.
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    for (title, policy) in [("Impatient", impatient()), ("Polite", polite())] {
        let api = Api::new();
        let (sum, took) = fetch_all(&api, policy).await?;
        let calls = api.calls();
        println!("{title}: {} calls in {:.1} s, the sum is {sum:?}", calls.len(), took.as_secs_f64());
        // Of very many calls, the first ones say it all.
        for call in calls.iter().take(15) {
            println!("  {}", show(call));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn without_limits_most_calls_are_refused_and_the_pages_never_come() {
        let api = Api::new();
        let (sum, _) = fetch_all(&api, impatient()).await.unwrap();
        assert_eq!(sum, None);
        let refused = api.calls().iter().filter(|call| call.answer == 429).count();
        assert!(refused > 20, "{refused}");
    }

    #[tokio::test(start_paused = true)]
    async fn behind_its_limits_it_is_never_refused_and_an_outage_costs_three_calls() {
        let api = Api::new();
        let (sum, took) = fetch_all(&api, polite()).await.unwrap();
        assert_eq!(sum, Some(780));
        assert!(took < Duration::from_secs(13), "{took:?}");
        // Two workers make the calls of one moment, in either order.
        let mut calls = api.calls();
        calls.sort_by_key(|call| (call.at_ms, call.page));
        let shown: Vec<String> = calls.iter().map(show).collect();
        let expected = [
            "  0.0 s  page  1, attempt 0: 200",
            "  0.0 s  page  2, attempt 0: 200",
            "  1.0 s  page  3, attempt 0: 200",
            "  1.0 s  page  4, attempt 0: 200",
            "  2.0 s  page  5, attempt 0: 503",
            "  2.0 s  page  6, attempt 0: 503", // the breaker opens for three seconds
            "  5.1 s  page  7, attempt 0: 503", // a probe; it opens again
            "  8.2 s  page  8, attempt 0: 200", // the next probe closes it
            "  8.3 s  page  9, attempt 0: 200",
            "  9.2 s  page 10, attempt 0: 200",
            "  9.3 s  page 11, attempt 0: 200",
            " 10.2 s  page 12, attempt 0: 200",
            " 10.3 s  page  5, attempt 1: 200", // whoever failed stands at the end of the line
            " 11.2 s  page  6, attempt 1: 200",
            " 11.3 s  page  7, attempt 1: 200",
        ];
        assert_eq!(shown, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn with_an_empty_budget_nothing_is_tried_again() {
        let api = Api::new();
        let (sum, _) = fetch_all(&api, polite().retry_budget("api", 1, "1h")).await.unwrap();
        assert_eq!(sum, None);
        assert_eq!(api.calls().iter().filter(|call| call.attempt > 0).count(), 1);
    }
}
