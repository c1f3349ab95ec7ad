//! A ticket through language models that refuse, dawdle and fail: policies from outside the graph wait as long
//! as the model asks, give up on a slow one, take a smaller one, and skip what nobody needs.
//!
//! `cargo run --example llm_pipeline`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidewheel::prelude::*;
use tokio::time::sleep;

/// What comes of a ticket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Reply {
    topic: String,
    text: String,
}

/// A service with two models. What it answers depends only on what it was asked before.
#[derive(Clone, Debug, Default)]
struct Models {
    calls: Arc<Mutex<Vec<String>>>,
}

impl Models {
    /// Asks a model: 50 ms, unless it is busy.
    async fn ask(&self, task: &str, model: &str, prompt: &str) -> Result<String, Failure> {
        let call = format!("{task} by the {model} model");
        let is_first = !self.calls().contains(&call);
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        match (task, model) {
            ("classify", _) if is_first => {
                let wait = Duration::from_millis(400);
                Err(Failure::new("too many requests").code(429).retry_after(wait))
            }
            ("narrate", "large") => {
                sleep(Duration::from_secs(60)).await;
                Ok("a long story".to_owned())
            }
            ("translate", _) => Err(Failure::new("the model is away").code(503)),
            _ => {
                sleep(Duration::from_millis(50)).await;
                Ok(format!("{task}({prompt})"))
            }
        }
    }

    /// Returns what was asked so far.
    fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The graph: what comes after what, and not a word about retries.
fn pipeline(models: &Models) -> Result<Workflow, BuildErrors> {
    let asks = |task: &'static str| {
        let models = models.clone();
        move |context: Context, prompt: String| {
            let models = models.clone();
            async move {
                // A fallback may choose another model.
                let model = context.overridden("model").and_then(|model| model.as_str());
                models.ask(task, model.unwrap_or("large"), &prompt).await
            }
        }
    };
    Workflow::new("tickets")
        .add(rule("accept").when(|ticket: &String| !ticket.is_empty()).then(|ticket: String| ticket))
        .add(step("llm_classify", asks("classify")).after("accept"))
        .add(step("llm_narrate", asks("narrate")).after("accept"))
        .add(step("llm_translate", asks("translate")).after("accept"))
        .add(
            step("reply", |topic: String, text: String| Reply { topic, text })
                .after(["llm_classify", "llm_narrate"]),
        )
        .policies(policies())
        .build()
}

/// How each part is run; the first rule that matches wins.
fn policies() -> [(Matcher, Policy); 5] {
    let llm = || Policy::llm().base_delay("100ms").timeout("500ms");
    let small = Recovery::retry_with([("model", "small")]);
    [
        // One more try with the large model, then the small one.
        (name("llm_narrate"), llm().max_retries(1).fallback(move |_, _, _| small.clone())),
        // Nice to have: what comes after it is skipped, too, and the run is no failure.
        (name("llm_translate"), llm().max_retries(1).on_failure(OnFailure::Skip)),
        // By convention of names. Only what may go away by itself is tried again.
        (pattern("^llm_"), llm().retryable_errors([ErrorMatcher::from(429), "timeout".into()])),
        // By kind: a rule that takes microseconds need not be stored before it starts.
        (kind(Kind::Rule), Policy::new().execution_mode(ExecutionMode::Sync)),
        (default(), Policy::new().timeout("5s")),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("tickets.db");
    for life in ["first", "second"] {
        let models = Models::default();
        let runner = Runner::open(&path).await?;
        let run = runner.start("ticket-7", &pipeline(&models)?).await?;
        run.input_keyed("ticket", "my lamp flickers".to_owned()).await?;
        let reply: Reply = run.result("reply").await?;
        let status = run.wait().await?;
        println!("In the {life} life of the program the run is {status}: {reply:?}");
        for call in models.calls() {
            println!("  asked: {call}");
        }
        for failed in run.state().await?.failures() {
            let (component, failure) = (failed.component.unwrap_or_default(), failed.failure);
            println!("  {component} was skipped after {} attempts: {failure}", failed.attempts);
        }
        runner.shutdown().await;
    }
    println!("The second life found everything in the file and asked nobody.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    async fn started(models: &Models, options: &StartOptions) -> (Runner, RunHandle) {
        let runner = Runner::in_memory(RunnerOptions::new()).await.unwrap();
        let workflow = pipeline(models).unwrap();
        let run = runner.run_with("test", &workflow, "hello".to_owned(), options).await.unwrap();
        (runner, run)
    }

    fn count(models: &Models, call: &str) -> usize {
        models.calls().iter().filter(|asked| *asked == call).count()
    }

    #[tokio::test(start_paused = true)]
    async fn a_model_that_asks_for_time_gets_it() {
        let (models, start) = (Models::default(), Instant::now());
        let (_runner, run) = started(&models, &StartOptions::new()).await;
        let topic: String = run.result("llm_classify").await.unwrap();
        assert_eq!(topic, "classify(hello)");
        assert_eq!(start.elapsed(), Duration::from_millis(400 + 50), "not the 100 ms of its policy");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_model_is_given_up_and_a_smaller_one_is_asked_once() {
        let (models, start) = (Models::default(), Instant::now());
        let (_runner, run) = started(&models, &StartOptions::new()).await;
        let text: String = run.result("llm_narrate").await.unwrap();
        assert_eq!(text, "narrate(hello)");
        assert_eq!(start.elapsed(), Duration::from_millis(500 + 100 + 500 + 50));
        assert_eq!(count(&models, "narrate by the large model"), 2);
        assert_eq!(count(&models, "narrate by the small model"), 1);
        let reply: Reply = run.result("reply").await.unwrap();
        assert_eq!(reply, Reply { topic: "classify(hello)".to_owned(), text });
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_needs_is_skipped_and_the_run_completes() {
        let models = Models::default();
        let (_runner, run) = started(&models, &StartOptions::new()).await;
        assert_eq!(run.wait().await.unwrap(), Status::Completed);
        let error = run.result::<String>("llm_translate").await.unwrap_err();
        assert_eq!(error.to_string(), "`llm_translate` was skipped after it failed: [503] the model is away");
        let state = run.state().await.unwrap();
        let failures = state.failures();
        assert_eq!(failures.len(), 1);
        assert!(failures[0].skipped);
        assert_eq!(failures[0].attempts, 2);
        assert_eq!(failures[0].reason, Some(ReasonCode::MaxRetriesReached));
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_may_have_rules_of_its_own_that_come_first() {
        let hurried = Rules::new([(pattern("^llm_"), Policy::fast_fail().timeout("200ms"))]).unwrap();
        let options = StartOptions::new().policies(hurried, Overlay::Merge);
        let (models, start) = (Models::default(), Instant::now());
        let (_runner, run) = started(&models, &options).await;
        assert_eq!(run.wait().await.unwrap(), Status::Failed);
        assert_eq!(start.elapsed(), Duration::from_millis(200));
        assert_eq!(models.calls().len(), 3, "one attempt each");
        let error = run.result::<Reply>("reply").await.unwrap_err();
        assert_eq!(error.to_string(), "`reply` has no result: something before it failed");
    }

    #[tokio::test]
    async fn in_another_life_of_the_program_nobody_is_asked_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tickets.db");
        let mut replies = Vec::new();
        for asked in [7, 0] {
            let models = Models::default();
            let runner = Runner::open(&path).await.unwrap();
            let run = runner.start("ticket-7", &pipeline(&models).unwrap()).await.unwrap();
            run.input_keyed("ticket", "hello".to_owned()).await.unwrap();
            replies.push(run.result::<Reply>("reply").await.unwrap());
            assert_eq!(run.wait().await.unwrap(), Status::Completed);
            assert_eq!(models.calls().len(), asked);
            runner.shutdown().await;
        }
        assert_eq!(replies[0], replies[1]);
    }
}
