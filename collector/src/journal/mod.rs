//! The journal stores batches durably, from before their acknowledgement until they are in the dataset.
//!
//! Only one thread writes. Batches that arrive during a sync are written together by the next sync, so that
//! one disk serves thousands of hosts. A full segment is closed. The sealer moves the batches of closed
//! segments to the dataset, and removes these segments. After a crash at any point, each acknowledged batch
//! is in a segment, in the dataset, or in both; the dataset drops repeats.

mod entry;
mod segment;

pub use entry::{Entry, Header};
pub(crate) use segment::{keep_rejected, read, remove, set_aside};

use crate::Error;
use segment::Segment;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use tokio::sync::oneshot;

/// Maximum number of batches waiting to be written. Senders of further batches must try again later.
const WAITING_BATCHES: usize = 1024;
/// Maximum number of bytes written by one sync.
const SYNCED_AT_ONCE_BYTES: usize = 32 << 20;

/// Counts the complete entries and the lost bytes of a segment with content `bytes`. Only the fuzzer uses it.
#[doc(hidden)]
#[must_use]
pub fn count_entries(bytes: &[u8]) -> (usize, usize) {
    let contents = segment::contents(bytes);
    (contents.entries.len(), contents.lost_bytes)
}

/// Limits of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Size at which a segment is closed.
    pub segment_bytes: u64,
    /// Bytes of the disk that are left free, since sealing needs space before it frees any.
    pub reserve_bytes: u64,
}

/// Reason why a batch was not made durable. The batch is not in the journal, and may be sent again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalRefusal {
    /// Batches arrive faster than the disk can write them.
    #[error("the collector's disk is busy")]
    Busy,
    /// The disk is full or fails.
    #[error("the collector cannot write: {0}")]
    Disk(String),
}

/// Callback with the headers of entries that just became durable. It runs before their senders are answered.
pub type OnDurable = Box<dyn Fn(&[Header]) + Send>;

enum Message {
    Append(Entry, oneshot::Sender<Result<(), JournalRefusal>>),
    Rotate(mpsc::Sender<()>),
}

/// Handle of the journal's thread.
#[derive(Clone, Debug)]
pub struct Journal {
    folder: PathBuf,
    sender: mpsc::SyncSender<Message>,
    closed: Arc<Mutex<BTreeMap<u64, u64>>>,
    /// Bytes of the segment being written.
    open_bytes: Arc<AtomicU64>,
}

impl Journal {
    /// Opens the journal in `folder` and starts its thread, which ends with the last handle. Segments of
    /// earlier runs count as closed.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(folder: &Path, limits: Limits, durable: OnDurable) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        let numbers = segment::numbers(folder)?;
        let next = numbers.last().map_or(1, |last| last + 1);
        let closed: BTreeMap<u64, u64> = numbers
            .into_iter()
            .map(|number| (number, segment::length(folder, number)))
            .collect();
        let closed = Arc::new(Mutex::new(closed));
        let open_bytes = Arc::new(AtomicU64::new(0));
        let (sender, messages) = mpsc::sync_channel(WAITING_BATCHES);
        let thread = Writer {
            folder: folder.to_owned(),
            limits,
            durable,
            segment: None,
            next,
            closed: Arc::clone(&closed),
            open_bytes: Arc::clone(&open_bytes),
        };
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || thread.run(&messages))
            .map_err(Error::io("start a thread for", folder))?;
        Ok(Self {
            folder: folder.to_owned(),
            sender,
            closed,
            open_bytes,
        })
    }

    /// Makes a batch durable.
    ///
    /// # Errors
    /// [`JournalRefusal`]: the batch is not in the journal.
    pub async fn append(&self, entry: Entry) -> Result<(), JournalRefusal> {
        let (done, written) = oneshot::channel();
        let message = Message::Append(entry, done);
        self.sender
            .try_send(message)
            .map_err(|_| JournalRefusal::Busy)?;
        written.await.unwrap_or(Err(JournalRefusal::Busy))
    }

    /// Closes the segment that is being written, and waits until it is closed.
    pub fn rotate(&self) {
        let (done, rotated) = mpsc::channel();
        if self.sender.send(Message::Rotate(done)).is_ok() {
            let _ = rotated.recv(); // an error means that the thread has ended, and nothing is being written
        }
    }

    /// Folder of the segments.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Closed segments and their lengths in bytes, oldest first.
    #[must_use]
    pub fn closed(&self) -> BTreeMap<u64, u64> {
        self.lock().clone()
    }

    /// Bytes in all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let closed: u64 = self.lock().values().sum();
        closed + self.open_bytes.load(Ordering::Relaxed)
    }

    /// Removes a segment from the list after it was removed or set aside.
    pub(crate) fn forget(&self, number: u64) {
        self.lock().remove(&number);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, u64>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of the journal's thread.
struct Writer {
    folder: PathBuf,
    limits: Limits,
    durable: OnDurable,
    segment: Option<Segment>,
    next: u64,
    closed: Arc<Mutex<BTreeMap<u64, u64>>>,
    open_bytes: Arc<AtomicU64>,
}

impl Writer {
    fn run(mut self, messages: &mpsc::Receiver<Message>) {
        while let Ok(first) = messages.recv() {
            let mut bytes = Vec::new();
            let mut senders = Vec::new();
            let mut rotations = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Append(entry, done) => {
                        entry.write(&mut bytes);
                        senders.push((entry.header, done));
                    }
                    Message::Rotate(done) => rotations.push(done),
                }
                next = (bytes.len() < SYNCED_AT_ONCE_BYTES)
                    .then(|| messages.try_recv().ok())
                    .flatten();
            }
            self.commit(&bytes, senders);
            if !rotations.is_empty() {
                self.close();
            }
            for done in rotations {
                let _ = done.send(()); // the caller may have gone
            }
        }
    }

    fn commit(
        &mut self,
        bytes: &[u8],
        senders: Vec<(Header, oneshot::Sender<Result<(), JournalRefusal>>)>,
    ) {
        if senders.is_empty() {
            return;
        }
        let (headers, senders): (Vec<_>, Vec<_>) = senders.into_iter().unzip();
        let written = self.write(bytes);
        if written.is_ok() {
            (self.durable)(&headers);
        }
        for done in senders {
            let _ = done.send(written.clone()); // a sender that has gone sends again
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), JournalRefusal> {
        let disk = |error: Error| JournalRefusal::Disk(error.to_string());
        let free = free_bytes(&self.folder).map_err(disk)?;
        if free < self.limits.reserve_bytes.saturating_add(bytes.len() as u64) {
            return Err(JournalRefusal::Disk(format!(
                "only {free} bytes are free in {}, and {} are kept free",
                self.folder.display(),
                self.limits.reserve_bytes
            )));
        }
        let segment = match &mut self.segment {
            Some(segment) => segment,
            none => {
                let created = Segment::create(&self.folder, self.next).map_err(disk)?;
                self.next += 1;
                none.insert(created)
            }
        };
        let appended = segment.append(bytes).map_err(disk);
        self.open_bytes.store(segment.bytes, Ordering::Relaxed);
        // After a failed sync, the kernel may discard unwritten data and report later syncs as successful. So
        // the segment is closed.
        if appended.is_err() || segment.bytes >= self.limits.segment_bytes {
            self.close();
        }
        appended
    }

    fn close(&mut self) {
        if let Some(segment) = self.segment.take() {
            let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
            closed.insert(segment.number, segment.bytes);
            self.open_bytes.store(0, Ordering::Relaxed);
        }
    }
}

/// Bytes that are free on the disk of `folder`.
///
/// # Errors
/// [`Error::Io`].
pub fn free_bytes(folder: &Path) -> Result<u64, Error> {
    let found = rustix::fs::statvfs(folder).map_err(|e| Error::io("look at", folder)(e.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
