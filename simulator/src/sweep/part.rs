//! Parts of a sweep: results of some of its runs, which can be stored, sent and merged.
//!
//! The merged parts give the rows of one process, whatever the parts, their order and their repetitions: a
//! run gives the same results each time, and rows are made from the results of all runs in the plan's order.
//!
//! A stored part is text: a fixed line, a line with version and hash, a line of JSON. Figures survive it
//! unchanged.

use super::plan::part_of;
use super::row::{self, Row, RunResults};
use super::{Cluster, MEASURES, SweepError, SweepPartError, SweepSummary, run};
use serde::{Deserialize, Serialize};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// First line of every part.
const FIRST_LINE: &str = "gleaner part of a sweep\n";

/// Version of the stored form; it rises with any change of the form, the measures or the simulation.
const PART_VERSION: &str = "1";

/// Results of some of a sweep's runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepPart {
    summary: SweepSummary,
    /// Hashes (BLAKE3) of datasets and streams, by their names in messages.
    inputs: BTreeMap<String, String>,
    /// Number of parts into which the runs were divided, to name the missing parts.
    parts_count: usize,
    /// Results by the runs' positions in the plan.
    runs: BTreeMap<usize, RunResults>,
}

impl SweepPart {
    /// Simulates `runs`, one of `parts_count` parts ([`Plan::runs_of_part`](super::Plan::runs_of_part)), on
    /// the plan's datasets. Calls the progress function with the number of finished simulations.
    ///
    /// # Errors
    /// The errors of [`run`](super::run()); a program that did not end is none of them.
    pub fn simulate(
        mut summary: SweepSummary,
        clusters: &[Cluster],
        runs: &[usize],
        parts_count: usize,
        threads: NonZeroUsize,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<Self, SweepError> {
        let inputs = inputs(&summary, clusters)?;
        let results = run::results(&summary.plan, runs, clusters, threads, progress)?;
        // Stored parts have no clients; of two parts one may have been stored.
        summary.plan.clients.clear();
        Ok(Self {
            summary,
            inputs,
            parts_count,
            runs: runs.iter().copied().zip(results).collect(),
        })
    }

    /// Returns this part with the runs of another part of the same sweep. Runs that both have count once.
    /// `origin` names the other part's file, for errors.
    ///
    /// # Errors
    /// [`SweepError::Part`] with [`SweepPartError::OtherSweep`], or with [`SweepPartError::OtherResults`] if
    /// the parts have different results of the same run.
    pub fn merge(self, other: Self, origin: &str) -> Result<Self, SweepError> {
        self.with(other).map_err(of_part(origin))
    }

    fn with(mut self, other: Self) -> Result<Self, SweepPartError> {
        if let Some(difference) = self.difference(&other) {
            return Err(SweepPartError::OtherSweep { difference });
        }
        for (run, results) in other.runs {
            match self.runs.entry(run) {
                Entry::Vacant(vacant) => {
                    vacant.insert(results);
                }
                Entry::Occupied(there) if *there.get() == results => {}
                Entry::Occupied(_) => {
                    let run = self.summary.plan.words_of_run(run);
                    return Err(SweepPartError::OtherResults { run });
                }
            }
        }
        Ok(self)
    }

    /// First difference between the sweeps of two parts, in words; `None` if they are the same.
    fn difference(&self, other: &Self) -> Option<String> {
        let (ours, theirs) = (&self.summary, &other.summary);
        if ours.scenario != theirs.scenario {
            let (ours, theirs) = (&ours.scenario, &theirs.scenario);
            return Some(format!("its scenario is {theirs}, and theirs is {ours}"));
        }
        if (&ours.about, &ours.plan) != (&theirs.about, &theirs.plan) {
            return Some("its datasets, programs, settings, seeds or days differ".to_owned());
        }
        if ours.times != theirs.times {
            return Some("its simulated time differs".to_owned());
        }
        let mut names = self.inputs.keys().chain(other.inputs.keys());
        let differs = |name: &&String| self.inputs.get(*name) != other.inputs.get(*name);
        let name = names.find(differs)?;
        Some(format!("its {name} has other contents"))
    }

    /// Rows of the whole sweep, and its summary.
    ///
    /// # Errors
    /// [`SweepError::Part`] with [`SweepPartError::Incomplete`] if runs are missing;
    /// [`SweepError::Simulation`] if no program ended in any run.
    pub fn finish(self) -> Result<(SweepSummary, Vec<Row>), SweepError> {
        let runs_count = self.summary.plan.runs();
        let is_missing = |run: &usize| !self.runs.contains_key(run);
        let missing: Vec<usize> = (0..runs_count).filter(is_missing).collect();
        if !missing.is_empty() {
            let of_parts = missing.iter().map(|run| part_of(*run, self.parts_count));
            let numbers: BTreeSet<usize> = of_parts.collect();
            let parts = numbers.iter();
            let parts = parts.map(|number| format!("--part {number}/{}", self.parts_count));
            return Err(of_part("the merged parts")(SweepPartError::Incomplete {
                missing_count: missing.len(),
                runs_count,
                parts: parts.collect(),
            }));
        }
        let results: Vec<RunResults> = self.runs.into_values().collect();
        let rows = row::rows(&self.summary.plan, &results)?;
        Ok((self.summary, rows))
    }

    /// Returns true if bytes begin as a stored part does.
    #[must_use]
    pub fn is_stored_in(bytes: &[u8]) -> bool {
        bytes.starts_with(FIRST_LINE.as_bytes())
    }

    /// Stored form of the part.
    ///
    /// # Errors
    /// [`SweepError::Part`] with [`SweepPartError::Json`].
    pub fn to_text(&self) -> Result<String, SweepError> {
        let content = serde_json::to_string(self);
        let content = content.map_err(|e| of_part("the part")(e.into()))?;
        let hash = blake3::hash(content.as_bytes());
        Ok(format!("{FIRST_LINE}{PART_VERSION} {hash}\n{content}\n"))
    }

    /// Reads a part from its stored form; `origin` names the file, for errors.
    ///
    /// # Errors
    /// [`SweepError::Part`] with the reason.
    pub fn from_bytes(bytes: &[u8], origin: &str) -> Result<Self, SweepError> {
        decode(bytes).map_err(of_part(origin))
    }
}

fn decode(bytes: &[u8]) -> Result<SweepPart, SweepPartError> {
    let after_first_line = bytes.strip_prefix(FIRST_LINE.as_bytes());
    let after_first_line = after_first_line.ok_or(SweepPartError::NotAPart)?;
    let text = std::str::from_utf8(after_first_line).map_err(|_| SweepPartError::Damaged)?;
    let lines = text.split_once('\n').ok_or(SweepPartError::Damaged)?;
    let (version, hash) = lines.0.split_once(' ').ok_or(SweepPartError::Damaged)?;
    if version != PART_VERSION {
        return Err(SweepPartError::Version {
            found: version.to_owned(),
            known: PART_VERSION,
        });
    }
    let content = lines.1.strip_suffix('\n').ok_or(SweepPartError::Damaged)?;
    if blake3::hash(content.as_bytes()).to_hex().as_str() != hash {
        return Err(SweepPartError::Damaged);
    }
    let part: SweepPart = serde_json::from_str(content)?;
    let plan = &part.summary.plan;
    let is_of_plan = |(run, results): (&usize, &RunResults)| {
        *run < plan.runs() && results.values.len() == MEASURES.len()
    };
    if !part.runs.iter().all(is_of_plan) {
        return Err(SweepPartError::Damaged);
    }
    Ok(part)
}

/// Makes a function for `map_err`, for a part from `origin`.
fn of_part(origin: &str) -> impl FnOnce(SweepPartError) -> SweepError {
    let origin = origin.to_owned();
    move |source| SweepError::Part { origin, source }
}

/// Hashes of everything that the runs read: the datasets' files up to the simulation's end, and the streams.
fn inputs(
    summary: &SweepSummary,
    clusters: &[Cluster],
) -> Result<BTreeMap<String, String>, SweepError> {
    let mut inputs = BTreeMap::new();
    for cluster in clusters {
        let mut hash = blake3::Hasher::new();
        let files = cluster.dataset.manifest().files.iter();
        for file in files.filter(|file| file.first_time_ms < cluster.until_ms) {
            hash.update(file.table.as_bytes());
            hash.update(file.blake3.as_bytes());
        }
        let name = format!("dataset {}", cluster.name);
        inputs.insert(name, hash.finalize().to_string());
    }
    for (number, recording) in (1..).zip(&summary.plan.clients) {
        inputs.insert(format!("stream {number}"), recording.hash()?);
    }
    Ok(inputs)
}
