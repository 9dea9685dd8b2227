//! Publishes the dataset as Iceberg tables in a folder, for query engines (docs/tables.md).
//!
//! A separate thread publishes when the collector starts, and then at an interval. Sealing never waits for that
//! thread, since the first publication of a large dataset may take hours. If the collector is killed meanwhile, the
//! tables stay readable.

use crate::{Error, now_ms};
use gleaner_dataset::DatasetError;
use gleaner_tables::{Options, PublishSummary, TableError, publish};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// Longest wait after a failure, and until the first seal.
const RETRY: Duration = Duration::from_secs(30);

/// Settings of the published tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSettings {
    /// Absolute path of the tables' folder.
    pub folder: PathBuf,
    /// Time from the end of one publication to the start of the next.
    pub every: Duration,
    /// Options of each publication.
    pub options: Options,
}

/// Progress of the published tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TableProgress {
    /// Path of the tables' folder.
    pub folder: String,
    /// End of the last successful publication, ms since 1970-01-01 UTC.
    pub last_published_time_ms: Option<i64>,
    /// Duration of the last successful publication, in ms.
    pub last_duration_ms: Option<u64>,
    /// Number of Parquet files written by successful publications since the collector started.
    pub written_files_count: u64,
    /// Number of new versions of tables since the collector started.
    pub versions_count: u64,
    /// Number of failed publications since the collector started.
    pub failures_count: u64,
    /// Reason why the last publication failed; absent if it succeeded.
    pub failure: Option<String>,
}

impl TableSettings {
    /// Checks that the tables have a folder of their own, apart from the folders `others`, and a valid location.
    ///
    /// # Errors
    /// Key with the fault, and a description of the fault.
    pub(crate) fn check(&self, others: &[PathBuf]) -> Result<(), (&'static str, String)> {
        let folder = self.folder.display();
        let wrong = |what: String| Err(("tables.folder", what));
        if !self.folder.is_absolute() {
            return wrong(format!(
                "{folder} is no absolute path: write it like /srv/tables"
            ));
        }
        for other in others {
            let other = std::path::absolute(other).unwrap_or_else(|_| other.clone());
            if self.folder.starts_with(&other) || other.starts_with(&self.folder) {
                return wrong(format!(
                    "{folder} and {} may not contain each other: name another folder",
                    other.display()
                ));
            }
        }
        let (key, location) = match &self.options.location {
            Some(location) => ("tables.location", location.clone()),
            None => ("tables.folder", format!("file://{folder}")),
        };
        gleaner_tables::check_location(&location).map_err(|error| (key, error.to_string()))
    }
}

/// Handle of the thread that publishes tables. The thread ends with the last handle, after the present publication.
#[derive(Clone, Debug)]
pub(crate) struct TablePublisher {
    progress: Arc<Mutex<TableProgress>>,
    _alive: mpsc::Sender<()>,
}

impl TablePublisher {
    /// Starts the thread, which publishes the dataset in the folder `dataset`.
    ///
    /// # Errors
    /// [`Error::Io`] if the thread cannot be started.
    pub(crate) fn start(dataset: &Path, settings: &TableSettings) -> Result<Self, Error> {
        let (alive, ended) = mpsc::channel();
        let progress = Arc::new(Mutex::new(TableProgress {
            folder: settings.folder.display().to_string(),
            ..TableProgress::default()
        }));
        let work = Work {
            dataset: dataset.to_owned(),
            settings: settings.clone(),
            progress: Arc::clone(&progress),
        };
        thread::Builder::new()
            .name("tables".to_owned())
            .spawn(move || work.run(&ended))
            .map_err(Error::io("start a thread for", "publishing tables"))?;
        Ok(Self {
            progress,
            _alive: alive,
        })
    }

    /// Progress of the tables.
    pub(crate) fn progress(&self) -> TableProgress {
        locked(&self.progress).clone()
    }
}

struct Work {
    dataset: PathBuf,
    settings: TableSettings,
    progress: Arc<Mutex<TableProgress>>,
}

impl Work {
    fn run(&self, ended: &mpsc::Receiver<()>) {
        let every = self.settings.every;
        loop {
            let begin = Instant::now();
            let done = self.publish();
            let wait = match &done {
                Ok(Some(_)) => every,
                Ok(None) | Err(_) => RETRY.min(every),
            };
            self.record(done, begin.elapsed());
            let waited = ended.recv_timeout(wait);
            if waited != Err(mpsc::RecvTimeoutError::Timeout) {
                return;
            }
        }
    }

    /// Brings the tables up to date. Returns `None` while there is no dataset.
    fn publish(&self) -> Result<Option<PublishSummary>, TableError> {
        let TableSettings {
            folder, options, ..
        } = &self.settings;
        let now = SystemTime::now();
        match publish(&self.dataset, folder, options, now, |_| ()) {
            Err(TableError::Dataset(DatasetError::NotADataset { .. })) => Ok(None), // nothing was sealed yet
            done => done.map(Some),
        }
    }

    /// Records the result of a publication, and logs a new failure and the end of a failure.
    fn record(&self, done: Result<Option<PublishSummary>, TableError>, duration: Duration) {
        let mut progress = locked(&self.progress);
        let failure = done.as_ref().err().map(ToString::to_string);
        match &failure {
            Some(reason) if progress.failure != failure => {
                eprintln!("gleaner-collector: cannot publish the tables: {reason}; trying again");
            }
            None if progress.failure.is_some() => {
                eprintln!("gleaner-collector: the tables are published again");
            }
            _ => {}
        }
        progress.failures_count += u64::from(failure.is_some());
        progress.failure = failure;
        if let Ok(Some(summary)) = done {
            progress.written_files_count += summary.written_files as u64;
            progress.versions_count += summary.changed_tables as u64;
            progress.last_published_time_ms = Some(now_ms());
            progress.last_duration_ms = u64::try_from(duration.as_millis()).ok();
        }
    }
}

fn locked(progress: &Mutex<TableProgress>) -> MutexGuard<'_, TableProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
