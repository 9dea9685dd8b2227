//! A folder of Prometheus' (`--storage.tsdb.path`, or a snapshot).
//!
//! It is dumped series by series, and every dump opens the folder anew: machines are read some at a time, as many
//! as fit in memory.

use super::dump::Labels;
use super::error::PrometheusError;
use super::machine::{Samples, Stream};
use super::promtool::{Promtool, Sink};
use super::selector::{Selector, one_of};
use super::{Target, Times};
use std::collections::BTreeMap;
use std::path::Path;

/// Scrapes that are held at once, some 500 bytes each; a machine that has more is read alone.
const SCRAPES_AT_ONCE: u64 = 200_000;

pub(super) struct Folder {
    promtool: Promtool,
    /// Machines read ahead.
    ahead: BTreeMap<Target, Samples>,
}

impl Folder {
    pub(super) fn at(folder: &Path) -> Result<Self, PrometheusError> {
        Ok(Self {
            promtool: Promtool::of(folder)?,
            ahead: BTreeMap::new(),
        })
    }

    /// Jobs and instances that have samples of `names`, with how many: of each of the names.
    pub(super) fn counts(
        &self,
        names: &[&str],
        selector: &Selector,
        times: Times,
    ) -> Result<Vec<BTreeMap<Target, u64>>, PrometheusError> {
        let mut counting = Counting {
            names,
            counts: vec![BTreeMap::new(); names.len()],
            now: None,
        };
        let wanted = selector.of(names, &[]);
        self.promtool.dump(&wanted, times, &mut counting)?;
        Ok(counting.counts)
    }

    /// All samples of the first of `targets`, which stand with how many scrapes they have and in the order in which
    /// they are going to be asked for.
    pub(super) fn samples<'t>(
        &mut self,
        targets: impl Iterator<Item = (&'t Target, u64)> + Clone,
        selector: &Selector,
        times: Times,
    ) -> Result<Samples, PrometheusError> {
        let Some((first, _)) = targets.clone().next() else {
            return Ok(Samples::default());
        };
        if let Some(samples) = self.ahead.remove(first) {
            return Ok(samples);
        }
        let mut gathering = Gathering::default();
        let mut scrapes_count = 0;
        for (target, count) in targets {
            scrapes_count += count;
            if !gathering.machines.is_empty() && scrapes_count > SCRAPES_AT_ONCE {
                break;
            }
            gathering
                .machines
                .insert(target.clone(), Samples::default());
        }
        let machines = gathering.machines.keys();
        let wanted = selector.of_figures(&[
            one_of("job", machines.clone().map(|t| t.job.as_str())),
            one_of("instance", machines.map(|t| t.instance.as_str())),
        ]);
        self.promtool.dump(&wanted, times, &mut gathering)?;
        self.ahead = gathering.machines;
        Ok(self.ahead.remove(first).unwrap_or_default())
    }
}

struct Counting<'n> {
    names: &'n [&'n str],
    counts: Vec<BTreeMap<Target, u64>>,
    /// The series whose samples come.
    now: Option<(usize, Target)>,
}

impl Sink for Counting<'_> {
    fn series(&mut self, labels: &Labels<'_>) {
        let name = labels.get("__name__");
        let at = self.names.iter().position(|n| *n == name);
        self.now = at.map(|at| (at, Target::of(|name| labels.get(name).to_owned())));
    }

    fn sample(&mut self, _: i64, value: f64) {
        if let Some((at, target)) = self.now.as_ref().filter(|_| value.is_finite()) {
            // Once a series, and then found.
            match self.counts[*at].get_mut(target) {
                Some(count) => *count += 1,
                None => drop(self.counts[*at].insert(target.clone(), 1)),
            }
        }
    }
}

#[derive(Default)]
struct Gathering {
    machines: BTreeMap<Target, Samples>,
    /// The series whose samples come, and whose it is.
    now: Option<(Target, Stream)>,
}

impl Sink for Gathering {
    fn series(&mut self, labels: &Labels<'_>) {
        let target = Target::of(|name| labels.get(name).to_owned());
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
