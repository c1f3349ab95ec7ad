//! A loop that runs everything that is ready at once under rules: attempts, waits, timeouts, fallbacks.

use tidewheel::driver::execute_with_policies;
use tidewheel::prelude::*;

/// Runs until nothing is left to do.
pub(crate) async fn run_to_end(run: &mut Run, rules: &Rules) -> Result<(), Problems> {
    while run.is_runnable() {
        let runnables = run.prepare();
        for executed in execute_with_policies(runnables, rules).await? {
            run.apply(executed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::orders::{Fulfillment, Screening, order, order_fulfillment};

    #[tokio::test(start_paused = true)]
    async fn a_service_that_is_away_is_asked_again_and_then_done_without() {
        let rules = Rules::new([(
            name("screen_fraud"),
            Policy::new()
                .max_retries(2)
                .backoff(Backoff::Fixed)
                .base_delay("100ms")
                .fallback_value(serde_json::json!({"risk": "High"})),
        )]);
        let mut run = order_fulfillment().unwrap().run("test");
        run.plan(order("nobody", &["tea"]));
        let start = Instant::now();
        run_to_end(&mut run, &rules.unwrap()).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(300 + 100 + 300 + 100 + 300));
        assert!(run.result::<Screening>("screen_fraud").unwrap().is_some() && run.failures().is_empty());
        let decided: Option<Fulfillment> = run.result("decide_fulfillment").unwrap();
        assert!(!decided.unwrap().approved);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rule_that_cannot_act_is_refused_before_anything_runs() {
        let rules = Rules::new([(default(), Policy::new().delay("1s"))]).unwrap();
        let mut run = order_fulfillment().unwrap().run("test");
        run.plan(order("ada", &["tea"]));
        let problems = run_to_end(&mut run, &rules).await.unwrap_err();
        assert_eq!(problems.all()[0].path, "policies[0].delay");
        assert!(run.productions().is_empty());
    }
}
