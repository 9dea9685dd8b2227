//! Forecasts: probabilities that a region available now stays available throughout the next ten minutes to 24
//! hours.
//!
//! The rules from counts to a probability are in [`gleaner_policy::forecast`]; this module counts.
//!
//! - *Instants* ([`instants`]): a host's first sample of every ten minutes. In scope `all`, the region
//!   must be available; in scope `idle`, the host must also be idle by the idle rule's verdict at that
//!   very sample.
//! - *Outcome*: the region is lost at the first sample below its size, at the end of the host's idle
//!   period (scope `idle`), or at a gap that ends leases ([`LeaseWindows`]). An instant counts for a
//!   horizon only if it could have been followed to the horizon in any case: counting all losses, but
//!   only observed survivals, would favour losses.
//! - *The past only*: an outcome is learnt from on the day on which it becomes known, and a day's
//!   forecasts use only what was learnt before that day ([`rolling`]). So no record made after a day
//!   began changes its forecasts.
//!
//! A host contributes counts by day, time of the week and state ([`counts`]), not samples.

mod calibration;
mod counts;
mod instants;
mod records;
mod region_shares;
mod rolling;

use crate::availability::notions::Sizes;
use crate::availability::periods::lease_windows::LeaseWindows;
use crate::availability::periods::window::Window;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::reads::ReadSet;
use counts::{Counts, ForecastHost};
use gleaner_schemas::findings::{
    Findings, Forecast, ForecastCalibration, ForecastCell, ForecastHabit, ForecastQuality,
    ForecastTableSize, ForecastWeight, Notion, Parameters, Scope,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A region as requested.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Region {
    Bytes(i64),
    /// A share of physical memory.
    Share(f64),
}

/// The counts of all hosts, one part per host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Forecasts {
    hosts: Vec<Arc<HostPart>>,
}

/// Part of the measure for one host.
#[derive(Debug, Serialize, Deserialize)]
struct HostPart {
    host: String,
    /// Time of the host's last sample.
    time_ms: i64,
    hour_of_week: u8,
    /// Time that samples cover.
    covered_ms: i64,
    /// Counts by region, over all time.
    all: Vec<Counts>,
    /// Counts by region, over idle time; empty if idleness is unknown.
    idle: Vec<Counts>,
}

impl Region {
    /// Regions of the parameters, in their order.
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
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<Forecast>(ReadSet::SAMPLES),
        MeasureOutput::of::<ForecastQuality>(ReadSet::SAMPLES),
        MeasureOutput::of::<ForecastCalibration>(ReadSet::SAMPLES),
        MeasureOutput::of::<ForecastCell>(ReadSet::SAMPLES),
        MeasureOutput::of::<ForecastHabit>(ReadSet::SAMPLES),
        MeasureOutput::of::<ForecastWeight>(ReadSet::SAMPLES),
        MeasureOutput::of::<ForecastTableSize>(ReadSet::SAMPLES),
    ];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let samples = &host.trace.samples;
        let (time_ms, available_bytes) = (&samples.time_ms[..], &samples.available_bytes[..]);
        let instants = instants::of(time_ms);
        let low_bytes = instants::low_water(time_ms, available_bytes, &instants);
        let last = samples.len().saturating_sub(1);
        let last_low = instants::low_water(time_ms, available_bytes, &[last]);
        let count = |windows: &[Window], is_open: Option<&[bool]>| {
            let days_until_known = instants::days_until_known(time_ms, &instants, windows);
            let seen = ForecastHost {
                time_ms,
                available_bytes,
                hours_of_week: &host.hours_of_week,
                instants: &instants,
                low_bytes: &low_bytes,
                last_low_bytes: last_low.first().copied().unwrap_or(0),
                windows,
                days_until_known: &days_until_known,
                is_open,
            };
            let region = |region: Region| seen.count(|at| region.bytes(samples.physical_bytes[at]));
            Region::all(parameters).into_iter().map(region).collect()
        };
        let lease_windows = LeaseWindows::new(host);
        let known = Sizes::of(host, Notion::Available).known;
        let is_idle: Vec<bool> = (host.idleness.verdicts.iter())
            .map(|verdict| verdict.is_idle())
            .collect();
        Ok(Self {
            hosts: vec![Arc::new(HostPart {
                host: host.id().to_owned(),
                time_ms: time_ms.last().copied().unwrap_or(0),
                hour_of_week: host.hours_of_week.last().copied().unwrap_or(0),
                covered_ms: host.trace.covered_ms(),
                all: count(&lease_windows.of_runs(&known), None),
                idle: if host.can_show_idle() {
                    count(&lease_windows.of_absences(&known), Some(&is_idle))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::calendar::Calendar;
    use counts::Count;
    use gleaner_dataset::{Dataset, Identity, RowsBuilder, Writer};
    use gleaner_schemas::column::Row;
    use gleaner_schemas::rows::{GapRow, HostRow, SampleRow};
    use instants::{DAY_MS, day};
    use proptest::prelude::*;
    use region_shares::LearntRegion;

    const MINUTE_MS: i64 = 60_000;
    const FIRST_DAY: i64 = 20_000;

    /// A sample, and its interval since the one before.
    #[derive(Clone, Debug)]
    struct Step {
        minutes: i64,
        /// Cause of a gap that the host recorded.
        cause: Option<&'static str>,
        available: i64,
        owner_is_back: bool,
        load: f64,
        owner_is_seen: bool,
    }

    fn step() -> impl Strategy<Value = Step> {
        let pause = prop_oneof![
            30 => (1..20i64).prop_map(|minutes| (minutes, None)),
            1 => (30..900i64, prop_oneof![Just(Some("sleep")), Just(Some("clock_step")), Just(None)]),
        ];
        (
            pause,
            prop_oneof![12 => 5..12i64, 1 => 0..5i64],
            prop::bool::weighted(0.05),
            prop_oneof![20 => Just(0.1), 1 => Just(0.9)],
            prop::bool::weighted(0.98),
        )
            .prop_map(
                |((minutes, cause), available, owner_is_back, load, owner_is_seen)| Step {
                    minutes,
                    cause,
                    available,
                    owner_is_back,
                    load,
                    owner_is_seen,
                },
            )
    }

    /// The part of a host whose trace is read up to `until_day`.
    fn part(steps: &[Step], until_day: i64) -> Arc<HostPart> {
        let folder = tempfile::tempdir().unwrap();
        let mut hosts = RowsBuilder::new(&HostRow::TABLE);
        let mut samples = RowsBuilder::new(&SampleRow::TABLE);
        let mut gaps = RowsBuilder::new(&GapRow::TABLE);
        let (mut time_ms, mut active_ms) = (FIRST_DAY * DAY_MS, FIRST_DAY * DAY_MS);
        for (step, sequence) in steps.iter().zip(1..) {
            let before_ms = time_ms;
            time_ms += step.minutes * MINUTE_MS;
            if day(time_ms) >= until_day {
                break;
            }
            if step.owner_is_back {
                active_ms = time_ms - MINUTE_MS / 2;
            }
            let identity = |in_step: i64| Identity {
                host_id: "h",
                database_id: "db",
                sequence: 3 * sequence + in_step,
                time_ms,
            };
            if sequence == 1 {
                let host = HostRow {
                    host_name: "h".into(),
                    sample_interval_ms: 10 * MINUTE_MS,
                    ..HostRow::default()
                };
                hosts.push(identity(0), host.to_values()).unwrap();
            }
            if let Some(cause) = step.cause {
                let gap = GapRow {
                    from_time_ms: before_ms,
                    to_time_ms: time_ms,
                    cause: cause.into(),
                };
                gaps.push(identity(1), gap.to_values()).unwrap();
            }
            let sample = SampleRow {
                physical_bytes: 20,
                available_bytes: step.available,
                owner_idle_ms: step.owner_is_seen.then_some(time_ms - active_ms),
                load5: Some(step.load),
                ..SampleRow::default()
            };
            samples.push(identity(2), sample.to_values()).unwrap();
        }
        let mut writer = Writer::open(folder.path()).unwrap();
        for (table, rows) in [
            (&HostRow::TABLE, hosts),
            (&SampleRow::TABLE, samples),
            (&GapRow::TABLE, gaps),
        ] {
            writer.append(table, rows.finish().unwrap()).unwrap();
        }
        writer.seal().unwrap();
        let parameters = Parameters {
            region_bytes: vec![5],
            region_shares: vec![0.45],
            ..Parameters::default()
        };
        let dataset = Dataset::open(folder.path()).unwrap();
        let calendar = Calendar::new("UTC").unwrap();
        let host =
            HostHistory::read(&dataset, "h", &parameters, ReadSet::SAMPLES, &calendar).unwrap();
        let mut found = Forecasts::of_host(&host.unwrap(), &parameters).unwrap();
        found.hosts.remove(0)
    }

    /// Shares learnt from the host before the day `origin`, by scope and region.
    fn learnt_before(part: &HostPart, origin: i64) -> Vec<LearntRegion> {
        let of = |scope, region: usize| {
            let counts = part.counts(scope).get(region);
            let counts: &[Count] = counts.map_or(&[], |c| &c.counts);
            let mut at_origin = None;
            let (last, _) = rolling::roll(&[counts], |day, learnt| {
                if day >= origin && at_origin.is_none() {
                    at_origin = Some(learnt.clone());
                }
            });
            at_origin.unwrap_or(last)
        };
        let scopes = [Scope::All, Scope::Idle].into_iter();
        scopes
            .flat_map(|scope| [of(scope, 0), of(scope, 1)])
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Records from an origin (a day's begin) on, including gaps and the owner's return, do not change
        /// the forecasts made at the origin.
        #[test]
        fn nothing_recorded_later_changes_a_forecast(
            steps in prop::collection::vec(step(), 400..700),
            later in prop::collection::vec(step(), 700),
            days in 2..5i64,
        ) {
            let origin = FIRST_DAY + days;
            let before = part(&steps, origin);
            let whole = part(&steps, i64::MAX);
            prop_assert_eq!(learnt_before(&before, origin), learnt_before(&whole, origin));
            // This trace has the same past, but another future.
            let mut now = FIRST_DAY * DAY_MS;
            let past = steps.iter().take_while(|s| {
                now += s.minutes * MINUTE_MS;
                day(now) < origin
            });
            let mut other: Vec<Step> = past.cloned().collect();
            let past_count = other.len();
            other.extend(later);
            // The other future's first sample must not fall into the past.
            if let Some(first) = other.get_mut(past_count) {
                first.minutes += DAY_MS / MINUTE_MS;
            }
            let other = part(&other, i64::MAX);
            prop_assert_eq!(learnt_before(&other, origin), learnt_before(&before, origin));
        }
    }
}
