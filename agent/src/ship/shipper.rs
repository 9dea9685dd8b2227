//! Sends records that the collector lacks: database by database, the oldest first, batch by batch.

use crate::Error;
use crate::clock::Moment;
use crate::config::ShipSettings;
use crate::config::{Config, HOST};
use crate::ship::answer::{Answer, Finality, Trouble};
use crate::ship::batch::{self, EncodedBatch, MOST_BYTES, MOST_RECORDS};
use crate::ship::client::{self, Client};
use crate::ship::folder::COLLECTOR;
use crate::ship::grant;
use crate::ship::mark::{self, ACKNOWLEDGED, FLOOR, ShippingProgress};
use crate::ship::rest;
use crate::ship::summary::Summary;
use crate::trace::damage;
use crate::trace::database::open_to_read;
use crate::trace::recorder::log_message;
use crate::trace::rows::Trace;
use gleaner_daemon::notify::ServiceManager;
use gleaner_dataset::batch::is_id;
use gleaner_trust::Address;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Interval at which a record that the collector refused is offered again.
const REFUSED_AGAIN: Duration = Duration::from_secs(3600);

/// Interval between attempts to renew the certificate, which stays valid for weeks.
const RENEW_AGAIN: Duration = Duration::from_secs(3600);

/// Progress of shipping one database.
#[derive(Default)]
struct Progress {
    /// Sequence number of the last record acknowledged or skipped; `None` if the collector must be asked.
    mark: Option<i64>,
    /// Maximum number of records in one batch; `None`: [`MOST_RECORDS`].
    records_at_once: Option<usize>,
    /// Last record of a refused batch: up to it, batches do not grow.
    refused_until: i64,
    /// Earliest time of the next attempt after the collector refused the next record alone.
    held_until: Option<Instant>,
}

impl Progress {
    /// Sets the size of the next batch after one that succeeded: as large, or twice as large if allowed.
    fn grow_batch(&mut self, batch: &EncodedBatch) {
        let most = self.records_at_once.unwrap_or(MOST_RECORDS);
        let is_half_full = batch.content_bytes * 2 > MOST_BYTES;
        self.records_at_once = if is_half_full {
            Some(most.min(batch.records_count))
        } else if batch.until >= self.refused_until {
            Some(most * 2).filter(|count| *count < MOST_RECORDS)
        } else {
            Some(most)
        };
    }
}

pub(crate) struct Shipper {
    client: Client,
    /// Service manager, notified between batches, since a backlog takes long.
    manager: Arc<ServiceManager>,
    /// File with an enrolled host's certificate.
    host_file: PathBuf,
    /// True while the enrolled certificate is in use; other certificates are renewed by their
    /// administrator.
    is_enrolled: bool,
    /// Earliest time of the next renewal, after one failed.
    renew_after: Option<Instant>,
    database: PathBuf,
    rate_bytes: Option<u64>,
    /// Progress by database id: a database set aside has progress of its own.
    progress: HashMap<String, Progress>,
    /// Databases set aside that are sent completely.
    finished: HashSet<PathBuf>,
    /// Messages that must not be repeated.
    said: HashSet<String>,
    summary: Summary,
}

impl Shipper {
    /// # Errors
    /// [`Error::Collector`], [`Error::Read`].
    pub(crate) fn new(config: &Config, manager: Arc<ServiceManager>) -> Result<Self, Error> {
        let address = Address::parse(&collector(&config.ship)?)?;
        let trust = address.is_secret().then(|| client::trust(&config.ship));
        Ok(Self {
            summary: Summary {
                collector: address.to_string(),
                ..Summary::default()
            },
            client: Client::new(address, trust.transpose()?, config.ship.timeout)?,
            manager,
            host_file: config.ship.folder.join(HOST),
            is_enrolled: config.ship.certificate == config.ship.folder.join(HOST),
            renew_after: None,
            database: config.database.clone(),
            rate_bytes: config.ship.rate_bytes,
            progress: HashMap::new(),
            finished: HashSet::new(),
            said: HashSet::new(),
        })
    }

    pub(crate) const fn address(&self) -> &Address {
        self.client.address()
    }

    /// Number of batches acknowledged since the start.
    pub(crate) const fn batches_count(&self) -> u64 {
        self.summary.batches_count
    }

    /// Sends the present records. Returns true if all were sent.
    pub(crate) fn round(&mut self) -> Result<bool, Trouble> {
        self.maintain_certificate();
        let shipped = self.all();
        if shipped.is_err() {
            // Only the collector knows whether the last batch arrived.
            self.progress.values_mut().for_each(|p| p.mark = None);
            self.finished.clear();
        }
        shipped
    }

    /// Loads a replaced certificate, and renews one that ends soon. Shipping continues with any certificate
    /// that is still valid, even if the renewal fails.
    fn maintain_certificate(&mut self) {
        if let Err(error) = self.client.follow_files() {
            log_message(&format!("{error}; continuing with what was read before"));
        }
        if !self.is_enrolled || self.renew_after.is_some_and(|t| Instant::now() < t) {
            return;
        }
        match grant::renew(&self.client, &self.host_file, SystemTime::now()) {
            Ok(false) => {}
            Ok(true) => {
                log_message("the certificate is renewed");
                if let Err(error) = self.client.follow_files() {
                    log_message(&error.to_string());
                }
            }
            Err(trouble) => {
                self.renew_after = Some(Instant::now() + RENEW_AGAIN);
                self.log_once(format!(
                    "the certificate could not be renewed: {trouble}; tried again every hour"
                ));
            }
        }
    }

    /// Summary of the batches sent since the start, and of the remaining records.
    pub(crate) fn summary(mut self) -> Result<Summary, Error> {
        let connection = open_to_read(&self.database)?;
        let shipping = ShippingProgress::read(&connection, Moment::now().time_ms);
        self.summary.shipping = shipping.map_err(Error::database(&self.database))?;
        Ok(self.summary)
    }

    fn all(&mut self) -> Result<bool, Trouble> {
        let mut is_all = true;
        for path in damage::damaged_databases(&self.database) {
            if self.finished.contains(&path) {
                continue;
            }
            match self.ship(&path, true) {
                Ok(true) => {
                    self.finished.insert(path);
                }
                Ok(false) => is_all = false,
                Err(Trouble::Trace(error)) => {
                    self.log_once(format!("{error}; the file stays unchanged"));
                }
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(self.ship(&self.database.clone(), false)? && is_all)
    }

    /// Sends the remaining records of one database, in order. Returns true if all were sent.
    fn ship(&mut self, path: &Path, is_set_aside: bool) -> Result<bool, Trouble> {
        loop {
            self.manager.alive();
            // The trace is open only while a batch is read, not while it is sent: otherwise the agent's log
            // could not wrap around.
            let trace = Trace::open(path)?;
            let (host_id, id) = (trace.host_id.clone(), trace.database_id.clone());
            if !is_id(&host_id) || !is_id(&id) {
                return Err(Trouble::Trace(Error::Row {
                    path: path.to_owned(),
                    table: "meta",
                }));
            }
            let progress = self.progress.entry(id.clone()).or_default();
            if progress.held_until.is_some_and(|t| Instant::now() < t) {
                return Ok(false);
            }
            let Some(mark) = progress.mark else {
                drop(trace);
                let mark = self.client.mark(&host_id, &id)?.unwrap_or(0);
                progress.mark = Some(mark);
                if !is_set_aside {
                    self.store_mark(path, &id, ACKNOWLEDGED, mark);
                }
                continue;
            };
            if !is_set_aside && trace.last_readable()? < mark {
                drop(trace);
                self.skip_used_sequences(path, &id, mark);
                return Ok(false);
            }
            let most = progress.records_at_once.unwrap_or(MOST_RECORDS);
            let batch = batch::next(&trace, mark, most)?;
            drop(trace);
            let Some(batch) = batch else {
                return Ok(true);
            };
            if !self.send(path, &id, &batch)? {
                return Ok(false);
            }
            if !is_set_aside {
                let mark = self.progress.get(&id).and_then(|p| p.mark);
                self.store_mark(path, &id, ACKNOWLEDGED, mark.unwrap_or(0));
            }
        }
    }

    /// Sends a batch; returns true to continue with this database.
    fn send(&mut self, path: &Path, id: &str, batch: &EncodedBatch) -> Result<bool, Trouble> {
        let begun = Instant::now();
        let answer = if batch.body.is_empty() {
            Ok(Answer::Acknowledged) // none of its records could be read
        } else {
            self.client.send(&batch.body, batch.last_sequence)
        };
        let progress = self.progress.entry(id.to_owned()).or_default();
        let smaller = (batch.records_count / 2).max(1);
        match answer {
            Ok(Answer::Acknowledged) => {
                progress.mark = Some(batch.until);
                progress.held_until = None;
                progress.grow_batch(batch);
                self.count(path, batch);
                self.limit_rate(batch.body.len(), begun);
                Ok(true)
            }
            Ok(Answer::Refused { .. }) if batch.records_count > 1 => {
                // The batch was too large, or the collector refuses one record in it. Send fewer records, so
                // that those before that record arrive.
                progress.refused_until = batch.until;
                progress.records_at_once = Some(smaller);
                Ok(true)
            }
            Ok(Answer::Refused {
                why,
                finality: finality @ (Finality::TooLarge | Finality::ForGood),
            }) => {
                // Skip this record: it would block all that follow.
                progress.mark = Some(batch.until);
                progress.held_until = None;
                self.summary.skipped_records_count += 1;
                let (fault, remedy) = match finality {
                    Finality::TooLarge => (
                        "is larger than the collector accepts",
                        ": raise the collector's batch limit",
                    ),
                    _ => ("is refused for good by the collector", ""),
                };
                self.log_once(format!(
                    "{}: record {} {fault} ({why}). It is skipped and stays here \
                     (`gleaner-agent export`); what follows is shipped{remedy}",
                    path.display(),
                    batch.last_sequence
                ));
                Ok(true)
            }
            Ok(Answer::Refused { why, .. }) => {
                progress.held_until = Some(Instant::now() + REFUSED_AGAIN);
                progress.records_at_once = Some(1);
                self.log_once(format!(
                    "{}: the collector refuses record {} ({why}). It and what follows stay here, and it is offered \
                     again every hour: look into the collector's log and limits, and update both programs",
                    path.display(),
                    batch.last_sequence
                ));
                Ok(false)
            }
            Err(trouble) => {
                if trouble.may_be_size() {
                    progress.records_at_once = Some(smaller); // the link may be too slow for this size
                }
                Err(trouble)
            }
        }
    }

    fn count(&mut self, path: &Path, batch: &EncodedBatch) {
        let summary = &mut self.summary;
        summary.records_count += batch.records_count as u64;
        summary.rows_count += batch.rows_count as u64;
        summary.batches_count += u64::from(!batch.body.is_empty());
        summary.sent_bytes += batch.body.len() as u64;
        summary.unreadable_records_count += batch.unreadable_count as u64;
        if batch.unreadable_count > 0 {
            self.log_once(format!(
                "{} is damaged: its readable records are shipped, and the others skipped",
                path.display()
            ));
        }
    }

    /// Handles a collector that has more records than the database: new records take numbers that were
    /// never used.
    fn skip_used_sequences(&mut self, path: &Path, id: &str, mark: i64) {
        self.store_mark(path, id, FLOOR, mark);
        self.log_once(format!(
            "{}: the collector has its records up to {mark}, and here it ends before: it was put back from an older \
             copy, or lost its newest records. What is recorded from now on is numbered beyond them, and shipped; what was \
             recorded since it was put back stays here (`gleaner-agent export`)",
            path.display()
        ));
    }

    /// Stores the mark. If that fails, the next start asks the collector for it.
    fn store_mark(&mut self, path: &Path, id: &str, key: &str, sequence: i64) {
        if let Err(error) = mark::remember(path, id, key, sequence) {
            self.log_once(format!(
                "{error}: `status` cannot show the progress of shipping"
            ));
        }
    }

    fn limit_rate(&self, sent_bytes: usize, begun: Instant) {
        if let Some(rate) = self.rate_bytes {
            let seconds = sent_bytes as f64 / rate as f64;
            let left = Duration::from_secs_f64(seconds).saturating_sub(begun.elapsed());
            rest(left, &self.manager);
        }
    }

    fn log_once(&mut self, text: String) {
        if !self.said.contains(&text) {
            log_message(&text);
            self.said.insert(text);
        }
    }
}

fn collector(settings: &ShipSettings) -> Result<String, Error> {
    if let Some(collector) = &settings.collector {
        return Ok(collector.clone());
    }
    let path = settings.folder.join(COLLECTOR);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err(Error::Collector {
            what: "no collector is named".to_owned(),
        }),
        Err(source) => Err(Error::Read { path, source }),
    }
}
