//! Moves batches from the journal into the dataset, in the background.
//!
//! A segment is removed only after its rows are sealed. After a crash in between, its rows are sealed again,
//! and the dataset drops rows that it already has. So each row is stored once.

use crate::hosts::{Facts, Hosts};
use crate::journal::{self, Entry, Header, Journal};
use crate::publish::{self, Publisher};
use crate::{Error, now_ms};
use arrow::record_batch::RecordBatch;
use gleaner_dataset::batch::Limits;
use gleaner_dataset::{
    Batch, BatchError, Compaction, DatasetError, Identity, Policy as Retention, RowsBuilder, Writer,
};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::ClockRow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Interval of checks for work.
const TICK: Duration = Duration::from_secs(1);
/// Pause after a failure.
const RETRY: Duration = Duration::from_secs(30);
/// No size limit: a batch's content is at most as large as when it was accepted.
const ANY_SIZE: Limits = Limits {
    compressed_bytes: usize::MAX,
    content_bytes: usize::MAX,
};

/// Rules of sealing.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Maximum time from the acceptance of a batch until it is in the dataset.
    pub seal_after: Duration,
    /// Bytes in closed segments at which they are sealed without further waiting.
    pub journal_bytes: u64,
    /// Size in memory at which rows are sealed immediately.
    pub memory_bytes: usize,
    /// Rules of merging files.
    pub compaction: Compaction,
    /// Retention of the tables.
    pub retention: Retention,
    /// Name of this collector, if several write into one dataset.
    pub collector_name: Option<String>,
}

/// State and work of the sealer.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Number of seals since the collector started.
    pub seals_count: u64,
    /// Number of rows added to the dataset by these seals.
    pub sealed_rows_count: u64,
    /// Number of rows that were dropped because the dataset already had them.
    pub repeated_rows_count: u64,
    /// Number of dataset files that were found damaged and set aside.
    pub damaged_files_count: u64,
    /// Bytes of journal that were damaged and could not be read.
    pub lost_journal_bytes: u64,
    /// Number of batches that could not be sealed. They were set aside in the journal as `*.rejected`.
    pub set_aside_batches_count: u64,
    /// End of the last seal, ms since 1970-01-01 UTC.
    pub last_sealed_time_ms: Option<i64>,
    /// Number of small files merged into larger ones.
    pub merged_files_count: u64,
    /// Number of rows deleted because their retention was over.
    pub dropped_rows_count: u64,
    /// Reason why sealing fails; absent while sealing works.
    pub failure: Option<String>,
    /// Reason why merging files fails; absent while merging works.
    pub merge_failure: Option<String>,
}

/// Handle of the sealer's thread.
#[derive(Clone, Debug)]
pub struct Sealer {
    requests: mpsc::Sender<mpsc::Sender<Result<(), String>>>,
    wanted: Arc<Mutex<Policy>>,
    progress: Arc<Mutex<Progress>>,
    publisher: Option<Publisher>,
}

impl Sealer {
    /// Starts the sealer's thread, which ends with the last handle. Every write is reported to `publisher`.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can be started.
    pub fn start(
        dataset: PathBuf,
        journal: Journal,
        hosts: Arc<Hosts>,
        policy: Policy,
        publisher: Option<Publisher>,
    ) -> Result<Self, Error> {
        let (requests, asked) = mpsc::channel();
        let progress = Arc::new(Mutex::new(Progress::default()));
        let wanted = Arc::new(Mutex::new(policy.clone()));
        let work = Work {
            dataset,
            journal,
            hosts,
            policy,
            wanted: Arc::clone(&wanted),
            progress: Arc::clone(&progress),
            publisher: publisher.clone(),
        };
        thread::Builder::new()
            .name("sealer".to_owned())
            .spawn(move || work.run(&asked))
            .map_err(Error::io("start a thread for", "sealing"))?;
        Ok(Self {
            requests,
            wanted,
            progress,
            publisher,
        })
    }

    /// Seals all batches acknowledged so far, and waits until that is done.
    ///
    /// # Errors
    /// Reason why they could not be sealed.
    pub fn seal_now(&self) -> Result<(), String> {
        let (done, sealed) = mpsc::channel();
        let ended = || "the sealer has ended".to_owned();
        self.requests.send(done).map_err(|_| ended())?;
        sealed.recv().map_err(|_| ended())?
    }

    /// Applies new rules of sealing and retention. The collector's name and the memory limit do not change.
    pub(crate) fn configure(&self, policy: Policy) {
        let mut wanted = lock_policy(&self.wanted);
        wanted.seal_after = policy.seal_after;
        wanted.retention = policy.retention;
    }

    /// Present state and work.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let progress = self.progress.lock();
        progress.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Progress of the copy on an object store, if there is one.
    #[must_use]
    pub fn published(&self) -> Option<publish::Progress> {
        self.publisher.as_ref().map(Publisher::progress)
    }
}

fn lock_policy(policy: &Mutex<Policy>) -> MutexGuard<'_, Policy> {
    policy.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Work {
    dataset: PathBuf,
    journal: Journal,
    hosts: Arc<Hosts>,
    policy: Policy,
    /// Policy that takes effect with the next check.
    wanted: Arc<Mutex<Policy>>,
    progress: Arc<Mutex<Progress>>,
    /// Publisher that is notified of writes; the sealer never waits for it.
    publisher: Option<Publisher>,
}

impl Work {
    fn run(mut self, asked: &mpsc::Receiver<mpsc::Sender<Result<(), String>>>) {
        let mut next = Instant::now(); // seals segments of an earlier run at once
        loop {
            let done = match asked.recv_timeout(TICK) {
                Ok(done) => Some(done),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            };
            self.policy.clone_from(&lock_policy(&self.wanted));
            next = next.min(Instant::now() + self.policy.seal_after);
            let can_wait = self.waiting_bytes() < self.policy.journal_bytes
                || self.progress().failure.is_some();
            if done.is_none() && can_wait && Instant::now() < next {
                continue;
            }
            let sealed = self.seal();
            let wait = if sealed.is_ok() {
                self.policy.seal_after
            } else {
                RETRY.min(self.policy.seal_after)
            };
            next = Instant::now() + wait;
            let sealed = sealed.map_err(|e| e.to_string());
            self.tell(&sealed);
            self.upkeep();
            trim_heap();
            self.publisher.iter().for_each(Publisher::tell);
            if let Some(done) = done {
                let _ = done.send(sealed); // the caller may have gone
            }
        }
    }

    fn seal(&self) -> Result<(), Error> {
        self.journal.rotate();
        self.hosts.files_may_grow();
        let segments = self.journal.closed();
        let mut open = OpenWriter {
            work: self,
            writer: None,
            clocks: BTreeMap::new(),
        };
        let mut damaged = BTreeMap::new();
        for &number in segments.keys() {
            let contents = journal::read(self.journal.folder(), number)?;
            for (index, entry) in contents.entries.iter().enumerate() {
                match open.add(&entry.header, &entry.body) {
                    Err(Error::Journal { host_id, source }) if !is_newer(&source) => {
                        self.reject(number, index, entry, &host_id, &source)?;
                    }
                    added => added?,
                }
            }
            if contents.is_damaged {
                damaged.insert(number, contents.lost_bytes);
            }
        }
        open.seal()?;
        self.hosts.save()?;
        for &number in segments.keys() {
            match damaged.get(&number) {
                Some(&lost_bytes) => self.set_aside(number, lost_bytes)?,
                None => journal::remove(self.journal.folder(), number)?,
            }
            self.journal.forget(number);
        }
        Ok(())
    }

    /// Stores a batch that no dataset accepts in a separate file of the journal, so that other batches can be
    /// sealed.
    fn reject(
        &self,
        number: u64,
        index: usize,
        entry: &Entry,
        host_id: &str,
        why: &BatchError,
    ) -> Result<(), Error> {
        let kept = journal::keep_rejected(self.journal.folder(), number, index, entry)?;
        self.progress().set_aside_batches_count += 1;
        eprintln!(
            "gleaner-collector: a batch of host {host_id} cannot be sealed ({why}); it is kept in {}, and sealing continues",
            kept.display()
        );
        Ok(())
    }

    fn set_aside(&self, number: u64, lost_bytes: usize) -> Result<(), Error> {
        let aside = journal::set_aside(self.journal.folder(), number)?;
        self.progress().lost_journal_bytes += lost_bytes as u64;
        eprintln!(
            "gleaner-collector: {lost_bytes} bytes of the journal were damaged; what could be read was kept, the rest lies in {}",
            aside.display()
        );
        Ok(())
    }

    fn writer(&self) -> Result<Writer, DatasetError> {
        match &self.policy.collector_name {
            Some(name) => Writer::open_named(&self.dataset, name),
            None => Writer::open(&self.dataset),
        }
    }

    /// Merges small files and deletes rows past their retention, unless batches wait to be sealed.
    fn upkeep(&self) {
        let failure = self.merge_and_retain().err().map(|e| e.to_string());
        let mut progress = self.progress();
        if let Some(reason) = &failure
            && progress.merge_failure != failure
        {
            eprintln!("gleaner-collector: cannot merge files, or drop old ones: {reason}");
        }
        progress.merge_failure = failure;
    }

    fn merge_and_retain(&self) -> Result<(), Error> {
        if !self.dataset.is_dir() {
            return Ok(()); // nothing was sealed yet
        }
        let mut writer = self.writer()?;
        while self.waiting_bytes() < self.policy.journal_bytes {
            let now = SystemTime::now();
            if let Some(done) = writer.compact_step(&self.policy.compaction, now)? {
                let mut progress = self.progress();
                progress.merged_files_count += done.merged_files as u64;
                progress.repeated_rows_count += done.repeated_rows;
            } else if let Some(done) = writer.retain_step(&self.policy.retention, now)? {
                self.progress().dropped_rows_count += done.rows;
            } else {
                break;
            }
        }
        Ok(())
    }

    fn waiting_bytes(&self) -> u64 {
        self.journal.closed().values().sum()
    }

    /// Sets damaged files aside without deleting them, so that sealing can continue.
    fn repair(&self, writer: &mut Writer) -> Result<(), Error> {
        let repaired = writer.repair()?;
        for problem in &repaired.problems {
            eprintln!(
                "gleaner-collector: {} was damaged and is set aside in .damaged; `gleaner-collector verify` tells more",
                problem.path
            );
        }
        self.progress().damaged_files_count += repaired.problems.len() as u64;
        Ok(())
    }

    fn tell(&self, sealed: &Result<(), String>) {
        let mut progress = self.progress();
        let failure = sealed.clone().err();
        match (&progress.failure, &failure) {
            (None, Some(reason)) => eprintln!(
                "gleaner-collector: cannot seal: {reason}; new batches stay in the journal"
            ),
            (Some(_), None) => eprintln!("gleaner-collector: sealing again"),
            _ => {}
        }
        progress.failure = failure;
        if sealed.is_ok() {
            progress.last_sealed_time_ms = Some(now_ms());
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns memory to the kernel. A seal uses hundreds of MiB for seconds, and glibc would keep much of it
/// until the next seal.
fn trim_heap() {
    // SAFETY: malloc_trim(3) may be called by any thread at any time.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    unsafe {
        libc::malloc_trim(0);
    }
}

/// The dataset's writer. It is open only while there is something to write, so that other programs can write
/// in between.
struct OpenWriter<'a> {
    work: &'a Work,
    writer: Option<Writer>,
    /// First batch of each host in this seal that has the difference of the clocks.
    clocks: BTreeMap<String, Header>,
}

impl OpenWriter<'_> {
    fn add(&mut self, header: &Header, body: &[u8]) -> Result<(), Error> {
        let batch = Batch::decode(body, &ANY_SIZE).map_err(|e| unreadable(header, e))?;
        let facts = Facts::of(&batch).map_err(|e| unreadable(header, e))?;
        self.work.hosts.sealed(header, facts);
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(self.work.writer()?),
        };
        for (table, rows) in batch.tables {
            writer.append(&table, rows)?;
        }
        if header.skew_ms.is_some() && !self.clocks.contains_key(&header.host_id) {
            self.clocks.insert(header.host_id.clone(), header.clone());
        }
        if writer.pending_bytes() >= self.work.policy.memory_bytes {
            self.seal()?;
        }
        Ok(())
    }

    fn seal(&mut self) -> Result<(), Error> {
        if let Some(writer) = &mut self.writer {
            writer.append(
                &ClockRow::TABLE,
                clocks(&self.clocks, self.work.policy.collector_name.as_deref())?,
            )?;
            self.clocks.clear();
            let summary = match writer.seal() {
                Err(DatasetError::Torn { .. } | DatasetError::Altered { .. }) => {
                    self.work.repair(writer)?;
                    writer.seal()?
                }
                sealed => sealed?,
            };
            let mut progress = self.work.progress();
            progress.seals_count += 1;
            progress.sealed_rows_count += summary.rows;
            progress.repeated_rows_count += summary.repeated_rows;
        }
        Ok(())
    }
}

/// Rows of the `clocks` table, one for each host whose clock is known.
fn clocks(
    told: &BTreeMap<String, Header>,
    collector: Option<&str>,
) -> Result<RecordBatch, DatasetError> {
    let mut rows = RowsBuilder::new(&ClockRow::TABLE);
    for header in told.values() {
        let identity = Identity {
            host_id: &header.host_id,
            database_id: &header.database_id,
            sequence: header.last_sequence,
            time_ms: header.received_time_ms,
        };
        let row = ClockRow {
            skew_ms: header.skew_ms.unwrap_or_default(),
            collector: collector.map(str::to_owned),
        };
        rows.push(identity, row.to_values())?;
    }
    rows.finish()
}

/// Returns true for a batch of a later release. After a downgrade, such batches wait in the journal.
fn is_newer(error: &BatchError) -> bool {
    matches!(error, BatchError::Newer { .. })
}

fn unreadable(header: &Header, source: BatchError) -> Error {
    Error::Journal {
        host_id: header.host_id.clone(),
        source,
    }
}
