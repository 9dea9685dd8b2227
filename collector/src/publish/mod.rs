//! Keeps a copy of the dataset on an object store, so that other engines read it where it lies.
//!
//! A thread of its own does it, told by the sealer: sealing never waits for a network. Files come first,
//! then the manifest in one put, and what no manifest names goes an hour later. So whoever goes by the
//! manifest finds a consistent set at any moment, however the collector ends.

mod client;
mod mirror;
mod target;

pub use target::Target;

use crate::{Error, now_ms};
use gleaner_dataset::DatasetError;
use gleaner_trust::Backoff;
use mirror::Mirror;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// What is removed meanwhile by others is put there again after so long.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);
/// Longest wait after the first failure; twice as long after each further one.
const RETRY: Duration = Duration::from_secs(1);
/// Longest wait after many.
const RETRY_AT_MOST: Duration = Duration::from_secs(300);

/// Where to, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The object store, and the place in it.
    pub target: Target,
    /// What the manifest names no more stays so long, for those who read it before.
    pub grace: Duration,
}

/// How far the store is in line with the dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Where the copy lies.
    pub url: String,
    /// When the store was last seen to hold what the dataset does, ms since 1970-01-01 UTC.
    pub last_published_ms: Option<i64>,
    /// Files of the dataset that the store lacks, as far as it is known.
    pub pending_files_count: u64,
    /// Their bytes.
    pub pending_bytes: u64,
    /// Why the store cannot be written; absent while it can.
    pub failure: Option<String>,
}

/// Why the store is not in line.
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

/// A handle to the publisher's thread, which ends with the last one.
#[derive(Clone, Debug)]
pub struct Publisher {
    told: mpsc::SyncSender<()>,
    progress: Arc<Mutex<Progress>>,
}

impl Publisher {
    /// Starts the thread, for what the collector called `name` writes into the dataset.
    ///
    /// # Errors
    /// [`Error::Io`] when there can be no thread.
    pub fn start(dataset: &Path, name: Option<&str>, settings: &Settings) -> Result<Self, Error> {
        let (told, hears) = mpsc::sync_channel(1); // however much is sealed, one word says it
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

    /// Says that the dataset may have changed.
    pub(crate) fn tell(&self) {
        let _ = self.told.try_send(()); // full: it has been told already
    }

    /// How far it is.
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
            let done = self.mirror.bring_in_line(&pending);
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
                "gleaner-collector: cannot publish: {reason}; the dataset is kept here, and put there once this is mended"
            ),
            (Some(_), None) => eprintln!("gleaner-collector: publishing again"),
            _ => {}
        }
        progress.failure = failure;
        if matches!(done, Ok(true)) {
            progress.last_published_ms = Some(now_ms());
        }
    }
}

/// Until there is something to do: the time is over, or it is told, where it listens to that. Not so when
/// there is nobody left to tell.
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

/// An error and what is behind it, where it does not say so itself.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        behind = error.source();
    }
    text
}

fn locked(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
