//! How long a region of s bytes stays available (Acharya & Setia, Table 4), and what ends that.
//!
//! ```text
//! runs, idle periods ─► window ────────► seen      the paper's: as long as seen, cut at gaps
//!                     └ lease_windows ─► lease ─► estimates   ends with their causes; survival, odds, bounds
//! ```

mod estimates;
mod lease;
pub(crate) mod lease_windows;
mod seen;
pub(crate) mod window;

use crate::error::Result;
use crate::measure::Measure;
use crate::quality::missing;
use crate::statistics::bootstrap::Resamples;
use crate::trace::HostTrace;
use estimates::Cell;
use gleaner_schemas::findings::{AvailabilityPeriods, Findings, Parameters, Scope};
use lease::Leases;
use lease_windows::LeaseWindows;
use seen::SeenPeriods;
use window::Window;

/// The periods of every region size, in all time and in idle time.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    all: Vec<Region>,
    /// Empty where no host can tell when it was idle.
    idle: Vec<Region>,
    hosts_count: usize,
    /// Hosts of which no arrivals at a collector are known.
    hosts_without_arrivals_count: usize,
}

/// The periods of one region size, in both readings.
#[derive(Clone, Debug)]
struct Region {
    seen: SeenPeriods,
    leases: Leases,
}

impl Measure for Periods {
    fn of_host(trace: &HostTrace<'_>, parameters: &Parameters) -> Result<Self> {
        let (time_ms, available) = (&trace.samples.time_ms, &trace.samples.available_bytes);
        let minimum_ms = parameters.minimum_period_s * 1000.0;
        let covered_ms = trace.covered_ms();
        let of = |as_seen: &[Window], as_leases: &[Window]| {
            let of_region = |&bytes: &i64| Region {
                seen: SeenPeriods::of(time_ms, available, as_seen, bytes, minimum_ms, covered_ms),
                leases: Leases::of(time_ms, available, as_leases, bytes, minimum_ms),
            };
            parameters.region_bytes.iter().map(of_region).collect()
        };
        let runs = trace.segments.iter();
        let runs: Vec<Window> = runs
            .filter_map(|run| Window::of_run(time_ms, run))
            .collect();
        let absences = trace.idleness.periods.iter().map(Window::of_idle);
        let leases = LeaseWindows::new(trace);
        Ok(Self {
            all: of(&runs, &leases.of_runs()),
            idle: if trace.idle_can_be_told() {
                of(&absences.collect::<Vec<_>>(), &leases.of_absences())
            } else {
                Vec::new()
            },
            hosts_count: 1,
            hosts_without_arrivals_count: usize::from(trace.arrivals.is_empty()),
        })
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [(&mut self.all, &other.all), (&mut self.idle, &other.idle)] {
            if mine.is_empty() {
                mine.clone_from(theirs);
            } else {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    mine.seen.merge(&theirs.seen);
                    mine.leases.merge(&theirs.leases);
                }
            }
        }
        self.hosts_count += other.hosts_count;
        self.hosts_without_arrivals_count += other.hosts_without_arrivals_count;
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        for (scope, regions) in [(Scope::All, &self.all), (Scope::Idle, &self.idle)] {
            let hosts_count = regions.first().map_or(0, |r| r.seen.hosts_count());
            // The same hosts are drawn for every size of region.
            let resamples = Resamples::draw(hosts_count, parameters.bootstrap_count as usize);
            for (&region_bytes, region) in parameters.region_bytes.iter().zip(regions) {
                let cell = Cell {
                    size_class,
                    scope,
                    region_bytes,
                };
                region.write(&cell, &resamples, parameters, findings);
            }
        }
        if size_class == "all" && self.hosts_without_arrivals_count > 0 {
            let without = self.hosts_without_arrivals_count;
            findings
                .not_measured
                .push(missing::no_arrivals(without, self.hosts_count));
        }
    }
}

impl Region {
    fn write(
        &self,
        cell: &Cell<'_>,
        resamples: &Resamples,
        parameters: &Parameters,
        findings: &mut Findings,
    ) {
        let mut periods = AvailabilityPeriods {
            size_class: cell.size_class.to_owned(),
            scope: cell.scope,
            region_bytes: cell.region_bytes,
            ..AvailabilityPeriods::default()
        };
        self.seen.write(resamples, &mut periods);
        estimates::write(
            &self.leases,
            cell,
            resamples,
            parameters,
            &mut periods,
            findings,
        );
        findings.availability_periods.push(periods);
    }
}
