//! Users of memory by program: active processes, pooled by name.

use crate::availability::worst_dips;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, MeasureOutput, Pass};
use crate::trace::HostTrace;
use crate::trace::frame::{Frame, Integers};
use crate::trace::reads::ReadSet;
use ahash::HashMap;
use gleaner_schemas::findings::{DipProcess, FindingList, Findings, TopProcess, WorstDip};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Number of names listed per host.
const MOST_LISTED: usize = 15;
/// Number of names listed per dip.
const MOST_IN_DIP: usize = 5;

/// The programs that use most memory on each host, and those in its deepest dips.
pub(crate) struct ProgramUse;

impl HostMeasure for ProgramUse {
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<TopProcess>(ReadSet::SAMPLES.and_processes()),
        MeasureOutput::of::<WorstDip>(ReadSet::SAMPLES),
        MeasureOutput::of::<DipProcess>(ReadSet::SAMPLES.and_processes()),
    ];

    fn write(host: &mut HostHistory<'_>, pass: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        // The processes are grouped by name once, for both findings.
        let processes = Processes::of_host(&host.trace)?;
        findings.top_processes.extend(processes.top(MOST_LISTED));
        if pass.parameters.wants(&[WorstDip::KEY, DipProcess::KEY]) {
            let dips = worst_dips::of_host(&host.trace, pass.parameters);
            let moments = dips.iter().map(|dip| dip.sample).collect();
            let then = processes.at(&moments, MOST_IN_DIP)?;
            findings.dip_processes.extend(then);
            let records = dips.into_iter().map(|dip| dip.record);
            findings.worst_dips.extend(records);
        }
        Ok(())
    }
}

/// Sums over one name's samples.
#[derive(Default)]
struct Use {
    /// Sample that is being summed; `bytes` is the memory of its processes so far.
    sample: Option<usize>,
    bytes: Option<i64>,
    samples_count: i64,
    /// Number of samples whose size is known; the sums are over these.
    known_count: i64,
    sum_bytes: i128,
    max_bytes: i64,
    cpu_ms: i64,
}

impl Use {
    fn add(&mut self, sample: usize, bytes: Option<i64>, cpu_ms: Option<i64>) {
        if self.sample != Some(sample) {
            self.finish();
            self.sample = Some(sample);
            self.samples_count += 1;
        }
        self.bytes = sum(self.bytes, bytes);
        self.cpu_ms += cpu_ms.unwrap_or(0);
    }

    /// Adds the last sample to the sums.
    fn finish(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.known_count += 1;
            self.sum_bytes += i128::from(bytes);
            self.max_bytes = self.max_bytes.max(bytes);
        }
    }

    /// Mean over the samples whose size is known; `None` if there are none.
    fn mean_bytes(&self) -> Option<f64> {
        (self.known_count > 0).then(|| self.sum_bytes as f64 / self.known_count as f64)
    }
}

/// Memory of the active processes of one host, by name.
struct Processes<'a> {
    trace: &'a HostTrace<'a>,
    by_name: HashMap<&'a str, Use>,
}

impl<'a> Processes<'a> {
    fn of_host(trace: &'a HostTrace<'a>) -> Result<Self> {
        let rows = &trace.processes.rows;
        let (names, cpu_ms) = (rows.texts("name")?, rows.integers("cpu_ms")?);
        let sizes = Sizes::of(rows)?;
        let mut by_name: HashMap<&str, Use> = HashMap::default();
        for (row, sample) in trace.processes.sample_of.iter().enumerate() {
            if let (Some(sample), Some(name)) = (*sample, names.get(row)) {
                let used = by_name.entry(name).or_default();
                used.add(sample, sizes.of_row(row), cpu_ms.get(row));
            }
        }
        by_name.values_mut().for_each(Use::finish);
        Ok(Self { trace, by_name })
    }

    /// The `most` names with the largest mean of proportional memory (anonymous, shared and file-backed)
    /// over the samples in which a process of the name was active. A name whose memory was never known is
    /// left out.
    fn top(&self, most: usize) -> Vec<TopProcess> {
        let known = self.by_name.iter().filter_map(|(name, used)| {
            Some(TopProcess {
                host_id: self.trace.host().to_owned(),
                name: (*name).to_owned(),
                active_samples_count: used.samples_count,
                mean_bytes: used.mean_bytes()?,
                max_bytes: used.max_bytes,
                cpu_s: used.cpu_ms as f64 / 1000.0,
            })
        });
        let mut found: Vec<TopProcess> = known.collect();
        found.sort_by(|a, b| {
            let larger = b.mean_bytes.total_cmp(&a.mean_bytes);
            larger.then_with(|| a.name.cmp(&b.name))
        });
        found.truncate(most);
        found
    }

    /// The `most` names with the most memory at each of the samples `moments`, in the order of the samples.
    fn at(&self, moments: &BTreeSet<usize>, most: usize) -> Result<Vec<DipProcess>> {
        let rows = &self.trace.processes.rows;
        let (names, sizes) = (rows.texts("name")?, Sizes::of(rows)?);
        let sample_of = &self.trace.processes.sample_of;
        let mut then: BTreeMap<usize, BTreeMap<&str, i64>> = BTreeMap::new();
        for (row, sample) in sample_of.iter().enumerate() {
            if let Some(sample) = sample.filter(|sample| moments.contains(sample))
                && let (Some(name), Some(bytes)) = (names.get(row), sizes.of_row(row))
            {
                let of_name = then.entry(sample).or_default().entry(name).or_default();
                *of_name = of_name.saturating_add(bytes);
            }
        }
        let mut found = Vec::new();
        for (sample, by_name) in then {
            let mut largest: Vec<(&str, i64)> = by_name.into_iter().collect();
            largest.sort_by_key(|&(name, bytes)| (Reverse(bytes), name));
            let ranked = (1..).zip(largest.into_iter().take(most));
            found.extend(ranked.map(|(rank, (name, bytes))| DipProcess {
                host_id: self.trace.host().to_owned(),
                time_ms: self.trace.samples.time_ms[sample],
                rank,
                name: name.to_owned(),
                bytes,
                mean_bytes: (self.by_name.get(name).and_then(Use::mean_bytes)).unwrap_or(0.0),
            }));
        }
        Ok(found)
    }
}

/// Proportional memory of each row; absent if no part of it is known.
struct Sizes<'a>([Integers<'a>; 3]);

impl<'a> Sizes<'a> {
    fn of(rows: &'a Frame) -> Result<Self> {
        Ok(Self([
            rows.integers("anon_bytes")?,
            rows.integers("shmem_bytes")?,
            rows.integers("file_bytes")?,
        ]))
    }

    fn of_row(&self, row: usize) -> Option<i64> {
        let parts = self.0.iter().map(|part| part.get(row));
        parts.fold(None, sum)
    }
}

/// Sum of the known values; `None` if none is known.
pub(crate) fn sum(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}
