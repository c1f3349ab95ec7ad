//! What people look at, as data: the graph, the story of a run, where its time went, why, and what a policy would do.
//!
//! ```
//! use tidewheel::prelude::*;
//! use tidewheel::view::{Edge, Graph, Node};
//!
//! let workflow = Workflow::new("numbers")
//!     .add(step("inc", |x: i64| x + 1))
//!     .add(step("double", |x: i64| 2 * x).after("inc"))
//!     .build()?;
//! let graph: Graph = workflow.graph();
//! let nodes: &[Node] = &graph.nodes;
//! assert_eq!(nodes[0].name.as_deref(), Some("inc"));
//! let edge: &Edge = &graph.edges[1];
//! assert_eq!((edge.from, edge.to), (Some(0), 1));
//! assert!(workflow.to_mermaid().starts_with("flowchart"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Story`] is a run as its log tells it, without its definition and without a runner:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tidewheel::Control;
//! use tidewheel::prelude::*;
//! use tidewheel::store::{Memory, RealClock, Store};
//! use tidewheel::view::{
//!     AbsenceLine, AttemptLine, Doing, FactLine, InputLine, Spent, SpentRow, Story, Stretch, UndoState, WorkLine,
//!     WorkState, explain,
//! };
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let noon = Timestamp::parse("2026-03-01T12:00:00Z")?;
//! let clock = Arc::new(RealClock::starting_at(noon));
//! let store: Arc<dyn Store> = Arc::new(Memory::new(clock.clone()));
//! let workflow = Workflow::new("mail")
//!     .add(step("write", |to: String| format!("Dear {to}")))
//!     .add(step("send", |_: String| Err::<u32, _>(Failure::new("no network"))).after("write"))
//!     .add(step("file", |size: u32| size).after("send"))
//!     .policy(name("send"), Policy::new().max_retries(1).backoff(Backoff::Fixed).base_delay("10s"))
//!     .build()?;
//! let runner = Runner::with_store(Arc::clone(&store), RunnerOptions::new().clock(clock)).await?;
//! let run = runner.run("mail-1", &workflow, "Ada".to_owned()).await?;
//! assert_eq!(run.wait().await?, Status::Failed);
//! runner.shutdown().await;
//!
//! let story: Story = Control::new(store).story(run.id()).await?;
//! let input: &InputLine = &story.inputs[0];
//! assert_eq!((&input.value, input.undo), (&serde_json::json!("Ada"), UndoState::None));
//! let fact: &FactLine = &story.facts[0];
//! assert_eq!(fact.node, "write");
//! let absence: &AbsenceLine = story.absences.iter().find(|line| line.node == "file").ok_or("it is there")?;
//! assert_eq!(absence.input, 0);
//!
//! let send: &WorkLine = story.works.iter().find(|work| work.node == "send").ok_or("no such work")?;
//! assert_eq!(send.state, WorkState::Failed);
//! let attempts: &[AttemptLine] = &send.attempts;
//! assert_eq!(attempts.len(), 2);
//! let waited: &Stretch = send.stretches.iter().find(|s| s.doing == Doing::Backoff).ok_or("it did not wait")?;
//! assert_eq!(waited.from, noon);
//! println!("{}", explain(send, noon).join("\n"));
//!
//! // Where the time went.
//! let spent = Spent::of(&story, noon, noon.saturating_add(Span::from_secs(10)));
//! let row: &SpentRow = spent.rows.iter().find(|row| row.doing == Doing::Backoff).ok_or("no such row")?;
//! assert_eq!(row.wall_ns, 10_000_000_000);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Rehearsal`] is what a policy would do:
//!
//! ```
//! use tidewheel::policy::JitterSeed;
//! use tidewheel::prelude::*;
//! use tidewheel::view::{Attempt, Rehearsal, Script, rehearse};
//!
//! let script = Script {
//!     failures: 1,
//!     attempt_takes: Span::from_millis(100),
//!     seed: JitterSeed::new("run-1", "fetch"),
//! };
//! let rehearsal: Rehearsal = rehearse(&Policy::io().resolved()?, &script);
//! let attempts: &[Attempt] = &rehearsal.attempts;
//! assert_eq!((attempts.len(), attempts[1].start_ms), (2, 600));
//! # Ok::<(), tidewheel::Problems>(())
//! ```

pub use tidewheel_core::view::{
    AbsenceLine, Attempt, AttemptLine, Doing, Edge, FactLine, Graph, InputLine, Node, Rehearsal, Script,
    Spent, SpentRow, Story, Stretch, UndoState, WorkLine, WorkState, explain, rehearse,
};
