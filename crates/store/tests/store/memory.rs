//! The store in memory keeps what every store promises, and answers without waiting for anybody.

use std::sync::Arc;

use tidewheel_store::{Filter, Memory, Store};
use tidewheel_testkit::VirtualClock;
use tidewheel_testkit::store_suite::World;

async fn world() -> World {
    let clock = VirtualClock::default();
    let store = Arc::new(Memory::new(Arc::new(clock.clone())));
    let all = Arc::clone(&store);
    let process = Box::new(move |clock| Arc::new(all.seen_by(Arc::new(clock))) as Arc<dyn Store>);
    World { store: store.clone(), other: store, clock, process, keeps: Box::new(()) }
}

tidewheel_testkit::store_suite!(super::world);

#[test]
fn it_needs_no_runtime_and_no_other_thread() {
    let store = Memory::new(Arc::new(VirtualClock::default()));
    let mut answer = store.list(Filter::default());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(answer.as_mut().poll(&mut context).is_ready());
}

/// A store in front of another one changes nothing as long as nobody wants it to.
mod behind_a_faulty_store {
    use super::{Arc, World};
    use tidewheel_testkit::FaultyStore;

    async fn world() -> World {
        let world = super::world().await;
        let store = Arc::new(FaultyStore::new(world.store));
        World { store: store.clone(), other: store, ..world }
    }

    tidewheel_testkit::store_suite!(super::world);
}
