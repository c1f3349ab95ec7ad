//! The whole loop on one page: prepare, execute, apply, until nothing is left. Everything else that drives a
//! run does the same with more around it, and must come to the same facts.

use crate::fact::Payload;
use crate::run::Run;

impl Run {
    /// Runs one cycle: everything that can run now, one after the other.
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
    /// run.react();
    /// assert_eq!((run.result::<i64>("inc")?, run.result::<i64>("double")?), (Some(21), None));
    /// run.react();
    /// assert_eq!(run.result::<i64>("double")?, Some(42));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn react(&mut self) -> &mut Self {
        for runnable in self.prepare() {
            let executed = runnable.execute();
            self.apply(executed);
        }
        self
    }

    /// Takes an input and runs until nothing is left to do.
    pub fn react_until_satisfied<T: Payload>(&mut self, input: T) -> &mut Self {
        self.plan(input);
        self.run_until_satisfied()
    }

    /// Runs until nothing is left to do, or only work that was handed out elsewhere.
    pub fn run_until_satisfied(&mut self) -> &mut Self {
        while !(self.ready.is_empty() && self.matches.is_empty()) {
            self.react();
        }
        self
    }
}
