//! Policies that many people need, each a place to start from: every builder method works on them.

use super::backoff::Backoff;
use super::options::OnFailure;
use super::written::Policy;

impl Policy {
    /// Returns a policy under which a failure fails the run: for calls of a language model, patient, and loud when it
    /// gives up.
    ///
    /// Three retries, exponential from 1s to 30s, 30s for each attempt, halt.
    #[must_use]
    pub fn llm() -> Self {
        Self::new()
            .max_retries(3)
            .backoff(Backoff::exponential())
            .base_delay("1s")
            .max_delay("30s")
            .timeout("30s")
            .on_failure(OnFailure::Halt)
    }

    /// Returns a policy that skips a failure: for reading and writing what may be away for a moment, and what the run
    /// can do without.
    ///
    /// What comes after the work does not run, and the run completes all the same; its status says how many failures
    /// were skipped. Work that the run needs wants `.on_failure(OnFailure::Halt)` on top.
    ///
    /// Two retries, linear from 500ms, 10s for each attempt, skip.
    #[must_use]
    pub fn io() -> Self {
        Self::new()
            .max_retries(2)
            .backoff(Backoff::Linear)
            .base_delay("500ms")
            .timeout("10s")
            .on_failure(OnFailure::Skip)
    }

    /// Returns a policy under which a failure fails the run: for what must be quick or not at all. No retry, 5s, halt.
    #[must_use]
    pub fn fast_fail() -> Self {
        Self::new().max_retries(0).timeout("5s").on_failure(OnFailure::Halt)
    }
}
