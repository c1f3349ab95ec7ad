//! The whole loop on one page: prepare, execute, apply, until nothing is left. Everything else that drives a
//! run does the same with more around it, and must come to the same facts. The loop has no clock and no threads,
//! so it refuses runs on whose work a policy acts.

use std::collections::BTreeMap;

use crate::document::{Problem, Problems};
use crate::fact::Payload;
use crate::run::Run;

impl Run {
    /// Runs one cycle: everything that can run now, one after the other. The work runs here and now, without a policy.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let workflow = Workflow::new("numbers")
    ///     .pipeline([step("inc", |x: i64| x + 1), step("double", |x: i64| x * 2)])
    ///     .build()?;
    /// let mut run = workflow.run("run-1");
    /// run.plan(20_i64);
    /// run.react()?;
    /// assert_eq!((run.result::<i64>("inc")?, run.result::<i64>("double")?), (Some(21), None));
    /// run.react()?;
    /// assert_eq!(run.result::<i64>("double")?, Some(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A policy acts on some of the work, which the loop that knows no time cannot let it do: each such rule by its
    /// index. Nothing was done.
    pub fn react(&mut self) -> Result<&mut Self, Problems> {
        self.check_unpoliced()?;
        Ok(self.cycle())
    }

    fn cycle(&mut self) -> &mut Self {
        for runnable in self.prepare() {
            let executed = runnable.execute();
            self.apply(executed);
        }
        self
    }

    /// Takes an input and runs until nothing is left to do.
    ///
    /// ```
    /// # use tidewheel_core as tidewheel;
    /// use tidewheel::policy::{Policy, name};
    /// use tidewheel::workflow::{Workflow, step};
    ///
    /// let numbers = Workflow::new("numbers").add(step("inc", |x: i64| x + 1));
    /// let mut run = numbers.clone().build()?.run("run-1");
    /// run.react_until_satisfied(41_i64)?;
    /// assert_eq!(run.result::<i64>("inc")?, Some(42));
    ///
    /// let patient = numbers.policy(name("inc"), Policy::new().max_retries(3)).build()?;
    /// let refused = patient.run("run-2").react_until_satisfied(41_i64).unwrap_err();
    /// assert!(refused.to_string().starts_with("policies[0]: acts on `inc`"), "{refused}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As of [`Run::react`]; the input was not taken.
    pub fn react_until_satisfied<T: Payload>(&mut self, input: T) -> Result<&mut Self, Problems> {
        self.check_unpoliced()?;
        self.plan(input);
        self.run_until_satisfied()
    }

    /// Runs until nothing is left to do, or only work that was handed out elsewhere.
    ///
    /// # Errors
    /// As of [`Run::react`].
    pub fn run_until_satisfied(&mut self) -> Result<&mut Self, Problems> {
        self.check_unpoliced()?;
        while !(self.ready.is_empty() && self.matches.is_empty()) {
            self.cycle();
        }
        Ok(self)
    }

    /// Checks that no policy acts on any work of the run.
    fn check_unpoliced(&self) -> Result<(), Problems> {
        if !self.assigned.acts {
            return Ok(());
        }
        let mut acting: BTreeMap<usize, &str> = BTreeMap::new();
        for (ix, node) in (0..).zip(self.graph.nodes.iter()) {
            let rule = self.assigned.rules.resolve(&node.info()).rule.filter(|_| !self.assigned.is_plain(ix));
            if let Some(rule) = rule {
                acting.entry(rule).or_insert_with(|| node.label());
            }
        }
        let problem = |(rule, label): (usize, &str)| {
            let message =
                format!("acts on `{label}`, but this loop has no clock and runs work without policies");
            Problem::new(format!("policies[{rule}]"), message)
                .help("drive the run with tidewheel::react_until_satisfied or a Runner")
        };
        Problems::check(acting.into_iter().map(problem).collect(), ())
    }
}
