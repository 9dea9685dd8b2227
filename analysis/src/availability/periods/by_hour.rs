//! Probability that a region is available, and that it then stays available for one hour, by hour of the week
//! in the fleet's time zone.
//!
//! The first probability counts periods as seen; the second counts leases as they would have lasted. Windows
//! and instants are the same as in the measures that do not split by hour; each instant counts in its hour.

use crate::availability::notions::Sizes;
use crate::availability::periods::lease::spell;
use crate::availability::periods::lease_windows::LeaseWindows;
use crate::availability::periods::window::Window;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::calendar::{Calendar, HOURS_OF_WEEK, weekday_and_hour};
use crate::trace::reads::ReadSet;
use crate::trace::time_by_hour::{HourSplitter, TimeByHour};
use gleaner_schemas::findings::{self, Findings, Notion, Parameters, Scope};
use serde::{Deserialize, Serialize};

/// Horizon of the probability that a region stays available.
const AHEAD_MS: i64 = 3_600_000;

/// Availability of every region size, by hour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AvailabilityByHour {
    /// Physical memory of the largest host.
    largest_physical_bytes: i64,
    all: ByRegion,
    /// Availability on hosts whose idle times are known.
    idle: ByRegion,
}

/// Sums of one scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ByRegion {
    /// Time that samples cover.
    covered: TimeByHour,
    regions: Vec<Hours>,
}

/// Times of one region size, by hour of the week.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Hours {
    available: TimeByHour,
    /// The part of `available` whose outcome an hour later is known.
    counted: TimeByHour,
    /// The part of `counted` that is still available an hour later.
    survived: TimeByHour,
}

impl Measure for AvailabilityByHour {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<findings::AvailabilityByHour>(
        ReadSet::SAMPLES,
    )];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let (samples, time_ms) = (&host.trace.samples, &host.trace.samples.time_ms);
        let calendar = Calendar::new(&parameters.time_zone)?;
        let known = Sizes::of(host, Notion::Available).known;
        let leases = LeaseWindows::new(host);
        let runs = host.trace.segments.iter();
        let runs: Vec<Window> = runs
            .filter_map(|run| Window::of_run(time_ms, run))
            .collect();
        let mut split = Host {
            time_ms,
            available_bytes: &samples.available_bytes,
            regions: &parameters.region_bytes,
            hours: HourSplitter::new(&calendar),
        };
        let covered = split.time_by_hour(&runs);
        Ok(Self {
            largest_physical_bytes: samples.physical_bytes.iter().copied().max().unwrap_or(0),
            all: split.by_region(&covered, &runs, &leases.of_runs(&known)),
            idle: if host.can_show_idle() {
                let absences = host.idleness.periods.iter().map(Window::of_idle);
                let absences: Vec<Window> = absences.collect();
                split.by_region(&covered, &absences, &leases.of_absences(&known))
            } else {
                ByRegion::none(parameters.region_bytes.len())
            },
        })
    }

    fn merge(&mut self, other: &Self) {
        self.largest_physical_bytes = self
            .largest_physical_bytes
            .max(other.largest_physical_bytes);
        self.all.merge(&other.all);
        self.idle.merge(&other.idle);
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        let regions = shown(&parameters.region_bytes, self.largest_physical_bytes);
        for (scope, by_region) in [(Scope::All, &self.all), (Scope::Idle, &self.idle)] {
            for &at in &regions {
                let hours = (0..HOURS_OF_WEEK).filter_map(|hour| {
                    by_region.record(size_class, scope, parameters.region_bytes[at], at, hour)
                });
                findings.availability_by_hour.extend(hours);
            }
        }
    }
}

/// Indices into `region_bytes` (sorted) of the smallest, the middle and the largest region that fits on a
/// host.
fn shown(region_bytes: &[i64], largest_physical_bytes: i64) -> Vec<usize> {
    let count = region_bytes.partition_point(|&bytes| bytes <= largest_physical_bytes);
    let Some(last) = count.checked_sub(1) else {
        return Vec::new();
    };
    let mut places = vec![0, last / 2, last];
    places.dedup();
    places
}

/// Samples and regions of one host, with the splitter that divides its time into hours.
struct Host<'a> {
    time_ms: &'a [i64],
    available_bytes: &'a [i64],
    regions: &'a [i64],
    hours: HourSplitter<'a>,
}

impl Host<'_> {
    fn time_by_hour(&mut self, runs: &[Window]) -> TimeByHour {
        let mut covered = TimeByHour::default();
        for run in runs {
            if let Some(&from_ms) = self.time_ms.get(run.samples.start) {
                self.hours.add(from_ms, run.end_ms, &mut covered);
            }
        }
        covered
    }

    fn by_region(
        &mut self,
        covered: &TimeByHour,
        as_seen: &[Window],
        as_leases: &[Window],
    ) -> ByRegion {
        let regions = self.regions.iter();
        let of_region = |&bytes: &i64| self.of_region(bytes, as_seen, as_leases);
        ByRegion {
            covered: covered.clone(),
            regions: regions.map(of_region).collect(),
        }
    }

    fn of_region(&mut self, bytes: i64, as_seen: &[Window], as_leases: &[Window]) -> Hours {
        let mut found = Hours::default();
        let (time_ms, available) = (self.time_ms, self.available_bytes);
        for window in as_seen {
            for period in window.periods(time_ms, available, bytes) {
                self.hours
                    .add(period.from_ms, period.to_ms, &mut found.available);
            }
        }
        for window in as_leases {
            for period in window.periods(time_ms, available, bytes) {
                let from_ms = period.from_ms;
                let (counted_to_ms, survived_to_ms) = spell(&period).followed_to_ms(AHEAD_MS);
                self.hours.add(from_ms, counted_to_ms, &mut found.counted);
                self.hours.add(from_ms, survived_to_ms, &mut found.survived);
            }
        }
        found
    }
}

impl ByRegion {
    fn none(regions_count: usize) -> Self {
        Self {
            covered: TimeByHour::default(),
            regions: vec![Hours::default(); regions_count],
        }
    }

    fn merge(&mut self, other: &Self) {
        self.covered.merge(&other.covered);
        for (mine, theirs) in self.regions.iter_mut().zip(&other.regions) {
            mine.available.merge(&theirs.available);
            mine.counted.merge(&theirs.counted);
            mine.survived.merge(&theirs.survived);
        }
    }

    /// Finding for one hour; `None` if no sample covers it.
    fn record(
        &self,
        size_class: &str,
        scope: Scope,
        region_bytes: i64,
        region: usize,
        hour_of_week: usize,
    ) -> Option<findings::AvailabilityByHour> {
        let hours = self.regions.get(region)?;
        let ms = |time: &TimeByHour| time.ms(hour_of_week) as f64;
        let share = |part: f64, of: f64| (of > 0.0).then(|| (part / of).min(1.0));
        let (weekday, hour) = weekday_and_hour(hour_of_week);
        Some(findings::AvailabilityByHour {
            size_class: size_class.to_owned(),
            scope,
            region_bytes,
            weekday,
            hour,
            available_share: share(ms(&hours.available), ms(&self.covered))?,
            available_1h_probability: share(ms(&hours.survived), ms(&hours.counted)),
            counted_s: ms(&hours.counted) / 1000.0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::time_by_hour::tests::slowly;
    use jiff::Timestamp;
    use jiff::tz::TimeZone;
    use proptest::prelude::*;

    const MINUTE_MS: i64 = 60_000;

    #[test]
    fn three_sizes_at_most_that_a_host_can_have() {
        let sizes = [1, 2, 4, 8, 16];
        assert_eq!(shown(&sizes, 16), [0, 2, 4]);
        assert_eq!(shown(&sizes, 15), [0, 1, 3]);
        assert_eq!(shown(&sizes, 3), [0, 1]);
        assert_eq!(shown(&sizes, 1), [0]);
        assert!(shown(&sizes, 0).is_empty() && shown(&[], 5).is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares with a walk, minute by minute, around the hour that occurs twice in Berlin.
        #[test]
        fn equals_the_slow_version(
            steps in prop::collection::vec((1..50i64, 0..3i64), 1..40),
            start in -2000..500i64,
            cut in 0..40usize,
        ) {
            let zone = "Europe/Berlin";
            let change: Timestamp = "2026-10-25T01:00:00Z".parse().unwrap();
            let mut now = change.as_millisecond() + start * MINUTE_MS;
            let time: Vec<i64> = steps.iter().map(|s| { now += s.0 * MINUTE_MS; now }).collect();
            let available: Vec<i64> = steps.iter().map(|s| s.1).collect();
            let cut = cut.min(time.len());
            let runs: Vec<Window> = [0..cut, cut..time.len()]
                .iter().filter_map(|run| Window::of_run(&time, run)).collect();

            let calendar = Calendar::new(zone).unwrap();
            let mut host = Host {
                time_ms: &time,
                available_bytes: &available,
                regions: &[1, 2],
                hours: HourSplitter::new(&calendar),
            };
            let covered = host.time_by_hour(&runs);
            let found = host.by_region(&covered, &runs, &runs);

            let zone = TimeZone::get(zone).unwrap();
            let mut expected = ByRegion::none(2);
            for run in &runs {
                let samples = run.samples.clone();
                for at in (time[samples.start]..run.end_ms).step_by(MINUTE_MS as usize) {
                    let minute = slowly(&zone, at, at + MINUTE_MS, MINUTE_MS);
                    expected.covered.merge(&minute);
                    let sample = samples.clone().rfind(|&i| time[i] <= at).unwrap();
                    for (hours, bytes) in expected.regions.iter_mut().zip([1, 2]) {
                        if available[sample] < bytes {
                            continue;
                        }
                        hours.available.merge(&minute);
                        let then = at + AHEAD_MS;
                        if then >= run.end_ms {
                            continue; // the outcome is unknown
                        }
                        hours.counted.merge(&minute);
                        let mut until_then = samples.clone().filter(|&i| at < time[i] && time[i] <= then);
                        if until_then.all(|i| available[i] >= bytes) {
                            hours.survived.merge(&minute);
                        }
                    }
                }
            }
            prop_assert_eq!(found, expected);
        }
    }
}
