//! What a command line gives to a template.

use tidewheel_core::job::template::{Inputs, Template};

use super::world::{load, messages, node, whole};

fn template() -> Template {
    let text = whole(
        &("[params]\nslug = ''\nbranch = ''\ntarget_branch = 'main'\n[cli]\npositional = ['slug', 'branch']\nnamed = { target = 'target_branch', name = 'slug' }\n".to_owned()
            + &node("a", "")),
    );
    load(&[("main.toml", &text)]).expect("it is right")
}

fn inputs(positional: &[&str], named: &[(&str, &str)], set: &[&str]) -> Inputs {
    Inputs {
        positional: positional.iter().map(ToString::to_string).collect(),
        named: named.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        set: set.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn inputs_by_place_by_name_and_by_set_come_together() {
    let given = template().bind(&inputs(&["alpha"], &[("target", "trunk")], &["branch=a=b"])).unwrap();
    let given: Vec<(&str, &str)> =
        given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(given, [("branch", "a=b"), ("slug", "alpha"), ("target_branch", "trunk")]);
    assert!(template().bind(&Inputs::default()).unwrap().is_empty());
    let all: Vec<(String, String)> =
        template().params().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    assert_eq!(all[2], ("target_branch".to_owned(), "main".to_owned()));
}

#[test]
fn what_fits_no_parameter_is_refused_with_what_was_perhaps_meant() {
    let error = |given: Inputs| template().bind(&given).unwrap_err().to_string();
    assert_eq!(
        error(inputs(&["a", "b", "c"], &[], &[])),
        "template T takes at most 2 inputs (slug, branch), got 3"
    );
    assert_eq!(
        error(inputs(&[], &[("targt", "x")], &[])),
        "unknown flag `--targt` of template T (did you mean `--target`?)"
    );
    assert_eq!(
        error(inputs(&[], &[], &["slgu=x"])),
        "unknown parameter `slgu` of template T (did you mean `slug`?)"
    );
    assert_eq!(error(inputs(&[], &[], &["zzzzzzzz=x"])), "unknown parameter `zzzzzzzz` of template T");
    assert_eq!(error(inputs(&[], &[], &["slug"])), "`--set slug` has no `=`: write --set NAME=VALUE");
    assert_eq!(error(inputs(&["a"], &[], &["slug=b"])), "parameter `slug` is given twice");
    assert_eq!(error(inputs(&["a"], &[("name", "b")], &[])), "parameter `slug` is given twice");
}

#[test]
fn a_command_line_that_sets_nothing_is_refused() {
    let found = |cli: &str| {
        let text = whole(&format!("[params]\nslug = ''\n[cli]\n{cli}\n{}", node("a", "")));
        messages(&load(&[("main.toml", &text)]).unwrap_err())
    };
    assert_eq!(
        found("positional = ['slgu']"),
        ["cli.positional: names `slgu`, which is no parameter (did you mean `slug`?)"]
    );
    assert_eq!(found("positional = ['slug', 'slug']"), ["cli.positional: names `slug` twice"]);
    assert_eq!(
        found("named = { after = 'slug' }"),
        ["cli.named.after: cannot be a flag of a template: `--after` is taken"]
    );
    assert_eq!(found("nmed = {}"), ["cli.nmed: is not a known field"]);
    assert_eq!(
        messages(&load(&[("main.toml", "id = ''\n[params]\nx = []")]).unwrap_err()),
        [
            "version: is missing",
            "template has no nodes",
            "id: must not be empty",
            "params.x: must be a text, a number or a boolean, found a list",
        ]
    );
}
