//! Reads the body of a file of a template, with the values of its parameters. Each problem is reported at its place;
//! whether nodes fit together is not looked at here.

use std::ops::Range;

use serde_json::{Map, Value};

use super::check_prompts::Contract;
use super::head::{FIELDS, tables};
use super::label::Label;
use super::node::{Draft, Place, Target, Unread};
use super::part;
use super::scope::{Scope, Unfilled, Wrong, boolean};
use crate::document::{self, Data, Entry, Node, Problem, Report, Table};
use crate::job::{AfterPolicy, MissingProducer, NodeId, NodeOutcome, Retry, contract};
use crate::policy::{self, Kind, Matcher, Policy};

/// The body of a file.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) missing_producer: Option<MissingProducer>,
    pub(super) rules: Vec<(Matcher, Policy)>,
    /// The numbers of the rules, and where they stand.
    pub(super) rule_places: Vec<(usize, Place)>,
    /// The contracts for artifacts.
    pub(super) contracts: Vec<Contract>,
    pub(super) nodes: Vec<Draft>,
    pub(super) links: Vec<Link>,
    /// Whether there are nodes that cannot be named, so that a name that seems unknown may be no second mistake.
    pub(super) has_lost_nodes: bool,
    /// The same of contracts.
    pub(super) has_lost_contracts: bool,
}

/// What follows what, for whole imports.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) from: (String, Place),
    pub(super) to: (String, Place),
}

/// What a file is read for: one of the places where it is imported.
pub(super) struct Instance<'a> {
    pub(super) file: usize,
    /// The number of this instance.
    pub(super) number: usize,
    /// What stands before its ids: the names of the imports that lead to it.
    pub(super) prefix: &'a str,
}

/// What everything here needs.
pub(super) struct Reader<'a, 'r, 's> {
    pub(super) instance: Instance<'a>,
    pub(super) scope: Scope<'a>,
    pub(super) report: &'r mut Report<'s>,
    /// How many texts have no value, told or not.
    pub(super) unread: usize,
}

impl Reader<'_, '_, '_> {
    /// Reads the body.
    pub(super) fn body(mut self, node: Node<'_>) -> Body {
        let mut body = Body::default();
        let Some(mut top) = self.report.table("", node) else { return body };
        for read in ["id", "version", "params", "cli", "imports"] {
            top.take(read);
        }
        body.missing_producer = self.missing_producer(&mut top);
        for (index, item) in tables(&mut top, "policies", self.report).into_iter().enumerate() {
            let place = self.place(item.span.clone());
            let path = format!("policies[{index}]");
            if let Some(rule) = policy::rule(&path, item, self.report, Policy::problems_for_jobs) {
                body.rules.push(rule);
                body.rule_places.push((index, place));
            }
        }
        let before = self.report.len();
        let contracts = tables(&mut top, "artifact_contracts", self.report);
        body.has_lost_contracts = self.report.len() > before;
        for (index, item) in contracts.into_iter().enumerate() {
            let contract = self.contract(index, item, &body.contracts);
            body.has_lost_contracts |= contract.is_none();
            body.contracts.extend(contract);
        }
        let before = self.report.len();
        let nodes = tables(&mut top, "nodes", self.report);
        body.has_lost_nodes = self.report.len() > before;
        for (index, item) in nodes.into_iter().enumerate() {
            let node = self.node(index, item);
            body.has_lost_nodes |= node.as_ref().is_none_or(|node| node.id.is_empty());
            body.nodes.extend(node);
        }
        for (index, item) in tables(&mut top, "links", self.report).into_iter().enumerate() {
            body.links.extend(self.link(index, item));
        }
        for entry in &top.entries {
            // Whoever misspells a table has not forgotten it.
            let meant = document::nearest(&entry.key, FIELDS);
            body.has_lost_nodes |= matches!(meant, Some("nodes" | "imports"));
            body.has_lost_contracts |= meant == Some("artifact_contracts");
        }
        top.finish(self.report, FIELDS);
        body
    }

    pub(super) const fn place(&self, span: Range<usize>) -> Place {
        Place { file: self.instance.file, span }
    }

    /// Takes a text and puts parameters into it.
    pub(super) fn text(&mut self, table: &mut Table<'_>, name: &str) -> Option<String> {
        let text = table.string(name, self.report)?;
        self.filled(&text, &table.path_to(name), table.place_of(name))
    }

    pub(super) fn required_text(&mut self, table: &mut Table<'_>, name: &str) -> Option<String> {
        let text = table.required(name, self.report, Table::string)?;
        self.filled(&text, &table.path_to(name), table.place_of(name))
    }

    fn filled(&mut self, text: &str, path: &str, span: Range<usize>) -> Option<String> {
        self.scope.fill(text, path).map_err(|unfilled| self.unfilled(unfilled, &span)).ok()
    }

    /// Reports what is wrong with a text.
    pub(super) fn unfilled(&mut self, unfilled: Unfilled, span: &Range<usize>) {
        self.unread += 1;
        for Wrong { problem, part } in unfilled.0 {
            let place = self.report.place_in(span.clone(), &part);
            self.report.at(place, problem);
        }
    }

    /// Returns a number that grows with everything that cannot be read.
    fn unread(&self) -> usize {
        self.report.len() + self.unread
    }

    /// Takes a value that may be written as it is or as a text with parameters.
    pub(super) fn value<T>(
        &mut self,
        table: &mut Table<'_>,
        name: &str,
        read: impl FnOnce(&str, &str) -> Result<T, String>,
    ) -> Option<T> {
        let entry = table.take(name)?;
        let path = table.path_to(name);
        let Some(text) = super::head::scalar(&entry.value) else {
            let message = format!("must be a value or a text, found {}", entry.value.kind());
            self.report.at(entry.value.span, Problem::new(path, message));
            return None;
        };
        let text = match entry.value.data {
            Data::String(_) => self.filled(&text, &path, entry.value.span.clone())?,
            _ => text,
        };
        read(&text, &path).map_err(|message| self.report.at(entry.value.span, Problem::new("", message))).ok()
    }

    fn missing_producer(&mut self, top: &mut Table<'_>) -> Option<MissingProducer> {
        let mut policy = top.table("policy", self.report)?;
        let mut dependencies = policy.table("dependencies", self.report);
        let word = dependencies.as_mut().and_then(|table| {
            table.word("missing_producer", self.report, MissingProducer::ALL, MissingProducer::name)
        });
        if let Some(table) = dependencies {
            table.finish(self.report, &["missing_producer"]);
        }
        policy.finish(self.report, &["dependencies"]);
        word
    }

    fn contract(&mut self, index: usize, item: Node<'_>, known: &[Contract]) -> Option<Contract> {
        let mut table = self.report.table(&format!("artifact_contracts[{index}]"), item)?;
        let id = self.required_text(&mut table, "id");
        self.required_text(&mut table, "version");
        let schema =
            table.take("schema").and_then(|entry| self.schema(&table.path_to("schema"), &entry.value));
        if let Some(id) = &id {
            if id.trim().is_empty() {
                table.fail("id", "must not be empty".to_owned(), self.report);
            } else if known.iter().any(|contract| contract.id == *id) {
                table.fail("id", format!("is `{id}`, as that of another contract"), self.report);
            }
        }
        table.finish(self.report, &["id", "version", "schema"]);
        Some(Contract { id: id?, instance: self.instance.number, schema })
    }

    /// Reads what payloads have to look like.
    fn schema(&mut self, path: &str, node: &Node<'_>) -> Option<Value> {
        contract::check(node, path, self.report);
        let filled = self.scope.fill_value(node.to_json()?, path);
        filled.map_err(|unfilled| self.unfilled(unfilled, &node.span)).ok()
    }

    fn link(&mut self, index: usize, item: Node<'_>) -> Option<Link> {
        let mut table = self.report.table(&format!("links[{index}]"), item)?;
        let mut end = |name: &str| {
            let id = table.required(name, self.report, Table::string)?.into_owned();
            Some((id, Place { file: self.instance.file, span: table.place_of(name) }))
        };
        let (from, to) = (end("from"), end("to"));
        table.finish(self.report, &["from", "to"]);
        Some(Link { from: from?, to: to? })
    }

    fn node(&mut self, index: usize, item: Node<'_>) -> Option<Draft> {
        let whole = item.span.clone();
        let mut table = self.report.table(&format!("nodes[{index}]"), item)?;
        let written = table.required_string("id", NODE_FIELDS, self.report);
        let place = self.place(table.place_of("id"));
        let id = written.map(|written| format!("{}{written}", self.instance.prefix));
        let wrong = id.as_deref().and_then(|id| NodeId::new(id).err());
        if let Some(error) = &wrong {
            table.fail("id", error.to_string(), self.report);
        }
        let is_named = id.is_some() && wrong.is_none();
        let id = id.unwrap_or_default();
        if is_named {
            // From here on the node is known by its id, which people can find, and not by its number.
            table.path = format!("nodes[{id}]");
        }
        let name = self.text(&mut table, "name").map(|name| name.trim().to_owned());
        let kinds = [Kind::Builtin, Kind::Shell, Kind::Agent, Kind::Gate];
        let kind = table.word("kind", self.report, &kinds, Kind::name);
        let uses = table.required_string("uses", NODE_FIELDS, self.report).map(|uses| uses.into_owned());
        let uses_place = self.place(table.place_of("uses"));
        let label = uses.as_deref().and_then(Label::find);
        // A kind that is none was reported, and is not held against the label, too.
        let unread_kind = label.filter(|_| table.was_given("kind")).map(Label::kind);
        let mut draft = Draft {
            id,
            is_named,
            path: table.path.clone(),
            place,
            instance: self.instance.number,
            name: name.filter(|name| !name.is_empty()),
            kind: kind.or(unread_kind).unwrap_or(Kind::Builtin),
            label,
            uses: uses.unwrap_or_default(),
            uses_place,
            args: Map::new(),
            arg_places: std::collections::BTreeMap::new(),
            empty_args: Vec::new(),
            after: Vec::new(),
            needs: Vec::new(),
            produces: std::collections::BTreeMap::new(),
            locks: Vec::new(),
            preconditions: Vec::new(),
            pin: None,
            gates: Vec::new(),
            errexit: None,
            retry: None,
            on: Vec::new(),
            tags: Vec::new(),
            unread: Unread::default(),
        };
        self.args(&mut table, &mut draft);
        let before = self.unread();
        self.after(&mut table, &mut draft);
        self.on(&mut table, &mut draft);
        draft.unread.edges = self.unread() > before;
        let before = self.unread();
        draft.needs = part::artifacts(self, &mut table, "needs");
        self.produces(&mut table, &mut draft);
        draft.unread.artifacts = self.unread() > before;
        draft.locks = part::locks(self, &mut table);
        part::preconditions(self, &mut table, &mut draft);
        let before = self.unread();
        draft.gates = part::gates(self, &mut table);
        draft.unread.gates = self.unread() > before;
        draft.errexit = self
            .value(&mut table, "errexit", boolean)
            .map(|errexit| (errexit, self.place(table.place_of("errexit"))));
        draft.retry = self.retry(&mut table).map(|retry| (retry, self.place(table.place_of("retry"))));
        draft.tags = table
            .list("tags", self.report, |node| match &node.data {
                Data::String(tag) if !tag.trim().is_empty() => Ok(tag.clone().into_owned()),
                _ => Err(format!("must be a list of words, found {}", node.kind())),
            })
            .unwrap_or_default();
        if draft.uses.is_empty() && draft.uses_place.span.is_empty() {
            draft.uses_place = self.place(whole);
        }
        self.misplaced(&mut table, &mut draft);
        table.finish(self.report, NODE_FIELDS);
        Some(draft)
    }

    /// Tells of fields that stand in a node and belong elsewhere.
    fn misplaced(&mut self, table: &mut Table<'_>, draft: &mut Draft) {
        let (path, id) = (table.path.clone(), draft.id.clone());
        table.entries.retain(|entry| {
            let key = entry.key.as_ref();
            let help = if draft.label.is_some_and(|label| label.args.contains(&key)) {
                // It is there, though in the wrong place.
                draft.arg_places.insert(key.to_owned(), self.place(entry.value.span.clone()));
                format!("it is an argument: write args = {{ {key} = … }}")
            } else if Policy::FIELDS.contains(&key) {
                format!("policies say it: write it below [[policies]] with match = {{ name = \"{id}\" }}")
            } else if matches!(key, "depends_on" | "depends" | "dependencies" | "requires") {
                "did you mean `after`?".to_owned()
            } else {
                return true;
            };
            let problem = Problem::new(format!("{path}.{key}"), "is not a known field").help(help);
            self.report.at(entry.key_span.clone(), problem);
            false
        });
    }

    fn args(&mut self, table: &mut Table<'_>, draft: &mut Draft) {
        if let Some(Entry { value: Node { data: Data::String(text), span }, .. }) = table.peek("args") {
            let problem = Problem::new(table.path_to("args"), "must be a table, found a string");
            let is_script = draft.label.is_some_and(|label| label.args.contains(&"script"));
            let help = (is_script && document::is_plain(text))
                .then(|| format!("write args = {{ script = \"{text}\" }}"));
            self.report.at(span.clone(), problem.help_from(help));
            draft.unread.args = true;
            table.take("args");
            return;
        }
        let Some(args) = table.table("args", self.report) else {
            draft.unread.args = table.was_given("args") || table.is_misspelt("args", NODE_FIELDS);
            return;
        };
        for entry in &args.entries {
            let path = args.path_to(&entry.key);
            // Whoever asks what was given is not to complain about what could not be read.
            draft.arg_places.insert(entry.key.to_string(), self.place(entry.value.span.clone()));
            let Some(value) = entry.value.to_json() else {
                let problem = Problem::new(path, "has a number that JSON cannot hold");
                self.report.at(entry.value.span.clone(), problem);
                continue;
            };
            match self.scope.fill_value(value, &path) {
                Ok(value) => drop(draft.args.insert(entry.key.to_string(), value)),
                Err(unfilled) => self.unfilled(unfilled, &entry.value.span),
            }
        }
    }

    /// Returns another node of this file, or of one that it imports.
    fn target(&self, written: &str, span: Range<usize>) -> Target {
        let id = format!("{}{written}", self.instance.prefix);
        Target { id, written: written.to_owned(), place: self.place(span) }
    }

    fn after(&mut self, table: &mut Table<'_>, draft: &mut Draft) {
        for (index, item) in tables(table, "after", self.report).into_iter().enumerate() {
            if let Data::String(id) = &item.data {
                draft.after.push((self.target(id, item.span.clone()), AfterPolicy::Success));
                continue;
            }
            let path = format!("{}.after[{index}]", table.path);
            let Data::Table(_) = &item.data else {
                let message = format!("must be the id of a node, or a table, found {}", item.kind());
                self.report.at(item.span, Problem::new(path, message));
                continue;
            };
            let Some(mut after) = self.report.table(&path, item) else { continue };
            let id = after.required_string("node_id", &["node_id", "policy"], self.report);
            let policy = after.word("policy", self.report, AfterPolicy::ALL, AfterPolicy::name);
            if let Some(id) = id {
                let target = self.target(&id, after.place_of("node_id"));
                draft.after.push((target, policy.unwrap_or_default()));
            }
            after.finish(self.report, &["node_id", "policy"]);
        }
    }

    fn produces(&mut self, table: &mut Table<'_>, draft: &mut Draft) {
        let Some(mut produces) = table.table("produces", self.report) else { return };
        for outcome in OUTCOMES {
            let made = part::artifacts(self, &mut produces, outcome.name());
            if !made.is_empty() {
                draft.produces.insert(outcome, made);
            }
        }
        produces.finish(self.report, &OUTCOMES.map(NodeOutcome::name));
    }

    fn on(&mut self, table: &mut Table<'_>, draft: &mut Draft) {
        let Some(mut on) = table.table("on", self.report) else { return };
        for outcome in OUTCOMES {
            let ids = on.list(outcome.name(), self.report, |node| match &node.data {
                Data::String(id) => Ok((id.clone().into_owned(), node.span.clone())),
                _ => Err(format!("must be a list of nodes, found {}", node.kind())),
            });
            for (id, span) in ids.unwrap_or_default() {
                let is_known = draft.on.iter().any(|(on, other)| *on == outcome && other.written == id);
                if is_known {
                    let problem = Problem::new(on.path_to(outcome.name()), format!("names `{id}` twice"));
                    self.report.at(span, problem);
                } else {
                    draft.on.push((outcome, self.target(&id, span)));
                }
            }
        }
        on.finish(self.report, &OUTCOMES.map(NodeOutcome::name));
    }

    fn retry(&mut self, table: &mut Table<'_>) -> Option<Retry> {
        const MODES: [&str; 3] = ["never", "on_failure", "until_gate"];
        if let Some(Entry { value: Node { data: Data::Integer(number), span }, .. }) = table.peek("retry") {
            let problem = Problem::new(table.path_to("retry"), "must be a table, found an integer");
            let help = format!(
                "write max_retries = {number} below [[policies]]; retry = {{ budget = {number} }} is for loops"
            );
            self.report.at(span.clone(), problem.help(help));
            table.take("retry");
            return None;
        }
        let before = self.unread();
        let mut retry = table.table("retry", self.report)?;
        // What a parameter says may differ from run to run, and the budget counts in some of them.
        let is_never = retry
            .peek("mode")
            .is_some_and(|entry| matches!(&entry.value.data, Data::String(mode) if mode == "never"));
        let mode = self.text(&mut retry, "mode");
        let budget = self.value(&mut retry, "budget", super::scope::number);
        if let Some(mode) = &mode
            && !MODES.contains(&mode.as_str())
        {
            retry.fail_with_words("mode", &MODES, mode, self.report);
        }
        if is_never && budget.is_some() {
            let message = "has no effect with mode `never`, after which nothing comes back".to_owned();
            retry.fail("budget", message, self.report);
        }
        retry.finish(self.report, &["mode", "budget"]);
        if self.unread() > before {
            return None;
        }
        let mode = mode.unwrap_or_else(|| "on_failure".to_owned());
        let budget = if mode == "never" { 0 } else { budget.unwrap_or(1) };
        Some(Retry { mode, budget })
    }
}

/// The fields of a node.
pub(super) const NODE_FIELDS: &[&str] = &[
    "id",
    "name",
    "kind",
    "uses",
    "args",
    "after",
    "needs",
    "produces",
    "locks",
    "preconditions",
    "gates",
    "errexit",
    "retry",
    "on",
    "tags",
];

/// The outcomes that a template can speak of.
const OUTCOMES: [NodeOutcome; 4] =
    [NodeOutcome::Succeeded, NodeOutcome::Failed, NodeOutcome::Blocked, NodeOutcome::Cancelled];
