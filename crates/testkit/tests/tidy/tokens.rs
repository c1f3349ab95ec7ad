//! Rust text as words and signs, without comments and the insides of literals; a sieve, not a parser.

/// A word or a sign of a Rust file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// The line on which it begins, counted from one.
    pub(crate) line: usize,
    /// The text; [`LITERAL`] for a string or a character, the bare name for a raw identifier.
    pub(crate) text: &'a str,
}

/// What stands for a string or a character, whatever is in it.
pub(crate) const LITERAL: &str = "\"\"";

/// Takes Rust text apart.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while !rest.is_empty() {
        let (kind, length) = next_piece(rest);
        let (piece, after) = rest.split_at(length);
        match kind {
            Piece::Skipped => {}
            Piece::Literal => tokens.push(Token { line, text: LITERAL }),
            Piece::Text => {
                let text = piece.strip_prefix("r#").unwrap_or(piece);
                tokens.push(Token { line, text });
            }
        }
        line += piece.matches('\n').count();
        rest = after;
    }
    tokens
}

/// Returns whether `tokens` begin with `texts`.
pub(crate) fn begins_with(tokens: &[Token<'_>], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(t, text)| t.text == *text)
}

/// Returns how many tokens the attribute at the start has, or `None` if there is no attribute.
pub(crate) fn attribute_length(tokens: &[Token<'_>]) -> Option<usize> {
    if begins_with(tokens, &["#", "["]) {
        Some(1 + bracketed_length(&tokens[1..])?)
    } else if begins_with(tokens, &["#", "!", "["]) {
        Some(2 + bracketed_length(&tokens[2..])?)
    } else {
        None
    }
}

/// Returns how many tokens the bracketed group at the start has, both brackets included.
pub(crate) fn bracketed_length(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return (index > 0).then_some(index + 1);
        }
    }
    None
}

enum Piece {
    Skipped,
    Literal,
    Text,
}

fn next_piece(text: &str) -> (Piece, usize) {
    let first = text.chars().next().expect("the caller checked that there is text");
    if first.is_whitespace() {
        (Piece::Skipped, first.len_utf8())
    } else if text.starts_with("//") {
        (Piece::Skipped, text.find('\n').unwrap_or(text.len()))
    } else if text.starts_with("/*") {
        (Piece::Skipped, block_comment_length(text))
    } else if let Some(length) = string_length(text).or_else(|| character_length(text)) {
        (Piece::Literal, length)
    } else if let Some(name) = text.strip_prefix("r#").filter(|name| word_length(name) > 0) {
        (Piece::Text, "r#".len() + word_length(name))
    } else if word_length(text) > 0 {
        (Piece::Text, word_length(text))
    } else if text.starts_with("::") {
        (Piece::Text, 2)
    } else {
        (Piece::Text, first.len_utf8())
    }
}

/// Returns the length of the name or number at the start, zero if there is none.
fn word_length(text: &str) -> usize {
    text.find(|c: char| c != '_' && !c.is_alphanumeric()).unwrap_or(text.len())
}

/// Returns the length of the comment at the start; comments nest in Rust.
fn block_comment_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of the string at the start, raw or not, of text, bytes or for C.
fn string_length(text: &str) -> Option<usize> {
    let letters = ["br", "cr", "b", "c", "r", ""].into_iter().find(|letters| text.starts_with(letters))?;
    let body = &text[letters.len()..];
    if !letters.ends_with('r') {
        return Some(letters.len() + quoted_length(body, '"')?);
    }
    let hashes = body.len() - body.trim_start_matches('#').len();
    let inside = body[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let opening = letters.len() + hashes + 1;
    Some(opening + inside.find(&end).map_or(inside.len(), |at| at + end.len()))
}

/// Returns the length of the character or byte at the start; a lifetime is neither.
fn character_length(text: &str) -> Option<usize> {
    let letters = usize::from(text.starts_with("b'"));
    let body = &text[letters..];
    let mut inside = body.strip_prefix('\'')?.chars();
    let escaped = inside.next()? == '\\';
    (escaped || inside.next()? == '\'').then(|| quoted_length(body, '\'').map(|n| letters + n))?
}

/// Returns the length of what stands between two of `quote`, where a backslash hides the next character.
fn quoted_length(text: &str, quote: char) -> Option<usize> {
    let inside = text.strip_prefix(quote)?;
    let mut hidden = false;
    for (at, c) in inside.char_indices() {
        if hidden {
            hidden = false;
        } else if c == '\\' {
            hidden = true;
        } else if c == quote {
            return Some(at + 2 * quote.len_utf8());
        }
    }
    Some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_are_left_out() {
        assert_eq!(texts("a // b\nc /* d /* e */ f */ g\n//! h"), ["a", "c", "g"]);
    }

    #[test]
    fn the_insides_of_literals_are_left_out() {
        let text = r##"f("a \" b", r#"c " d"#, b"e", br"f\", c"g", 'h', '\'', b'"', '"')"##;
        let commas = texts(text).iter().filter(|text| **text == ",").count();
        let literals = texts(text).iter().filter(|text| **text == LITERAL).count();
        assert_eq!((commas, literals), (8, 9));
        assert_eq!(texts(text).len(), 3 + 8 + 9);
    }

    #[test]
    fn a_lifetime_does_not_open_a_character() {
        let found = texts("fn f<'a>(x: &'a str) -> &'static str { g('b') }");
        assert!(found.contains(&"static"));
        assert_eq!(found.iter().filter(|text| **text == LITERAL).count(), 1);
    }

    #[test]
    fn names_and_paths_stay_whole() {
        assert_eq!(texts("std::fs_x"), ["std", "::", "fs_x"]);
        assert_eq!(texts("r#type br bread"), ["type", "br", "bread"]);
    }

    #[test]
    fn lines_are_counted_through_comments_and_strings() {
        let found = tokens("/* a\n b */ c \"d\ne\" f\ng");
        let lines: Vec<_> = found.iter().map(|token| token.line).collect();
        assert_eq!(lines, [2, 2, 3, 4]);
    }

    #[test]
    fn text_that_ends_too_early_does_no_harm() {
        for text in ["\"a", "r#\"a", "'", "'\\", "/* a", "b'", "r#", "é'é"] {
            tokens(text);
        }
    }

    #[test]
    fn attributes_are_measured_with_their_brackets() {
        assert_eq!(attribute_length(&tokens("#[a(b[c])] d")), Some(10));
        assert_eq!(attribute_length(&tokens("#![a] d")), Some(5));
        assert_eq!(attribute_length(&tokens("a #[b]")), None);
    }
}
