//! Shows that counting without the counting allocator is refused, since it would find zero for everything.

use tidewheel_testkit::allocations_in;

#[test]
#[should_panic(expected = "CountingAllocator is not the #[global_allocator]")]
fn counting_with_another_allocator_panics() {
    allocations_in(|| ());
}
