//! What every pooled measure does: take a host in, merge, write its records.
//!
//! A new measure is one file in its room, and one line in [`Pooled`] (figures by class of hosts) or in
//! `cluster::Cluster` (figures of the hosts together).

use crate::availability::hours::Hours;
use crate::availability::periods::Periods;
use crate::availability::usage::Usage;
use crate::error::Result;
use crate::owner::busy::Lengths;
use crate::owner::live_files::LiveFileCache;
use crate::owner::memory_context::MemoryContext;
use crate::owner::owner_cost::OwnerCost;
use crate::owner::returns;
use crate::trace::HostTrace;
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

/// Declares a struct of measures that is a measure itself.
macro_rules! measures {
    ($(#[doc = $doc:literal])+ $name:ident { $($field:ident : $measure:ty),+ $(,)? }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $(pub(crate) $field: $measure,)+
        }

        impl Measure for $name {
            fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
                Ok(Self { $($field: <$measure>::of_host(trace, parameters)?,)+ })
            }
            fn merge(&mut self, other: &Self) {
                $(self.$field.merge(&other.$field);)+
            }
            fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
                $(self.$field.write(size_class, parameters, findings);)+
            }
        }
    };
}

measures! {
    /// What is pooled by class of hosts, and over all of them.
    Pooled {
        usage: Usage,
        periods: Periods,
        hours: Hours,
        absence_lengths: Lengths,
        reclaims: returns::Count,
        live_file_cache: LiveFileCache,
        memory_context: MemoryContext,
        owner_cost: OwnerCost,
    }
}
