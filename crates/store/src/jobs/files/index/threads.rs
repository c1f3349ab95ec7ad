//! Many small things of one kind, done in two threads.

use std::thread;

/// From so many on, a second thread is worth its start.
const MANY: usize = 400;

/// Does some work for all items, in their order; in two threads where they are many.
pub(super) fn in_two<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    if items.len() < MANY {
        return work(items);
    }
    let (first, second) = items.split_at(items.len() / 2);
    thread::scope(|scope| {
        let work = &work;
        let other = thread::Builder::new().spawn_scoped(scope, move || work(second));
        let mut all = work(first);
        // If it could not be started, or did not come to its end, its part is done here.
        all.extend(other.ok().and_then(|other| other.join().ok()).unwrap_or_else(|| work(second)));
        all
    })
}
