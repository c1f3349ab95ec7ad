//! Waiting for a change in a directory.

use std::fs;
use std::time::{Duration, Instant};

use tidewheel_runner::job::wait::{Watch, Woken};

#[test]
fn a_change_before_the_wait_is_not_missed() {
    let folder = tempfile::tempdir().unwrap();
    let watch = Watch::directory(folder.path());
    fs::write(folder.path().join("a"), "1").unwrap();
    assert_eq!(watch.wait(None), Woken::Changed);
    assert_eq!(watch.wait(Some(Instant::now())), Woken::Due, "it is told once");
}

#[test]
fn a_change_during_the_wait_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("index.due");
    let watch = Watch::file(&file);
    let writer = std::thread::spawn({
        let folder = folder.path().to_owned();
        move || {
            fs::write(folder.join("index.tmp"), "1").unwrap();
            fs::rename(folder.join("index.tmp"), folder.join("index.due")).unwrap();
        }
    });
    assert_eq!(watch.wait(None), Woken::Changed);
    assert!(file.exists(), "what was written beside it did not wake");
    writer.join().unwrap();
}

#[test]
fn other_files_do_not_wake_who_waits_for_one() {
    let folder = tempfile::tempdir().unwrap();
    let watch = Watch::file(&folder.path().join("mine"));
    fs::write(folder.path().join("other"), "1").unwrap();
    assert_eq!(watch.wait(Some(Instant::now() + Duration::from_millis(30))), Woken::Due);
    fs::write(folder.path().join("mine"), "1").unwrap();
    assert_eq!(watch.wait(None), Woken::Changed);
    fs::OpenOptions::new().append(true).open(folder.path().join("mine")).unwrap();
    fs::write(folder.path().join("mine"), "12").unwrap();
    assert_eq!(watch.wait(None), Woken::Changed, "a word more is a change");
    fs::remove_file(folder.path().join("mine")).unwrap();
    assert_eq!(watch.wait(None), Woken::Changed, "its end is one");
}

#[test]
fn what_cannot_be_watched_is_asked_about_now_and_then() {
    let folder = tempfile::tempdir().unwrap();
    let watch = Watch::directory(&folder.path().join("missing"));
    let begun = Instant::now();
    assert_eq!(watch.wait(None), Woken::Changed);
    assert!(begun.elapsed() >= Duration::from_millis(100), "not again and again");
    assert_eq!(watch.wait(Some(Instant::now())), Woken::Due);
}
