//! All measures, one line each. What they write, and what they read for it, stands with them.

use crate::availability::dip_hosts::DipCounts;
use crate::availability::dips::Dips;
use crate::availability::hours::Hours;
use crate::availability::notions::Notions;
use crate::availability::over_time::OverTime;
use crate::availability::periods::Periods;
use crate::availability::periods::by_hour::AvailabilityByHour;
use crate::availability::usage::{Residuals, Usage};
use crate::cluster::Cluster;
use crate::consumers::files::TopFiles;
use crate::consumers::processes::Programs;
use crate::derived::Host;
use crate::error::Result;
use crate::forecast::Forecasts;
use crate::measure::{HostMeasure, Measure, Output, Pass, alone, pools};
use crate::owner::absence_lengths::Lengths;
use crate::owner::idle::IdlePeriods;
use crate::owner::live_file_cache::LiveFileCache;
use crate::owner::memory_context::MemoryContext;
use crate::owner::owner_cost::OwnerCost;
use crate::owner::quota::Quotas;
use crate::owner::reclaims_by_hour::ReclaimsByHour;
use crate::owner::returns;
use crate::quality::cost::AgentCosts;
use crate::quality::coverage::{Gaps, Summaries};
use crate::quality::missing::Missing;
use crate::quality::sight::{Absences, ActivitySources};
use crate::sources;
use crate::trace::reads::Reads;
use crate::what_if::WhatIf;
use gleaner_schemas::findings::{Findings, Parameters};

alone! {
    /// What is said of each host by itself.
    Alone:
    Summaries,
    Dips,
    IdlePeriods,
    Programs,
    TopFiles,
    Gaps,
    Residuals,
    AgentCosts,
    Absences,
    ActivitySources,
    OverTime,
    // It says what the sources of activity say.
    Quotas,
}

alone! {
    /// What is said of each host when all else is known.
    Last: Missing,
}

pools! {
    /// What is pooled by class of hosts, and over all of them.
    Pooled {
        usage: Usage,
        dips: DipCounts,
        periods: Periods,
        hours: Hours,
        availability_by_hour: AvailabilityByHour,
        reclaims_by_hour: ReclaimsByHour,
        absence_lengths: Lengths,
        reclaims: returns::Count,
        live_file_cache: LiveFileCache,
        memory_context: MemoryContext,
        // It reads what the memory context wrote.
        notions: Notions,
        owner_cost: OwnerCost,
    }
}

pools! {
    /// What is pooled over all hosts alone.
    Fleetwide {
        forecasts: Forecasts,
        what_if: WhatIf,
        cluster: Cluster,
    }
}

/// Returns what is read of each host for what is asked for.
pub(crate) fn reads(parameters: &Parameters) -> Reads {
    wanted(parameters).fold(Reads::FEW, |all, output| all.and(output.reads))
}

/// Whether anything is asked for that rests on the owner's returns.
pub(crate) fn wants_returns(parameters: &Parameters) -> bool {
    wanted(parameters).any(|output| output.rests_on_returns)
}

fn wanted(parameters: &Parameters) -> impl Iterator<Item = &'static Output> {
    outputs().filter(|output| parameters.wants(&[output.key]))
}

/// Findings that measures write; one that two measures write together comes twice.
fn outputs() -> impl Iterator<Item = &'static Output> {
    let rooms = [
        Alone::OUTPUTS,
        Last::OUTPUTS,
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
        assert_eq!(reads(&[]), Reads::ALL);
        assert_eq!(reads(&["dips", "availability_periods"]), Reads::FEW);
        assert_eq!(reads(&["memory_by_host"]), Reads::SAMPLES);
        assert_eq!(reads(&["dips", "memory_usage"]), Reads::SAMPLES.and_files());
        assert_eq!(reads(&["what_if"]), Reads::SAMPLES.and_processes());
        assert_eq!(reads(&["notions"]), Reads::ALL, "two measures write it");
    }
}
