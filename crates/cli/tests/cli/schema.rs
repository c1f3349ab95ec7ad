//! `tidewheel schema`: the files that people write, described for editors.

use serde_json::{Value, json};

use crate::home::Home;

fn schema(kind: &str) -> Value {
    let ran = Home::new().run(&["schema", kind]).succeeded();
    serde_json::from_str(&ran.out).expect("it is JSON")
}

#[test]
fn each_kind_of_file_has_a_schema() {
    for (kind, field) in [("template", "nodes"), ("config", "scheduler"), ("policy", "policies")] {
        let schema = schema(kind);
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema", "{kind}");
        assert_eq!(schema["additionalProperties"], false, "{kind}");
        assert!(schema["properties"][field]["description"].is_string(), "{kind}");
    }
    assert_eq!(Home::new().run(&["schema", "poem"]).code, Some(2));
}

#[test]
fn what_a_node_can_do_is_a_choice() {
    let node = &schema("template")["properties"]["nodes"]["items"];
    let uses = node["properties"]["uses"]["enum"].as_array().expect("it is a list").clone();
    assert!(uses.contains(&json!("cap.env.shell.command.run")), "{uses:?}");
    assert_eq!(node["required"], json!(["id", "uses"]));
}
