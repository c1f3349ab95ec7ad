//! Everything that is wrong with a template is told at once, and nothing that only follows from something else.

use std::collections::BTreeMap;

use tidewheel_core::Problems;
use tidewheel_core::policy::Rules;

use super::world::{load, messages, node, problems, whole};

/// Returns a shell node with these arguments.
fn with(id: &str, args: &str) -> String {
    node(id, "").replace("args = { script = 'true' }", args)
}

/// Everything that is wrong with some files, whenever it is found.
fn wrong(files: &[(&str, &str)]) -> Problems {
    let found = load(files).and_then(|template| template.expand(&BTreeMap::new(), &Rules::default()));
    found.map(drop).expect_err("nothing is wrong with it")
}

/// The problems with their places and what to do about them.
fn lines(text: &str) -> Vec<String> {
    wrong(&[("main.toml", text)]).to_string().lines().map(str::to_owned).collect()
}

#[test]
fn mistakes_of_every_kind_come_together() {
    let text = whole(
        &(node("a", "after = ['b']")
            + &node("b", "after = ['a', 'zz']")
            + &with("c", "args = { scrpt = 'x' }")
            + &with("d", "args = { script = 3 }")
            + &with("e", "args = { script = 'echo ${HOME} ${x}' }")),
    );
    assert_eq!(
        messages(&wrong(&[("main.toml", &text)])),
        [
            "template T@v1 has a cycle: a -> b -> a",
            "template T@v1 node `b` references unknown after node `zz`",
            "nodes[c].args.scrpt: is not an argument of command.run",
            "nodes[d].args.script: must be a text, found a number",
            "unresolved parameter `HOME` in nodes[e].args.script",
            "unresolved parameter `x` in nodes[e].args.script",
        ]
    );
}

#[test]
fn a_placeholder_is_pointed_at_where_it_stands() {
    let text = whole(&with("a", "args.script = '''\necho $${HOME} ${HOME}\necho ${X:-1}\n'''"));
    let found = lines(&text);
    assert_eq!(
        found,
        [
            "main.toml, line 8, column 15: unresolved parameter `HOME` in nodes[a].args.script (for a variable of the shell write `$HOME` or `$${HOME}`; a parameter is declared under [params]: HOME = \"…\")",
            "main.toml, line 9, column 6: unresolved parameter `X:-1` in nodes[a].args.script (for a variable of the shell write `$${X:-1}`)",
        ]
    );
}

#[test]
fn what_a_file_says_about_itself_hides_nothing_of_its_nodes() {
    let text = "version = 'v1'\n[params]\nslug = ''\nlist = [1]\n[cli]\npositional = ['slgu']\n".to_owned()
        + &with("a", "args = { script = '${slug} ${list}' }")
        + &with("b", "args = { script = '${zzz}' }")
        + &node("c", "aftr = []");
    assert_eq!(
        messages(&wrong(&[("main.toml", &text)])),
        [
            "id: is missing",
            "params.list: must be a text, a number or a boolean, found a list",
            "cli.positional: names `slgu`, which is no parameter (did you mean `slug`?)",
            "unresolved parameter `zzz` in nodes[b].args.script",
            "nodes[c].aftr: is not a known field",
        ]
    );
}

#[test]
fn an_import_that_cannot_be_read_is_the_only_mistake_of_those_who_name_its_nodes() {
    let text = whole(
        &("[[imports]]\nname = 'x'\npath = 'gone.toml'\n[[links]]\nfrom = 'x'\nto = 'a'\n".to_owned()
            + &node("a", "after = ['x__last', 'who']")
            + &with("b", "args = { scrpt = 'x' }")),
    );
    assert_eq!(
        messages(&wrong(&[("main.toml", &text)])),
        [
            "imports[x].path: cannot read `gone.toml`: no such file",
            "template T@v1 node `a` references unknown after node `who`",
            "nodes[b].args.scrpt: is not an argument of command.run",
        ]
    );
}

#[test]
fn files_that_import_each_other_are_looked_at_all_the_same() {
    let import = |name: &str| format!("[[imports]]\nname = 'x'\npath = '{name}.toml'\n");
    let a = whole(&(import("b") + &node("a", "kid = 1")));
    let b = whole(&(import("a") + &node("b", "speed = 1")));
    assert_eq!(
        messages(&wrong(&[("a.toml", &a), ("b.toml", &b)])),
        [
            "nodes[a].kid: is not a known field",
            "imports[x].path: imports itself: a.toml -> b.toml -> a.toml",
            "nodes[x__b].speed: is not a known field",
        ]
    );
}

#[test]
fn a_file_that_is_no_toml_hides_nothing_of_the_others() {
    let a = whole(
        &("[[imports]]\nname = 'x'\npath = 'b.toml'\nparams = { any = 'y' }\n".to_owned()
            + &node("a", "after = ['x__n']\nspeed = 1")),
    );
    let found = wrong(&[("a.toml", &a), ("b.toml", "id = what\n")]);
    let files: Vec<&str> = found.all().iter().map(|problem| problem.file.as_deref().unwrap()).collect();
    assert_eq!(files, ["a.toml", "b.toml"], "{found}");
    assert_eq!(found.all()[0].path, "nodes[a].speed");
}

#[test]
fn parameters_that_an_import_misspells_are_no_mistake_of_its_nodes() {
    let inner = whole(&("[params]\nwhat = ''\n".to_owned() + &with("say", "args = { script = '${what}' }")));
    let main = whole("[[imports]]\nname = 'x'\npath = 'inner.toml'\nparams = { waht = 'hi' }\n");
    assert_eq!(
        messages(&wrong(&[("main.toml", &main), ("inner.toml", &inner)])),
        ["imports[x].params.waht: is no parameter of `inner.toml`"]
    );
}

#[test]
fn a_mistake_in_a_file_that_is_imported_twice_is_told_once() {
    let inner = whole(&(with("n", "args = { script = '${zzz}' }") + &node("m", "after = ['who']")));
    let main =
        whole("[[imports]]\nname = 'x'\npath = 'in.toml'\n[[imports]]\nname = 'y'\npath = 'in.toml'\n");
    assert_eq!(
        messages(&wrong(&[("main.toml", &main), ("in.toml", &inner)])),
        [
            "unresolved parameter `zzz` in nodes[x__n].args.script",
            "template T@v1 node `x__m` references unknown after node `who`",
        ]
    );
}

#[test]
fn a_node_that_cannot_be_named_is_looked_at_and_not_missed() {
    let text = node("a", "")
        + &with("a", "args = { scrpt = 'x' }")
        + &with("b c", "args = { scrpt = 'y' }")
        + &node("d", "after = ['b c']")
        + "[[nodes]]\nkind = 'shell'\nuses = 'cap.env.shell.command.run'\nspeed = 1\n";
    assert_eq!(
        problems(&text),
        [
            "template T@v1 has duplicate node id `a`",
            "nodes[a].args.scrpt: is not an argument of command.run",
            "nodes[2].id: `b c` is no node id: only letters, digits, `_`, `-`, `.`, `/` and `:` are allowed",
            "nodes[2].args.scrpt: is not an argument of command.run",
            "nodes[4].id: is missing",
            "template T@v1 node needs a command or script arg for command.run",
            "nodes[4].speed: is not a known field",
        ]
    );
    // Which node is after which is not known while one of them has no name.
    let text = node("d", "after = ['who']") + "[[nodes]]\nid = 3\nkind = 'gate'\nuses = 'control.terminal'\n";
    assert_eq!(problems(&text), ["nodes[1].id: must be a string, found an integer"]);
}

#[test]
fn every_circle_is_named() {
    let text = node("a", "after = ['b']")
        + &node("b", "after = ['a']")
        + &node("c", "after = ['d', 'a']")
        + &node("d", "after = ['c']")
        + &node("e", "after = ['e', 'c']")
        + &node("f", "after = ['e']");
    assert_eq!(
        problems(&text),
        [
            "template T@v1 has a cycle: a -> b -> a",
            "template T@v1 has a cycle: c -> d -> c",
            "template T@v1 has a cycle: e -> e",
        ]
    );
}

#[test]
fn what_follows_from_a_mistake_is_not_told() {
    for (text, only) in [
        // A kind that is none is not held against the label.
        (
            node("a", "").replace("'shell'", "'shel'"),
            "nodes[a].kind: must be one of builtin, shell, agent, gate, got `shel`",
        ),
        (with("a", "args = 'make'"), "nodes[a].args: must be a table, found a string"),
        (with("a", "script = 'make'"), "nodes[a].script: is not a known field"),
        (with("a", "arg = { script = 'make' }"), "nodes[a].arg: is not a known field"),
        (node("a", "after = [{ node = 'a' }]"), "nodes[a].after[0].node: is not a known field"),
        (
            "[[nodes]]\nid = 'p'\nuses = 'cap.env.builtin.prompt.resolve'\nargs.prompt_text = 'x'\n\
             produces.succeeded = [{ custom = { type_id = 'prompt_text', key = '${k}' } }]\n"
                .to_owned(),
            "unresolved parameter `k` in nodes[p].produces.succeeded[0].custom.key",
        ),
        (
            "[[nodes]]\nid = 'c'\nkind = 'shell'\nuses = 'cap.env.shell.cicd.run'\n\
             gates = [{ kind = 'script', script = '${k}' }]\n"
                .to_owned(),
            "unresolved parameter `k` in nodes[c].gates[0].script.script",
        ),
        ("[[node]]\nid = 'a'\n".to_owned(), "node: is not a known field"),
        ("[nodes]\nid = 'a'\n".to_owned(), "nodes: must be a list of tables, found a table"),
        (
            "[parms]\nx = ''\n".to_owned() + &with("a", "args = { script = '${x}' }"),
            "parms: is not a known field",
        ),
        (
            "[params]\nslug = 'a b'\n".to_owned()
                + &node("a", "needs = [{ plan_doc = { slug = '${slug}' } }]"),
            "params.slug: `a b` is no slug: only letters, digits, `_`, `-` and `.` are allowed",
        ),
    ] {
        assert_eq!(problems(&text), [only], "{text}");
    }
}

#[test]
fn a_rule_that_cannot_be_read_does_not_move_the_others() {
    let text = "[[policies]]\nmatch = { nam = 'a' }\n\
                [[policies]]\nmatch = { name = 'a' }\nmax_retries = 2\nbase_delay = '50ms'\n"
        .to_owned()
        + &node("a", "");
    assert_eq!(
        problems(&text),
        [
            "policies[0].match.nam: is not a known field",
            "policies[1].base_delay: has no effect: there is no delay without backoff",
        ]
    );
}

#[test]
fn a_mistake_says_how_it_would_be_written() {
    for (text, help) in [
        (with("a", "args = { script = 3 }"), "write script = \"3\""),
        (with("a", "args = { script = ['make', 'x'] }"), "command = [\"…\"]"),
        (with("a", "args = 'make'"), "write args = { script = \"make\" }"),
        (with("a", "script = 'make'"), "write args = { script = … }"),
        (node("a", "after = 'b'"), "write after = [\"b\"]"),
        (node("a", "on.failed = 'a'"), "write failed = [\"a\"]"),
        (node("a", "depends_on = ['b']"), "did you mean `after`?"),
        (node("a", "timeout = '3m'"), "below [[policies]] with match = { name = \"a\" }"),
        (node("a", "retry = 3"), "write max_retries = 3 below [[policies]]"),
        (node("a", "locks = ['k']"), "write { key = \"k\" }"),
        (node("a", "gates = ['approval']"), "write { kind = \"approval\" }"),
        ("[nodes]\nid = 'a'".to_owned(), "write [[nodes]] once for each"),
        ("[[policies]]\nmatch = 'a'\n".to_owned() + &node("a", ""), "write match = { name = \"a\" }"),
        ("[[policies]]\nmatch = { kind = 'shel' }\n".to_owned() + &node("a", ""), "did you mean `shell`?"),
        (
            node("a", "").replace("cap.env.shell.command.run", "command.run"),
            "did you mean `cap.env.shell.command.run`?",
        ),
        (node("a", "").replace("cap.env.shell.command.run", "bash"), "`cap.env.shell.command.run` runs"),
        ("[params]\nname = ''\n".to_owned() + &node("a", "name = '${nmae}'"), "did you mean `${name}`?"),
    ] {
        let found = lines(&whole(&text));
        assert!(found.len() == 1 && found[0].contains(help), "{text}: {found:?}");
    }
    let told = |text: &str, help: &str| lines(text).iter().any(|line| line.contains(help));
    assert!(told("id = 'T'\n", "write version = \"v1\" at the top"));
    assert!(told("id = 'T'\nversion = 1\n", "write version = \"1\""));
}

#[test]
fn what_is_no_template_at_all_is_told_as_one_thing() {
    for (text, message) in [
        ("", "the file is empty: a template has an id, a version and nodes"),
        ("# nothing\n", "the file is empty: a template has an id, a version and nodes"),
        (
            "[[policies]]\nmatch = { name = 'a' }\nmax_retries = 2\n",
            "this is a file of policies and no template: it has no id and no nodes",
        ),
    ] {
        assert_eq!(messages(&wrong(&[("main.toml", text)])), [message], "{text}");
    }
}

#[test]
fn a_template_is_no_file_of_policies() {
    let text = whole("[[policies]]\nmatch = { default = true }\nmax_retries = 2\n") + &node("a", "");
    assert_eq!(
        Rules::from_toml(&text).unwrap_err().to_string(),
        "line 6, column 3: this is a template of jobs, and no file of policies (`tidewheel run FILE --check` checks it, with its policies)"
    );
}
