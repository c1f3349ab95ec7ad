//! Jobs as files keep what every keeper of jobs promises; the second handle is a second opening of the directory.

use std::sync::Arc;

use tidewheel_store::jobs::Files;
use tidewheel_testkit::job_suite::World;

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let open = || Arc::new(Files::open(&folder.path().join(".tidewheel")).unwrap());
    let (store, other) = (open(), open());
    World { store, other, keeps: Box::new(folder) }
}

tidewheel_testkit::job_suite!(super::world);
