//! Pictures of graphs for programs that draw: Mermaid and DOT. Whatever is in a name, it cannot leave its place.

use std::fmt::Write as _;

use super::steer::steers;

/// A graph, ready to be written down.
#[derive(Clone, Debug, Default)]
pub(super) struct Picture {
    /// What it is a picture of.
    pub(super) title: String,
    pub(super) spots: Vec<Spot>,
    pub(super) arrows: Vec<Arrow>,
}

/// Something with a shape.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// Its name in the picture: a letter, then letters and digits.
    pub(super) id: String,
    /// What stands in it; without anything, its id.
    pub(super) lines: Vec<String>,
    pub(super) shape: Shape,
    pub(super) look: Option<&'static Look>,
}

/// From one to another, by their places in the list.
#[derive(Clone, Debug)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) label: Option<String>,
    pub(super) line: Line,
}

/// How an arrow is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// What happens as a rule.
    Whole,
    /// What happens only sometimes.
    Dashed,
    /// What leads back, and so says nothing about what stands above what.
    Back,
}

/// The shapes that both languages have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Box,
    Circle,
    Cylinder,
    Diamond,
    Hexagon,
    Round,
    Widening,
    Narrowing,
}

/// Colours with a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) name: &'static str,
    pub(super) fill: &'static str,
    pub(super) stroke: &'static str,
    pub(super) is_dashed: bool,
}

/// What is written is readable on all our colours.
const INK: &str = "#1b1f24";

impl Picture {
    /// Writes a Mermaid flowchart.
    pub(super) fn mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        for spot in &self.spots {
            let (open, close) = spot.shape.mermaid();
            let id = &spot.id;
            if spot.lines.is_empty() {
                put(writeln!(text, "    {id}{open}{id}{close}"));
                continue;
            }
            let lines: Vec<String> = spot.lines.iter().map(|line| mermaid_text(line)).collect();
            put(write!(text, "    {id}{open}\"{}\"{close}", lines.join("<br/>")));
            match spot.look {
                Some(look) => put(writeln!(text, ":::{}", look.name)),
                None => text.push('\n'),
            }
        }
        for arrow in &self.arrows {
            let (from, to) = self.ends(arrow);
            let line = match arrow.line {
                Line::Whole => "-->",
                Line::Dashed | Line::Back => "-.->",
            };
            match &arrow.label {
                Some(label) => put(writeln!(text, "    {from} {line}|\"{}\"| {to}", mermaid_text(label))),
                None => put(writeln!(text, "    {from} {line} {to}")),
            }
        }
        for look in self.looks() {
            let Look { name, fill, stroke, is_dashed } = look;
            let dashes = if *is_dashed { ",stroke-dasharray:4 3" } else { "" };
            put(writeln!(text, "    classDef {name} fill:{fill},stroke:{stroke},color:{INK}{dashes}"));
        }
        text
    }

    /// Writes a graph for Graphviz.
    pub(super) fn dot(&self) -> String {
        let mut text = String::new();
        put(writeln!(text, "digraph \"{}\" {{", dot_text(&self.title)));
        for spot in &self.spots {
            let mut said = String::new();
            if !spot.lines.is_empty() {
                let lines: Vec<String> = spot.lines.iter().map(|line| dot_text(line)).collect();
                put(write!(said, "label=\"{}\", ", lines.join("\\n")));
            }
            put(write!(said, "shape={}", spot.shape.dot()));
            if let Some(Look { fill, stroke, is_dashed, .. }) = spot.look {
                let style = if *is_dashed { "\"filled,dashed\"" } else { "filled" };
                put(write!(said, ", style={style}, fillcolor=\"{fill}\", color=\"{stroke}\""));
                put(write!(said, ", fontcolor=\"{INK}\""));
            }
            put(writeln!(text, "    {} [{said}];", spot.id));
        }
        for arrow in &self.arrows {
            let (from, to) = self.ends(arrow);
            let mut said: Vec<String> = Vec::new();
            said.extend(arrow.label.as_ref().map(|label| format!("label=\"{}\"", dot_text(label))));
            match arrow.line {
                Line::Whole => {}
                Line::Dashed => said.push("style=dashed".to_owned()),
                Line::Back => said.push("style=dashed, constraint=false".to_owned()),
            }
            let said = if said.is_empty() { String::new() } else { format!(" [{}]", said.join(", ")) };
            put(writeln!(text, "    {from} -> {to}{said};"));
        }
        text.push_str("}\n");
        text
    }

    fn ends(&self, arrow: &Arrow) -> (&str, &str) {
        (&self.spots[arrow.from].id, &self.spots[arrow.to].id)
    }

    /// Returns the looks that occur, each once, in the order of their names.
    fn looks(&self) -> Vec<&'static Look> {
        let mut looks: Vec<&'static Look> = self.spots.iter().filter_map(|spot| spot.look).collect();
        looks.sort_by_key(|look| look.name);
        looks.dedup_by_key(|look| look.name);
        looks
    }
}

impl Shape {
    const fn mermaid(self) -> (&'static str, &'static str) {
        match self {
            Self::Box => ("[", "]"),
            Self::Circle => ("((", "))"),
            Self::Cylinder => ("[(", ")]"),
            Self::Diamond => ("{", "}"),
            Self::Hexagon => ("{{", "}}"),
            Self::Round => ("([", "])"),
            Self::Widening => ("[/", "/]"),
            Self::Narrowing => ("[\\", "\\]"),
        }
    }

    const fn dot(self) -> &'static str {
        match self {
            Self::Box => "box",
            Self::Circle => "circle",
            Self::Cylinder => "cylinder",
            Self::Diamond => "diamond",
            Self::Hexagon => "hexagon",
            Self::Round => "oval",
            Self::Widening => "trapezium",
            Self::Narrowing => "invtrapezium",
        }
    }
}

/// Writing to a string cannot fail.
pub(super) fn put(result: std::fmt::Result) {
    result.expect("invariant: writing to a string cannot fail");
}

/// Mermaid reads `#code;` in a text as a character; everything that means something to it is written so. That is also
/// what Markdown means something by, because newer releases read labels as such.
pub(super) fn mermaid_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut rest = text.chars();
    let (mut before, mut is_number): (Option<char>, bool) = (None, true);
    // Whether the `_`s that are being read stand between letters: those are no emphasis.
    let mut is_between: Option<bool> = None;
    while let Some(character) = rest.next() {
        if character != '_' {
            is_between = None;
        }
        // Between two pairs of them a formula is read, by number or not; what keeps them apart is not seen.
        if character == '$' && before == Some('$') {
            escaped.push_str("#8288;");
        }
        let next = || rest.clone().next();
        let is_plain = match character {
            _ if steers(character) => false,
            _ if character.is_alphanumeric() => true,
            '_' => *is_between.get_or_insert_with(|| {
                let after = rest.clone().find(|next| *next != '_');
                before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
            }),
            ' ' | '-' | '+' => before.is_some(),
            // Addresses would become links.
            ':' => next().is_some_and(|next| !":/".contains(next)) && before != Some(':'),
            '.' if escaped.ends_with("www") || escaped.ends_with("WWW") => false,
            // `1. ` begins a list.
            '.' | ')' => !is_number || next().is_some_and(|next| next != ' '),
            ',' | '/' | '=' | '(' => true,
            _ => false,
        };
        if is_plain {
            escaped.push(character);
        } else {
            put(write!(escaped, "#{};", u32::from(shown(character))));
        }
        is_number = is_number && character.is_ascii_digit();
        before = Some(character);
    }
    escaped
}

/// Graphviz reads `\` as an escape and `&…;` as a character.
pub(super) fn dot_text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '"' | '\\' => escaped.extend(['\\', character]),
            '\n' => escaped.push_str("\\n"),
            '&' => escaped.push_str("&amp;"),
            other => escaped.push(shown(other)),
        }
    }
    escaped
}

/// Returns a character, or one that is seen instead of one that steers or is not seen.
const fn shown(character: char) -> char {
    match character {
        '\n' | '\t' => ' ',
        other if steers(other) => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mermaid_finds_no_formula_in_a_name() {
        assert_eq!(mermaid_text("$$x$"), "#36;#8288;#36;x#36;");
    }
}
