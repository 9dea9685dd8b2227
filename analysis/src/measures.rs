//! All measures, one line each. Each measure declares the findings that it writes and the data that it reads
//! for them.

use crate::availability::dip_hosts::DipCounts;
use crate::availability::dips::Dips;
use crate::availability::hours::Hours;
use crate::availability::notions::Notions;
use crate::availability::over_time::MemoryOverTime;
use crate::availability::periods::Periods;
use crate::availability::periods::by_hour::AvailabilityByHour;
use crate::availability::usage::{Residuals, Usage};
use crate::cluster::Cluster;
use crate::consumers::files::TopFiles;
use crate::consumers::processes::ProgramUse;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::forecast::Forecasts;
use crate::measure::{HostMeasure, Measure, MeasureOutput, Pass, alone, pools};
use crate::owner::idle::IdlePeriods;
use crate::owner::live_file_cache::LiveFileCache;
use crate::owner::memory_context::MemoryContext;
use crate::owner::owner_cost::OwnerCost;
use crate::owner::owner_period_lengths::Lengths;
use crate::owner::quota::LastQuotas;
use crate::owner::reclaims_by_hour::ReclaimsByHour;
use crate::owner::returns;
use crate::quality::cost::AgentCosts;
use crate::quality::coverage::{Gaps, Summaries};
use crate::quality::missing::MissingMeasures;
use crate::quality::sight::{ActivitySources, MissingValueRecords};
use crate::sources;
use crate::trace::reads::ReadSet;
use crate::what_if::WhatIf;
use gleaner_schemas::findings::{Findings, Parameters};

alone! {
    /// Measures of each host by itself.
    HostMeasures:
    Summaries,
    Dips,
    IdlePeriods,
    ProgramUse,
    TopFiles,
    Gaps,
    Residuals,
    AgentCosts,
    MissingValueRecords,
    ActivitySources,
    MemoryOverTime,
    // Must follow the sources of activity, which may give a quota's reason.
    LastQuotas,
}

alone! {
    /// Measures of each host that need all others' findings.
    ClosingMeasures: MissingMeasures,
}

pools! {
    /// Measures pooled by class of hosts, and over all hosts.
    Pooled {
        usage: Usage,
        dips: DipCounts,
        periods: Periods,
        hours: Hours,
        availability_by_hour: AvailabilityByHour,
        reclaims_by_hour: ReclaimsByHour,
        owner_period_lengths: Lengths,
        reclaims: returns::Count,
        live_file_cache: LiveFileCache,
        memory_context: MemoryContext,
        // Must follow the memory context, from which the notions take the cost of lending.
        notions: Notions,
        owner_cost: OwnerCost,
    }
}

pools! {
    /// Measures pooled over all hosts, but not by class.
    Fleetwide {
        forecasts: Forecasts,
        what_if: WhatIf,
        cluster: Cluster,
    }
}

/// Returns the columns and tables of each host that the requested findings need.
pub(crate) fn reads(parameters: &Parameters) -> ReadSet {
    requested_outputs(parameters).fold(ReadSet::FEW, |all, output| all.and(output.reads))
}

/// Returns true if a requested finding needs the owner's returns.
pub(crate) fn wants_returns(parameters: &Parameters) -> bool {
    requested_outputs(parameters).any(|output| output.rests_on_returns)
}

fn requested_outputs(parameters: &Parameters) -> impl Iterator<Item = &'static MeasureOutput> {
    outputs().filter(|output| parameters.wants(&[output.key]))
}

/// Findings that measures write. A finding that two measures write together occurs twice.
fn outputs() -> impl Iterator<Item = &'static MeasureOutput> {
    let rooms = [
        HostMeasures::OUTPUTS,
        ClosingMeasures::OUTPUTS,
        Pooled::OUTPUTS,
        Fleetwide::OUTPUTS,
        &[sources::OUTPUTS],
    ];
    rooms.into_iter().flatten().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_finding_is_written_by_a_measure() {
        let written: BTreeSet<String> = outputs().map(|output| output.key.to_owned()).collect();
        assert!(written.into_iter().eq(Findings::keys()));
    }

    #[test]
    fn no_more_is_read_than_what_is_asked_for_needs() {
        let reads = |measures: &[&str]| {
            reads(&Parameters {
                measures: measures.iter().map(|&key| key.to_owned()).collect(),
                ..Parameters::default()
            })
        };
        assert_eq!(reads(&[]), ReadSet::ALL);
        assert_eq!(reads(&["dips", "availability_periods"]), ReadSet::FEW);
        assert_eq!(reads(&["memory_by_host"]), ReadSet::SAMPLES);
        assert_eq!(
            reads(&["dips", "memory_usage"]),
            ReadSet::SAMPLES.and_files()
        );
        assert_eq!(reads(&["what_if"]), ReadSet::SAMPLES.and_processes());
        assert_eq!(reads(&["notions"]), ReadSet::ALL, "two measures write it");
    }
}
