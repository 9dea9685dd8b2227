//! Readers of random blocks on all hosts.

use super::stage::{BLOCK, LARGE_BLOCKS};
use gleaner_harness::{Random, wait_for};
use std::fmt::Debug;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// Readers of one host.
const READERS: usize = 2;
/// Timeout of the source at all hosts, and its line in their configurations.
const SOURCE_TIMEOUT: Duration = Duration::from_secs(3);
pub(super) const SOURCE_TIMEOUT_KEY: &str = "source_timeout = \"3s\"\n";
/// Error number of a read that failed.
const EIO: Option<i32> = Some(5);
/// Longest wait for a read, on a machine without delays of its own.
const LONGEST: Duration = SOURCE_TIMEOUT.saturating_add(Duration::from_secs(1));
/// Threads that a read waits for: the service's three, and the reader itself.
const THREADS: u32 = 4;
const TICK: Duration = Duration::from_millis(20);

/// A fault that lasts for a part of one round.
pub(super) trait RoundFault: Copy + Debug + Sync + 'static {
    /// Faults of all kinds, one of each.
    fn all(random: &mut Random) -> Vec<Self>;

    /// Returns true if the service of this host is killed.
    fn kills(self, host: usize) -> bool;

    /// Returns true if the service of this host is stopped while the fault lasts.
    fn stops(self, host: usize) -> bool;

    /// Returns true if no host can read this block from the source.
    fn loses(self, block: usize) -> bool;
}

/// Readers' progress in one round.
pub(super) struct Round<'a, F> {
    fault: F,
    wanted: &'a [u8],
    is_over: AtomicBool,
    /// Number of ended reads of each reader.
    reads: Vec<AtomicU64>,
    /// Longest wait for a read, in ms. Reads on a stopped host do not count.
    longest_ms: AtomicU64,
    /// Longest delay of a thread that wanted to run, in ms.
    late_ms: AtomicU64,
    /// First read that the fault does not explain.
    wrong: Mutex<Option<String>>,
}

/// Ends the readers when it is dropped, also by a panic.
pub(super) struct RoundEnd<'a, 'b, F>(pub(super) &'a Round<'b, F>);

impl<F> Drop for RoundEnd<'_, '_, F> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

impl<'a, F: RoundFault> Round<'a, F> {
    pub(super) fn new(fault: F, wanted: &'a [u8], hosts_count: usize) -> Self {
        Self {
            fault,
            wanted,
            is_over: AtomicBool::new(false),
            reads: (0..hosts_count * READERS)
                .map(|_| AtomicU64::new(0))
                .collect(),
            longest_ms: AtomicU64::new(0),
            late_ms: AtomicU64::new(0),
            wrong: Mutex::new(None),
        }
    }

    /// Starts the readers of hosts, whose file is at these paths.
    pub(super) fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        paths: &'s [PathBuf],
        random: &mut Random,
    ) {
        for reader in 0..paths.len() * READERS {
            let (path, random) = (&paths[reader / READERS], Random(random.below(u64::MAX)));
            scope.spawn(move || self.read(reader, path, random));
        }
        scope.spawn(move || self.watch_delays());
    }

    /// Measures how late a thread runs on this machine.
    fn watch_delays(&self) {
        while !self.is_over.load(Ordering::SeqCst) {
            let begin = Instant::now();
            thread::sleep(TICK);
            let late = begin.elapsed().saturating_sub(TICK);
            let late_ms = late.as_millis() as u64;
            self.late_ms.fetch_max(late_ms, Ordering::SeqCst);
        }
    }

    /// Reads random blocks through a host's mount until the round is over. A reader whose host is killed ends.
    fn read(&self, reader: usize, path: &Path, mut random: Random) {
        let host = reader / READERS;
        while !self.is_over.load(Ordering::SeqCst) {
            let block = random.below(LARGE_BLOCKS) as usize;
            let end = ((block + 1) * BLOCK).min(self.wanted.len());
            let wanted = &self.wanted[block * BLOCK..end];
            let mut bytes = vec![0; wanted.len()];
            let begin = Instant::now();
            let found = File::open(path)
                .and_then(|file| file.read_exact_at(&mut bytes, (block * BLOCK) as u64));
            let waited_ms = begin.elapsed().as_millis() as u64;
            if !self.fault.stops(host) {
                self.longest_ms.fetch_max(waited_ms, Ordering::SeqCst);
            }
            let is_explained = match &found {
                Ok(()) => bytes == wanted,
                Err(error) => self.is_explained(host, block, error.raw_os_error()),
            };
            if !is_explained {
                let text = format!("host {host}, block {block}, {waited_ms} ms: {found:?}");
                self.wrong.lock().unwrap().get_or_insert(text);
                return;
            }
            if found.is_err() && self.fault.kills(host) {
                return;
            }
            self.reads[reader].fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns true if the fault is a reason for an error of a read.
    fn is_explained(&self, host: usize, block: usize, error: Option<i32>) -> bool {
        let fault = self.fault;
        (fault.kills(host) && error.is_some())
            || (error == EIO && (fault.stops(host) || fault.loses(block)))
    }

    fn counts(&self) -> Vec<u64> {
        let counts = self.reads.iter();
        counts.map(|count| count.load(Ordering::SeqCst)).collect()
    }

    /// Waits until the numbers of reads suffice, or a read was wrong.
    pub(super) fn wait(&self, suffice: impl Fn(&[u64]) -> bool) {
        wait_for("reads", || {
            self.wrong.lock().unwrap().is_some() || suffice(&self.counts())
        });
    }

    /// Waits until each reader of some hosts has ended this many further reads.
    pub(super) fn wait_for_each(&self, more: u64, counts_host: impl Fn(usize) -> bool) {
        let before = self.counts();
        self.wait(|reads| {
            let mut readers = reads.iter().zip(&before).enumerate();
            readers
                .all(|(reader, (now, then))| !counts_host(reader / READERS) || *now >= then + more)
        });
    }

    /// Fails if a read was wrong, or took too long.
    pub(super) fn judge(&self) {
        let fault = self.fault;
        if let Some(wrong) = &*self.wrong.lock().unwrap() {
            panic!("{fault:?}: {wrong}");
        }
        let read = |ms: &AtomicU64| Duration::from_millis(ms.load(Ordering::SeqCst));
        let (longest, late) = (read(&self.longest_ms), read(&self.late_ms));
        assert!(
            longest <= LONGEST + THREADS * late,
            "{fault:?}: a read took {longest:?}; threads were up to {late:?} late"
        );
    }
}
