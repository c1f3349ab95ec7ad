//! `tidewheel man`: pages for `man`.

use std::fs;

use crate::home::Home;

#[test]
fn the_main_page_is_printed() {
    let page = Home::new().run(&["man"]).succeeded().out;
    assert!(page.contains(".TH tidewheel 1"), "{page}");
    assert!(page.contains(r"tidewheel\-run(1)"), "{page}");
    assert!(page.contains("Exit codes:") && !page.contains("demo-worker"), "{page}");
}

#[test]
fn every_command_has_a_page_in_the_directory() {
    let home = Home::new();
    let ran = home.run(&["man", "share/man1"]);
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""));
    let read = fs::read_dir(home.path().join("share/man1")).expect("it was made");
    let mut names: Vec<String> =
        read.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(ran.err, format!("{} pages are in `share/man1`.\n", names.len()));
    for name in ["tidewheel.1", "tidewheel-run.1", "tidewheel-jobs-list.1", "tidewheel-man.1"] {
        assert!(names.iter().any(|known| known == name), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("__") || name.contains("help")), "{names:?}");
    let run = fs::read_to_string(home.path().join("share/man1/tidewheel-run.1")).expect("it is there");
    assert!(run.contains(r"$ tidewheel run release alpha \-\-target main \-\-follow"), "{run}");
    assert!(!run.contains("named"), "what is hidden is in no page: {run}");
}

#[test]
fn a_directory_that_cannot_be_made_is_an_error() {
    let home = Home::new();
    home.file("taken", "");
    let ran = home.run(&["man", "taken"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.starts_with("error[TW0003]: `taken` cannot be written: "), "{}", ran.err);
}
