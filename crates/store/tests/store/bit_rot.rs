//! Bits that are not what was written, in the log, in pages of tables and indexes, and in each column: either all that
//! was answered is there, or what is lost is named.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tidewheel_core::fact::RunId;
use tidewheel_core::time::Timestamp;
use tidewheel_store::sqlite::{Examined, Options, examine};
use tidewheel_store::{Filter, Letter, NewDeadLetter, PutShared, Sqlite, Status, Store as _};

use crate::fixture::{LEASE, Place, claim_due, command, more, new_run, write};
use crate::process::{Other, Part, RUNS};

/// Returns how many places are tried: a part of them, or as many as a long run wants.
fn tries(few: usize, many: usize) -> usize {
    if std::env::var("TIDEWHEEL_STORM").is_ok_and(|wanted| wanted == "full") { many } else { few }
}

fn flip(path: &Path, bit: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[bit / 8] ^= 1 << (bit % 8);
    fs::write(path, bytes).unwrap();
}

/// Copies a database with all that is beside it.
fn copy(from: &Place, to: &Place) {
    fs::create_dir_all(to.beside()).unwrap();
    for suffix in ["", "-wal"] {
        let name = |place: &Place| place.path().with_file_name(format!("store.db{suffix}"));
        if name(from).exists() {
            fs::copy(name(from), name(to)).unwrap();
        }
    }
    let commits = from.beside().join("commits");
    if commits.exists() {
        fs::copy(commits, to.beside().join("commits")).unwrap();
    }
}

fn look(place: &Place) -> Result<Examined, tidewheel_store::StoreError> {
    examine(&place.path(), &Options::new().read_only(), Timestamp::from_nanos(0))
}

fn says_something(examined: &Examined) -> bool {
    !(examined.problems.is_empty()
        && examined.rows.is_empty()
        && examined.damaged.is_empty()
        && examined.losses.is_empty())
}

fn misses(damage: &[String]) -> bool {
    damage.iter().any(|what| what.contains("missing behind commit"))
}

/// A process is killed, and then a bit of its log is another one: SQLite ends the log before it without a word.
#[tokio::test]
async fn a_bit_of_the_log_that_is_another_one_loses_no_commit_without_a_word() {
    let origin = Place::new();
    let mut writer = Other::start(Part::Write, &origin.path());
    let mut said: u64 = 0;
    while said < 40 {
        said = writer.says().unwrap().parse().unwrap();
    }
    writer.kill();
    while let Some(more) = writer.says() {
        said = more.parse().unwrap();
    }
    let log = origin.path().with_file_name("store.db-wal");
    let bits = fs::read(&log).unwrap().len() * 8;
    assert!(bits > 0, "a process that was killed leaves its log");

    let (mut lost, mut whole) = (0, 0);
    let tries = tries(60, 2_000);
    for number in 0..tries {
        // The first ones are in the header of the log; the others are anywhere.
        let bit = if number < 10 { number * 25 } else { bits / tries * number + number % 8 };
        let place = Place::new();
        copy(&origin, &place);
        flip(&place.path().with_file_name("store.db-wal"), bit);
        let looked = look(&place);
        let read = place.try_open(&Options::new().read_only()).map(|store| store.damage());
        let store = match place.try_open(&Options::new()) {
            Ok(store) => store,
            Err(error) => {
                let told = error.to_string();
                assert!(told.contains("commits were answered"), "bit {bit}: {told}");
                lost += 1;
                continue;
            }
        };
        let mut is_all_there = true;
        for run in RUNS.map(RunId::new) {
            let version = match store.find(&run).await {
                Ok(found) => found.map_or(0, |record| record.version),
                Err(_) => 0,
            };
            is_all_there &= version >= said && store.read(&run, 0).await.is_ok();
        }
        if is_all_there {
            whole += 1;
        } else {
            lost += 1;
            let damage = store.damage();
            let told = damage.join("\n");
            assert!(told.contains("missing behind commit"), "bit {bit}: {told}");
            assert!(told.contains("run `a`"), "the runs are named: {told}");
            assert!(looked.is_ok_and(|looked| says_something(&looked)), "bit {bit}: the doctor says nothing");
            assert!(misses(&read.unwrap()), "bit {bit}: a reader learns nothing of it");
            store.close().await;
            // It is written down, so that it is there for the next one who looks.
            let looked = look(&place).unwrap();
            assert_eq!(looked.losses.len(), 1, "bit {bit}");
            assert!(
                place
                    .beside()
                    .read_dir()
                    .unwrap()
                    .any(|entry| { entry.unwrap().file_name().to_string_lossy().starts_with("lost-after-") })
            );
            // The first one to open it may have been a command whose words no program reads.
            for options in [Options::new(), Options::new().read_only()] {
                let again = place.try_open(&options).unwrap();
                assert!(misses(&again.damage()), "{:?}", again.damage());
                again.close().await;
            }
        }
    }
    tidewheel_testkit::figure::counted("flipped bits/log", tries);
    assert!(lost > tries / 4, "{lost} of {tries} flips lost commits, and {whole} did not");
}

#[tokio::test]
async fn a_log_that_was_deleted_after_a_kill_is_missed() {
    let place = Place::new();
    place.open().close().await;
    let mut writer = Other::start(Part::Write, &place.path());
    while writer.says().unwrap() != "5" {}
    writer.kill();
    fs::remove_file(place.path().with_file_name("store.db-wal")).unwrap();
    let store = place.open();
    let told = store.damage().join("\n");
    assert!(told.contains("run `a` is not there") && told.contains("missing behind commit"), "{told}");
    // And it is used like any other.
    write(&store, new_run("a", None)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_database_that_was_killed_and_is_whole_misses_nothing() {
    let place = Place::new();
    let mut writer = Other::start(Part::Write, &place.path());
    while writer.says().unwrap() != "5" {}
    writer.kill();
    let store = place.open();
    assert_eq!(store.damage(), Vec::<String>::new());
    store.close().await;
    assert!(!says_something(&look(&place).unwrap()));
    // What another database left beside is not held against a new one.
    fs::remove_file(place.path()).unwrap();
    let new = place.open();
    assert_eq!(new.damage(), Vec::<String>::new());
}

/// Writes something to every table.
async fn filled() -> Place {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    for number in 0..30 {
        let id = format!("run {number:02}");
        let lease = write(&store, new_run(&id, Some(owner))).await.unwrap().unwrap();
        let mut next = more(&lease, 1);
        next.checkpoint = Some("[1]".to_owned());
        let letter = NewDeadLetter { work: "w".into(), node: "n".into(), body: "{}".into() };
        next.letters.push(Letter::Bury(letter));
        next.reason = Some("why".to_owned());
        next.wake_at = Some(Timestamp::from_nanos(1));
        write(&store, next).await.unwrap().unwrap();
        store.send(command(&id)).await.unwrap().unwrap();
        let put = |name: &str, body: Option<&str>, expected| PutShared {
            kind: "breaker".to_owned(),
            name: name.to_owned(),
            expected,
            body: body.map(str::to_owned),
        };
        assert!(store.put_shared(vec![put(&id, Some("{}"), 0)]).await.unwrap());
    }
    store.leave(owner).await.unwrap();
    store.join(LEASE).await.unwrap();
    store.close().await;
    place
}

/// Returns all that a store has, as its users see it; `None` if it says that something is wrong.
async fn everything(store: &Sqlite) -> Option<String> {
    let mut all = Vec::new();
    let filter = Filter { limit: Some(1_000), ..Filter::default() };
    for record in store.list(filter).await.ok()?.rows {
        all.push(format!("{:?}\n", (&record.id, record.status, &record.reason, record.version)));
        all.push(format!("{:?}\n", store.find(&record.id).await.ok()?.map(|found| found.version)));
        all.push(format!("{:?}\n", store.read(&record.id, 0).await.ok()?));
        all.push(format!("{:?}\n", store.definition(&record.id).await.ok()?));
        all.push(format!("{:?}\n", store.checkpoint(&record.id).await.ok()?));
        all.push(format!("{:?}\n", store.commands_of(&record.id).await.ok()?));
        all.push(format!("{:?}\n", store.dead_letters(Some(&record.id), None).await.ok()?.rows.len()));
    }
    for status in Status::ALL {
        let filter = Filter { statuses: vec![status], ..Filter::default() };
        all.push(format!("{status} {}\n", store.list(filter).await.ok()?.rows.len()));
    }
    all.push(format!("{:?}\n", store.all_shared("breaker", None).await.ok()?));
    all.push(format!("{:?}\n", store.dead_letters(None, None).await.ok()?));
    let owner = store.join(LEASE).await.ok()?.owner;
    let workflows = vec![("flow".to_owned(), 1)];
    let wanted = tidewheel_store::Wanted::Due { workflows, limit: 100 };
    let due = store.claim(tidewheel_store::Claim { owner, wanted }).await.ok()?;
    let mut due: Vec<_> = due.runs.into_iter().map(|(_, record, what)| (record.id, what)).collect();
    due.sort();
    all.push(format!("{due:?}\n"));
    Some(all.concat())
}

/// Bits of a database at rest: in rows, in indexes, in the pages between them.
#[tokio::test]
async fn a_bit_of_the_database_that_is_another_one_changes_nothing_without_a_word() {
    let origin = filled().await;
    let as_written = {
        let place = Place::new();
        copy(&origin, &place);
        everything(&place.open()).await.unwrap()
    };
    let bits = fs::read(origin.path()).unwrap().len() * 8;
    let tries = tries(120, 4_000);
    let (mut told, mut whole) = (0, 0);
    for number in 0..tries {
        let bit = bits / tries * number + (number * 7) % (bits / tries);
        let place = Place::new();
        copy(&origin, &place);
        flip(&place.path(), bit);
        let looked = look(&place);
        if !looked.as_ref().is_ok_and(|looked| !says_something(looked)) {
            told += 1;
        }
        let Ok(store) = place.try_open(&Options::new()) else {
            assert!(looked.is_err() || looked.is_ok_and(|looked| says_something(&looked)), "bit {bit}");
            continue;
        };
        let found = everything(&store).await;
        if found.as_ref() == Some(&as_written) {
            whole += 1;
            continue;
        }
        let is_named = !store.damage().is_empty();
        assert!(
            is_named || !looked.as_ref().is_ok_and(|looked| !says_something(looked)),
            "bit {bit}: something is another one, and neither the store nor the doctor says so"
        );
    }
    tidewheel_testkit::figure::counted("flipped bits/database", tries);
    assert!(told > 0 && whole > 0, "{told} of {tries} were told, and {whole} changed nothing");
}

/// Every column of every table but the numbers that the database gives itself.
#[tokio::test]
async fn a_column_of_any_table_that_is_another_one_is_named() {
    let origin = filled().await;
    let tables: Vec<String> = {
        let bare = origin.bare();
        let mut names = bare.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
        names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    let mut tried = 0;
    for table in tables.iter().filter(|name| !name.starts_with("sqlite_") && *name != "migrations") {
        let columns: Vec<(String, String, bool)> = {
            let bare = origin.bare();
            let mut info = bare.prepare("SELECT name, type, pk > 0 FROM pragma_table_info(?1)").unwrap();
            let rows = info.query_map([table], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
            rows.map(Result::unwrap).collect()
        };
        let is_filled: bool = origin
            .bare()
            .query_row(&format!("SELECT EXISTS (SELECT 1 FROM {table})"), [], |row| row.get(0))
            .unwrap();
        assert!(is_filled || table == "losses", "{table} is empty");
        if !is_filled {
            continue;
        }
        for (column, kind, is_key) in columns {
            // The key of a row is the place of the row in its table, which SQLite checks.
            if is_key && kind == "INTEGER" {
                continue;
            }
            let place = Place::new();
            copy(&origin, &place);
            let other = if kind == "INTEGER" {
                format!("ifnull({column}, 0) + 1")
            } else {
                format!("ifnull({column}, '') || 'x'")
            };
            let at = if table == "shared" {
                "(kind, name) = (SELECT kind, name FROM shared LIMIT 1)".to_owned()
            } else {
                format!("rowid = (SELECT max(rowid) FROM {table})")
            };
            let bare = place.bare();
            // Damage keeps no rules.
            bare.pragma_update(None, "foreign_keys", "OFF").unwrap();
            let changed = bare.execute(&format!("UPDATE {table} SET {column} = {other} WHERE {at}"), []);
            assert_eq!(changed.unwrap(), 1, "{table}.{column}");
            drop(bare);
            let looked = look(&place).unwrap();
            assert!(says_something(&looked), "{table}.{column} is another one, and the doctor says nothing");
            tried += 1;
        }
    }
    assert!(tried > 40, "{tried}");
}

/// The check beside the work names a run that no query by index finds, which otherwise stayed as it is for ever.
#[tokio::test]
async fn a_run_that_is_missing_in_an_index_is_named_beside_the_work() {
    let place = filled().await;
    // Taken out of the index alone: through its own b-tree, as damage would.
    let root: i64 = place
        .bare()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'runs_due'", [], |row| row.get(0))
        .unwrap();
    let mut bytes = fs::read(place.path()).unwrap();
    let page = usize::try_from(root - 1).unwrap() * 4096;
    // A leaf page of an index: two bytes at 3 say how many cells it has.
    assert_eq!(bytes[page], 0x0A, "the index has one page");
    let cells = u16::from_be_bytes([bytes[page + 3], bytes[page + 4]]);
    assert!(cells >= 30);
    bytes[page + 3..page + 5].copy_from_slice(&(cells - 1).to_be_bytes());
    fs::write(place.path(), bytes).unwrap();

    let store = place.open();
    let named = async {
        loop {
            let damage = store.damage();
            if damage.iter().any(|what| what.contains("missing from index runs_due (run `run ")) {
                return damage;
            }
            tokio::task::yield_now().await;
        }
    };
    let damage = tokio::time::timeout(Duration::from_secs(60), named).await;
    assert!(damage.is_ok(), "the store says: {:?}", store.damage());
    let owner = store.join(LEASE).await.unwrap().owner;
    assert!(claim_due(&store, owner).await.runs.len() >= 29, "all others go on");
}

/// No claim finds it, since it seems to be driven: whoever renews has to.
#[tokio::test]
async fn a_run_whose_row_names_an_owner_that_is_not_there_is_named_while_the_store_is_open() {
    let place = Place::new();
    let store = place.open();
    let owner = store.join(LEASE).await.unwrap().owner;
    for run in ["damaged", "held", "queued"] {
        write(&store, new_run(run, (run != "queued").then_some(owner))).await.unwrap().unwrap();
    }
    let damage = "UPDATE runs SET wake_at = NULL, owner = 77 WHERE id = 'damaged'";
    assert_eq!(place.bare().execute(damage, []).unwrap(), 1);
    store.renew(owner, LEASE).await.unwrap().unwrap();
    assert_eq!(store.damage(), ["the record of run `damaged` is not what was written"]);
    // Those of an owner whose own row is gone are free again, and none of them is damaged.
    assert_eq!(place.bare().execute("DELETE FROM owners", []).unwrap(), 1);
    let next = store.join(LEASE).await.unwrap().owner;
    store.renew(next, LEASE).await.unwrap().unwrap();
    assert_eq!(store.find(&RunId::new("held")).await.unwrap().unwrap().owner, None);
    assert_eq!(store.damage().len(), 1);
}
