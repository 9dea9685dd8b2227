//! Findings from the leases of one region size.

use crate::availability::periods::lease::{CAUSES, DAY_MS, HOUR_MS, Lease, Leases, MINUTE_MS};
use crate::statistics::Length;
use crate::statistics::bootstrap::Resamples;
use crate::statistics::incidence::cumulative_incidence;
use crate::statistics::kaplan_meier::{Curve, Step};
use crate::statistics::quantile_bound::{Lengths, Verdict};
use crate::statistics::residual::FateTimes;
use gleaner_schemas::findings::{
    AvailabilityOdds, AvailabilityPeriods, BoundVerdict, EndCause, FindingList, Findings, Notion,
    Parameters, PeriodBound, PeriodEnds, Scope, SurvivalPoint,
};

/// Ages for which the findings give the shares of end causes.
const AGES_MS: [i64; 13] = [
    5 * MINUTE_MS,
    10 * MINUTE_MS,
    15 * MINUTE_MS,
    30 * MINUTE_MS,
    HOUR_MS,
    2 * HOUR_MS,
    4 * HOUR_MS,
    8 * HOUR_MS,
    12 * HOUR_MS,
    DAY_MS,
    2 * DAY_MS,
    3 * DAY_MS,
    7 * DAY_MS,
];

/// Quantiles of the length for which a lower bound is given. `CONFIDENCE` is the confidence of the bounds.
const BOUNDED_QUANTILES: [f64; 3] = [0.05, 0.25, 0.5];
const CONFIDENCE: f64 = 0.95;

/// Key fields of a finding: the hosts, the time, the notion and the region that it is about.
#[derive(Clone, Debug)]
pub(crate) struct Cell<'a> {
    pub(crate) size_class: &'a str,
    pub(crate) scope: Scope,
    pub(crate) notion: Notion,
    pub(crate) region_bytes: i64,
}

/// Adds the leases' estimates to `periods`, and their other findings to `to`.
pub(crate) fn write(
    leases: &Leases,
    cell: &Cell<'_>,
    resamples: &Resamples,
    parameters: &Parameters,
    periods: &mut AvailabilityPeriods,
    to: &mut Findings,
) {
    let mut kept: Vec<Lease> = leases.hosts.iter().flat_map(|h| h.kept.clone()).collect();
    kept.sort_unstable_by_key(|lease| lease.ms);
    let lengths: Vec<Length> = kept.iter().map(Lease::length).collect();
    let curve = Curve::of(&lengths);
    describe(&kept, &curve, periods);
    if parameters.wants(&[AvailabilityOdds::KEY]) {
        to.availability_odds.extend(odds(leases, cell, resamples));
    }
    if cell.notion != Notion::Available {
        return; // the other findings are only for memory available now
    }
    if parameters.wants(&[SurvivalPoint::KEY]) {
        to.survival_curves
            .extend(points(&curve, cell, parameters.curve_points_count as usize));
    }
    if parameters.wants(&[PeriodEnds::KEY]) {
        to.period_ends.extend(ends(&lengths, cell));
    }
    if parameters.wants(&[PeriodBound::KEY]) && !kept.is_empty() {
        to.period_bounds.extend(bounds(leases, cell));
    }
}

fn seconds(ms: f64) -> f64 {
    ms / 1000.0
}

/// Adds to a finding the estimates from the curve, and the counts of starts and ends. `kept` must be sorted
/// by length.
fn describe(kept: &[Lease], curve: &Curve, to: &mut AvailabilityPeriods) {
    if let Some(mean) = curve.restricted_mean(i64::MAX) {
        let interval = mean.interval_ms();
        to.restricted_mean_s = Some(seconds(mean.mean_ms));
        to.restricted_mean_low_s = Some(seconds(interval.low));
        to.restricted_mean_high_s = Some(seconds(interval.high));
    }
    to.median_survival_s = curve.median_ms().map(|ms| seconds(ms as f64));
    let start_seen = kept.iter().filter(|lease| lease.start_seen);
    let start_seen: Vec<Length> = start_seen.map(Lease::length).collect();
    let mean = Curve::of(&start_seen).restricted_mean(i64::MAX);
    to.restricted_mean_start_seen_s = mean.map(|mean| seconds(mean.mean_ms));
    let ended = |end: Option<EndCause>| kept.iter().filter(|l| l.end == end).count() as i64;
    to.start_censored_count = (kept.len() - start_seen.len()) as i64;
    to.end_censored_count = ended(None);
    to.ended_by_owner_count = ended(Some(EndCause::Owner));
    to.ended_by_load_count = ended(Some(EndCause::Load));
    to.ended_by_memory_count = ended(Some(EndCause::Memory));
    to.ended_by_sleep_or_power_count = ended(Some(EndCause::SleepOrPower));
    to.ended_by_network_count = ended(Some(EndCause::Network));
    to.ended_by_agent_count = ended(Some(EndCause::Agent));
}

fn points(curve: &Curve, cell: &Cell<'_>, most: usize) -> Vec<SurvivalPoint> {
    let steps = if most == 0 {
        curve.steps.clone()
    } else {
        curve.thinned(most)
    };
    let point = |step: Step| SurvivalPoint {
        size_class: cell.size_class.to_owned(),
        scope: cell.scope,
        region_bytes: cell.region_bytes,
        age_s: seconds(step.ms as f64),
        at_risk_count: step.at_risk as i64,
        ended_count: step.ended as i64,
        censored_count: step.censored as i64,
        survival: step.survival,
        low: step.interval.low,
        high: step.interval.high,
    };
    steps.into_iter().map(point).collect()
}

fn ends(lengths: &[Length], cell: &Cell<'_>) -> Vec<PeriodEnds> {
    let mut records = Vec::new();
    for fates in cumulative_incidence(lengths, CAUSES, &AGES_MS) {
        let by_cause = EndCause::ALL.into_iter().zip(fates.ended);
        records.extend(by_cause.map(|(cause, cumulative_incidence)| PeriodEnds {
            size_class: cell.size_class.to_owned(),
            scope: cell.scope,
            region_bytes: cell.region_bytes,
            age_s: seconds(fates.age_ms as f64),
            cause,
            cumulative_incidence,
        }));
    }
    records
}

fn odds(leases: &Leases, cell: &Cell<'_>, resamples: &Resamples) -> Vec<AvailabilityOdds> {
    let Some((first, others)) = leases.hosts.split_first() else {
        return Vec::new();
    };
    let mut all = first.ahead.clone();
    others.iter().for_each(|host| all.merge(&host.ahead));
    let record = |(i, ahead): (usize, &FateTimes<CAUSES>)| {
        let sums = leases.hosts.iter().map(|host| {
            let ahead = host.ahead.ahead.get(i)?;
            Some((ahead.survived_ms as f64, ahead.counted_ms as f64))
        });
        let interval = resamples.ratio_interval(&sums.collect::<Option<Vec<_>>>()?);
        let lost_to = |cause: EndCause| ahead.ended(cause as usize);
        Some(AvailabilityOdds {
            size_class: cell.size_class.to_owned(),
            scope: cell.scope,
            notion: cell.notion,
            region_bytes: cell.region_bytes,
            ahead_s: seconds(ahead.ahead_ms as f64),
            observed_s: seconds(ahead.counted_ms as f64),
            available_probability: ahead.survival()?,
            low: interval.map(|i| i.low),
            high: interval.map(|i| i.high),
            lost_to_owner_probability: lost_to(EndCause::Owner)?,
            lost_to_load_probability: lost_to(EndCause::Load)?,
            lost_to_memory_probability: lost_to(EndCause::Memory)?,
            lost_to_sleep_or_power_probability: lost_to(EndCause::SleepOrPower)?,
            lost_to_network_probability: lost_to(EndCause::Network)?,
            lost_to_agent_probability: lost_to(EndCause::Agent)?,
        })
    };
    all.ahead.iter().enumerate().filter_map(record).collect()
}

fn bounds(leases: &Leases, cell: &Cell<'_>) -> Vec<PeriodBound> {
    // A length censored at its start counts as a minimum, like a length censored at its end.
    let of_host = |kept: &[Lease]| kept.iter().map(Lease::length).collect();
    let lengths = Lengths::of(leases.hosts.iter().map(|h| of_host(&h.kept)).collect());
    let record = |quantile: f64| {
        let (bound_ms, verdict) = lengths.lower_bound(quantile, CONFIDENCE);
        PeriodBound {
            size_class: cell.size_class.to_owned(),
            scope: cell.scope,
            region_bytes: cell.region_bytes,
            quantile,
            confidence: CONFIDENCE,
            bound_s: bound_ms.map(|ms| seconds(ms as f64)),
            periods_count: lengths.count() as i64,
            censored_share: lengths.censored_share(),
            autocorrelation: lengths.autocorrelation(),
            verdict: match verdict {
                Verdict::Holds => BoundVerdict::Holds,
                Verdict::Censored => BoundVerdict::Censored,
                Verdict::Dependent => BoundVerdict::Dependent,
                Verdict::TooFew => BoundVerdict::TooFew,
            },
        }
    };
    BOUNDED_QUANTILES.into_iter().map(record).collect()
}
