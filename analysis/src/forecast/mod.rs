//! Forecasts: how likely a region that is available now is to be so throughout the next ten minutes to 24 hours.
//!
//! What is learnt and how a probability follows from it says [`gleaner_policy::forecast`]; here the shares are counted.
//!
//! - *Instants* ([`instants`]): a host's first sample of every ten minutes. Scope `all`: those at which the region is
//!   available; scope `idle`: at which the host is known to be idle as well, as the rule says at that very sample.
//! - *Fate*: the region is lost at the first sample below its size, where the host's idle period ends (scope `idle`), and
//!   where a gap ends leases ([`LeaseWindows`]). An instant counts for a time ahead only if it could have been followed for that
//!   long whatever happened: counting all losses, but survivals only where they were seen, would favour losses.
//! - *The past only*: a fate is learnt from on the day on which it comes to be known, and forecasts of a day rest on
//!   what was learnt before it ([`rolling`]). So nothing that was recorded after a day began changes its forecasts.
//!
//! A host adds counts by day, time of the week and state ([`counts`]), no samples.

mod counts;
mod instants;
mod learnt;
mod records;
mod rolling;

use crate::availability::periods::lease_windows::LeaseWindows;
use crate::availability::periods::window::Window;
use crate::error::Result;
use crate::measure::Measure;
use crate::trace::HostTrace;
use counts::{Counts, Seen};
use gleaner_schemas::findings::{Findings, Parameters, Scope};
use std::sync::Arc;

/// A region as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Region {
    Bytes(i64),
    /// Of physical memory.
    Share(f64),
}

/// What all hosts add.
#[derive(Clone, Debug)]
pub(crate) struct Forecasts {
    hosts: Vec<Arc<HostPart>>,
}

/// One host's part.
#[derive(Debug)]
struct HostPart {
    host: String,
    /// Its last sample.
    time_ms: i64,
    hour_of_week: u8,
    /// Time that samples cover.
    covered_ms: i64,
    /// By region.
    all: Vec<Counts>,
    /// By region; empty where idleness cannot be told.
    idle: Vec<Counts>,
}

impl Region {
    /// Those of the parameters, in their order.
    fn all(parameters: &Parameters) -> Vec<Self> {
        let sizes = parameters.region_bytes.iter().copied().map(Self::Bytes);
        let shares = parameters.region_shares.iter().copied().map(Self::Share);
        sizes.chain(shares).collect()
    }

    fn bytes(self, physical_bytes: i64) -> i64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Share(share) => (physical_bytes as f64 * share) as i64,
        }
    }
}

impl HostPart {
    fn counts(&self, scope: Scope) -> &[Counts] {
        match scope {
            Scope::All => &self.all,
            Scope::Idle => &self.idle,
        }
    }
}

impl Measure for Forecasts {
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
        let samples = &trace.samples;
        let (time_ms, available_bytes) = (&samples.time_ms[..], &samples.available_bytes[..]);
        let instants = instants::of(time_ms);
        let low_bytes = instants::low_water(time_ms, available_bytes, &instants);
        let last = samples.len().saturating_sub(1);
        let last_low = instants::low_water(time_ms, available_bytes, &[last]);
        let count = |windows: &[Window], is_open: Option<&[bool]>| {
            let known_after_days = instants::known_after_days(time_ms, &instants, windows);
            let seen = Seen {
                time_ms,
                available_bytes,
                hours_of_week: &trace.hours_of_week,
                instants: &instants,
                low_bytes: &low_bytes,
                last_low_bytes: last_low.first().copied().unwrap_or(0),
                windows,
                known_after_days: &known_after_days,
                is_open,
            };
            let region = |region: Region| seen.count(|at| region.bytes(samples.physical_bytes[at]));
            Region::all(parameters).into_iter().map(region).collect()
        };
        let lease_windows = LeaseWindows::new(trace);
        let is_idle: Vec<bool> = (trace.idleness.verdicts.iter())
            .map(|verdict| verdict.is_idle())
            .collect();
        Ok(Self {
            hosts: vec![Arc::new(HostPart {
                host: trace.host().to_owned(),
                time_ms: time_ms.last().copied().unwrap_or(0),
                hour_of_week: trace.hours_of_week.last().copied().unwrap_or(0),
                covered_ms: trace.covered_ms(),
                all: count(&lease_windows.of_runs(), None),
                idle: if trace.idle_can_be_told() {
                    count(&lease_windows.of_absences(), Some(&is_idle))
                } else {
                    Vec::new()
                },
            })],
        })
    }

    fn merge(&mut self, other: &Self) {
        self.hosts.extend_from_slice(&other.hosts);
    }

    fn write(&self, _size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        records::write(&self.hosts, parameters, findings);
    }
}
