//! The items of a Rust file with their documentation, as far as they can be told apart without a compiler.

use crate::tokens::{Token, attribute_length, begins_with, bracketed_length, tokens};

/// A file as a module.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The lines that begin with `//!`, without that.
    pub(crate) documentation: String,
    /// What it declares.
    pub(crate) items: Vec<Item>,
    /// Its `impl` blocks that are of no trait.
    pub(crate) blocks: Vec<Block>,
}

/// Something with a name.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Whether it is `pub`, without a restriction.
    pub(crate) is_public: bool,
    /// The lines above it that begin with `///`, without that.
    pub(crate) documentation: String,
    /// Public fields, variants, and functions of a trait, as in [`Block::members`].
    pub(crate) members: Vec<String>,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name from elsewhere, with the path to it.
    Use(Vec<String>),
    /// `mod name;`
    Module,
    /// `struct`, `enum`, `trait`, `fn`, `const`, `static`, `type`.
    Defined(&'static str),
}

/// An `impl` block of a type.
#[derive(Debug)]
pub(crate) struct Block {
    /// The name of the type.
    pub(crate) of: String,
    /// The public members: `.field`, `Variant`, `function()`, `CONSTANT`.
    pub(crate) members: Vec<String>,
}

/// What begins an item that we tell by its first word.
const DEFINITIONS: [&str; 7] = ["struct", "enum", "trait", "fn", "const", "static", "type"];

/// Takes a file apart.
pub(crate) fn module(text: &str) -> Module {
    let lines: Vec<&str> = text.lines().collect();
    let mut module = Module { documentation: inner_documentation(&lines), ..Module::default() };
    let tokens = tokens(text);
    let mut rest = &tokens[..];
    while !rest.is_empty() {
        let length = item_length(rest, &lines, &mut module);
        rest = &rest[length.clamp(1, rest.len())..];
    }
    module
}

/// Notes the item at the start, and returns how many tokens it has.
fn item_length(tokens: &[Token<'_>], lines: &[&str], module: &mut Module) -> usize {
    let line = tokens[0].line;
    let mut at = 0;
    while let Some(length) = attribute_length(&tokens[at..]) {
        at += length;
    }
    let is_tests = tokens[..at].windows(3).any(|three| begins_with(three, &["cfg", "(", "test"]));
    let mut is_public = false;
    if begins_with(&tokens[at..], &["pub", "("]) {
        at += 1 + bracketed_length(&tokens[at + 1..]).unwrap_or(0);
    } else if begins_with(&tokens[at..], &["pub"]) {
        is_public = true;
        at += 1;
    }
    // `const fn` and `async fn` are functions.
    while ["const", "async"].iter().any(|word| {
        begins_with(&tokens[at..], &[word, "fn"]) || begins_with(&tokens[at..], &[word, "async", "fn"])
    }) {
        at += 1;
    }
    let Some(word) = tokens.get(at).map(|token| token.text) else { return tokens.len() };
    let item = &tokens[at..];
    let name = item.get(1).map_or("", |token| token.text);
    let named = |kind: Kind, members: Vec<String>| Item {
        kind,
        name: name.to_owned(),
        is_public,
        documentation: documentation_above(lines, line),
        members,
    };
    if word == "use" {
        let length = item.iter().position(|token| token.text == ";").unwrap_or(item.len());
        for (name, path) in used_names(&item[1..length]) {
            let documentation = String::new();
            module.items.push(Item {
                kind: Kind::Use(path),
                name,
                is_public,
                documentation,
                members: Vec::new(),
            });
        }
        return at + length + 1;
    }
    let (length, body) = extent(item);
    if is_tests {
        return at + length;
    }
    if word == "mod" {
        module.items.push(named(Kind::Module, Vec::new()));
    } else if let Some(kind) = DEFINITIONS.into_iter().find(|kind| *kind == word) {
        module.items.push(named(Kind::Defined(kind), members(word, body)));
    } else if word == "impl" {
        let head = &item[1..length - body.len()];
        if !head.iter().any(|token| token.text == "for")
            && let Some(of) = name_after_generics(head)
        {
            module.blocks.push(Block { of: of.to_owned(), members: members(word, body) });
        }
    } else if word == "macro_rules" {
        // A macro may define an item with a name of its own.
        for at in 0..body.len() {
            let is_named = body.get(at + 2).is_some_and(|name| name.text != "$");
            let length = match &body[at..] {
                rest if is_named && begins_with(rest, &["pub", "struct"]) => extent(&rest[1..]).0 + 1,
                rest if begins_with(rest, &["impl"])
                    && rest.get(2).is_some_and(|token| token.text == "{") =>
                {
                    extent(rest).0
                }
                _ => continue,
            };
            item_length(&body[at..at + length], lines, module);
        }
    } else if name == "!" && word != "macro_rules" {
        // What a macro of ours makes of a definition is that definition: `word_enum! { pub enum … }`.
        let mut inside = body.get(1..body.len().saturating_sub(1)).unwrap_or_default();
        if let [Token { text: "pub", .. }, name, Token { text: ",", .. }, ..] = inside {
            let documentation = documentation_above(lines, inside[0].line);
            let kind = Kind::Defined("struct");
            let name = name.text.to_owned();
            module.items.push(Item { kind, name, is_public: true, documentation, members: Vec::new() });
            inside = &[];
        }
        while !inside.is_empty() {
            let length = item_length(inside, lines, module);
            inside = &inside[length.clamp(1, inside.len())..];
        }
    }
    at + length
}

/// Returns how many tokens an item has that ends with `;` or with its braces, and its last group in brackets.
fn extent<'t, 'a>(item: &'t [Token<'a>]) -> (usize, &'t [Token<'a>]) {
    let has_value = ["const", "static", "type"].contains(&item[0].text);
    let mut at = 0;
    let mut group: &'t [Token<'a>] = &[];
    while let Some(token) = item.get(at) {
        match token.text {
            ";" => return (at + 1, group),
            "(" | "[" | "{" => {
                let length = bracketed_length(&item[at..]).unwrap_or(item.len() - at);
                group = &item[at..at + length];
                at += length;
                if token.text == "{" && !has_value {
                    return (at, group);
                }
            }
            _ => at += 1,
        }
    }
    (item.len(), group)
}

/// Returns the public members in the braces of an item.
fn members(word: &str, body: &[Token<'_>]) -> Vec<String> {
    let mut rest = body.get(1..body.len().saturating_sub(1)).unwrap_or_default();
    if !begins_with(body, &["{"]) || word == "fn" {
        return Vec::new();
    }
    let mut members = Vec::new();
    while !rest.is_empty() {
        while let Some(length) = attribute_length(rest) {
            rest = &rest[length..];
        }
        let is_public = begins_with(rest, &["pub"]) && !begins_with(rest, &["pub", "("]);
        let words =
            || rest.iter().skip_while(|token| ["pub", "const", "async", "type"].contains(&token.text));
        let name = words().next().map_or("", |token| token.text);
        match word {
            "enum" => members.push(name.to_owned()),
            "struct" if is_public => members.push(format!(".{name}")),
            "trait" | "impl" if is_public || word == "trait" => match name {
                "fn" => members.push(format!("{}()", words().nth(1).map_or("", |token| token.text))),
                _ => members.push(name.to_owned()),
            },
            _ => {}
        }
        let length = match word {
            "enum" | "struct" => comma(rest),
            _ => extent(rest).0,
        };
        rest = &rest[length.clamp(1, rest.len().max(1)).min(rest.len())..];
    }
    members.retain(|member| !member.is_empty());
    members
}

/// Returns how many tokens stand before and including the next comma that is in no brackets.
fn comma(tokens: &[Token<'_>]) -> usize {
    let mut at = 0;
    // A comma between `<` and `>` is one of a type, and an arrow closes nothing.
    let mut angles = 0_usize;
    while let Some(token) = tokens.get(at) {
        match token.text {
            "," if angles == 0 => return at + 1,
            "(" | "[" | "{" => at += bracketed_length(&tokens[at..]).unwrap_or(1),
            "<" => (angles, at) = (angles + 1, at + 1),
            ">" if at > 0 && tokens[at - 1].text == "-" => at += 1,
            ">" => (angles, at) = (angles.saturating_sub(1), at + 1),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// Returns the name of the type after the generic parameters of an `impl`.
fn name_after_generics<'a>(head: &[Token<'a>]) -> Option<&'a str> {
    let mut depth = 0_usize;
    for token in head {
        match token.text {
            "<" => depth += 1,
            ">" => depth = depth.saturating_sub(1),
            text if depth == 0 => return Some(text),
            _ => {}
        }
    }
    None
}

/// Returns the names that a `use` brings, each with the path to it.
fn used_names(tokens: &[Token<'_>]) -> Vec<(String, Vec<String>)> {
    let mut names = Vec::new();
    // The paths before the braces that are open.
    let mut before: Vec<Vec<String>> = vec![Vec::new()];
    let mut path: Vec<String> = Vec::new();
    let mut alias = None;
    let mut words = tokens.iter().map(|token| token.text).chain([","]);
    while let Some(word) = words.next() {
        match word {
            "::" => {}
            "as" => alias = words.next().map(str::to_owned),
            "{" => {
                let mut all = before.last().cloned().unwrap_or_default();
                all.append(&mut path);
                before.push(all);
            }
            "," | "}" => {
                if let Some(last) = path.last() {
                    let mut all = before.last().cloned().unwrap_or_default();
                    let name = if last == "self" { all.last().cloned() } else { Some(last.clone()) };
                    all.append(&mut path);
                    names.push((alias.take().or(name).unwrap_or_default(), all));
                }
                if word == "}" {
                    before.pop();
                }
            }
            word => path.push(word.to_owned()),
        }
    }
    names
}

fn inner_documentation(lines: &[&str]) -> String {
    let lines = lines.iter().take_while(|line| line.starts_with("//!"));
    lines.map(|line| line.trim_start_matches("//!")).collect::<Vec<_>>().join("\n")
}

/// Returns what stands right above a line.
fn documentation_above(lines: &[&str], line: usize) -> String {
    let above = lines[..line - 1].iter().rev().map(|line| line.trim_start());
    let above = above.skip_while(|line| line.starts_with("#["));
    let mut above: Vec<&str> = above.map_while(|line| line.strip_prefix("///")).collect();
    above.reverse();
    above.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_their_names_documentation_and_members() {
        let text = "//! Says it.\n\n/// One.\n///\n/// Two.\n#[derive(A)]\npub struct A<T> {\n    /// X.\n    \
                    pub x: B<C, D>,\n    y: u8,\n}\npub(crate) struct B(u8);\n/// C.\npub enum C { D(u8, u8), E { f: u8 }, }\n\
                    pub trait T { const K: u8; fn f(&self) -> u8 { 1 }\n fn g(); }\nimpl<T: U<V>> A<T> {\n    \
                    pub const fn n() {}\n    fn m() {}\n pub async fn o() {} pub const P: u8 = 1; }\nimpl C for A<u8> { pub fn z() {} }\n\
                    pub const fn g() {}\nword_enum! {\n    /// W.\n    pub enum W {\n        /// a\n        A = \"a\",\n    }\n}\n\
                    id_type! {\n    /// I.\n    pub I, \"i\"\n}\n#[cfg(test)]\nmod tests { pub struct Not; }\n";
        let module = module(text);
        assert_eq!(module.documentation, " Says it.");
        let items: Vec<String> = module
            .items
            .iter()
            .map(|item| {
                format!("{} {} {:?} {:?}", item.is_public, item.name, item.documentation, item.members)
            })
            .collect();
        assert_eq!(
            items,
            [
                r#"true A " One.\n\n Two." [".x"]"#,
                r#"false B "" []"#,
                r#"true C " C." ["D", "E"]"#,
                r#"true T "" ["K", "f()", "g()"]"#,
                r#"true g "" []"#,
                r#"true W " W." ["A"]"#,
                r#"true I " I." []"#,
            ]
        );
        let blocks: Vec<_> =
            module.blocks.iter().map(|block| (block.of.as_str(), block.members.join(" "))).collect();
        assert_eq!(blocks, [("A", "n() o() P".to_owned())]);
    }

    #[test]
    fn what_a_macro_defines_by_name_is_found() {
        let text = "macro_rules! fields {\n    ($($name:ident)+) => {\n        /// P.\n        #[derive(A)]\n        \
                    pub struct P { $(pub $name: u8,)+ }\n        impl P { pub fn new() {} }\n        \
                    pub struct $Name; impl $Name { pub fn no() {} }\n    };\n}\n";
        let module = module(text);
        let items: Vec<_> = module.items.iter().map(|item| (&*item.name, &*item.documentation)).collect();
        assert_eq!(items, [("P", " P.")]);
        assert_eq!(module.blocks.len(), 1);
        assert_eq!(module.blocks[0].members, ["new()"]);
    }

    #[test]
    fn the_names_of_a_list_have_their_paths() {
        let module = module("pub use a::{b::{C, D as E}, f, g::{self, *}};\nuse h as i;\nuse j;");
        let names: Vec<String> = module
            .items
            .iter()
            .map(|item| match &item.kind {
                Kind::Use(path) => format!("{}={}", item.name, path.join("::")),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(names, ["C=a::b::C", "E=a::b::D", "f=a::f", "g=a::g::self", "*=a::g::*", "i=h", "j=j"]);
    }
}
