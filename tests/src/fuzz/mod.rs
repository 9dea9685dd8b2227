//! All decoders of external data, each as a function of bytes. `fuzz/` runs them under libFuzzer (`make
//! soak`), and the end-to-end tests run `fuzz/corpus` through them.
//!
//! A decoder may reject any input. It must not panic, allocate without limit, or write what it cannot read
//! again.

mod files;
mod wire;

use std::path::Path;

/// Name of a decoder, and the decoder. The decoder's folder in `fuzz/corpus` has the same name.
pub type Target = (&'static str, fn(&[u8]));

/// All decoders under test.
pub const TARGETS: [Target; 14] = [
    ("batch", wire::batch),
    ("catalog", files::catalog),
    ("certificate", files::certificate),
    ("config", files::config),
    ("curve", files::curve),
    ("dataset_file", files::dataset_file),
    ("import", files::import),
    ("journal", files::journal),
    ("link", wire::link),
    ("manifest", files::manifest),
    ("messages", wire::messages),
    ("nbd_client", wire::nbd_client),
    ("nbd_server", wire::nbd_server),
    ("proc", files::proc),
];

/// Finds the decoder with this name.
#[must_use]
pub fn target(name: &str) -> Option<fn(&[u8])> {
    let found = TARGETS.iter().find(|(own, _)| *own == name);
    found.map(|(_, run)| *run)
}

/// Creates a temporary folder, in memory if possible: a fuzzer writes thousands of files per second.
fn folder() -> std::io::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        return tempfile::tempdir_in(memory);
    }
    tempfile::tempdir()
}
