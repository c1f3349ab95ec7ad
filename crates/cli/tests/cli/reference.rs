//! The pages in docs/reference and the index of the errors, made from what the binary says of itself.
//!
//! `cargo xtask docs` runs these tests with `TIDEWHEEL_WRITE_DOCS` set: then they write the pages.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde_json::{Map, Value};
use tidewheel_core::job::template::LABELS;

use crate::home::Home;
use crate::pages;

const WRITTEN: &str = "<!-- Written by `cargo xtask docs`; edit what it is made from, not this page. -->";

/// Writes a page if that was asked for, and compares it.
fn keep(name: &str, text: &str) {
    let path = pages::root().join("docs").join(name);
    if std::env::var_os("TIDEWHEEL_WRITE_DOCS").is_some() {
        fs::create_dir_all(path.parent().expect("a page is in a folder")).expect("the folder can be made");
        fs::write(&path, text).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    if found != text {
        let line = found.lines().zip(text.lines()).take_while(|(found, text)| found == text).count();
        let (old, new) = (found.lines().nth(line).unwrap_or(""), text.lines().nth(line).unwrap_or(""));
        panic!(
            "docs/{name} is out of date: run `cargo xtask docs`\nline {}, found:  {old}\nline {}, wanted: {new}",
            line + 1,
            line + 1
        );
    }
}

#[test]
fn the_reference_of_commands_is_what_the_help_says() {
    let mut contents = String::new();
    let mut parts = String::new();
    let mut waiting = vec![Vec::<String>::new()];
    while let Some(command) = waiting.pop() {
        let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        arguments.push("--help");
        let help = Home::new().run(&arguments).succeeded().out;
        let name = [&["tidewheel".to_owned()], &command[..]].concat().join(" ");
        let about = help.lines().next().unwrap_or_default();
        let depth = "  ".repeat(command.len());
        writeln!(contents, "{depth}- [`{name}`](#{}): {about}.", name.replace(' ', "-"))
            .expect("a text takes all");
        let help = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
        write!(parts, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end()).expect("a text takes all");
        // The last one is looked at first, so that the order is that of the help.
        for word in subcommands(&help).into_iter().rev() {
            waiting.push([&command[..], &[word]].concat());
        }
    }
    assert!(parts.contains("\n## tidewheel jobs explain\n"), "the commands below others were not found");
    let text = format!(
        "# Commands\n\n{WRITTEN}\n\nWhat `--help` says, for every command.\nThe guides show them at work: \
         [getting started](../guides/first-jobs.md), [jobs](../guides/jobs.md), [runs](../guides/runs.md).\n\n\
         {contents}{parts}"
    );
    keep("reference/commands.md", &text);
}

/// Returns the names in the list of commands of a help.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    // A name has two spaces in front; what is said about it may go on in lines with more.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

#[test]
fn the_index_of_the_errors_is_complete() {
    let mut rows = String::new();
    for page in pages::all() {
        let Some(file) = page.name.strip_prefix("docs/errors/").filter(|file| file.starts_with("TW")) else {
            continue;
        };
        let title = page.text.lines().next().unwrap_or_default();
        let (code, about) =
            title.trim_start_matches("# ").split_once(": ").expect("a title is `# CODE: words`");
        assert_eq!(format!("{code}.md"), file, "the title of a page has its code");
        writeln!(rows, "| [{code}]({file}) | {about} |").expect("a text takes all");
    }
    let text = format!(
        "# Errors\n\n{WRITTEN}\n\nEach error that a person can meet has a code, and a page that says what happened \
         and what to do.\nThe message on the screen has the code: `error[TW0025]: There is no flow …`.\n\n\
         | code | what happened |\n|---|---|\n{rows}\n\
         What a `Run` or a `Runner` returns in a program are Rust types, documented with the crate; they have no \
         codes.\nReasons of decisions, such as `SCHED_MAX_RETRIES_REACHED`, are in [states](../states.md#one-attempt).\n"
    );
    keep("errors/README.md", &text);
}

#[test]
fn the_references_of_files_are_what_the_schemas_say() {
    for (kind, title, guide) in [
        ("template", "Templates", "[Jobs](../guides/jobs.md) shows templates by example."),
        (
            "config",
            "Configuration",
            "[Running jobs](../guides/running-jobs.md#configuration) shows a configuration.",
        ),
        (
            "policy",
            "Policies",
            "[Policies](../guides/policies.md) shows what each field does, with programs.",
        ),
    ] {
        let ran = Home::new().run(&["schema", kind]).succeeded();
        let schema: Value = serde_json::from_str(&ran.out).expect("a schema is JSON");
        let mut tables = Tables { rules_are_elsewhere: kind != "policy", ..Tables::default() };
        let rows = tables.rows("", &schema);
        let mut text = format!(
            "# {title}\n\n{WRITTEN}\n\n{}\n{guide}\n`tidewheel schema {kind}` prints the schema that this page is \
             made from, for editors.\n\n## The whole file\n\n{rows}",
            described(&schema)
        );
        while let Some((path, schema)) = tables.waiting.first().cloned() {
            tables.waiting.remove(0);
            let rows = tables.rows(&path, &schema);
            write!(text, "\n## {}\n\n{}\n\n{rows}", heading(&path), described(&schema))
                .expect("a text takes all");
        }
        if kind == "template" {
            text.push_str(&operations());
        }
        keep(&format!("reference/{kind}.md"), &text);
    }
}

/// How many words fit into a row.
const MOST_VALUES: usize = 8;

/// Returns what `uses` may say, with the arguments and the gates of each.
fn operations() -> String {
    let mut text = "\n## Operations\n\nWhat `uses` may say, with the `kind` that goes with it.\n\
                    Other arguments are refused, except by operations that have a `…`: there they are for placeholders.\nThe gate `approval` acts on every node; others only where they are named.\n\n\
                    | `uses` | `kind` | `args` | `gates` |\n|---|---|---|---|\n"
        .to_owned();
    let words = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    for label in LABELS {
        let more = if label.takes("a_word_of_nobody") { " …" } else { "" };
        let (uses, kind) = (label.uses, label.kind());
        let (args, gates) = (words(label.args), words(label.gates));
        writeln!(text, "| `{uses}` | `{kind}` | {args}{more} | {gates} |").expect("a text takes all");
    }
    text.push_str(
        "\n[Jobs](../guides/jobs.md), [git](../guides/git.md#the-operations) and [agents](../guides/agents.md) say what \
         they do.\n",
    );
    text
}

/// The tables of a file that are still to be described, and those that were.
#[derive(Default)]
struct Tables {
    waiting: Vec<(String, Value)>,
    /// Where a table is described, so that equal ones are described once.
    seen: BTreeMap<String, String>,
    /// Lists of words that are too long for a row, of the table at hand.
    long: Vec<String>,
    /// Whether this page leads to that of the policies for its rules.
    rules_are_elsewhere: bool,
}

impl Tables {
    /// Returns the fields of a table as rows.
    fn rows(&mut self, path: &str, schema: &Value) -> String {
        let mut rows = "| field | what may stand there | what it is |\n|---|---|---|\n".to_owned();
        let none = Map::new();
        let fields = schema["properties"].as_object().unwrap_or(&none);
        let is_needed = |name: &str| {
            schema["required"].as_array().is_some_and(|needed| needed.iter().any(|word| word == name))
        };
        let needed = fields.iter().filter(|(name, _)| is_needed(name));
        for (name, field) in needed.chain(fields.iter().filter(|(name, _)| !is_needed(name))) {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let kind = self.kind(&below, field);
            let mut about = described(field);
            if is_needed(name) {
                about.push_str(" **Needed.**");
            }
            if let Some(default) = field.get("default") {
                write!(about, " Default: `{default}`.").expect("a text takes all");
            }
            if let Some(example) = field["examples"].get(0) {
                write!(about, " Such as `{example}`.").expect("a text takes all");
            }
            writeln!(rows, "| `{name}` | {kind} | {} |", about.trim().replace('|', "\\|"))
                .expect("a text takes all");
        }
        rows.extend(self.long.drain(..));
        rows
    }

    /// Says what may stand in a field, and notes the tables in it.
    fn kind(&mut self, path: &str, schema: &Value) -> String {
        if path == "policies" && self.rules_are_elsewhere {
            return "list of rules: see [policies](policy.md#policies)".to_owned();
        }
        if let Some(value) = schema.get("const") {
            return format!("`{value}`");
        }
        if let Some(values) = schema["enum"].as_array() {
            if path == "nodes.uses" {
                return "one of the [operations](#operations)".to_owned();
            }
            let words: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
            let words = words.join(", ");
            if values.len() <= MOST_VALUES {
                return words;
            }
            let name = path.rsplit('.').next().unwrap_or(path);
            self.long.push(format!("\n`{name}` knows these words: {words}.\n"));
            return "one of the words below".to_owned();
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(kinds) = schema[word].as_array() {
                let mut kinds: Vec<String> = kinds.iter().map(|kind| self.variant(path, kind)).collect();
                kinds.dedup();
                return kinds.join(" or ");
            }
        }
        match &schema["type"] {
            Value::String(kind) => self.plain(path, kind, schema),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str).map(|kind| self.plain(path, kind, schema));
                kinds.collect::<Vec<_>>().join(" or ")
            }
            _ => "anything".to_owned(),
        }
    }

    /// Says what one of several forms is; tables among them are told apart by their `kind`.
    fn variant(&mut self, path: &str, schema: &Value) -> String {
        match schema["properties"]["kind"]["const"].as_str() {
            Some(kind) => self.kind(&format!("{path} ({kind})"), schema),
            None => self.kind(path, schema),
        }
    }

    fn plain(&mut self, path: &str, kind: &str, schema: &Value) -> String {
        match kind {
            "string" => "text".to_owned(),
            "boolean" => "`true` or `false`".to_owned(),
            "integer" => "whole number".to_owned(),
            "number" => "number".to_owned(),
            "array" => {
                let kinds = self.kind(path, &schema["items"]).replace("[table]", "[tables]");
                format!("list of {}", kinds.replace("text", "texts").replace("number", "numbers"))
            }
            "object" if schema["properties"].is_object() => {
                format!("[table](#{})", self.anchor(path, schema))
            }
            "object" if schema["additionalProperties"].as_object().is_some_and(|kind| !kind.is_empty()) => {
                let kind = self.kind(&format!("{path}.NAME"), &schema["additionalProperties"]);
                format!("names, each with {kind}")
            }
            "object" => "table".to_owned(),
            other => other.to_owned(),
        }
    }

    /// Returns where a table is described, which is here if it was not seen before.
    fn anchor(&mut self, path: &str, schema: &Value) -> String {
        let mut shape = schema.clone();
        if let Some(shape) = shape.as_object_mut() {
            shape.remove("description");
        }
        let shape = shape.to_string();
        if let Some(known) = self.seen.get(&shape) {
            return known.clone();
        }
        let slug: String = heading(path)
            .chars()
            .filter_map(|c| {
                if c == ' ' { Some('-') } else { (c.is_alphanumeric() || "-_".contains(c)).then_some(c) }
            })
            .collect();
        let slug = slug.to_lowercase();
        self.seen.insert(shape, slug.clone());
        self.waiting.push((path.to_owned(), schema.clone()));
        slug
    }
}

/// Returns the heading of a table: its path as people write it.
fn heading(path: &str) -> String {
    format!("`{path}`")
}

fn described(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().to_owned()
}
