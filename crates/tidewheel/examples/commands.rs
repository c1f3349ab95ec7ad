//! Programs as steps: one asks to be tried again, one hangs and is ended with all that it started, and a function
//! makes a report of what they wrote.
//!
//! `cargo run --example commands`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use serde::{Deserialize, Serialize};
use tidewheel::prelude::*;

/// What the mirror tells about a release.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Release {
    name: String,
    files: u32,
}

/// A mirror that is busy at first: 75 is the exit code for "try again later".
const MIRROR: &str = r#"
    if [ "$TIDEWHEEL_ATTEMPT" -lt 2 ]; then
        echo "the mirror is busy" >&2
        exit 75
    fi
    read -r name
    printf '{"name": %s, "files": 3}' "$name"
"#;

/// A check that hangs, and another process that it started with it.
const CHECK: &str = "sleep 1000 & sleep 1000";

fn report(release: Release, lines: u32, checked: String) -> String {
    format!("{} has {} files and {lines} line of input; its check: {checked}", release.name, release.files)
}

fn workflow() -> Result<Workflow, BuildErrors> {
    Workflow::new("release")
        .add(command("mirror", ["sh", "-c", MIRROR]))
        .add(command("lines", ["wc", "-l"]))
        .add(command("check", ["sh", "-c", CHECK]).text())
        .add(step("report", report).after(["mirror", "lines", "check"]))
        .policy(
            name("mirror"),
            Policy::new().max_retries(3).backoff(Backoff::Fixed).base_delay("20ms").retryable_errors([75]),
        )
        .policy(name("check"), Policy::new().timeout("200ms").fallback_value("it took too long"))
        .policy(default(), Policy::new().timeout("30s"))
        .build()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let runner = Runner::in_memory(RunnerOptions::new()).await?;
    let run = runner.run("release-1", &workflow()?, "tide".to_owned()).await?;
    println!("{}", run.result::<String>("report").await?);
    runner.shutdown().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn finished() -> Run {
        let mut run = workflow().unwrap().run("test");
        react_until_satisfied(&mut run, "tide".to_owned(), ReactOptions::new()).await.unwrap();
        run
    }

    #[tokio::test]
    async fn programs_and_functions_work_together() {
        let run = finished().await;
        let report = "tide has 3 files and 1 line of input; its check: it took too long";
        assert_eq!(run.result::<String>("report").unwrap().as_deref(), Some(report), "{:?}", run.failures());
    }

    #[tokio::test]
    async fn a_program_that_asks_for_it_is_tried_again() {
        let run = finished().await;
        let release = Release { name: "tide".to_owned(), files: 3 };
        assert_eq!(run.result::<Release>("mirror").unwrap(), Some(release));
        assert!(run.failures().is_empty());
    }
}
