//! The list of patch files that a node is given. Nothing is opened here.

use serde_json::Value;

/// More patches than anybody applies at once.
const MOST: usize = 1_000;

/// Returns the patch files that an argument names: a list, or the text of one in JSON.
///
/// # Errors
/// It is no list of paths beneath the repository.
pub fn patch_files(value: &Value) -> Result<Vec<String>, String> {
    const WRONG: &str = "must be a list of patch files, such as [\"a.patch\", \"b.patch\"]";
    let read: Value;
    let list = match value {
        Value::String(text) => {
            read = serde_json::from_str(text).map_err(|error| format!("{WRONG}: {error}"))?;
            &read
        }
        other => other,
    };
    let paths = list.as_array().ok_or(WRONG)?.iter().map(|path| path.as_str().ok_or(WRONG));
    let paths = paths.collect::<Result<Vec<&str>, _>>()?;
    if paths.is_empty() || paths.len() > MOST {
        return Err(format!("must name at least one patch file, and at most {MOST}"));
    }
    for (index, path) in paths.iter().enumerate() {
        let is_outside = path.starts_with('/') || path.split('/').any(|step| step == "..");
        if path.trim().is_empty() || path.contains('\0') || is_outside {
            return Err(format!("has `{}`, which is no file beneath the repository", path.escape_debug()));
        }
        if paths[..index].contains(path) {
            return Err(format!("has `{}` twice", path.escape_debug()));
        }
    }
    Ok(paths.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_are_a_list_or_the_text_of_one() {
        let files = Ok(vec!["a.patch".to_owned(), "b/c.patch".to_owned()]);
        assert_eq!(patch_files(&json!(["a.patch", "b/c.patch"])), files);
        assert_eq!(patch_files(&json!("[\"a.patch\", \"b/c.patch\"]")), files);
        for bad in
            ["a.patch", "[]", "{}", "[1]", "[\"/etc/x\"]", "[\"a/../../x\"]", "[\"\"]", "[\"a\", \"a\"]"]
        {
            assert!(patch_files(&json!(bad)).is_err(), "{bad}");
        }
    }
}
