//! Placeholders of prompts: `{{name}}` stands for something, and `\{{` for two braces as they are.

/// Puts into a text what its placeholders stand for. What is put in is not looked at again.
///
/// # Errors
/// What the function says of a name, or what is wrong with the text.
pub(super) fn fill(
    text: &str,
    most: usize,
    mut find: impl FnMut(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("{{") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('\\') {
            filled.push_str(before);
            filled.push_str("{{");
            rest = after;
            continue;
        }
        filled.push_str(before);
        let Some(end) = after.find("}}") else {
            let line = after.lines().next().unwrap_or_default();
            let start: String = line.chars().take(40).collect();
            return Err(format!(
                "prompt.resolve unclosed placeholder `{{{{{start}`; write `\\{{{{` for braces"
            ));
        };
        filled.push_str(&find(after[..end].trim())?);
        rest = &after[end + 2..];
        if filled.len() > most {
            break;
        }
    }
    filled.push_str(rest);
    if filled.len() > most {
        return Err(format!("prompt.resolve prompt is larger than {} MiB", most >> 20));
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        fill(text, 100, |name| match name {
            "a" => Ok("{{b}}".to_owned()),
            "" => Err("nothing".to_owned()),
            name => Ok(format!("<{name}>")),
        })
    }

    #[test]
    fn what_is_put_in_is_not_looked_at_again() {
        assert_eq!(filled("x{{a}}y{{ c.d }}").unwrap(), "x{{b}}y<c.d>");
        assert_eq!(filled("{\"a\": {\"b\": 1}} }} {").unwrap(), "{\"a\": {\"b\": 1}} }} {");
        assert_eq!(filled("\\{{a}} {{c}}").unwrap(), "{{a}} <c>");
        assert_eq!(filled("{{}}").unwrap_err(), "nothing");
        assert!(filled("a {{b\nc").unwrap_err().starts_with("prompt.resolve unclosed placeholder `{{b`"));
        assert!(filled(&"{{cccccccccc}}".repeat(20)).unwrap_err().contains("larger than"));
    }
}
