//! Shows that the counting allocator counts what it should and nothing else.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;

use tidewheel_testkit::{CountingAllocator, allocations_in, bytes_held_by};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_vec_is_one_allocation() {
    let (allocations, numbers) = allocations_in(|| black_box(vec![1_u32, 2, 3]));
    assert_eq!((allocations, numbers.len()), (1, 3));
}

#[test]
fn zeroed_memory_is_counted() {
    let (allocations, zeros) = allocations_in(|| black_box(vec![0_u8; 4096]));
    assert_eq!((allocations, zeros.len()), (1, 4096));
}

#[test]
fn growing_is_counted_and_freeing_is_not() {
    let mut bytes: Vec<u8> = black_box(Vec::with_capacity(8));
    let (growing, ()) = allocations_in(|| bytes.reserve_exact(4096));
    assert_eq!(growing, 1);
    let (freeing, ()) = allocations_in(|| drop(bytes));
    assert_eq!(freeing, 0);
}

#[test]
fn what_is_held_is_what_was_taken_and_not_freed() {
    let (held, kept) = bytes_held_by(|| {
        drop(black_box(vec![0_u8; 4096]));
        let mut kept: Vec<u8> = black_box(Vec::with_capacity(10));
        kept.reserve_exact(100);
        kept
    });
    assert_eq!(held, 100);
    assert_eq!(bytes_held_by(|| drop(kept)).0, -100);
    assert_eq!(bytes_held_by(|| black_box(vec![0_u64; 8])).0, 64, "zeroed memory counts, too");
}

#[test]
fn arithmetic_is_no_allocation() {
    let (allocations, sum) = allocations_in(|| (0..black_box(1000_u64)).map(|n| n * n).sum::<u64>());
    assert_eq!((allocations, sum), (0, 332_833_500));
}

#[test]
fn another_thread_is_not_counted() {
    let turn = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            turn.wait();
            turn.wait();
            for _ in 0..100 {
                drop(black_box(vec![1_u8]));
            }
            turn.wait();
        });
        // Some systems set up a lock at its first use, which allocates.
        turn.wait();
        let (allocations, ()) = allocations_in(|| {
            turn.wait();
            turn.wait();
        });
        assert_eq!(allocations, 0);
    });
}

#[test]
fn a_thread_that_ends_may_still_allocate() {
    struct AllocatesWhenDropped;
    impl Drop for AllocatesWhenDropped {
        fn drop(&mut self) {
            drop(black_box(vec![1_u8]));
        }
    }
    thread_local! {
        static LAST_WORDS: AllocatesWhenDropped = const { AllocatesWhenDropped };
    }
    let ended = thread::spawn(|| LAST_WORDS.with(|_| ())).join();
    assert!(ended.is_ok());
}
