//! Many small things of one kind, done in two threads.

use std::thread;

/// From so many on, a second thread is worth its start.
const MANY: usize = 400;
/// and from so many bytes on.
const LONG: usize = 256 << 10;

/// Does some work for all items, in their order; in two threads where they are many.
pub(super) fn in_two<T: Sync, R: Send>(items: &[T], work: impl Fn(&[T]) -> Vec<R> + Sync) -> Vec<R> {
    if items.len() < MANY {
        return work(items);
    }
    let (first, second) = items.split_at(items.len() / 2);
    both(first, second, work)
}

/// Does some work for the lines of a text, in their order; in two threads where it is long.
pub(super) fn by_lines<'t, R: Send>(text: &'t str, work: impl Fn(&'t str) -> Vec<R> + Sync) -> Vec<R> {
    let middle = text.as_bytes()[text.len() / 2..].iter().position(|byte| *byte == b'\n');
    match middle {
        Some(at) if text.len() > LONG => {
            let (first, second) = text.split_at(text.len() / 2 + at + 1);
            both(first, second, work)
        }
        Some(_) | None => work(text),
    }
}

fn both<T: Send + Copy, R: Send>(first: T, second: T, work: impl Fn(T) -> Vec<R> + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let other = thread::Builder::new().spawn_scoped(scope, move || work(second));
        let mut all = work(first);
        // If it could not be started, or did not come to its end, its part is done here.
        all.extend(other.ok().and_then(|other| other.join().ok()).unwrap_or_else(|| work(second)));
        all
    })
}
