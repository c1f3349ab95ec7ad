//! No file tells where somebody's checkout or home lies: such a path is right on one machine only.

use crate::tree::{assert_tidy, root, text_files};

/// Where the homes of people and of the administrator lie.
const HOMES: [&str; 2] = ["/home/", "/root/"];

/// Returns a complaint for each line that holds a path into a home or into this checkout.
fn private_paths(path: &str, text: &str, checkouts: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let home = HOMES.iter().any(|home| holds(line, home, is_name));
        let checkout = checkouts.iter().any(|checkout| holds(line, checkout, |after| !is_name(after)));
        if home || checkout {
            complaints.push(format!("{path}:{}: holds a path of one machine", index + 1));
        }
    }
    complaints
}

/// Returns whether `line` holds `start` where a path begins, with a fitting character after it.
///
/// In `crates/home/a` and `https://example.org/home/a` the path has begun before.
fn holds(line: &str, start: &str, fits: impl Fn(Option<char>) -> bool) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let begins = !is_name(before) && !before.is_some_and(|c| "~})>]".contains(c));
        begins && fits(line[at + start.len()..].chars().next())
    })
}

/// Returns whether the character can be a part of a name in a path.
fn is_name(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || "._-".contains(c))
}

/// Returns the path of this checkout, as it was given and with its links followed.
fn this_checkout() -> Vec<String> {
    let given = root();
    let followed = given.canonicalize().unwrap_or_else(|_| given.clone());
    let mut paths: Vec<String> =
        [given, followed].iter().map(|path| path.to_string_lossy().into_owned()).collect();
    paths.dedup();
    // At the top of the disk, every path would begin with it.
    paths.retain(|path| path.len() > 1);
    paths
}

#[test]
fn no_file_holds_a_path_of_one_machine() {
    let checkouts = this_checkout();
    let complaints: Vec<String> =
        text_files().iter().flat_map(|file| private_paths(&file.path, &file.text, &checkouts)).collect();
    assert_tidy(&complaints);
}

#[test]
fn a_path_of_one_machine_is_found() {
    let checkouts = ["/srv/checkout".to_owned()];
    // The homes are put together here, or this file would be found, too.
    let [home, root] = HOMES;
    for line in [
        format!("see {home}ada/notes.md"),
        format!("\"{root}.cargo/bin\""),
        format!("file://{home}ada"),
        "cd /srv/checkout".to_owned(),
        "`/srv/checkout/crates/core`".to_owned(),
    ] {
        let text = format!("first\n{line}\n");
        assert_eq!(
            private_paths("a.md", &text, &checkouts),
            ["a.md:2: holds a path of one machine"],
            "{line}"
        );
    }
}

#[test]
fn paths_of_every_machine_are_free() {
    let checkouts = ["/srv/checkout".to_owned()];
    for line in [
        "crates/home/src/lib.rs and https://example.org/root/page",
        "homes lie in `/home/` and `/home/<name>`",
        "${PREFIX}/root/etc, ~/home/a",
        "/srv/checkouts, /usr/srv/checkout, /srv/checkout-old",
    ] {
        assert_eq!(private_paths("a.md", line, &checkouts), [""; 0], "{line}");
    }
}
