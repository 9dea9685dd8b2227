//! Imports node_exporter's series from Prometheus: from a running server, or from its folder.
//!
//! ```text
//! server ── HTTP API, `query` with a range ──► answer ─┐
//!                                                      ├─► machine: samples by time ──► series: columns
//! folder ── promtool tsdb dump ──────────────► dump ───┘
//! ```
//!
//! Each `instance` is a machine. Server and folder give the same samples, with the times of their scrapes;
//! nothing is resampled.

mod answer;
mod dump;
mod error;
mod folder;
mod machine;
mod promtool;
mod selector;
mod series;
mod server;

pub use error::PrometheusError;
pub use selector::Selector;
pub use server::Address;

use super::{ImportError, Importer, MachineList, Readings, Source, kernel};
use folder::Folder;
use machine::Samples;
use server::Server;
use std::collections::BTreeMap;
use std::path::Path;

/// The source: filled columns, and meaning of available memory.
pub const SOURCE: Source<'static> = Source {
    name: "Prometheus node_exporter",
    host_prefix: "",
    available_meaning: kernel::AVAILABLE,
    has_invented_sizes: false,
    fills: &series::FILLS,
    columns: &series::COLUMNS,
};

/// Series that only machines have: a target with this series is a machine.
const MEMORY: &str = "node_memory_MemTotal_bytes";
/// Series that every target has.
const UP: &str = "up";

/// Range of times to import; by default all times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// First time to import, ms since 1970-01-01 UTC.
    pub from_ms: Option<i64>,
    /// End of the range, not imported itself, ms since 1970-01-01 UTC.
    pub until_ms: Option<i64>,
}

impl Times {
    fn hold(self, time_ms: i64) -> bool {
        self.from_ms.is_none_or(|from| from <= time_ms)
            && self.until_ms.is_none_or(|until| time_ms < until)
    }
}

/// A target of Prometheus: the two labels by which its series are identified.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    instance: String,
    job: String,
}

impl Target {
    fn of<T: Into<String>>(label: impl Fn(&'static str) -> T) -> Self {
        Self {
            instance: label("instance").into(),
            job: label("job").into(),
        }
    }
}

/// Place from which samples are read: a server or a folder.
trait Origin {
    /// Lists the targets. Called before all other methods.
    fn targets(&mut self) -> Result<Targets, PrometheusError>;

    /// Returns all samples of a machine. Called once per machine, in the order of the list.
    fn samples(&mut self, machine: &Target) -> Result<Samples, PrometheusError>;
}

/// Targets of Prometheus, in order.
struct Targets {
    /// Targets that have a memory series.
    machines: Vec<Target>,
    all: Vec<Target>,
}

/// Importer of the machines that Prometheus watches through node_exporter.
pub struct Prometheus {
    origin: Box<dyn Origin>,
    place: String,
    name: String,
    machines: BTreeMap<String, Target>,
}

impl Prometheus {
    /// Importer from the server at `address`.
    ///
    /// # Errors
    /// [`PrometheusError::Credentials`].
    pub fn server(
        address: &Address,
        selector: Selector,
        times: Times,
    ) -> Result<Self, ImportError> {
        let server = Server::at(address, selector, times)?;
        Ok(Self::of(server, address.url.clone()))
    }

    /// Importer from a Prometheus folder; nothing is written there.
    ///
    /// # Errors
    /// [`PrometheusError`] if it is not a Prometheus folder, or cannot be read.
    pub fn folder(folder: &Path, selector: Selector, times: Times) -> Result<Self, ImportError> {
        let place = folder.display().to_string();
        Ok(Self::of(Folder::at(folder, selector, times)?, place))
    }

    fn of(origin: impl Origin + 'static, place: String) -> Self {
        Self {
            origin: Box::new(origin),
            place,
            name: SOURCE.name.to_owned(),
            machines: BTreeMap::new(),
        }
    }

    /// Sets a name that distinguishes these machines from machines of the same names at another Prometheus.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = format!("{} {name}", SOURCE.name);
        self
    }
}

impl Importer for Prometheus {
    fn source(&self) -> Source<'_> {
        Source {
            name: &self.name,
            ..SOURCE
        }
    }

    fn origin(&self) -> String {
        self.place.clone()
    }

    fn machines(&mut self) -> Result<MachineList, ImportError> {
        let Targets { machines, mut all } = self.origin.targets()?;
        if machines.is_empty() {
            let origin = self.place.clone();
            return Err(PrometheusError::NoMachines { origin }.into());
        }
        all.retain(|target| machines.binary_search(target).is_err());
        let others = names(&all).into_iter();
        let others = others.map(|name| format!("{name} (it has no {MEMORY})"));
        let listed = names(&machines);
        self.machines = listed.iter().cloned().zip(machines).collect();
        Ok(MachineList {
            machines: listed,
            skipped_entries: others.collect(),
            unusable_parts: Vec::new(),
        })
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        if let Some(target) = self.machines.get(machine) {
            self.origin.samples(target)?.read(readings);
        }
        Ok(())
    }
}

/// Names of the machines. A name is the target's instance; if several jobs have that instance, the job is added.
fn names(targets: &[Target]) -> Vec<String> {
    let mut of_instance: BTreeMap<&str, usize> = BTreeMap::new();
    for target in targets {
        *of_instance.entry(&target.instance).or_insert(0) += 1;
    }
    let name = |target: &Target| {
        let (instance, job) = (&target.instance, &target.job);
        if of_instance.get(instance.as_str()) == Some(&1) && !instance.is_empty() {
            instance.clone()
        } else {
            format!("{{instance={instance:?}, job={job:?}}}")
        }
    };
    targets.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_names_a_machine_unless_several_jobs_have_it() {
        let target = |instance: &str, job: &str| Target {
            instance: instance.to_owned(),
            job: job.to_owned(),
        };
        let targets = [
            target("a:9100", "node"),
            target("b:9100", "node"),
            target("b:9100", "other"),
            target("", "node"),
        ];
        let expected = [
            "a:9100",
            "{instance=\"b:9100\", job=\"node\"}",
            "{instance=\"b:9100\", job=\"other\"}",
            "{instance=\"\", job=\"node\"}",
        ];
        assert_eq!(names(&targets), expected);
    }

    #[test]
    fn times_begin_with_the_first_and_end_before_the_last() {
        let times = Times {
            from_ms: Some(10),
            until_ms: Some(20),
        };
        let held: Vec<i64> = (0..30).filter(|ms| times.hold(*ms)).collect();
        assert_eq!(held, (10..20).collect::<Vec<_>>());
        assert!(Times::default().hold(i64::MIN) && Times::default().hold(i64::MAX));
    }
}
