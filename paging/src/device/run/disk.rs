//! The copy on this host's disk: a file as large as the device. A few threads read and write it, without the
//! page cache.
//!
//! The file has no name, and only this process has the key to its contents. So nothing readable is left when
//! the clerk ends, however it ends.

use crate::device::frames::{PAGE, PageBytes};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Number of requests in progress at one time.
const THREADS: usize = 4;
/// Maximum number of adjacent pages written by one call.
const MOST_TOGETHER: usize = 64;

/// Reason why there is no copy on disk.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}: {source}")]
pub struct DiskError {
    path: PathBuf,
    what: &'static str,
    source: io::Error,
}

/// A request to the disk's thread.
pub(super) struct DiskRequest {
    pub(super) op: u64,
    pub(super) page: u32,
    pub(super) bytes: Arc<PageBytes>,
}

/// A result of the disk's thread.
pub(super) enum DiskResult {
    Read {
        op: u64,
        bytes: Arc<PageBytes>,
        is_read: bool,
    },
    Written {
        op: u64,
        is_written: bool,
    },
}

#[derive(Default)]
struct Queue {
    reads: VecDeque<DiskRequest>,
    writes: VecDeque<DiskRequest>,
    done: Vec<DiskResult>,
}

struct DiskQueues {
    file: File,
    queue: Mutex<Queue>,
    news: Condvar,
    /// Event descriptor, signalled when a result is ready.
    bell: OwnedFd,
}

/// The file, and the threads that read and write it.
pub(super) struct Disk(Arc<DiskQueues>);

impl Disk {
    /// Creates the file in `folder`, and allocates space for all `pages`.
    pub(super) fn open(folder: &Path, pages: u32) -> Result<Self, DiskError> {
        let failed = |what: &'static str| {
            move |source: Errno| DiskError {
                path: folder.to_owned(),
                what,
                source: source.into(),
            }
        };
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let direct = rustix::fs::open(folder, flags | OFlags::DIRECT, mode);
        // Some file systems have no direct I/O.
        let file = direct.or_else(|_| rustix::fs::open(folder, flags, mode));
        let file = file.map_err(failed("no file can be made there"))?;
        let bytes = u64::from(pages) * PAGE as u64;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
            .map_err(failed("no room for the device's copy on disk"))?;
        let bell = rustix::event::eventfd(0, rustix::event::EventfdFlags::NONBLOCK);
        let shared = Arc::new(DiskQueues {
            file: File::from(file),
            queue: Mutex::default(),
            news: Condvar::new(),
            bell: bell.map_err(failed("no eventfd"))?,
        });
        for _ in 0..THREADS {
            let shared = shared.clone();
            let work = move || shared.work();
            let spawned = thread::Builder::new().name("disk".to_owned()).spawn(work);
            spawned.map_err(|source| DiskError {
                path: folder.to_owned(),
                what: "no thread",
                source,
            })?;
        }
        Ok(Self(shared))
    }

    pub(super) fn bell(&self) -> impl AsFd + '_ {
        &self.0.bell
    }

    pub(super) fn read(&self, wanted: DiskRequest) {
        self.0.queue().reads.push_back(wanted);
        self.0.news.notify_one();
    }

    pub(super) fn write(&self, wanted: DiskRequest) {
        self.0.queue().writes.push_back(wanted);
        self.0.news.notify_one();
    }

    /// Moves the results since the last call to `into`.
    pub(super) fn done(&self, into: &mut Vec<DiskResult>) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.0.bell, &mut count); // the count does not matter
        into.append(&mut self.0.queue().done);
    }
}

enum DiskTurn {
    Read(DiskRequest),
    Write(Vec<DiskRequest>),
}

impl DiskQueues {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles requests for ever; the thread ends with the process.
    fn work(&self) {
        loop {
            let done = match self.next() {
                DiskTurn::Read(wanted) => vec![self.do_read(wanted)],
                DiskTurn::Write(together) => self.do_write(together),
            };
            self.queue().done.extend(done);
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes()); // a full counter signals as well
        }
    }

    fn next(&self) -> DiskTurn {
        let mut queue = self.queue();
        loop {
            // Reads go first: clients wait for reads, and not for writes.
            if let Some(wanted) = queue.reads.pop_front() {
                return DiskTurn::Read(wanted);
            }
            if let Some(first) = queue.writes.pop_front() {
                let mut together = vec![first];
                while together.len() < MOST_TOGETHER
                    && let Some(last) = together.last()
                    && queue
                        .writes
                        .front()
                        .is_some_and(|next| next.page == last.page + 1)
                    && let Some(next) = queue.writes.pop_front()
                {
                    together.push(next);
                }
                return DiskTurn::Write(together);
            }
            queue = self
                .news
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn do_read(&self, mut wanted: DiskRequest) -> DiskResult {
        let bytes = &mut Arc::make_mut(&mut wanted.bytes).0;
        let at = u64::from(wanted.page) * PAGE as u64;
        let is_read = self.file.read_exact_at(bytes, at).is_ok();
        DiskResult::Read {
            op: wanted.op,
            bytes: wanted.bytes,
            is_read,
        }
    }

    fn do_write(&self, together: Vec<DiskRequest>) -> Vec<DiskResult> {
        let at = together
            .first()
            .map_or(0, |first| u64::from(first.page) * PAGE as u64);
        let slices: Vec<IoSlice<'_>> = together
            .iter()
            .map(|one| IoSlice::new(&one.bytes.0))
            .collect();
        let written = loop {
            match rustix::io::pwritev(&self.file, &slices, at) {
                Err(Errno::INTR) => {}
                other => break other.unwrap_or(0),
            }
        };
        drop(slices);
        let done = |(nth, wanted): (usize, DiskRequest)| {
            // After a short write, each remaining page is written by itself.
            let is_written = (nth + 1) * PAGE <= written || {
                let at = u64::from(wanted.page) * PAGE as u64;
                self.file.write_all_at(&wanted.bytes.0, at).is_ok()
            };
            DiskResult::Written {
                op: wanted.op,
                is_written,
            }
        };
        together.into_iter().enumerate().map(done).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn wait(disk: &Disk, count: usize) -> Vec<DiskResult> {
        let mut done = Vec::new();
        while done.len() < count {
            let bell = disk.bell();
            poll(&mut [PollFd::new(&bell, PollFlags::IN)], None).unwrap();
            disk.done(&mut done);
        }
        done
    }

    #[test]
    fn what_is_written_is_read_again_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path(), 200).unwrap();
        let page = |byte: u32| Arc::new(PageBytes([byte as u8; PAGE]));
        for number in 0..200 {
            disk.write(DiskRequest {
                op: u64::from(number),
                page: number,
                bytes: page(number),
            });
        }
        let written = wait(&disk, 200);
        assert!(written.iter().all(|done| matches!(
            done,
            DiskResult::Written {
                is_written: true,
                ..
            }
        )));
        for number in [0, 63, 64, 199] {
            disk.read(DiskRequest {
                op: 1,
                page: number,
                bytes: Arc::default(),
            });
            let DiskResult::Read { bytes, is_read, .. } = wait(&disk, 1).remove(0) else {
                panic!("none of a read");
            };
            assert!(is_read && bytes.0 == page(number).0);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let error = Disk::open(folder.path(), u32::MAX)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("no room"), "{error}");
    }
}
