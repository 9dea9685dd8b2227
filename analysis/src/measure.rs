//! What every pooled measure does: take a host in, merge, write its records.
//!
//! A new measure is one file in its room, and one line in [`Pooled`] (figures by class of hosts), in [`Fleetwide`] or in
//! `cluster::Cluster` (figures of the hosts together).

use crate::availability::dip_hosts::DipCounts;
use crate::availability::hours::Hours;
use crate::availability::notions::Notions;
use crate::availability::periods::Periods;
use crate::availability::periods::by_hour::AvailabilityByHour;
use crate::availability::usage::Usage;
use crate::error::Result;
use crate::forecast::Forecasts;
use crate::owner::busy::Lengths;
use crate::owner::live_files::LiveFileCache;
use crate::owner::memory_context::MemoryContext;
use crate::owner::owner_cost::OwnerCost;
use crate::owner::reclaims_by_hour::ReclaimsByHour;
use crate::owner::returns;
use crate::trace::HostTrace;
use crate::what_if::WhatIf;
use gleaner_schemas::findings::{Findings, Parameters};

/// A measure that pools over hosts. Hosts are merged in the order of their ids.
pub(crate) trait Measure: Sized {
    /// What one host adds.
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self>;
    /// Takes another host's part in; both are of the same parameters.
    fn merge(&mut self, other: &Self);
    /// Adds the records of the hosts merged, which are those of `size_class` (or `all`).
    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings);
}

/// Declares a struct of measures that is a measure itself. After each stand the keys of its findings: it is left
/// out where none of them was asked for.
macro_rules! measures {
    ($(#[doc = $doc:literal])+ $name:ident { $($field:ident : $measure:ty => [$($key:literal),+]),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: Option<$measure>,)+
        }

        impl Measure for $name {
            fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
                Ok(Self {
                    $($field: if parameters.wants(&[$($key),+]) {
                        Some(<$measure>::of_host(trace, parameters)?)
                    } else {
                        None
                    },)+
                })
            }
            fn merge(&mut self, other: &Self) {
                $(if let (Some(mine), Some(other)) = (&mut self.$field, &other.$field) {
                    mine.merge(other);
                })+
            }
            fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
                $(if let Some(measure) = &self.$field {
                    measure.write(size_class, parameters, findings);
                })+
            }
        }
    };
}

measures! {
    /// What is pooled by class of hosts, and over all of them.
    Pooled {
        usage: Usage => ["memory_usage", "memory_by_host"],
        dips: DipCounts => ["dip_hosts"],
        periods: Periods => [
            "availability_periods", "survival_curves", "period_ends", "availability_odds", "period_bounds"
        ],
        hours: Hours => ["memory_usage_by_hour", "dips_by_hour", "idle_by_hour"],
        availability_by_hour: AvailabilityByHour => ["availability_by_hour"],
        reclaims_by_hour: ReclaimsByHour => ["reclaims_by_hour"],
        absence_lengths: Lengths => ["absence_lengths"],
        reclaims: returns::Count => ["reclaims"],
        live_file_cache: LiveFileCache => ["live_file_cache"],
        memory_context: MemoryContext => ["memory_context", "notions"],
        // It reads what the memory context wrote.
        notions: Notions => ["notions"],
        owner_cost: OwnerCost => ["owner_cost"],
    }
}

measures! {
    /// What is pooled over all hosts alone.
    Fleetwide {
        forecasts: Forecasts => [
            "forecasts", "forecast_quality", "forecast_calibration", "forecast_table", "forecast_habits",
            "forecast_weights", "forecast_table_size"
        ],
        what_if: WhatIf => ["what_if"],
    }
}
