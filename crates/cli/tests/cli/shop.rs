//! A store with runs in every state, made by the real runner under a clock that only moves when work takes time or
//! a retry is due. So it is the same every time, and what is shown of it can be compared.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;
use tidewheel_core::fact::RunId;
use tidewheel_core::policy::{Backoff, Failure, OnFailure, Policy, default, name};
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_core::work::Context;
use tidewheel_core::workflow::{Workflow, map, reduce, step};
use tidewheel_runner::{Executor, RunHandle, Runner, RunnerOptions};
use tidewheel_store::{RealClock, Sqlite};
use tidewheel_testkit::VirtualClock;

use crate::home::{Home, Ran};

/// When the first run is created.
const OPENS: &str = "2026-03-01T12:00:00Z";
/// When everybody looks.
pub(crate) const NOW: &str = "2026-03-01T12:10:00Z";

/// Work that takes its time under the clock of the shop.
#[derive(Clone)]
struct Clerk(VirtualClock);

impl Clerk {
    fn works(&self, millis: u64) {
        self.0.advance(Span::from_millis(millis));
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    items: u32,
    /// How often the bank does not answer.
    outages: u32,
}

/// Returns the workflow of the orders: `price`, `charge` with retries, `ship`.
fn orders(clerk: &Clerk) -> Workflow {
    let (pricing, charging, shipping) = (clerk.clone(), clerk.clone(), clerk.clone());
    let price = move |order: Order| {
        pricing.works(400);
        order
    };
    let charge = move |context: Context, order: Order| {
        charging.works(1_500);
        if context.attempt() < order.outages {
            return Err(Failure::new("the bank does not answer").code(503));
        }
        Ok(order.items * 5)
    };
    let ship = move |cents: u32| {
        shipping.works(2_000);
        format!("parcel for {cents} cents")
    };
    let retries = Policy::new().max_retries(2).backoff(Backoff::exponential()).base_delay("4s");
    Workflow::new("orders")
        .add(step("price", price))
        .add(step("charge", charge).after("price"))
        .add(step("ship", ship).after("charge"))
        .policy(name("charge"), retries.on_failure(OnFailure::DeadLetter))
        .build()
        .unwrap()
}

/// Returns a workflow whose retries take their time.
fn patient(clerk: &Clerk) -> Workflow {
    let clerk = clerk.clone();
    let refund = move |_: u32| -> Result<u32, Failure> {
        clerk.works(700);
        Err(Failure::new("the bank is closed").code("closed"))
    };
    let retries = Policy::new().max_retries(5).backoff(Backoff::Fixed).base_delay("10m").max_delay("10m");
    Workflow::new("refunds").add(step("refund", refund)).policy(default(), retries).build().unwrap()
}

/// Returns a workflow over lists: a bad item is skipped.
fn picking(clerk: &Clerk) -> Workflow {
    let clerk = clerk.clone();
    let pick = move |shelf: i32| {
        clerk.works(300);
        if shelf < 0 { Err(Failure::new("there is no such shelf")) } else { Ok(shelf) }
    };
    Workflow::new("picking")
        .add(map("pick", pick))
        .add(reduce("basket", 0, |sum: i32, shelf: i32| sum + shelf).after("pick"))
        .policy(name("pick"), Policy::new().on_failure(OnFailure::Skip))
        .build()
        .unwrap()
}

/// Lets time pass for a run until nothing is left to do in it.
async fn finish(runner: &Runner, run: &RunHandle, clock: &VirtualClock, input: Value) {
    let mut events = runner.subscribe();
    run.input_keyed("order", input).await.unwrap();
    loop {
        tokio::select! {
            over = run.wait() => {
                over.unwrap();
                return;
            }
            event = events.recv() => {
                let event: Value = serde_json::from_str(&event.unwrap().event).unwrap();
                let due = event.pointer("/attempt_failed/failed/decided/decision/next_due_at_ns");
                if let Some(due) = due.and_then(Value::as_u64) {
                    clock.advance_to(Timestamp::from_nanos(due));
                }
            }
        }
    }
}

async fn open(path: &Path) {
    let clock = VirtualClock::new(Timestamp::parse(OPENS).unwrap());
    let clerk = Clerk(clock.clone());
    let shared: Arc<VirtualClock> = Arc::new(clock.clone());
    let store = Arc::new(Sqlite::open(path, shared.clone()).unwrap());
    let options =
        RunnerOptions::new().clock(shared).executor(Executor::Inline).lease(Span::from_secs(86_400));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<_>, options).await.unwrap();
    let order = |outages: u32| serde_json::json!({"items": 3, "outages": outages});

    let orders = orders(&clerk);
    for (id, outages) in [("order-1", 0), ("order-2", 3), ("order-3", 1)] {
        let run = runner.start(id, &orders).await.unwrap();
        finish(&runner, &run, &clock, order(outages)).await;
        clock.advance(Span::from_secs(30));
    }
    let run = runner.start("picking-1", &picking(&clerk)).await.unwrap();
    finish(&runner, &run, &clock, serde_json::json!([4, -1, 7])).await;

    // Somebody paused this one before it had its input.
    let run = runner.start("order-4", &orders).await.unwrap();
    run.pause().await.unwrap();
    run.input_keyed("order", order(0)).await.unwrap();
    let run = runner.start("order-5", &orders).await.unwrap();
    run.cancel().await.unwrap();
    runner.start("order-6", &orders).await.unwrap();

    // The last one, since it is due when the clock moves on.
    clock.advance_to(Timestamp::parse("2026-03-01T12:05:00Z").unwrap());
    let mut events = runner.subscribe();
    let run = runner.start("refund-1", &patient(&clerk)).await.unwrap();
    run.input(9_u32).await.unwrap();
    while !events.recv().await.unwrap().event.starts_with(r#"{"attempt_failed""#) {}
    runner.shutdown().await;
    store.close().await;
}

/// Text that steers a terminal, if one lets it.
const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";

/// Makes a store whose names, values and errors are not what terminals like.
async fn open_strange(path: &Path) {
    let shared = Arc::new(VirtualClock::new(Timestamp::parse(OPENS).unwrap()));
    let store = Arc::new(Sqlite::open(path, shared.clone()).unwrap());
    let options =
        RunnerOptions::new().clock(shared).executor(Executor::Inline).lease(Span::from_secs(86_400));
    let runner = Runner::with_store(Arc::clone(&store) as Arc<_>, options).await.unwrap();
    let workflow = |name: &str, step_name: &str| {
        let echo =
            |value: Value| if value.is_null() { Err(Failure::new(EVIL).code(EVIL)) } else { Ok(value) };
        let letters = Policy::new().on_failure(OnFailure::DeadLetter);
        Workflow::new(name).add(step(step_name, echo)).policy(default(), letters).build().unwrap()
    };
    let evil = workflow(&format!("evil-{EVIL}"), &format!("step-{EVIL}"));
    for (id, input) in [("evil-1", Value::from(EVIL)), ("evil-2", Value::Null)] {
        let run = runner.start(RunId::new(&format!("{id}{EVIL}")), &evil).await.unwrap();
        run.input_keyed(EVIL, input).await.unwrap();
        run.wait().await.unwrap();
    }
    let wide = workflow("注文", "包装する");
    let run = runner.start("注文-七", &wide).await.unwrap();
    run.input_keyed("鍵", Value::from("寿司".repeat(40))).await.unwrap();
    run.wait().await.unwrap();
    runner.shutdown().await;
    store.close().await;
}

/// Makes `whole.db` with a run `here` and a run `lost`, and `damaged.db`, which is the same without its log: all that
/// was written since `here` is missing in it.
pub(crate) fn lose_commits(home: &Home) {
    let [whole, damaged] = ["whole.db", "damaged.db"].map(|name| home.path().join(name));
    let beside = |name: &str| home.path().join(format!("{name}-tidewheel/commits"));
    let workflow = Workflow::new("w").add(step("inc", |x: i64| x + 1)).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for id in ["here", "lost"] {
            let store = Arc::new(Sqlite::open(&whole, Arc::new(RealClock::new())).unwrap());
            let runner =
                Runner::with_store(Arc::clone(&store) as Arc<_>, RunnerOptions::new()).await.unwrap();
            runner.start(id, &workflow).await.unwrap();
            if id == "lost" {
                std::fs::create_dir(beside("damaged.db").parent().unwrap()).unwrap();
                std::fs::copy(beside("whole.db"), beside("damaged.db")).unwrap();
                std::fs::copy(&whole, &damaged).unwrap();
            }
            runner.shutdown().await;
            // What is in its log is in the database then.
            store.close().await;
        }
    });
}

/// Makes a copy of a store in which something was changed past Tidewheel.
fn tampered(from: &Path, to: &Path, sql: &str) {
    std::fs::copy(from, to).unwrap();
    let connection = rusqlite::Connection::open(to).unwrap();
    connection.execute_batch(sql).unwrap();
}

/// The stores, which are made once.
const STORES: [&str; 4] = ["orders.db", "strange.db", "newer.db", "damaged.db"];

/// Returns a directory in which the shop is `orders.db`. Beside it are `strange.db` with names that are not what
/// terminals like, `newer.db` of a later release, and `damaged.db`, in which somebody changed a log.
pub(crate) fn home() -> Home {
    let home = Home::new();
    furnish(&home);
    home
}

/// Puts the stores into a directory.
pub(crate) fn furnish(home: &Home) {
    static SHOP: OnceLock<TempDir> = OnceLock::new();
    let shop = SHOP.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let [orders, strange, newer, damaged] = STORES.map(|name| folder.path().join(name));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(open(&orders));
        runtime.block_on(open_strange(&strange));
        tampered(&orders, &newer, "INSERT INTO migrations VALUES (999, 'x', 0)");
        tampered(&orders, &damaged, "UPDATE events SET body = replace(body, '15', '51')");
        folder
    });
    for name in STORES {
        std::fs::copy(shop.path().join(name), home.path().join(name)).unwrap();
    }
}

/// Runs a command of `runs` on the shop.
pub(crate) fn runs(home: &Home, arguments: &[&str]) -> Ran {
    let all = [&["runs"], arguments, &["--store", "orders.db"]].concat();
    home.run_under(&[("TIDEWHEEL_NOW", NOW)], &all)
}

/// Returns every file of a directory with its content.
pub(crate) fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<(PathBuf, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}
