//! Keeps a copy of the dataset on an object store, where other engines can read it.
//!
//! A separate thread updates the copy when the sealer notifies it, so that sealing never waits for a network.
//! The thread uploads files first, and then the manifest in one request. It removes files that no manifest
//! has listed for an hour. So readers of the manifest find a consistent set at any moment, however the
//! collector ends.

mod mirror;

use crate::{Error, now_ms};
use gleaner_dataset::DatasetError;
use gleaner_objects::{Target, in_full};
use gleaner_trust::Backoff;
use mirror::Mirror;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Interval of full comparisons, which restore files that other programs removed.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// Wait after the first failure. It doubles with each further failure.
const RETRY: Duration = Duration::from_secs(1);
/// Maximum wait after repeated failures.
const RETRY_AT_MOST: Duration = Duration::from_secs(300);

/// Settings of the copy.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Object store, with the place in it.
    pub target: Target,
    /// Time for which files stay after the manifest no longer lists them, for readers of an earlier manifest.
    pub grace: Duration,
}

/// Progress of the copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// URL of the copy.
    pub url: String,
    /// Last time at which the store held the whole dataset, ms since 1970-01-01 UTC.
    pub last_published_time_ms: Option<i64>,
    /// Number of files of the dataset that the store lacks, as far as known.
    pub pending_files_count: u64,
    /// Total size of the pending files, in bytes.
    pub pending_bytes: u64,
    /// Reason why the store cannot be written; `None` while it can.
    pub failure: Option<String>,
}

/// Reason why the store could not be updated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("cannot {action} {place}: {}", in_full(source))]
    Store {
        action: &'static str,
        place: String,
        source: object_store::Error,
    },
    #[error(
        "{url} holds a dataset that was not put there from this one; publish to another place, or remove its {manifest}"
    )]
    NotOurs { url: String, manifest: String },
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Dataset(#[from] DatasetError),
}

impl Failure {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }
}

/// Handle of the publisher's thread, which ends with the last handle.
#[derive(Clone, Debug)]
pub struct Publisher {
    told: mpsc::SyncSender<()>,
    progress: Arc<Mutex<Progress>>,
}

impl Publisher {
    /// Starts the thread. It publishes the data that the collector called `name` writes to the dataset.
    ///
    /// # Errors
    /// [`Error::Io`] if the thread cannot be started.
    pub fn start(dataset: &Path, name: Option<&str>, settings: &Settings) -> Result<Self, Error> {
        let (told, hears) = mpsc::sync_channel(1); // one pending notice suffices, however much is sealed
        let progress = Arc::new(Mutex::new(Progress {
            url: settings.target.to_string(),
            ..Progress::default()
        }));
        let work = Work {
            mirror: Mirror::new(dataset, name, settings),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .map_err(Error::io("start threads for", "publishing"))?,
            progress: Arc::clone(&progress),
        };
        thread::Builder::new()
            .name("publisher".to_owned())
            .spawn(move || work.run(&hears))
            .map_err(Error::io("start a thread for", "publishing"))?;
        Ok(Self { told, progress })
    }

    /// Notifies the publisher that the dataset may have changed.
    pub(crate) fn tell(&self) {
        let _ = self.told.try_send(()); // if the channel is full, a notice is pending already
    }

    /// Progress of the copy.
    #[must_use]
    pub fn progress(&self) -> Progress {
        locked(&self.progress).clone()
    }
}

struct Work {
    mirror: Mirror,
    runtime: Runtime,
    progress: Arc<Mutex<Progress>>,
}

impl Work {
    fn run(mut self, hears: &mpsc::Receiver<()>) {
        let mut backoff = Backoff::new(RETRY, RETRY_AT_MOST);
        loop {
            let progress = &self.progress;
            let pending = |files_count: u64, bytes: u64| {
                let mut progress = locked(progress);
                progress.pending_files_count = files_count;
                progress.pending_bytes = bytes;
            };
            let done = self.mirror.synchronize(&pending);
            let done = self.runtime.block_on(done);
            self.tell(&done);
            let goes_on = if done.is_ok() {
                backoff.reset();
                let due = self.mirror.next_removal().unwrap_or(LOOK_AGAIN);
                wait(hears, due.min(LOOK_AGAIN), true)
            } else {
                wait(hears, backoff.next(None), false)
            };
            if !goes_on {
                return;
            }
        }
    }

    fn tell(&self, done: &Result<bool, Failure>) {
        let mut progress = locked(&self.progress);
        let failure = done.as_ref().err().map(ToString::to_string);
        match (&progress.failure, &failure) {
            (None, Some(reason)) => eprintln!(
                "gleaner-collector: cannot publish: {reason}; the dataset stays here, and is copied there once this is fixed"
            ),
            (Some(_), None) => eprintln!("gleaner-collector: publishing again"),
            _ => {}
        }
        progress.failure = failure;
        if matches!(done, Ok(true)) {
            progress.last_published_time_ms = Some(now_ms());
        }
    }
}

/// Waits until there is work: `at_most` has passed, or a notice arrives and `listens` is true. Returns false
/// if no sender of notices is left.
fn wait(hears: &mpsc::Receiver<()>, at_most: Duration, listens: bool) -> bool {
    let until = Instant::now() + at_most;
    loop {
        match hears.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(()) if !listens => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return false,
            Ok(()) | Err(mpsc::RecvTimeoutError::Timeout) => return true,
        }
    }
}

fn locked(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
