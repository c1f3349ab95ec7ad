//! Core is pure: it must not name what reads the clock, the disk or the network, or what orders by chance.

use crate::tokens::{Token, begins_with, tokens};
use crate::tree::{assert_tidy, source_files};

/// The modules of the standard library that reach out of the program.
const IMPURE_MODULES: [&str; 5] = ["env", "fs", "net", "process", "thread"];

/// Names that mean time, chance or an order by chance, wherever they come from.
const IMPURE_NAMES: [&str; 5] = ["HashMap", "HashSet", "Instant", "SystemTime", "rand"];

/// Returns a complaint for each impure name outside comments and strings.
fn forbidden_words_in_core(path: &str, text: &str) -> Vec<String> {
    let tokens = tokens(text);
    let mut complaints = Vec::new();
    let mut complain = |line: usize, what: &str| {
        complaints.push(format!("{path}:{line}: core must stay pure: {what}"));
    };
    for (index, token) in tokens.iter().enumerate() {
        if IMPURE_NAMES.contains(&token.text) {
            complain(token.line, token.text);
        }
        if token.text != "std" {
            continue;
        }
        let after = &tokens[index + 1..];
        if begins_with(after, &["as"]) {
            complain(token.line, "`std` under another name");
        }
        for entry in entries_of_std(after) {
            let head = entry[0];
            if IMPURE_MODULES.contains(&head.text) {
                complain(head.line, &format!("std::{}", head.text));
            } else if head.text == "*" {
                complain(head.line, "all of `std` at once");
            } else if begins_with(entry, &["self", "as"]) {
                complain(head.line, "`std` under another name");
            }
        }
    }
    complaints
}

/// Returns what begins directly after `std::`: one path, or each path of a group in braces.
fn entries_of_std<'t, 'a>(after_std: &'t [Token<'a>]) -> Vec<&'t [Token<'a>]> {
    let mut entries = Vec::new();
    if !begins_with(after_std, &["::"]) {
        return entries;
    }
    // For each open brace, whether what it holds stands directly below `std`.
    let mut open: Vec<bool> = Vec::new();
    for at in 1..after_std.len() {
        let begins_entry = match open.last() {
            None => true,
            Some(directly) => *directly && matches!(after_std[at - 1].text, "{" | ","),
        };
        match after_std[at].text {
            "{" => open.push(begins_entry),
            "}" => {
                open.pop();
            }
            _ if begins_entry => entries.push(&after_std[at..]),
            _ => {}
        }
        if open.is_empty() {
            break;
        }
    }
    entries
}

#[test]
fn core_names_nothing_impure() {
    let complaints: Vec<String> = source_files()
        .iter()
        .filter(|file| file.path.starts_with("crates/core/"))
        .flat_map(|file| forbidden_words_in_core(&file.path, &file.text))
        .collect();
    assert_tidy(&complaints);
}

#[test]
fn each_impure_name_is_found() {
    for (text, found) in [
        ("use std::fs;", "std::fs"),
        ("use ::std::net::TcpStream;", "std::net"),
        ("fn f() { std :: process::abort() }", "std::process"),
        ("fn f() { std::\n    thread::yield_now() }", "std::thread"),
        ("let a = std::env::args();", "std::env"),
        ("use std::time::SystemTime;", "SystemTime"),
        ("use std::{time::{Duration, Instant}};", "Instant"),
        ("use std::collections::{BTreeMap, HashMap};", "HashMap"),
        ("type Seen = hashbrown::HashSet<u8>;", "HashSet"),
        ("let n = rand::random();", "rand"),
        ("use std as s;", "`std` under another name"),
        ("use std::{self as s};", "`std` under another name"),
        ("use std::*;", "all of `std` at once"),
    ] {
        let complaints = forbidden_words_in_core("a.rs", text);
        assert_eq!(complaints.len(), 1, "{text}: {complaints:?}");
        assert!(complaints[0].ends_with(found), "{text}: {complaints:?}");
    }
}

#[test]
fn impure_modules_are_found_in_groups() {
    let text = "use std::{\n    collections::{BTreeMap, fs},\n    fmt::{self, Display},\n\
                \x20   fs::{self, File},\n    {env},\n};\n";
    assert_eq!(
        forbidden_words_in_core("a.rs", text),
        ["a.rs:4: core must stay pure: std::fs", "a.rs:5: core must stay pure: std::env"]
    );
}

#[test]
fn words_of_the_domain_and_comments_are_free() {
    for text in [
        "// HashMap and std::fs are for others.\n/// [`std::time::Instant`]\nfn f() {}",
        "const TEXT: &str = \"std::env, rand and HashMap\";",
        "mod process; use crate::process::Process; fn f(env: &Env) { fs(env); }",
        "use std::{fmt, time::Duration}; use other::{fs, net}; struct InstantView; let random = operand;",
    ] {
        assert_eq!(forbidden_words_in_core("a.rs", text), [""; 0], "{text}");
    }
}
