//! A process that dies inside a write of the store, at each place in it and each time that it comes there: the next
//! one finds everything or nothing of that write, and comes to the same end.

use tidewheel_store::sqlite::failpoint;

use crate::kills::look_at_all;
use crate::other::{Folder, Other, Part};
use crate::proof::Lives;

/// The first writes make the runs, later ones are everything that can happen together, and the last come when little
/// is left to do.
const TIMES: [u64; 8] = [1, 2, 3, 5, 9, 17, 33, 65];

#[test]
fn whatever_write_the_process_dies_in_the_next_one_goes_on() {
    let (mut died, mut tried) = (0, 0);
    for place in 0..failpoint::ALL.len() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder(temporary.path().to_owned());
        let mut lives = Lives::default();
        for nth in TIMES {
            let process = lives.begin();
            let mut other = Other::start(Part::Die { place, nth }, &folder, process);
            tried += 1;
            died += usize::from(other.has_died());
        }
        let process = lives.begin();
        let mut last = Other::start(Part::Finish, &folder, process);
        assert!(last.ended_well(), "the last one comes to its end after {}", failpoint::ALL[place]);
        look_at_all(&folder, folder.generation(), &lives);
    }
    assert!(died * 2 > tried, "most of them die: {died} of {tried}");
}
