//! The tokio runtime of commands. That the process may open no more files is an error here, where tokio panics.

use std::io;
use std::os::unix::net::UnixStream;

use tokio::runtime::{Builder, Runtime};

/// As many pairs of descriptors as a runtime needs: its poll, its waker, and the sockets that signals come through.
const PAIRS: usize = 4;

/// Makes a runtime in which everything runs in the thread that waits for it.
pub(crate) fn current_thread() -> io::Result<Runtime> {
    // tokio expects to get its sockets, and panics otherwise: they are asked for here first.
    let held = (0..PAIRS).map(|_| UnixStream::pair()).collect::<io::Result<Vec<_>>>()?;
    drop(held);
    Builder::new_current_thread().enable_all().build()
}
