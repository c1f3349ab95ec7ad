//! Fields that a later release wrote, at any depth of a document, go back into it when this release writes it again.

use serde_json::{Map, Value};

/// Puts into `now` what `raw` has and `known` has not.
///
/// `raw` is the document as it was read, `known` what this release writes of it unchanged, `now` what it writes of it
/// changed. A field that this release knows and has taken away does not come back: it is in `known`. Items of a list are
/// the same if this release would write the same of them; an item that was changed keeps its place.
pub(super) fn put_back(now: &mut Value, raw: &Value, known: &Value) {
    match (now, raw, known) {
        (Value::Object(now), Value::Object(raw), Value::Object(known)) => object(now, raw, known),
        (Value::Array(now), Value::Array(raw), Value::Array(known)) if raw.len() == known.len() => {
            list(now, raw, known);
        }
        _ => {}
    }
}

fn object(now: &mut Map<String, Value>, raw: &Map<String, Value>, known: &Map<String, Value>) {
    for (name, raw) in raw {
        match (now.get_mut(name), known.get(name)) {
            (Some(now), Some(known)) => put_back(now, raw, known),
            (None, None) => {
                now.insert(name.clone(), raw.clone());
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
    }
}

fn list(now: &mut [Value], raw: &[Value], known: &[Value]) {
    let mut is_taken = vec![false; known.len()];
    let mut changed = Vec::new();
    for (place, item) in now.iter_mut().enumerate() {
        match (0..known.len()).find(|at| !is_taken[*at] && known[*at] == *item) {
            Some(at) => {
                is_taken[at] = true;
                put_back(item, &raw[at], &known[at]);
            }
            None => changed.push(place),
        }
    }
    for place in changed {
        if is_taken.get(place) == Some(&false) {
            put_back(&mut now[place], &raw[place], &known[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn overlaid(mut now: Value, raw: &Value, known: &Value) -> Value {
        put_back(&mut now, raw, known);
        now
    }

    #[test]
    fn only_what_this_release_does_not_know_comes_back() {
        let raw = json!({"a": 1, "gone": 2, "x": 3, "in": {"b": 1, "y": {"z": 1}}, "none": null});
        let known = json!({"a": 1, "gone": 2, "in": {"b": 1}});
        let now = json!({"a": 5, "in": {"b": 6}, "new": 7});
        let expected = json!({"a": 5, "in": {"b": 6, "y": {"z": 1}}, "new": 7, "x": 3, "none": null});
        assert_eq!(overlaid(now, &raw, &known), expected);
    }

    #[test]
    fn items_are_found_again_wherever_they_are_and_however_many_are_left() {
        let raw = json!([{"k": "a", "x": 1}, {"k": "b", "x": 2}, {"k": "b", "x": 3}]);
        let known = json!([{"k": "a"}, {"k": "b"}, {"k": "b"}]);
        let now = json!([{"k": "b"}, {"k": "new"}, {"k": "b"}]);
        assert_eq!(
            overlaid(now, &raw, &known),
            json!([{"k": "b", "x": 2}, {"k": "new"}, {"k": "b", "x": 3}])
        );
        // One that was changed is the one that was at its place.
        let now = json!([{"k": "other"}, {"k": "b"}]);
        assert_eq!(overlaid(now, &raw, &known), json!([{"k": "other", "x": 1}, {"k": "b", "x": 2}]));
        assert_eq!(overlaid(json!([]), &raw, &known), json!([]));
    }
}
