//! Every value of every dimension of a policy beside every value of every other, against a few lines that say
//! what has to come of it.

use std::collections::BTreeSet;
use std::panic;
use std::sync::Once;
use std::time::Duration;

use tidewheel_core::policy::{
    self, Backoff, Failure, Jitter, Kind, Matcher, OnFailure, Overlay, Policy, Recovery, Rules,
};
use tidewheel_core::run::Run;
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, step};
use tidewheel_runner::{DriveOptions, Options};
use tokio::time::{Instant, sleep};

use crate::world::{Calls, logged, react};

/// How many values each dimension has, in the order of the fields of a cell.
const SIZES: [usize; 9] = [4, 3, 5, 2, 4, 3, 4, 3, 5];

/// What the work does each time: returns, fails, panics, takes 50 ms.
const DOES: [&str; 4] = ["returns", "fails", "panics", "takes long"];
const RETRIES: [u32; 3] = [0, 1, 3];
const BACKOFF: [&str; 5] = ["none", "fixed", "linear", "exponential", "jitter"];
const ON_FAILURE: [OnFailure; 2] = [OnFailure::Halt, OnFailure::Skip];
const FALLBACK: [&str; 4] = ["none", "value", "retry with", "other work"];
const TIMEOUT: [Option<u64>; 3] = [None, Some(100), Some(10)];
const SOURCE: [&str; 4] = ["workflow", "merge", "replace", "none"];
const MODE: [&str; 3] = ["serial", "parallel", "by hand"];
const MATCHER: [&str; 5] = ["name", "pattern", "kind", "predicate", "default"];

const TAKES: u64 = 50;
const BASE: u64 = 20;
const MOST: u64 = 50;

#[derive(Debug, Clone, Copy)]
struct Cell([usize; 9]);

impl Cell {
    fn does(self) -> &'static str {
        DOES[self.0[0]]
    }
    fn retries(self) -> u32 {
        RETRIES[self.0[1]]
    }
    fn backoff(self) -> &'static str {
        BACKOFF[self.0[2]]
    }
    fn on_failure(self) -> OnFailure {
        ON_FAILURE[self.0[3]]
    }
    fn fallback(self) -> &'static str {
        FALLBACK[self.0[4]]
    }
    fn timeout(self) -> Option<u64> {
        TIMEOUT[self.0[5]]
    }
    fn source(self) -> &'static str {
        SOURCE[self.0[6]]
    }
    fn mode(self) -> &'static str {
        MODE[self.0[7]]
    }

    fn policy(self) -> Policy {
        let mut policy = Policy::new().max_retries(self.retries()).on_failure(self.on_failure());
        policy = match self.backoff() {
            "fixed" => policy.backoff(Backoff::Fixed),
            "linear" => policy.backoff(Backoff::Linear),
            "exponential" => policy.backoff(Backoff::exponential()),
            "jitter" => policy.backoff(Backoff::exponential()).jitter(Jitter::Full),
            _ => policy.backoff(Backoff::None),
        };
        if self.backoff() != "none" {
            policy = policy.base_delay(Duration::from_millis(BASE)).max_delay(Duration::from_millis(MOST));
        }
        policy = match self.fallback() {
            "value" => policy.fallback_value(100),
            "retry with" => policy.fallback(|_, _, _| Recovery::retry_with([("mend", true)])),
            "other work" => policy.fallback(|_, _, _| Recovery::run(|x: i64| async move { x + 300 })),
            _ => policy,
        };
        match self.timeout() {
            None => policy.timeout("infinity"),
            Some(millis) => policy.timeout(Duration::from_millis(millis)),
        }
    }

    fn matcher(self) -> Matcher {
        match MATCHER[self.0[8]] {
            "name" => policy::name("work"),
            "pattern" => policy::pattern("^wor"),
            "kind" => policy::kind(Kind::Step),
            "predicate" => policy::predicate(|node| node.name == Some("work")),
            _ => policy::default(),
        }
    }
}

/// What has to come of a cell.
#[derive(Debug, PartialEq)]
struct Came {
    calls: u32,
    /// What the step after it produced, or whether the work was skipped.
    value: Result<i64, bool>,
}

/// Says how often the work is called, what comes of it, and between which bounds the time lies.
fn oracle(cell: Cell) -> (Came, u64, u64) {
    let governed = cell.source() != "none";
    let times_out = governed && cell.does() == "takes long" && cell.timeout() == Some(10);
    let fails = times_out || matches!(cell.does(), "fails" | "panics");
    let each = match cell.does() {
        "takes long" if times_out => 10,
        "takes long" => TAKES,
        _ => 0,
    };
    if !fails {
        return (Came { calls: 1, value: Ok(20) }, each, each);
    }
    let retries = if governed { cell.retries() } else { 0 };
    let (mut shortest, mut longest) = (each * u64::from(retries + 1), each * u64::from(retries + 1));
    for retry in 0..retries {
        let delay = match cell.backoff() {
            "none" => 0,
            "fixed" => BASE,
            "linear" => BASE * u64::from(retry + 1),
            _ => BASE * 2_u64.pow(retry),
        };
        shortest += if cell.backoff() == "jitter" { 1 } else { delay.min(MOST) };
        longest += delay.min(MOST);
    }
    let calls = retries + 1;
    let came = match cell.fallback() {
        _ if !governed => Came { calls, value: Err(false) },
        "value" => Came { calls, value: Ok(1_000) },
        "retry with" => Came { calls: calls + 1, value: Ok(2_010) },
        "other work" => Came { calls, value: Ok(3_010) },
        _ => Came { calls, value: Err(cell.on_failure() == OnFailure::Skip) },
    };
    (came, shortest, longest)
}

/// A workflow whose other rule would be wrong for the work.
fn workflow(cell: Cell, calls: &Calls) -> Workflow {
    let (calls, does) = (calls.clone(), cell.does());
    let work = move |context: Context, x: i64| {
        calls.one_more();
        let is_mended = context.overridden("mend").is_some();
        async move {
            match does {
                _ if is_mended => Ok(x + 200),
                "fails" => Err(Failure::new("fails")),
                "panics" => panic!("{QUIET}"),
                "takes long" => {
                    sleep(Duration::from_millis(TAKES)).await;
                    Ok(x + 1)
                }
                _ => Ok(x + 1),
            }
        }
    };
    let builder =
        Workflow::new("w").add(step("work", work)).add(step("after", |x: i64| x * 10).after("work"));
    let wrong = Policy::new().max_retries(7).timeout("1ms").fallback_value(-1);
    let builder = match cell.source() {
        "workflow" => builder.policy(policy::name("work"), wrong).policy_first(cell.matcher(), cell.policy()),
        "none" => builder,
        _ => builder.policy(policy::name("work"), wrong),
    };
    builder.build().unwrap()
}

async fn came(cell: Cell) -> (Came, u64) {
    let calls = Calls::default();
    let workflow = workflow(cell, &calls);
    let overlay = match cell.source() {
        "merge" => Some(Overlay::Merge),
        "replace" => Some(Overlay::Replace),
        _ => None,
    };
    let runtime = overlay.map(|overlay| (Rules::new([(cell.matcher(), cell.policy())]).unwrap(), overlay));
    let start = Instant::now();
    let run: Run = match (cell.mode(), runtime) {
        ("by hand", runtime) => {
            let mut run = workflow.run("r");
            if let Some((rules, overlay)) = runtime {
                run = run.with_policies(rules, overlay);
            }
            logged(run, 1, DriveOptions::new()).await.0
        }
        (mode, runtime) => {
            let mut options = Options::new();
            if mode == "serial" {
                options = options.max_concurrency(1);
            }
            if let Some((rules, overlay)) = runtime {
                options = options.policies(rules, overlay);
            }
            react(&workflow, options).await.0
        }
    };
    let took = u64::try_from(start.elapsed().as_millis()).unwrap();
    let value = match (run.result::<i64>("after").unwrap(), run.failures().first()) {
        (Some(value), None) => Ok(value),
        (None, Some(failed)) => {
            assert_eq!(failed.attempts, calls.count(), "{cell:?}");
            Err(failed.skipped)
        }
        (value, failed) => panic!("{cell:?}: {value:?} {failed:?}"),
    };
    (Came { calls: calls.count(), value }, took)
}

const QUIET: &str = "a panic that is part of the matrix";

/// Thousands of panics are part of this test; nobody wants to read their traces, or wait for them.
fn keep_quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_quiet = info.payload().downcast_ref::<String>().is_some_and(|text| text == QUIET);
            if !is_quiet {
                before(info);
            }
        }));
    });
}

/// All of the first eight dimensions; the matchers take turns. Where nothing fails, or nobody governs, the
/// rest of the policy is only looked at for a part of its values.
fn cells() -> Vec<Cell> {
    let all: usize = SIZES[..8].iter().product();
    let cells = (0..all).map(|index| {
        let (mut rest, mut values) = (index, [0; 9]);
        for (value, size) in values.iter_mut().zip(&SIZES[..8]) {
            (*value, rest) = (rest % size, rest / size);
        }
        values[8] = (index + index / 5 + index / 59) % SIZES[8];
        (index, Cell(values))
    });
    let is_dull = |cell: Cell| cell.source() == "none" || cell.does() == "returns";
    cells.filter(|(index, cell)| !is_dull(*cell) || index / 4 % 7 == 0).map(|(_, cell)| cell).collect()
}

#[tokio::test(start_paused = true)]
async fn every_value_beside_every_other_does_what_it_says() {
    keep_quiet();
    let cells = cells();
    let mut pairs = BTreeSet::new();
    for cell in &cells {
        let (wanted, shortest, longest) = oracle(*cell);
        let (found, took) = came(*cell).await;
        let shown = || cell.0.iter().zip(WORDS).map(|(value, words)| words(*value)).collect::<Vec<_>>();
        assert_eq!(found, wanted, "{:?}", shown());
        assert!((shortest..=longest).contains(&took), "{:?}: {took} ms, {shortest}..={longest}", shown());
        for (one, value) in cell.0.iter().enumerate() {
            pairs.extend((one + 1..9).map(|other| (one, *value, other, cell.0[other])));
        }
    }
    let all = (0..9).flat_map(|one| (one + 1..9).map(move |other| SIZES[one] * SIZES[other]));
    assert_eq!(pairs.len(), all.sum::<usize>(), "every pair of values of any two dimensions");
    assert_eq!(cells.len(), CELLS);
}

/// How many cells ran, so that nobody thins them out unseen.
const CELLS: usize = 10_803;

/// The words for the values of each dimension.
const WORDS: [fn(usize) -> String; 9] = [
    |value| DOES[value].to_owned(),
    |value| format!("{} retries", RETRIES[value]),
    |value| format!("backoff {}", BACKOFF[value]),
    |value| ON_FAILURE[value].to_string(),
    |value| format!("fallback {}", FALLBACK[value]),
    |value| format!("timeout {:?}", TIMEOUT[value]),
    |value| format!("source {}", SOURCE[value]),
    |value| MODE[value].to_owned(),
    |value| format!("matcher {}", MATCHER[value]),
];
