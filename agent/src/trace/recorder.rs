//! Stores samples and events in the trace, whatever happens to the disk.
//!
//! The recorder waits for a disk that is full, read-only or failing: samples are dropped, and the first one
//! stored afterwards follows a gap and repeats everything. A damaged database is set aside and a new one
//! begun.

use crate::Error;
use crate::clock::Moment;
use crate::config::Config;
use crate::host;
use crate::sample::Sample;
use crate::trace::damage::DamagedDatabase;
use crate::trace::gap::Cause;
use crate::trace::history::History;
use crate::trace::store::{Event, Store};
use gleaner_schemas::rows::EventRow;
use std::sync::Arc;

/// Writes the running agent's trace.
pub(crate) struct Recorder {
    config: Arc<Config>,
    host_id: Option<String>,
    /// Database; `None` while a damaged one could not be replaced yet.
    store: Option<Store>,
    history: History,
    /// Moment since which nothing could be stored; `None` while storing works.
    failing_since: Option<Moment>,
}

impl Recorder {
    /// Opens the trace.
    ///
    /// # Errors
    /// Errors of [`Store::open`].
    pub(crate) fn open(config: Arc<Config>) -> Result<Self, Error> {
        let mut recorder = Self {
            config,
            host_id: host::id(),
            store: None,
            history: History::default(),
            failing_since: None,
        };
        recorder.open_store()?;
        Ok(recorder)
    }

    /// Replaces the configuration. The trace stays the same; the next sample repeats everything.
    pub(crate) fn configure(&mut self, config: Arc<Config>) {
        self.config = config;
        self.history.repeat_all();
    }

    /// Skips record numbers if this is another boot: see [`Store::begin_boot`].
    ///
    /// # Errors
    /// Errors that do not pass without intervention.
    pub(crate) fn begin_boot(&mut self, boot_id: Option<&str>) -> Result<(), Error> {
        let store = self.store.as_mut();
        match store.map_or(Ok(()), |store| store.begin_boot(boot_id)) {
            Err(error) => self.recover_from(error, &Moment::now()),
            Ok(()) => Ok(()),
        }
    }

    /// Stores a sample. Returns false if it could not be stored.
    ///
    /// # Errors
    /// Errors that do not pass without intervention.
    pub(crate) fn sample(&mut self, sample: Sample) -> Result<bool, Error> {
        let now = sample.moment;
        match self.try_sample(sample) {
            Ok(()) => {
                if let Some(since) = self.failing_since.take() {
                    let passed_ms = now.boottime_ms - since.boottime_ms;
                    self.event(event(&now, "storage_recovered", Some(passed_ms), None));
                    log_message("storing samples again");
                }
                self.retain(&now).map(|()| true)
            }
            Err(error) => self.recover_from(error, &now).map(|()| false),
        }
    }

    /// Stores events now, or with the next sample.
    pub(crate) fn events(&mut self, events: Vec<Event>) {
        let written = self.store.as_mut().map(|store| store.write_events(&events));
        if !matches!(written, Some(Ok(()))) {
            events.into_iter().for_each(|event| self.note(event));
        }
    }

    /// Stores an event now, or with the next sample.
    pub(crate) fn event(&mut self, event: Event) {
        self.events(vec![event]);
    }

    /// Stores an event with the next sample.
    pub(crate) fn note(&mut self, event: Event) {
        self.history.note(event);
    }

    /// Returns true while nothing can be stored.
    pub(crate) const fn is_failing(&self) -> bool {
        self.failing_since.is_some()
    }

    /// Returns true if the readable trace has an event of this kind and detail.
    pub(crate) fn has_event(&self, kind: &str, detail: &str) -> bool {
        let found = self.store.as_ref().map(|s| s.has_event(kind, detail));
        matches!(found, Some(Ok(true)))
    }

    fn try_sample(&mut self, sample: Sample) -> Result<(), Error> {
        if self.store.is_none() {
            self.open_store()?;
        }
        match &mut self.store {
            Some(store) => self.history.write(&self.config, store, sample),
            None => Ok(()), // just opened
        }
    }

    /// Deletes records beyond the limits. After a disk error the deletion is repeated after the next sample,
    /// which reports the error if it cannot be stored either.
    fn retain(&mut self, now: &Moment) -> Result<(), Error> {
        let store = self.store.as_mut();
        match store.map(|store| store.retain(&self.config.limits, now)) {
            Some(Err(error)) if error.is_damage() || !error.may_pass() => {
                self.recover_from(error, now)
            }
            _ => Ok(()),
        }
    }

    fn open_store(&mut self) -> Result<(), Error> {
        let now = Moment::now();
        let path = &self.config.database;
        let (store, aside) = Store::open(path, self.host_id.as_deref(), now.time_ms)?;
        self.begin(store, aside, &now);
        Ok(())
    }

    fn begin(&mut self, store: Store, aside: Option<DamagedDatabase>, now: &Moment) {
        self.store = Some(store);
        if let Some(DamagedDatabase { path, what }) = aside {
            log_message(&format!(
                "the database was damaged ({what}); it lies at {} now, and a new one is begun. What can be \
                 read of it: gleaner-agent export --database {0} DATASET",
                path.display()
            ));
            self.history.lose(Cause::Damaged);
            self.event(event(now, "database_damaged", None, Some(what)));
        }
    }

    /// Continues after an error that passes by itself or that a new database fixes.
    fn recover_from(&mut self, error: Error, now: &Moment) -> Result<(), Error> {
        if error.is_damage()
            && let Some(store) = self.store.take()
        {
            match store.begin_anew(self.host_id.as_deref(), &error, now.time_ms) {
                Ok((store, aside)) => self.begin(store, aside, now),
                Err(error) => return self.recover_from(error, now),
            }
            return Ok(());
        }
        if !error.may_pass() {
            return Err(error);
        }
        if self.failing_since.is_none() {
            log_message(&format!(
                "{error}; samples are dropped until they can be stored"
            ));
            let what = error.without_path();
            self.history
                .note(event(now, "storage_failed", None, Some(what)));
            self.failing_since = Some(*now);
        }
        Ok(())
    }
}

fn event(at: &Moment, kind: &str, duration_ms: Option<i64>, detail: Option<String>) -> Event {
    let row = EventRow {
        kind: kind.to_owned(),
        duration_ms,
        detail,
    };
    (at.time_ms, row)
}

/// Writes a message to standard error; it is no error if nobody reads it.
pub(crate) fn log_message(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "gleaner-agent: {text}");
}
