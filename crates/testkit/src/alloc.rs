//! An allocator that counts, so that a test can state what a path allocates; the only file with unsafe code.
#![expect(
    unsafe_code,
    reason = "an allocator is unsafe to implement; each call goes to the system's allocator unchanged"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// The system's allocator, with a count of the allocations and of the bytes of each thread.
///
/// A test that counts makes it the allocator of its binary.
/// The count belongs to the thread, so that tests which run beside each other do not disturb each other.
///
/// ```
/// use tidewheel_testkit::{CountingAllocator, allocations_in};
///
/// #[global_allocator]
/// static ALLOCATOR: CountingAllocator = CountingAllocator;
///
/// let (allocations, sum) = allocations_in(|| (1..=10_u64).sum::<u64>());
/// assert_eq!((allocations, sum), (0, 55));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

/// Returns how often this thread allocated while it did `work`, and what the work returned.
///
/// Growing or shrinking an allocation counts as one, freeing does not count.
/// What other threads allocate is not seen, not even those that `work` starts.
///
/// # Panics
///
/// Panics if [`CountingAllocator`] is not the allocator of this binary.
/// Otherwise every count would be zero, and a test that wants zero would pass without having looked.
pub fn allocations_in<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let unproven = count();
    drop(black_box(Box::new(0_u8)));
    assert_ne!(unproven, count(), "CountingAllocator is not the #[global_allocator] of this test binary");

    let before = count();
    let result = work();
    (count() - before, result)
}

/// Returns how many bytes this thread holds after `work` beyond what it held before, and what the work
/// returned; what that owns is among them. Negative if the work freed more than it took.
///
/// # Panics
///
/// Panics if [`CountingAllocator`] is not the allocator of this binary.
pub fn bytes_held_by<T>(work: impl FnOnce() -> T) -> (i64, T) {
    let (before, (_, result)) = (held(), allocations_in(work));
    (held() - before, result)
}

thread_local! {
    // Constant and without a destructor: the first use on a thread must not allocate, or `alloc` would call
    // itself.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn count() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

fn held() -> i64 {
    HELD.with(Cell::get)
}

/// Counts bytes that were taken or, as a negative number, freed.
fn hold(bytes: i64) {
    let _gone = HELD.try_with(|held| held.set(held.get().wrapping_add(bytes)));
}

/// Returns a size as a number that can be subtracted. An allocation is never larger than the largest of them.
const fn signed(size: usize) -> i64 {
    size.cast_signed() as i64
}

/// Counts one allocation, unless the thread is so far gone that its variables are, too.
///
/// A panic inside an allocator would abort the process, and nobody asks for the count of a thread that ends.
fn count_one() {
    let _gone = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get().wrapping_add(1)));
}

// SAFETY: every method hands its arguments to `System`, which keeps the contract of `GlobalAlloc`, and
// returns what it returns. The counting neither allocates nor panics: it adds to numbers of the thread.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_one();
        hold(signed(layout.size()));
        // SAFETY: the caller promises a layout whose size is not zero, as `System` demands.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_one();
        hold(signed(layout.size()));
        // SAFETY: the caller promises a layout whose size is not zero, as `System` demands.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_one();
        hold(signed(new_size) - signed(layout.size()));
        // SAFETY: the caller promises that `block` came from this allocator with this layout, and all that
        // this allocator returns came from `System`. The new size is not zero and fits, also by the caller's
        // promise.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        hold(-signed(layout.size()));
        // SAFETY: the caller promises that `block` came from this allocator with this layout, and all that
        // this allocator returns came from `System`.
        unsafe { System.dealloc(block, layout) }
    }
}
