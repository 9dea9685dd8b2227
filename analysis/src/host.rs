//! One pass over one host. What comes out is small whatever the host's trace, and merges with the
//! other hosts' (`fleet.rs`).

use crate::derived::Host;
use crate::error::Result;
use crate::measure::Pass;
use crate::measures::{Alone, Fleetwide, Last, Pooled};
use crate::quality::missing;
use crate::trace::span::Span;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::Findings;

/// What one host adds to the findings.
#[derive(Debug, Default)]
pub(crate) struct HostFindings {
    /// The host's own records; what is pooled over hosts stays empty here.
    pub(crate) records: Findings,
    /// What is pooled; `None` for a host without samples.
    pub(crate) pooled: Option<Pooled>,
    /// What is pooled over all hosts alone; `None` as well.
    pub(crate) fleetwide: Option<Fleetwide>,
}

impl HostFindings {
    /// Reads and analyses one host.
    pub(crate) fn of(dataset: &Dataset, id: &str, pass: &Pass<'_>) -> Result<Self> {
        let parameters = pass.parameters;
        let read = Host::read(dataset, id, parameters, pass.reads, pass.calendar)?;
        let Some(mut host) = read else {
            let mut nothing = Self::default();
            let missing = missing::no_samples(id, Span::of(parameters));
            nothing.records.not_measured.push(missing);
            return Ok(nothing);
        };
        let mut records = Findings::default();
        Alone::write(&mut host, pass, &mut records)?;
        let pooled = Pooled::of_host(&host, parameters)?;
        let summary = records.hosts.first();
        let size_class = summary.map_or_else(String::new, |summary| summary.size_class.clone());
        pooled.write_host(id, &size_class, parameters, &mut records);
        Last::write(&mut host, pass, &mut records)?;
        Ok(Self {
            fleetwide: Some(Fleetwide::of_host(&host, parameters)?),
            pooled: Some(pooled),
            records,
        })
    }
}
