//! Time that a region of s bytes stays available (Acharya & Setia, Table 4), by each notion of available, and
//! the causes that end such periods.
//!
//! ```text
//! runs, idle periods ─► window ────────► seen      the paper's: as long as seen, cut at gaps
//!                     └ lease_windows ─► lease ─► estimates   ends with their causes; survival, odds, bounds
//!                                         └► by_hour     both, by hour of the week
//! ```

pub(crate) mod by_hour;
mod estimates;
mod lease;
pub(crate) mod lease_windows;
mod seen_periods;
pub(crate) mod window;

use crate::availability::notions::Sizes;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::quality::missing;
use crate::statistics::bootstrap::Resamples;
use crate::trace::reads::ReadSet;
use estimates::Cell;
use gleaner_schemas::findings::{
    AvailabilityOdds, AvailabilityPeriods, FindingList, Findings, Notion, NotionSizes, Parameters,
    PeriodBound, PeriodEnds, Scope, SurvivalPoint,
};
use lease::Leases;
use lease_windows::LeaseWindows;
use seen_periods::SeenPeriods;
use serde::{Deserialize, Serialize};
use window::Window;

/// The periods of every region size, by each notion of available.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Periods {
    /// Periods by notion, in the order of [`Notion::ALL`]; only the first notion if the others were not
    /// requested.
    notions: Vec<ByScope>,
    hosts_count: usize,
    /// Number of hosts whose arrivals at a collector are unknown.
    hosts_without_arrivals_count: usize,
}

/// The periods of every region size by one notion.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ByScope {
    /// Regions over all time. Empty if no host's sizes by the notion are known.
    all: Vec<Region>,
    /// Regions over idle time. Also empty if no host's idle time is known.
    idle: Vec<Region>,
}

/// The periods of one region size: as seen, and counted as leases.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Region {
    seen: SeenPeriods,
    leases: Leases,
}

/// Notions whose periods were requested: always memory available now. The others need more tables; they are
/// included only if `notions` is requested, too.
fn requested_notions(parameters: &Parameters) -> &'static [Notion] {
    if parameters.wants(&[NotionSizes::KEY])
        && parameters.wants(&[AvailabilityPeriods::KEY, AvailabilityOdds::KEY])
    {
        &Notion::ALL
    } else {
        &[Notion::Available]
    }
}

impl Measure for Periods {
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<AvailabilityPeriods>(ReadSet::FEW),
        MeasureOutput::of::<SurvivalPoint>(ReadSet::FEW),
        MeasureOutput::of::<PeriodEnds>(ReadSet::FEW),
        MeasureOutput::of::<AvailabilityOdds>(ReadSet::FEW),
        MeasureOutput::of::<PeriodBound>(ReadSet::FEW),
    ];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let leases = LeaseWindows::new(host);
        let of_notion = |&notion: &Notion| ByScope::of_host(host, &leases, notion, parameters);
        Ok(Self {
            notions: requested_notions(parameters)
                .iter()
                .map(of_notion)
                .collect(),
            hosts_count: 1,
            hosts_without_arrivals_count: usize::from(host.trace.arrivals.is_empty()),
        })
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.notions.iter_mut().zip(&other.notions) {
            merge(&mut mine.all, &theirs.all);
            merge(&mut mine.idle, &theirs.idle);
        }
        self.hosts_count += other.hosts_count;
        self.hosts_without_arrivals_count += other.hosts_without_arrivals_count;
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        for (&notion, of_notion) in Notion::ALL.iter().zip(&self.notions) {
            of_notion.write(size_class, notion, parameters, findings);
        }
        if size_class == "all" && self.hosts_without_arrivals_count > 0 {
            let without = self.hosts_without_arrivals_count;
            findings
                .missing_measures
                .push(missing::no_arrivals(without, self.hosts_count));
        }
    }
}

/// Adds the regions of other hosts. A host whose sizes by the notion are unknown has no regions and does not
/// count.
fn merge(mine: &mut Vec<Region>, theirs: &[Region]) {
    if mine.is_empty() {
        mine.extend_from_slice(theirs);
        return;
    }
    for (mine, theirs) in mine.iter_mut().zip(theirs) {
        mine.seen.merge(&theirs.seen);
        mine.leases.merge(&theirs.leases);
    }
}

impl ByScope {
    fn of_host(
        host: &HostHistory<'_>,
        leases: &LeaseWindows<'_>,
        notion: Notion,
        parameters: &Parameters,
    ) -> Self {
        let time_ms = &host.trace.samples.time_ms;
        let Sizes { bytes, known } = Sizes::of(host, notion);
        if known.is_empty() {
            return Self {
                all: Vec::new(),
                idle: Vec::new(),
            };
        }
        let seen = |windows: &mut dyn Iterator<Item = Window>| -> Vec<Window> {
            windows
                .flat_map(|w| w.windows_of_known_size(time_ms, &known).collect::<Vec<_>>())
                .collect()
        };
        let runs = host.trace.segments.iter();
        let runs = seen(&mut runs.filter_map(|run| Window::of_run(time_ms, run)));
        let covered = runs.iter().map(|w| w.covered_ms(time_ms));
        let covered_ms = covered.fold(0, i64::saturating_add);
        let minimum_ms = parameters.minimum_period_s * 1000.0;
        let of = |as_seen: &[Window], as_leases: &[Window]| {
            let of_region = |&region: &i64| Region {
                seen: SeenPeriods::of(time_ms, &bytes, as_seen, region, minimum_ms, covered_ms),
                leases: Leases::of(time_ms, &bytes, as_leases, region, minimum_ms),
            };
            parameters.region_bytes.iter().map(of_region).collect()
        };
        let absences = host.idleness.periods.iter().map(Window::of_idle);
        Self {
            all: of(&runs, &leases.of_runs(&known)),
            idle: if host.can_show_idle() {
                of(&seen(&mut { absences }), &leases.of_absences(&known))
            } else {
                Vec::new()
            },
        }
    }

    fn write(
        &self,
        size_class: &str,
        notion: Notion,
        parameters: &Parameters,
        findings: &mut Findings,
    ) {
        for (scope, regions) in [(Scope::All, &self.all), (Scope::Idle, &self.idle)] {
            let hosts_count = regions.first().map_or(0, |r| r.seen.hosts_count());
            // All region sizes use the same draws of hosts.
            let resamples = Resamples::draw(hosts_count, parameters.bootstrap_count as usize);
            for (&region_bytes, region) in parameters.region_bytes.iter().zip(regions) {
                let cell = Cell {
                    size_class,
                    scope,
                    notion,
                    region_bytes,
                };
                region.write(&cell, &resamples, parameters, findings);
            }
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
            notion: cell.notion,
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
