//! A real memory server, and files for regions.

use gleaner_regions::{Regions, Settings};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub(crate) const MIB: u64 = 1 << 20;

/// Ended with the value.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

/// The built program `name`, from the profile that the running test was built with.
pub(crate) fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join(name);
    let is_there = program.exists();
    assert!(is_there, "{program:?} is missing: cargo build --workspace");
    program
}

impl Server {
    pub(crate) fn start(size_mib: u64, listen: &str) -> Self {
        let size = format!("{size_mib}MiB");
        let mut child = Command::new(program("gleaner-memoryd"))
            .args(["serve", "--standalone", &size, "--listen", listen])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        let said = child.stdout.take().unwrap();
        BufReader::new(said).read_line(&mut url).unwrap();
        let url = url.trim().to_owned();
        Self { child, url }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn settings(url: &str) -> Settings {
    Settings {
        servers: vec![url.to_owned()],
        patience: Duration::from_secs(30), // machines that test are busy
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

/// Numbers that look random, the same in every run.
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
