//! A Prometheus folder (`--storage.tsdb.path`, or a snapshot).
//!
//! `promtool` dumps the samples series by series, and opens the folder again for each dump. Therefore one
//! dump reads as many machines as fit in memory.

use super::dump::Labels;
use super::error::PrometheusError;
use super::machine::{Samples, Stream};
use super::promtool::{Promtool, Sink};
use super::selector::{Selector, one_of};
use super::{MEMORY, Origin, Target, Targets, Times, UP};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Maximum number of scrapes held in memory, about 500 bytes each; a machine with more scrapes is read alone.
const SCRAPES_AT_ONCE: u64 = 200_000;

pub(super) struct Folder {
    promtool: Promtool,
    selector: Selector,
    times: Times,
    /// Machines, with the number of scrapes of each.
    counts: BTreeMap<Target, u64>,
    /// Machines read in advance, with their samples.
    ahead: BTreeMap<Target, Samples>,
}

impl Folder {
    pub(super) fn at(
        folder: &Path,
        selector: Selector,
        times: Times,
    ) -> Result<Self, PrometheusError> {
        Ok(Self {
            promtool: Promtool::of(folder)?,
            selector,
            times,
            counts: BTreeMap::new(),
            ahead: BTreeMap::new(),
        })
    }

    /// Reads the samples of `machine` and of as many of the next machines as fit in memory.
    fn read_ahead(&mut self, machine: &Target) -> Result<(), PrometheusError> {
        let mut gathering = SampleReader::default();
        let mut scrapes_count = 0;
        for (target, count) in self.counts.range(machine..) {
            scrapes_count += count;
            if !gathering.machines.is_empty() && scrapes_count > SCRAPES_AT_ONCE {
                break;
            }
            gathering
                .machines
                .insert(target.clone(), Samples::default());
        }
        let machines = gathering.machines.keys();
        let wanted = self.selector.of_figures(&[
            one_of("job", machines.clone().map(|t| t.job.as_str())),
            one_of("instance", machines.map(|t| t.instance.as_str())),
        ]);
        self.promtool.dump(&wanted, self.times, &mut gathering)?;
        self.ahead = gathering.machines;
        Ok(())
    }
}

impl Origin for Folder {
    fn targets(&mut self) -> Result<Targets, PrometheusError> {
        let mut counting = ScrapeCounter::default();
        let wanted = self.selector.of(&[MEMORY, UP], &[]);
        self.promtool.dump(&wanted, self.times, &mut counting)?;
        self.counts = counting.machines;
        Ok(Targets {
            machines: self.counts.keys().cloned().collect(),
            all: counting.all.into_iter().collect(),
        })
    }

    fn samples(&mut self, machine: &Target) -> Result<Samples, PrometheusError> {
        if !self.ahead.contains_key(machine) {
            self.read_ahead(machine)?;
        }
        Ok(self.ahead.remove(machine).unwrap_or_default())
    }
}

#[derive(Default)]
struct ScrapeCounter {
    machines: BTreeMap<Target, u64>,
    all: BTreeSet<Target>,
    /// Machine of the current series, and true if the series is the memory series.
    now: Option<(Target, bool)>,
}

impl Sink for ScrapeCounter {
    fn series(&mut self, labels: &Labels<'_>) {
        let is_memory = labels.get("__name__") == MEMORY;
        let target = Target::of(|name| labels.get(name));
        self.now = Some((target, is_memory));
    }

    fn sample(&mut self, _: i64, value: f64) {
        let Some((target, is_memory)) = self.now.as_ref().filter(|_| value.is_finite()) else {
            return;
        };
        if !*is_memory {
            self.all.insert(target.clone());
            self.now = None; // one sample is enough
        } else if let Some(count) = self.machines.get_mut(target) {
            *count += 1;
        } else {
            self.machines.insert(target.clone(), 1);
        }
    }
}

#[derive(Default)]
struct SampleReader {
    machines: BTreeMap<Target, Samples>,
    /// Machine of the current series, and the series.
    now: Option<(Target, Stream)>,
}

impl Sink for SampleReader {
    fn series(&mut self, labels: &Labels<'_>) {
        let target = Target::of(|name| labels.get(name));
        let machine = self.machines.get_mut(&target);
        let stream =
            machine.and_then(|samples| samples.stream(labels.get("__name__"), labels.iter()));
        self.now = stream.map(|stream| (target, stream));
    }

    fn sample(&mut self, time_ms: i64, value: f64) {
        if let Some((target, stream)) = &self.now
            && let Some(samples) = self.machines.get_mut(target)
        {
            samples.add(*stream, time_ms, value);
        }
    }
}
