//! Short ways to a template and its jobs.

use std::collections::BTreeMap;

use tidewheel_core::Problems;
use tidewheel_core::job::template::{Enqueue, Expanded, Run, Source, Template};
use tidewheel_core::job::{JobId, NodeId, Record, RunId};
use tidewheel_core::policy::Rules;
use tidewheel_core::time::Timestamp;

/// Files by name; the first that is asked for is `main.toml`.
pub(crate) fn load(files: &[(&str, &str)]) -> Result<Template, Problems> {
    let source = |file: &str| {
        let found = files.iter().find(|(name, _)| *name == file);
        found.map(|(name, text)| Source { file: (*name).to_owned(), text: (*text).to_owned() })
    };
    let main = source(files[0].0).expect("there is a file");
    Template::load(main, |path, _| source(path).ok_or_else(|| "no such file".to_owned()))
}

/// The start of every template here.
pub(crate) fn whole(body: &str) -> String {
    format!("id = 'T'\nversion = 'v1'\n{body}")
}

pub(crate) fn expand(body: &str) -> Result<Expanded, Problems> {
    expand_with(body, &[])
}

pub(crate) fn expand_with(body: &str, given: &[(&str, &str)]) -> Result<Expanded, Problems> {
    let given: BTreeMap<String, String> =
        given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    load(&[("main.toml", &whole(body))])?.expand(&given, &Rules::default())
}

/// The messages of everything that is wrong with a template, without their places.
pub(crate) fn problems(body: &str) -> Vec<String> {
    messages(&expand(body).expect_err("nothing is wrong with it"))
}

pub(crate) fn messages(problems: &Problems) -> Vec<String> {
    let text = |problem: &tidewheel_core::Problem| match problem.path.as_str() {
        "" => problem.message.clone(),
        path => format!("{path}: {}", problem.message),
    };
    problems.all().iter().map(text).collect()
}

pub(crate) fn run(body: &str) -> Run {
    expand(body).expect("it is right").materialise(&wish()).expect("it is whole")
}

pub(crate) fn wish() -> Enqueue {
    Enqueue::new(RunId::of_bits(0xab), "file:main.toml", Timestamp::from_millis(1_000_000), "ann")
}

/// Returns the job of a node.
pub(crate) fn id(node: &str) -> JobId {
    JobId::of_node(&RunId::of_bits(0xab), &NodeId::new(node).expect("it is an id")).expect("it fits")
}

pub(crate) trait Find {
    fn job(&self, node: &str) -> &Record;
    fn after(&self, node: &str) -> Vec<String>;
}

impl Find for Run {
    fn job(&self, node: &str) -> &Record {
        self.records.iter().find(|record| record.id == id(node)).expect("there is such a job")
    }

    /// What a node is after, as `node:policy`.
    fn after(&self, node: &str) -> Vec<String> {
        let name = |job: &JobId| {
            let found = self.records.iter().find(|record| record.id == *job);
            found
                .map_or_else(|| job.to_string(), |record| record.node().expect("it is of a node").to_string())
        };
        let after = &self.job(node).schedule.after;
        after.iter().map(|after| format!("{}:{}", name(&after.job_id), after.policy)).collect()
    }
}

/// Returns a shell node.
pub(crate) fn node(id: &str, more: &str) -> String {
    format!(
        "[[nodes]]\nid = '{id}'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs = {{ script = 'true' }}\n{more}\n"
    )
}
