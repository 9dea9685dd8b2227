//! The collector's knowledge of each host: its durable records, the arrival of its batches, and its problems.
//!
//! The knowledge is in memory, and is written to `hosts.json` whenever records move from the journal to the
//! dataset. Losing it loses no record: agents send records again whose mark is unknown, and the dataset
//! drops repeats.

mod memory;

pub use memory::Memory;

use crate::Error;
use crate::journal::Header;
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type, TimestampMillisecondType};
use gleaner_dataset::batch::TableDay;
use gleaner_dataset::{Batch, BatchError};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{GapRow, HostRow, SampleRow};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum length of a text about a host that is kept in memory; a full domain name has 253 bytes.
const MOST_TEXT_BYTES: usize = 255;
/// Maximum number of databases of one host. An agent begins a new database if its database is damaged.
const MOST_DATABASES: usize = 256;
/// Maximum number of dataset files that one host's batches may need between two seals: 400 days of every
/// table.
const MOST_FILES_OF_HOST: usize = 4096;

/// Reason why a host may not send a batch, either for now or permanently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// The host has too many databases.
    #[error(
        "host {host_id} has {MOST_DATABASES} databases here, the maximum per host: find out why its agent begins so many"
    )]
    Databases {
        /// Id of the host.
        host_id: String,
    },
    /// The host's batches need too many files before the next seal.
    #[error(
        "batches of host {host_id} since the last seal are of {MOST_FILES_OF_HOST} days and tables, the maximum between two seals"
    )]
    Files {
        /// Id of the host.
        host_id: String,
    },
}

/// A host of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Host {
    /// Name of the host, from its inventory.
    pub host_name: Option<String>,
    /// Version of the host's agent.
    pub agent_version: Option<String>,
    /// Time between the host's samples.
    pub sample_interval_ms: Option<i64>,
    /// Share of the host's physical memory that is never lent.
    pub headroom_share: Option<f64>,
    /// Arrival of the host's last batch, ms since 1970-01-01 UTC. The aliases in this struct are keys that
    /// earlier builds wrote.
    #[serde(alias = "last_received_ms")]
    pub last_received_time_ms: Option<i64>,
    /// Time of the host's newest record, by the host's clock.
    #[serde(alias = "last_record_ms")]
    pub last_record_time_ms: Option<i64>,
    /// The host's clock less the collector's at the last batch, in ms; off by the one-way delay.
    pub skew_ms: Option<i64>,
    /// Number of batches accepted.
    pub batches_count: u64,
    /// Number of rows accepted, including repeats.
    pub rows_count: u64,
    /// Compressed bytes accepted.
    pub received_bytes: u64,
    /// Number of gaps in the host's trace.
    pub gaps_count: u64,
    /// Cause of the last gap.
    pub last_gap_cause: Option<String>,
    /// Last rejection, with its time; `None` once a later batch was accepted.
    #[serde(alias = "refused")]
    pub last_rejection: Option<Rejection>,
    /// Name in the certificate (of a foreign authority) with which this host's records are accepted; absent if
    /// that certificate has the host's id.
    pub certificate_name: Option<String>,
    /// Figures of the last sample; `None` before the first sample, or if an earlier build stored them under
    /// other names.
    #[serde(deserialize_with = "memory_or_none")]
    pub memory: Option<Memory>,
    /// Highest durable sequence number of each of the host's databases.
    pub databases: BTreeMap<String, i64>,
}

/// Reads the figures of a last sample, or none if they are not readable. They are only shown, and the next
/// batch has them again.
fn memory_or_none<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Memory>, D::Error> {
    Ok(serde_json::from_value(serde_json::Value::deserialize(from)?).unwrap_or_default())
}

impl Host {
    /// Updates all fields that depend on a batch's facts, except the counters.
    fn learn(&mut self, facts: Facts) {
        self.last_record_time_ms = self.last_record_time_ms.max(facts.last_record_time_ms);
        self.last_gap_cause = facts.last_gap_cause.or(self.last_gap_cause.take());
        if let Some(inventory) = facts.inventory {
            self.host_name = Some(inventory.host_name);
            self.agent_version = Some(inventory.agent_version);
            self.sample_interval_ms = Some(inventory.sample_interval_ms);
            self.headroom_share = inventory.headroom_share;
        }
    }

    /// Evaluates the samples of a batch, the oldest first.
    fn sampled(&mut self, header: &Header, samples: Vec<Memory>) {
        for mut sample in samples {
            sample.database_id.clone_from(&header.database_id);
            sample.received_time_ms = header.received_time_ms;
            let known = self.memory.as_ref();
            if known.is_none_or(|known| sample.is_after(known)) {
                sample.learn(known, self.headroom_share);
                self.memory = Some(sample);
            }
        }
    }
}

/// Last rejection of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection {
    /// Time of the rejection, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Kind of the rejection, as in the metrics.
    #[serde(default)]
    pub kind: String,
    /// Reason of the rejection.
    pub reason: String,
}

/// Facts about a host that are read from its decoded batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    inventory: Option<Inventory>,
    samples: Vec<Memory>,
    last_record_time_ms: Option<i64>,
    gaps_count: u64,
    last_gap_cause: Option<String>,
}

/// Part of a host's inventory that the collector stores.
#[derive(Clone, Debug, PartialEq)]
struct Inventory {
    host_name: String,
    agent_version: String,
    sample_interval_ms: i64,
    headroom_share: Option<f64>,
}

impl Facts {
    /// Reads the facts from the batch.
    ///
    /// # Errors
    /// [`BatchError::Malformed`]: a text that must be kept in memory is too long.
    pub fn of(batch: &Batch) -> Result<Self, BatchError> {
        let facts = Self::read(batch);
        let inventory = facts.inventory.iter();
        let texts = inventory.flat_map(|i| {
            [
                ("host_name", &i.host_name),
                ("agent_version", &i.agent_version),
            ]
        });
        let cause = facts.last_gap_cause.iter().map(|text| ("cause", text));
        let long = texts
            .chain(cause)
            .find(|(_, text)| text.len() > MOST_TEXT_BYTES);
        if let Some((column, text)) = long {
            return Err(BatchError::Malformed {
                detail: format!(
                    "column {column} has a text of {} bytes, and {MOST_TEXT_BYTES} are the most",
                    text.len()
                ),
            });
        }
        Ok(facts)
    }

    fn read(batch: &Batch) -> Self {
        let mut facts = Self::default();
        for (table, rows) in &batch.tables {
            let time = rows
                .column_by_name("time")
                .and_then(|column| column.as_primitive_opt::<TimestampMillisecondType>());
            let newest = time.and_then(arrow::compute::max);
            facts.last_record_time_ms = facts.last_record_time_ms.max(newest);
            let last = rows.num_rows().saturating_sub(1);
            let text = |name: &str| -> Option<String> {
                let column = rows.column_by_name(name)?.as_string_opt::<i32>()?;
                Some(column.value(last).to_owned())
            };
            if table.name == HostRow::TABLE.name {
                let interval = rows
                    .column_by_name("sample_interval_ms")
                    .and_then(|column| column.as_primitive_opt::<Int64Type>())
                    .map(|column| column.value(last));
                let headroom = rows
                    .column_by_name("headroom_share")
                    .and_then(|column| column.as_primitive_opt::<Float64Type>())
                    .map(|column| column.value(last));
                facts.inventory = text("host_name")
                    .zip(text("agent_version"))
                    .zip(interval)
                    .map(|((host_name, agent_version), interval)| Inventory {
                        host_name,
                        agent_version,
                        sample_interval_ms: interval,
                        headroom_share: headroom.filter(|share| (0.0..=1.0).contains(share)),
                    });
            } else if table.name == SampleRow::TABLE.name {
                facts.samples = Memory::of_samples(rows);
            } else if table.name == GapRow::TABLE.name {
                facts.gaps_count = rows.num_rows() as u64;
                facts.last_gap_cause = text("cause");
            }
        }
        facts
    }
}

/// All hosts of the cluster.
#[derive(Debug, Default)]
pub struct Hosts {
    path: PathBuf,
    hosts: Mutex<BTreeMap<String, Host>>,
    /// Files of the dataset that the next seal will write, by host.
    files: Mutex<BTreeMap<String, BTreeSet<TableDay>>>,
}

impl Hosts {
    /// Reads the hosts that the last run knew. Without a file there are none. A damaged file is set aside.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let hosts = match fs::read(path) {
            Ok(text) => match serde_json::from_slice(&text) {
                Ok(hosts) => hosts,
                Err(source) => {
                    let aside = path.with_extension("json.damaged");
                    fs::rename(path, &aside).map_err(Error::io("set aside", path))?;
                    eprintln!(
                        "gleaner-collector: {} was damaged ({source}) and lies in {}; agents send again what they are not sure of",
                        path.display(),
                        aside.display()
                    );
                    BTreeMap::new()
                }
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(e) => return Err(Error::io("read", path)(e)),
        };
        Ok(Self {
            path: path.to_owned(),
            hosts: Mutex::new(hosts),
            files: Mutex::default(),
        })
    }

    /// Admits a batch of a host, and counts the files that it needs.
    ///
    /// # Errors
    /// [`AdmissionError`].
    pub fn admit(
        &self,
        header: &Header,
        table_days: BTreeSet<TableDay>,
    ) -> Result<(), AdmissionError> {
        let host_id = || header.host_id.clone();
        let is_one_too_many = self.lock().get(&header.host_id).is_some_and(|host| {
            let known = &host.databases;
            known.len() >= MOST_DATABASES && !known.contains_key(&header.database_id)
        });
        if is_one_too_many {
            return Err(AdmissionError::Databases { host_id: host_id() });
        }
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let files = files.entry(host_id()).or_default();
        let news = table_days.difference(files).count();
        if files.len() + news > MOST_FILES_OF_HOST {
            return Err(AdmissionError::Files { host_id: host_id() });
        }
        files.extend(table_days);
        Ok(())
    }

    /// Restarts the count of files for the next seal. The files counted so far are being written.
    pub(crate) fn files_may_grow(&self) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.clear();
    }

    /// Writes all hosts durably.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn save(&self) -> Result<(), Error> {
        let text = serde_json::to_vec(&*self.lock()).unwrap_or_default(); // plain structs always serialise
        let staged = self.path.with_extension("json.new");
        let write = || -> io::Result<()> {
            let mut file = File::create(&staged)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&staged, &self.path)?;
            self.path
                .parent()
                .map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        };
        write().map_err(Error::io("write", &self.path))
    }

    /// Notes that a batch has become durable.
    pub fn durable(&self, header: &Header) {
        let mut hosts = self.lock();
        let host = hosts.entry(header.host_id.clone()).or_default();
        let mark = host
            .databases
            .entry(header.database_id.clone())
            .or_default();
        *mark = header.last_sequence.max(*mark);
        host.last_received_time_ms = host
            .last_received_time_ms
            .max(Some(header.received_time_ms));
        host.skew_ms = header.skew_ms.or(host.skew_ms);
        host.last_rejection = None;
    }

    /// Notes that a batch with these facts, of `bytes` bytes, was acknowledged.
    pub fn note_batch(&self, header: &Header, mut facts: Facts, bytes: u64) {
        let samples = std::mem::take(&mut facts.samples);
        let mut hosts = self.lock();
        let host = hosts.entry(header.host_id.clone()).or_default();
        host.batches_count += 1;
        host.rows_count += header.rows_count;
        host.received_bytes += bytes;
        host.gaps_count += facts.gaps_count;
        host.learn(facts);
        host.sampled(header, samples);
    }

    /// Notes that a batch with these facts is being sealed. The facts are new if the collector ended before
    /// it saved them. They matter because an agent sends its host's name only once a day.
    pub fn sealed(&self, header: &Header, mut facts: Facts) {
        let samples = std::mem::take(&mut facts.samples);
        let mut hosts = self.lock();
        let host = hosts.entry(header.host_id.clone()).or_default();
        host.sampled(header, samples);
        if facts.last_record_time_ms >= host.last_record_time_ms {
            host.learn(facts);
        }
    }

    /// Notes a rejection of a known host. Unknown hosts are ignored, so that strangers cannot have names
    /// stored.
    pub fn rejected(&self, host_id: &str, time_ms: i64, kind: &str, reason: &str) {
        if let Some(host) = self.lock().get_mut(host_id) {
            host.last_rejection = Some(Rejection {
                time_ms,
                kind: kind.to_owned(),
                reason: reason.to_owned(),
            });
        }
    }

    /// Highest sequence number of a host's database that is durable here.
    #[must_use]
    pub fn mark(&self, host_id: &str, database_id: &str) -> Option<i64> {
        self.lock()
            .get(host_id)?
            .databases
            .get(database_id)
            .copied()
    }

    /// Returns true if a name in a foreign authority's certificate may write for a host. A name is bound to
    /// the first host that it writes for, and a host to the first name that writes for it.
    #[must_use]
    pub fn bind(&self, certificate_name: &str, host_id: &str) -> bool {
        let mut hosts = self.lock();
        let bound = hosts
            .iter()
            .find(|(_, host)| host.certificate_name.as_deref() == Some(certificate_name));
        if let Some((owned, _)) = bound {
            return owned == host_id;
        }
        let host = hosts.entry(host_id.to_owned()).or_default();
        if host.certificate_name.is_none() && host.databases.is_empty() {
            host.certificate_name = Some(certificate_name.to_owned());
        }
        host.certificate_name.as_deref() == Some(certificate_name)
    }

    /// Ids of the hosts that have this name.
    #[must_use]
    pub fn named(&self, host_name: &str) -> Vec<String> {
        let hosts = self.lock();
        let named = hosts
            .iter()
            .filter(|(_, host)| host.host_name.as_deref() == Some(host_name));
        named.map(|(id, _)| id.clone()).collect()
    }

    /// Copy of all hosts in their present state.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, Host> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
