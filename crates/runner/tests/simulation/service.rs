//! The service that everybody calls: slow, flaky, and down for a while. It keeps every call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidewheel_core::policy::Failure;
use tidewheel_core::time::{Span, Timestamp};
use tidewheel_store::Clock;

/// When the outage begins, after the beginning of the simulation.
pub(crate) const OUTAGE_AFTER: Span = Span::from_millis(1_500);
/// How long it lasts.
pub(crate) const OUTAGE: Span = Span::from_secs(60);

/// One call of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) at: Timestamp,
}

#[derive(Clone)]
pub(crate) struct Service {
    seed: u64,
    began: Timestamp,
    clock: Arc<dyn Clock>,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Service {
    pub(crate) fn new(seed: u64, began: Timestamp, clock: Arc<dyn Clock>) -> Self {
        Self { seed, began, clock, calls: Arc::default() }
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.lock().expect("one thread").clone()
    }

    /// Does its work, sometimes. What it does depends on the seed, who calls and how often, and the time.
    pub(crate) async fn call(self, order: u64, attempt: u32) -> Result<u64, Failure> {
        let at = self.clock.now();
        self.calls.lock().expect("one thread").push(Call { at });
        let luck = mixed(self.seed, order, u64::from(attempt));
        tokio::time::sleep(Duration::from_millis(20 + luck % 180)).await;
        if is_down(at, self.began) {
            Err(Failure::new("down").code(503))
        } else if luck >> 32 & 0xff < 30 {
            Err(Failure::new("hiccup").code(500))
        } else if order % 97 == 13 {
            Err(Failure::new("no such order").code(404).non_retryable())
        } else {
            Ok(order * 2)
        }
    }
}

pub(crate) fn is_down(at: Timestamp, began: Timestamp) -> bool {
    let since = at.as_nanos().saturating_sub(began.as_nanos()) / 1_000_000;
    let down = OUTAGE_AFTER.as_millis()..OUTAGE_AFTER.as_millis() + OUTAGE.as_millis();
    down.contains(&since)
}

/// A number that looks random and is not.
pub(crate) fn mixed(seed: u64, one: u64, two: u64) -> u64 {
    let mut number = seed ^ one.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ two.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    for _ in 0..3 {
        number = (number ^ (number >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    number ^ (number >> 29)
}
