//! `tidewheel policy`: what a file of policies says, and which of its rules wins for a node. Runs nothing.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};
use tidewheel_core::decide::ReasonCode;
use tidewheel_core::policy::{Jitter, JitterSeed, Kind, NodeInfo, Resolution, Resolved, Rules};
use tidewheel_core::time::Span;
use tidewheel_core::view::{Rehearsal, Script, rehearse};
use tidewheel_core::{Problem, Problems};

use crate::error::{Code, CommandError, Ending};
use crate::exit::Exit;
use crate::input::{self, Input};
use crate::output::{self, harmless};
use crate::terminal;
use crate::view::timeline::{FAINT, HEADING, wrapped};
use crate::view::{fields, problems};

/// Look at files of policies
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(CheckArguments),
}

/// Check a file of policies, and show which rule wins for a node
///
/// Every problem is shown at once, each with its place in the file. If there
/// is none, each --name is a node, of the given kind and with the given tags:
/// the rule that wins for it is named, and its whole policy is listed, with
/// the delays before its retries. Without a node the rules are listed.
///
/// Example:
///
///   $ cat policies.toml
///   [[policies]]
///   match = { pattern = "^fetch_" }
///   max_retries = 3
///   backoff = "exponential"
///   $ tidewheel policy check policies.toml --name fetch_user
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
struct CheckArguments {
    /// The file: JSON if its name ends in .json, TOML otherwise; `-` is TOML from the standard input
    file: PathBuf,
    /// A node to look up; may be given several times
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    name: Vec<String>,
    /// The kind of the nodes; a step if not given
    #[arg(long, value_parser = kinds())]
    kind: Option<Kind>,
    /// A tag of the nodes; may be given several times
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    tag: Vec<String>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs: one object with a `version`
    Json,
}

fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.iter().map(|kind| kind.name()))
        .map(|name| Kind::from_name(&name).expect("invariant: only names of kinds are possible"))
}

/// The largest file that is looked at; a thousand rules are a tenth of it.
const LARGEST_FILE: usize = 1024 * 1024;

/// How many problems are drawn for people; whoever has more begins with these.
const MOST_DRAWN: usize = 50;

/// How many delays are listed.
const MOST_DELAYS: usize = 8;

/// Looks at a file of policies.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Ending> {
    let Command::Check(arguments) = &arguments.command;
    let source = read(&arguments.file)?;
    let is_json = arguments.file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
    let rules = if is_json { Rules::from_json(&source.text) } else { Rules::from_toml(&source.text) };
    match (rules, arguments.format) {
        (Ok(rules), Format::Text) => show(&rules, &source.name, arguments),
        (Ok(rules), Format::Json) => {
            output::json(&ValidForm::of(&rules, arguments)).map(|()| Exit::Succeeded)
        }
        (Err(problems), Format::Text) => Err(draw_all(&problems, &source).into()),
        (Err(problems), Format::Json) => output::json(&InvalidForm::of(&problems)).map(|()| Exit::Failed),
    }
}

/// A text and where it came from.
struct Source {
    name: String,
    text: String,
}

fn read(path: &Path) -> Result<Source, CommandError> {
    let Input { name, reader } = Input::open(Some(path))?;
    if input::is_typed(Some(path)) {
        output::hint("Type the rules as TOML; Ctrl-D ends them.");
    }
    let mut bytes = Vec::new();
    let read = reader.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| input::cannot_read(&name, &error))?;
    if bytes.len() > LARGEST_FILE {
        let message = format!("`{name}` is larger than {LARGEST_FILE} bytes, which no file of policies is.");
        return Err(CommandError::new(Code::PolicyFileTooLarge, message)
            .hint("Check the name, or split the rules into several files."));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = String::from_utf8_lossy(good).matches('\n').count() + 1;
        CommandError::new(Code::PolicyFileNotText, format!("`{name}` is not UTF-8: see its line {line}."))
            .hint("Save the file as UTF-8.")
    })?;
    let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
    Ok(Source { name, text })
}

/// Draws the problems and returns the error that sums them up.
fn draw_all(problems: &Problems, source: &Source) -> CommandError {
    let all = problems.all();
    let width = terminal::width(std::io::stderr());
    for problem in all.iter().take(MOST_DRAWN) {
        output::drawn_problem(&problems::draw(problem, &source.name, &source.text, width));
    }
    let count = problems::counted(all.len());
    let error = CommandError::new(Code::PolicyFileInvalid, format!("`{}` has {count}.", source.name));
    if all.len() > MOST_DRAWN {
        return error.hint(format!("Only the first {MOST_DRAWN} are shown; --format json lists all."));
    }
    error
}

/// Shows rules that are in order, and what the nodes get that were asked for.
fn show(rules: &Rules, file: &str, arguments: &CheckArguments) -> Result<Exit, Ending> {
    for (index, behind) in rules.unreachable() {
        output::warning(&format!(
            "{} can never win: {} comes first and matches all that it matches.",
            label(rules, index),
            label(rules, behind)
        ));
    }
    let count = counted(rules.as_slice().len(), "rule");
    let mut text = format!("{}: {count}, no problems.\n", harmless(file));
    let nodes = Node::all(arguments);
    if nodes.is_empty() {
        list_rules(&mut text, rules);
    }
    for node in &nodes {
        show_node(&mut text, rules, node);
    }
    let unmatched: Vec<String> =
        unmatched(rules, &nodes).into_iter().map(|index| label(rules, index)).collect();
    if !unmatched.is_empty() {
        let _ = writeln!(text, "\nNo node above matches {}.", harmless(&unmatched.join(", ")));
    }
    output::text(&text).map(|()| Exit::Succeeded)
}

fn list_rules(text: &mut String, rules: &Rules) {
    for (index, record) in rules.to_records().iter().enumerate() {
        let _ = writeln!(text, "\n{HEADING}{}{HEADING:#}", harmless(&label(rules, index)));
        let said = fields::of_record(record);
        if said.is_empty() {
            text.push_str("  says nothing: the defaults\n");
        }
        // The order of the documentation, not of the alphabet.
        let known = tidewheel_core::policy::Policy::FIELDS.iter();
        let said: Vec<(&str, &Value)> = known.filter_map(|name| Some((*name, said.get(*name)?))).collect();
        let width = said.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in said {
            let _ = writeln!(text, "  {name:width$} = {}", harmless(&fields::written(value)));
        }
    }
}

fn show_node(text: &mut String, rules: &Rules, node: &Node<'_>) {
    let Resolution { rule, policy, .. } = node.resolve(rules);
    let winner = match rule {
        Some(index) => format!("{} wins", label(rules, index)),
        None => "no rule, the defaults".to_owned(),
    };
    let node_line = harmless(&format!("{node}: {winner}")).into_owned();
    let _ = writeln!(text, "\n{HEADING}{node_line}{HEADING:#}\n");

    let said = node.said(rules, rule);
    let origin = rule.map(|index| format!("policies[{index}]")).unwrap_or_default();
    let lines: Vec<(&str, String, bool)> = fields::of(policy)
        .into_iter()
        .map(|(name, value)| (name, harmless(&fields::written(&value)).into_owned(), said.contains_key(name)))
        .collect();
    // A value that is longer than most would push everything to the right.
    const WIDEST: usize = 24;
    let name_width = lines.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let fitting = lines.iter().map(|(_, value, _)| value.chars().count()).filter(|width| *width <= WIDEST);
    let value_width = fitting.max().unwrap_or(0);
    for (name, value, is_said) in &lines {
        let (style, from) = if *is_said { (Style::new(), origin.as_str()) } else { (FAINT, "default") };
        let _ = writeln!(
            text,
            "  {style}{name:name_width$} = {value:value_width$}  {style:#}{FAINT}# {from}{FAINT:#}"
        );
    }
    let width = terminal::width(std::io::stdout());
    let _ = writeln!(text, "\n{}", wrapped(&Retries::of(node, policy).to_string(), width, "  "));
}

/// Returns the rules that match none of the nodes that were asked for; none if there are no such nodes.
fn unmatched(rules: &Rules, nodes: &[Node<'_>]) -> Vec<usize> {
    if nodes.is_empty() { Vec::new() } else { rules.unmatched(nodes.iter().map(|node| node.0)) }
}

/// Returns how messages name a rule.
fn label(rules: &Rules, index: usize) -> String {
    format!("policies[{index}] ({})", rules.as_slice()[index].matcher())
}

fn counted(count: usize, noun: &str) -> String {
    match count {
        0 => format!("no {noun}s"),
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A node that somebody asked for.
struct Node<'a>(NodeInfo<'a>);

impl<'a> Node<'a> {
    /// Returns the nodes that the arguments describe.
    fn all(arguments: &'a CheckArguments) -> Vec<Self> {
        let node =
            |name| Self(NodeInfo { name, kind: arguments.kind.unwrap_or(Kind::Step), tags: &arguments.tag });
        if arguments.name.is_empty() {
            let is_described = arguments.kind.is_some() || !arguments.tag.is_empty();
            return is_described.then(|| node(None)).into_iter().collect();
        }
        arguments.name.iter().map(|name| node(Some(name.as_str()))).collect()
    }

    fn resolve<'r>(&self, rules: &'r Rules) -> Resolution<'r> {
        rules.resolve(&self.0)
    }

    /// Returns the fields that the winning rule said.
    fn said(&self, rules: &Rules, rule: Option<usize>) -> Map<String, Value> {
        rule.map(|index| fields::of_record(&rules.as_slice()[index].policy().to_record())).unwrap_or_default()
    }
}

impl std::fmt::Display for Node<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NodeInfo { name, kind, tags } = &self.0;
        match name {
            Some(name) => write!(f, "{name} ({kind}")?,
            None => write!(f, "unnamed ({kind}")?,
        }
        match tags {
            [] => f.write_str(")"),
            [tag] => write!(f, ", tag {tag})"),
            tags => write!(f, ", tags {})", tags.join(", ")),
        }
    }
}

/// The retries that a policy gives to work that fails at once each time.
struct Retries {
    delays: Vec<Span>,
    /// How many more there are than were counted.
    uncounted: u64,
    /// Why there are fewer than the policy allows.
    ends_with: Option<ReasonCode>,
    jitter: Jitter,
}

impl Retries {
    fn of(node: &Node<'_>, policy: &Resolved) -> Self {
        let seed = JitterSeed::new("", node.0.name.unwrap_or_default());
        let script = Script { failures: policy.max_retries, attempt_takes: Span::ZERO, seed };
        let Rehearsal { attempts, cut, .. } = rehearse(policy, &script);
        let delays: Vec<Span> = attempts
            .windows(2)
            .map(|pair| Span::from_millis(pair[1].start_ms.saturating_sub(pair[0].end_ms)))
            .collect();
        let last = attempts.last().and_then(|attempt| attempt.decision);
        Self {
            uncounted: if cut {
                u64::from(policy.max_retries).saturating_sub(delays.len() as u64)
            } else {
                0
            },
            ends_with: last.filter(|_| !cut).map(|decision| decision.reason),
            jitter: policy.delays.jitter,
            delays,
        }
    }
}

impl std::fmt::Display for Retries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.delays.is_empty() {
            return match self.ends_with {
                Some(reason) => write!(f, "no retries: the first would start too late ({reason})"),
                None => f.write_str("no retries"),
            };
        }
        let shown: Vec<String> = self.delays.iter().take(MOST_DELAYS).map(Span::to_string).collect();
        write!(f, "delays before retries: {}", shown.join(", "))?;
        let more = self.delays.len().saturating_sub(MOST_DELAYS) as u64 + self.uncounted;
        if more > 0 {
            write!(f, " and {more} more")?;
        }
        if let Some(reason) = self.ends_with {
            write!(f, ", then {reason}")?;
        }
        match self.jitter {
            Jitter::None => Ok(()),
            Jitter::Full | Jitter::Equal => f.write_str("; jitter gives other runs other delays"),
        }
    }
}

/// The version of both forms below.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct InvalidForm<'a> {
    version: u32,
    valid: bool,
    problems: Vec<ProblemForm<'a>>,
}

#[derive(Serialize)]
struct ProblemForm<'a> {
    path: &'a str,
    message: &'a str,
    help: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
}

impl<'a> InvalidForm<'a> {
    fn of(problems: &'a Problems) -> Self {
        let form = |problem: &'a Problem| ProblemForm {
            path: &problem.path,
            message: &problem.message,
            help: problem.help.as_deref(),
            line: problem.location.as_ref().map(|location| location.line),
            column: problem.location.as_ref().map(|location| location.column),
        };
        Self { version: VERSION, valid: false, problems: problems.all().iter().map(form).collect() }
    }
}

#[derive(Serialize)]
struct ValidForm {
    version: u32,
    valid: bool,
    rules: Vec<Value>,
    unreachable: Vec<UnreachableForm>,
    /// The rules that match none of the nodes.
    unmatched: Vec<usize>,
    nodes: Vec<NodeForm>,
}

#[derive(Serialize)]
struct UnreachableForm {
    rule: usize,
    behind: usize,
}

#[derive(Serialize)]
struct NodeForm {
    name: Option<String>,
    kind: Kind,
    tags: Vec<String>,
    rule: Option<usize>,
    policy: Map<String, Value>,
    said: Vec<String>,
    retries: RetriesForm,
}

#[derive(Serialize)]
struct RetriesForm {
    delays_ms: Vec<u64>,
    more: u64,
    ends_with: Option<ReasonCode>,
}

impl ValidForm {
    fn of(rules: &Rules, arguments: &CheckArguments) -> Self {
        let records = rules.to_records();
        let rule = |record: &String| serde_json::from_str(record).expect("invariant: a record is JSON");
        let unreachable = rules.unreachable().into_iter();
        let nodes = Node::all(arguments);
        Self {
            version: VERSION,
            valid: true,
            rules: records.iter().map(rule).collect(),
            unreachable: unreachable.map(|(rule, behind)| UnreachableForm { rule, behind }).collect(),
            unmatched: unmatched(rules, &nodes),
            nodes: nodes.iter().map(|node| NodeForm::of(node, rules)).collect(),
        }
    }
}

impl NodeForm {
    fn of(node: &Node<'_>, rules: &Rules) -> Self {
        let Resolution { rule, policy, .. } = node.resolve(rules);
        let NodeInfo { name, kind, tags } = node.0;
        let retries = Retries::of(node, policy);
        let shown =
            retries.delays.iter().take(MOST_DELAYS).map(|delay| delay.as_millis()).collect::<Vec<_>>();
        Self {
            name: name.map(str::to_owned),
            kind,
            tags: tags.to_vec(),
            rule,
            policy: fields::of(policy).into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            said: node.said(rules, rule).into_iter().map(|(name, _)| name).collect(),
            retries: RetriesForm {
                more: (retries.delays.len() - shown.len()) as u64 + retries.uncounted,
                delays_ms: shown,
                ends_with: retries.ends_with,
            },
        }
    }
}
