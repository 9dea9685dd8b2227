//! A real memory server, and files for regions.

use gleaner_harness::MemoryServer;
use gleaner_regions::{Regions, Settings};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

pub(crate) const MIB: u64 = 1 << 20;

/// A memory server of 64 MiB.
pub(crate) fn memory_server(listen: &str) -> MemoryServer {
    MemoryServer::start("64MiB", listen)
}

pub(crate) fn settings(url: &str) -> Settings {
    Settings {
        servers: vec![url.to_owned()],
        patience: Duration::from_secs(30), // machines that run tests are busy
        ..Settings::default()
    }
}

pub(crate) fn regions(url: &str) -> Regions {
    Regions::new(settings(url)).unwrap()
}

pub(crate) fn file(folder: &Path, name: &str, contents: &[u8]) -> File {
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    open(&path)
}

pub(crate) fn open(path: &Path) -> File {
    let mut options = std::fs::OpenOptions::new();
    options.read(true).write(true).open(path).unwrap()
}

/// Pseudo-random numbers, the same in every run.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}
