//! Reads and measures one host. The result is small for any trace, and merges with the other hosts' results
//! (`fleet.rs`).

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::Pass;
use crate::measures::{ClosingMeasures, Fleetwide, HostMeasures, Pooled};
use crate::quality::missing;
use crate::trace::span::Span;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::Findings;

/// A host's part of the findings.
#[derive(Debug, Default)]
pub(crate) struct HostFindings {
    /// The host's own records; findings that are pooled over hosts stay empty here.
    pub(crate) records: Findings,
    /// Figures pooled by class and over all hosts; `None` for a host without samples.
    pub(crate) pooled: Option<Pooled>,
    /// Figures pooled over all hosts only; `None` for a host without samples.
    pub(crate) fleetwide: Option<Fleetwide>,
}

impl HostFindings {
    /// Reads and analyses one host.
    pub(crate) fn of(dataset: &Dataset, id: &str, pass: &Pass<'_>) -> Result<Self> {
        let parameters = pass.parameters;
        let read = HostHistory::read(dataset, id, parameters, pass.reads, pass.calendar)?;
        let Some(mut host) = read else {
            let mut nothing = Self::default();
            let missing = missing::no_samples(id, Span::of(parameters));
            nothing.records.missing_measures.push(missing);
            return Ok(nothing);
        };
        let mut records = Findings::default();
        HostMeasures::write(&mut host, pass, &mut records)?;
        let pooled = Pooled::of_host(&host, parameters)?;
        let summary = records.hosts.first();
        let size_class = summary.map_or_else(String::new, |summary| summary.size_class.clone());
        let fleetwide = Fleetwide::of_host(&host, parameters)?;
        pooled.write_host(id, &size_class, parameters, &mut records);
        fleetwide.write_host(id, &size_class, parameters, &mut records);
        ClosingMeasures::write(&mut host, pass, &mut records)?;
        Ok(Self {
            fleetwide: Some(fleetwide),
            pooled: Some(pooled),
            records,
        })
    }
}
