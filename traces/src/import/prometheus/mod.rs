//! node_exporter's series, as Prometheus stored them: from a server that runs, or from its folder.
//!
//! ```text
//! server ── HTTP API, `query` with a range ──► answer ─┐
//!                                                      ├─► machine: samples by time ──► series: columns
//! folder ── promtool tsdb dump ──────────────► dump ───┘
//! ```
//!
//! A machine is an `instance`. Both ways give the same samples, with the times of their scrapes; nothing is resampled.

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

use super::{ImportError, Importer, Listed, Readings, Source, kernel};
use folder::Folder;
use server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What it fills.
pub const SOURCE: Source<'static> = Source {
    name: "Prometheus node_exporter",
    host_prefix: "",
    available: kernel::AVAILABLE,
    fills: &series::FILLS,
    columns: &series::COLUMNS,
};

/// The series that makes a machine of a target.
const MEMORY: &str = "node_memory_MemTotal_bytes";
/// The series that every target has.
const UP: &str = "up";

/// Which times are wanted: all where nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// The first, ms since 1970-01-01 UTC.
    pub from_ms: Option<i64>,
    /// The first that is not, ms since 1970-01-01 UTC.
    pub until_ms: Option<i64>,
}

impl Times {
    fn hold(self, time_ms: i64) -> bool {
        self.from_ms.is_none_or(|from| from <= time_ms)
            && self.until_ms.is_none_or(|until| time_ms < until)
    }
}

/// What Prometheus takes for one target: the labels of its own among those of its series.
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

/// A machine that is to be read.
struct Wanted {
    name: String,
    target: Target,
    extent: Extent,
}

/// How much there is of it.
enum Extent {
    /// UTC days with samples: their begin in ms.
    Days(Vec<i64>),
    Scrapes(u64),
}

enum Origin {
    Server(Server),
    Folder(Folder),
}

/// Machines that Prometheus watches through node_exporter.
pub struct Prometheus {
    origin: Origin,
    place: String,
    selector: Selector,
    times: Times,
    name: String,
    wanted: Vec<Wanted>,
}

impl Prometheus {
    /// Of the server at `address`.
    ///
    /// # Errors
    /// [`PrometheusError::Credentials`].
    pub fn server(
        address: &Address,
        selector: Selector,
        times: Times,
    ) -> Result<Self, ImportError> {
        let origin = Origin::Server(Server::at(address)?);
        Ok(Self::of(origin, address.url.clone(), selector, times))
    }

    /// Of Prometheus' folder, which is not written to.
    ///
    /// # Errors
    /// [`PrometheusError`]: it is none, or cannot be read.
    pub fn folder(folder: &Path, selector: Selector, times: Times) -> Result<Self, ImportError> {
        let origin = Origin::Folder(Folder::at(folder)?);
        let place = folder.display().to_string();
        Ok(Self::of(origin, place, selector, times))
    }

    fn of(origin: Origin, place: String, selector: Selector, times: Times) -> Self {
        Self {
            origin,
            place,
            selector,
            times,
            name: SOURCE.name.to_owned(),
            wanted: Vec::new(),
        }
    }

    /// Tells its machines from those of another Prometheus that have the same names.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = format!("{} {name}", SOURCE.name);
        self
    }

    /// Targets with memory, and all targets.
    fn targets(&self) -> Result<(BTreeMap<Target, Extent>, BTreeSet<Target>), PrometheusError> {
        match &self.origin {
            Origin::Server(server) => {
                let days = |series| server.days(series, &self.selector, self.times);
                let machines = days(MEMORY)?.into_iter();
                let machines = machines.map(|(target, days)| (target, Extent::Days(days)));
                Ok((machines.collect(), days(UP)?.into_keys().collect()))
            }
            Origin::Folder(folder) => {
                let counts = folder.counts(&[MEMORY, UP], &self.selector, self.times)?;
                let mut counts = counts.into_iter().map(BTreeMap::into_iter);
                let machines = counts.next().into_iter().flatten();
                let machines = machines.map(|(target, count)| (target, Extent::Scrapes(count)));
                let machines = machines.collect();
                let all = counts.next().into_iter().flatten();
                Ok((machines, all.map(|(target, _)| target).collect()))
            }
        }
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

    fn machines(&mut self) -> Result<Listed, ImportError> {
        let (machines, all) = self.targets()?;
        if machines.is_empty() {
            let origin = self.place.clone();
            return Err(PrometheusError::NoMachines { origin }.into());
        }
        let others: Vec<Target> = all
            .into_iter()
            .filter(|target| !machines.contains_key(target))
            .collect();
        let passed_over = names(&others).into_iter();
        let passed_over = passed_over.map(|name| format!("{name} (it has no {MEMORY})"));
        let passed_over = passed_over.collect();
        let targets: Vec<Target> = machines.keys().cloned().collect();
        self.wanted = names(&targets)
            .into_iter()
            .zip(machines)
            .map(|(name, (target, extent))| Wanted {
                name,
                target,
                extent,
            })
            .collect();
        Ok(Listed {
            machines: self.wanted.iter().map(|w| w.name.clone()).collect(),
            passed_over,
        })
    }

    fn read(&mut self, machine: &str, readings: &mut Readings<'_>) -> Result<(), ImportError> {
        let Some(at) = self.wanted.iter().position(|w| w.name == machine) else {
            return Ok(());
        };
        let wanted = &self.wanted[at];
        let samples = match (&mut self.origin, &wanted.extent) {
            (Origin::Server(server), Extent::Days(days)) => {
                server.samples(&wanted.target, days, &self.selector, self.times)?
            }
            (Origin::Folder(folder), _) => {
                let ahead = self.wanted[at..].iter().map(|w| match w.extent {
                    Extent::Scrapes(count) => (&w.target, count),
                    Extent::Days(_) => (&w.target, 0),
                });
                folder.samples(ahead, &self.selector, self.times)?
            }
            (Origin::Server(_), Extent::Scrapes(_)) => return Ok(()),
        };
        samples.read(readings);
        Ok(())
    }
}

/// Names of machines: the instance; with the job as well, where several jobs have it.
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
