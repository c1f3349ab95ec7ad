//! Templates inside templates.

use std::collections::BTreeMap;

use tidewheel_core::Problems;
use tidewheel_core::job::template::{Run, Source, Template};
use tidewheel_core::policy::Rules;

use super::world::{Find, id, load, messages, node, whole, wish};

fn run(files: &[(&str, &str)]) -> Result<Run, Problems> {
    load(files)?.expand(&BTreeMap::new(), &Rules::default())?.materialise(&wish())
}

#[test]
fn an_import_stands_under_its_name_and_keeps_its_edges() {
    let inner = whole(
        &(node("one", "on.succeeded = ['two']\non.failed = ['help']") + &node("two", "") + &node("help", "")),
    );
    let middle = whole(
        &("[[imports]]\nname = 'in'\npath = 'inner.toml'\n".to_owned()
            + &node("last", "after = ['in__two']")),
    );
    let main = whole(
        &("[[imports]]\nname = 'x'\npath = 'middle.toml'\n[[imports]]\nname = 'y'\npath = 'inner.toml'\n\
           [[links]]\nfrom = 'x'\nto = 'y'\n[[links]]\nfrom = 'y'\nto = 'end'\n"
            .to_owned()
            + &node("end", "")),
    );
    let run = run(&[("main.toml", &main), ("middle.toml", &middle), ("inner.toml", &inner)]).unwrap();
    let nodes: Vec<String> = run.records.iter().map(|record| record.node().unwrap().to_string()).collect();
    assert_eq!(
        nodes,
        ["x__in__one", "x__in__two", "x__in__help", "x__last", "y__one", "y__two", "y__help", "end"]
    );
    assert_eq!(run.after("x__in__two"), ["x__in__one:success"]);
    assert_eq!(run.after("x__in__help"), ["x__in__one:failed"]);
    assert_eq!(run.after("x__last"), ["x__in__two:success"]);
    assert_eq!(run.after("y__one"), ["x__last:success"]);
    assert_eq!(run.after("y__help"), ["y__one:failed"], "a link leads to what runs at the start");
    assert_eq!(run.after("end"), ["y__two:success"], "and from what runs at the end when all went well");
    assert_eq!(run.roots, [id("x__in__one")]);
    assert_eq!(run.sinks, [id("end")]);
}

#[test]
fn links_lead_from_all_last_nodes_to_all_first_ones() {
    let inner = whole(&(node("a", "") + &node("b", "")));
    let main = whole(
        "[[imports]]\nname = 'x'\npath = 'inner.toml'\n[[imports]]\nname = 'y'\npath = 'inner.toml'\n[[links]]\nfrom = 'x'\nto = 'y'",
    );
    let run = run(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap();
    assert_eq!(run.after("y__a"), ["x__a:success", "x__b:success"]);
    assert_eq!(run.after("y__b"), ["x__a:success", "x__b:success"]);
    assert_eq!(run.roots, [id("x__a"), id("x__b")]);
}

#[test]
fn an_import_has_parameters_of_its_own() {
    let inner = whole(
        "[params]\nwhat = 'nothing'\nhow = 'well'\n[[nodes]]\nid = 'say'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs.script = '${what} ${how}'",
    );
    let main = whole(
        "[params]\nname = 'ann'\n[[imports]]\nname = 'x'\npath = 'inner.toml'\nparams = { what = 'hi ${name}' }\n[[imports]]\nname = 'y'\npath = 'inner.toml'",
    );
    let run = run(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap();
    assert_eq!(run.job("x__say").command[3], "hi ann well");
    assert_eq!(run.job("y__say").command[3], "nothing well");
    let main = main.replace("what = 'hi", "waht = 'hi");
    let found = load(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap_err();
    assert_eq!(
        found.to_string(),
        "main.toml, line 8, column 19: imports[x].params.waht: is no parameter of `inner.toml` (did you mean `what`?)"
    );
}

#[test]
fn contracts_and_what_is_made_go_through_imports() {
    let inner = whole(
        &("[[artifact_contracts]]\nid = 'pkg'\nversion = 'v1'\n".to_owned()
            + &node("make", "produces.succeeded = [{ custom = { type_id = 'pkg', key = 'k' } }]")),
    );
    let main = whole(
        &("[[imports]]\nname = 'x'\npath = 'inner.toml'\n".to_owned()
            + &node("use", "needs = [{ custom = { type_id = 'pkg', key = 'k' } }]")),
    );
    assert!(run(&[("main.toml", &main), ("inner.toml", &inner)]).is_ok());
}

#[test]
fn imports_that_lead_back_are_named() {
    let a = whole("[[imports]]\nname = 'b'\npath = 'b.toml'");
    let b = whole("[[imports]]\nname = 'c'\npath = 'c.toml'");
    let c = whole("[[imports]]\nname = 'b'\npath = 'b.toml'");
    let found = load(&[("a.toml", &a), ("b.toml", &b), ("c.toml", &c)]).unwrap_err();
    assert_eq!(
        found.to_string(),
        "c.toml, line 5, column 8: imports[b].path: imports itself: b.toml -> c.toml -> b.toml"
    );
    let found = load(&[("a.toml", &whole("[[imports]]\nname = 'a'\npath = 'a.toml'"))]).unwrap_err();
    assert_eq!(messages(&found), ["imports[a].path: imports itself: a.toml -> a.toml"]);
}

#[test]
fn imports_go_only_so_deep() {
    let deep = |most: usize| {
        let text = |number: usize| match number {
            number if number == most => whole(&node("n", "")),
            number => whole(&format!("[[imports]]\nname = 'x'\npath = '{}'", number + 1)),
        };
        let main = Source { file: "0".to_owned(), text: text(0) };
        Template::load(main, |path, _| {
            Ok(Source { file: path.to_owned(), text: text(path.parse().unwrap()) })
        })
    };
    assert!(deep(16).unwrap().expand(&BTreeMap::new(), &Rules::default()).is_ok());
    let found = deep(17).unwrap_err();
    assert_eq!(messages(&found), ["imports[x].path: goes deeper than 16 imports in a row"]);
}

#[test]
fn imports_that_multiply_come_to_an_end() {
    let text = |number: usize| {
        let twice = |name: &str| format!("[[imports]]\nname = '{name}'\npath = '{}'\n", number + 1);
        if number == 15 { whole(&node("n", "")) } else { whole(&(twice("a") + &twice("b"))) }
    };
    let main = Source { file: "0".to_owned(), text: text(0) };
    let template = Template::load(main, |path, _| {
        Ok(Source { file: path.to_owned(), text: text(path.parse().unwrap()) })
    });
    let found = template.unwrap().expand(&BTreeMap::new(), &Rules::default()).unwrap_err();
    assert!(messages(&found).contains(&"imports: is one import too many: at most 1000 in all".to_owned()));
}

#[test]
fn problems_of_an_import_are_those_of_its_file() {
    let inner = whole(
        "[[nodes]]\nid = 'n'\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nargs.script = '${zzz}'",
    );
    let main = whole("[[imports]]\nname = 'x'\npath = 'inner.toml'\n[[links]]\nfrom = 'x'\nto = 'nobody'");
    let found = run(&[("main.toml", &main), ("inner.toml", &inner)]).unwrap_err();
    let found: Vec<(Option<&str>, usize, &str)> = found
        .all()
        .iter()
        .map(|problem| {
            let line = problem.location.as_ref().map_or(0, |place| place.line);
            (problem.file.as_deref(), line, problem.message.as_str())
        })
        .collect();
    assert_eq!(
        found,
        [
            (Some("main.toml"), 8, "template T@v1 has a link to `nobody`, which is no import and no node"),
            (Some("inner.toml"), 7, "unresolved parameter `zzz` in nodes[x__n].args.script"),
        ]
    );
    let found = load(&[("main.toml", &whole("[[imports]]\nname = 'x'\npath = 'gone.toml'"))]).unwrap_err();
    assert_eq!(
        found.to_string(),
        "main.toml, line 5, column 8: imports[x].path: cannot read `gone.toml`: no such file (the path begins at the directory of the file that it stands in)"
    );
}
