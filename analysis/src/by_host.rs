//! Each host's availability periods, for programs that replay them: leases as in `periods`, listed one by
//! one.

use crate::availability::notions::Sizes;
use crate::availability::periods::lease_windows::LeaseWindows;
use crate::availability::periods::window::{Period, Window};
use crate::derived::HostHistory;
use crate::error::{AnalysisError, Result};
use crate::owner::quota::categories;
use crate::trace::calendar::Calendar;
use crate::trace::reads::ReadSet;
use crate::{in_order, parameters};
use gleaner_dataset::Dataset;
use gleaner_policy::idle::Verdict;
use gleaner_policy::quota::{Limits, Mode, Reason, quota};
use gleaner_schemas::availability::{
    AvailabilityQuestion, AvailablePeriod, AvailableSample, HostAvailability,
};
use gleaner_schemas::findings::{Notion, Parameters, Scope};
use gleaner_schemas::units::stored;

/// Calls `take` with the periods of each host that has samples, in the order of host ids.
///
/// Memory use is bounded by the largest hosts: an answer is dropped before the next few hosts are read.
///
/// # Errors
/// [`AnalysisError::Parameter`] if a value of the question is not allowed; the table and host that could not
/// be read; and any error of `take`, after which no further host is read.
pub fn availability<E: From<AnalysisError>>(
    dataset: &Dataset,
    question: &AvailabilityQuestion,
    mut take: impl FnMut(HostAvailability) -> Result<(), E>,
) -> Result<(), E> {
    let parameters = parameters_of(question);
    parameters::check(&parameters)?;
    let calendar = Calendar::new(&parameters.time_zone)?;
    // Reads only the columns that the answer needs.
    let reads = if question.has_samples {
        ReadSet::SAMPLES
    } else {
        ReadSet::FEW
    };
    let mut hosts = dataset.hosts().map_err(AnalysisError::Hosts)?;
    if let Some(wanted) = &question.hosts {
        hosts.retain(|host| wanted.contains(host));
    }
    let ahead = dataset.read_ahead(&hosts);
    in_order::each(
        &hosts,
        |host| {
            let host = HostHistory::read(&ahead, host, &parameters, reads, &calendar)?;
            Ok(host.and_then(|host| of_host(&host, question)))
        },
        |answer| answer.map_or(Ok(()), &mut take),
    )
}

fn parameters_of(question: &AvailabilityQuestion) -> Parameters {
    Parameters {
        region_bytes: vec![question.region_bytes],
        minimum_period_s: question.minimum_period_ms as f64 / 1000.0,
        idle_after_s: question.idle_after_s,
        load_limit: question.load_limit,
        headroom_share: question.headroom_share,
        ..Parameters::default()
    }
}

/// Answer for one host; `None` if it has no sample in the requested time.
fn of_host(host: &HostHistory<'_>, question: &AvailabilityQuestion) -> Option<HostAvailability> {
    let from_ms = question.from_ms.unwrap_or(i64::MIN);
    let until_ms = question.until_ms.unwrap_or(i64::MAX);
    let times = host.trace.samples.time_ms.iter().copied();
    let times = times.filter(|t| (from_ms..until_ms).contains(t));
    let (first_ms, last_ms) = times.clone().min().zip(times.max())?;
    let is_told = question.scope == Scope::All || host.can_show_idle();
    Some(HostAvailability {
        host_id: host.id().to_owned(),
        host_name: (host.trace.inventory.host_name.clone()).unwrap_or_else(|| host.id().to_owned()),
        physical_bytes: host
            .trace
            .samples
            .physical_bytes
            .last()
            .copied()
            .unwrap_or(0),
        cpus_count: host.trace.inventory.cpus_count,
        from_ms: first_ms,
        to_ms: last_ms,
        is_told,
        periods: if is_told {
            periods(host, question, from_ms, until_ms)
        } else {
            Vec::new()
        },
        samples: if question.has_samples {
            samples(host, question.headroom_share, from_ms, until_ms)
        } else {
            Vec::new()
        },
    })
}

fn periods(
    host: &HostHistory<'_>,
    question: &AvailabilityQuestion,
    from_ms: i64,
    until_ms: i64,
) -> Vec<AvailablePeriod> {
    let time_ms = &host.trace.samples.time_ms;
    let Sizes { bytes, known } = Sizes::of(host, Notion::Available);
    let leases = LeaseWindows::new(host);
    let windows: Vec<Window> = match question.scope {
        Scope::All => leases.of_runs(&known),
        Scope::Idle => leases.of_absences(&known),
    };
    let all = windows
        .iter()
        .flat_map(|window| window.periods(time_ms, &bytes, question.region_bytes))
        .filter(|period| period.is_kept(question.minimum_period_ms as f64));
    one_after_the_other(all, from_ms, until_ms)
}

/// Periods within the requested time. If the clock was set back and times repeat, the periods recorded first
/// count.
fn one_after_the_other(
    periods: impl Iterator<Item = Period>,
    from_ms: i64,
    until_ms: i64,
) -> Vec<AvailablePeriod> {
    let mut earliest_ms = from_ms;
    let mut found = Vec::new();
    for period in periods {
        let begin_ms = period.from_ms.max(earliest_ms);
        let end_ms = period.to_ms.min(until_ms);
        if begin_ms >= end_ms {
            continue;
        }
        earliest_ms = end_ms;
        found.push(AvailablePeriod {
            from_ms: begin_ms,
            to_ms: end_ms,
            is_start_known: period.start_seen && begin_ms == period.from_ms,
            end: period.end.filter(|_| end_ms == period.to_ms),
        });
    }
    found
}

fn samples(
    host: &HostHistory<'_>,
    headroom_share: f64,
    from_ms: i64,
    until_ms: i64,
) -> Vec<AvailableSample> {
    let samples = &host.trace.samples;
    let is_in_idle_period = host.idleness.by_sample();
    let limits = Limits {
        mode: Mode::Gentle,
        headroom_share,
        ..Limits::default()
    };
    let in_time = |at: &usize| (from_ms..until_ms).contains(&samples.time_ms[*at]);
    let sample = |(at, follows_gap): (usize, bool)| {
        let verdict = host.idleness.verdicts[at];
        let harvestable_bytes = samples.harvestable_bytes[at];
        let quota = categories(samples, at).map(|c| {
            quota(
                &c,
                samples.mem_available(at, headroom_share),
                verdict,
                &limits,
            )
        });
        let known = quota.filter(|q| q.reason != Reason::HarvestableUnknown);
        AvailableSample {
            time_ms: samples.time_ms[at],
            follows_gap,
            physical_bytes: samples.physical_bytes[at],
            available_bytes: samples.available_bytes[at],
            harvestable_bytes,
            is_idle: (verdict != Verdict::Unknown).then(|| verdict.is_idle()),
            is_in_idle_period: is_in_idle_period[at],
            paper_quota_bytes: quota.map(|q| stored(q.paper_quota_bytes)),
            quota_bytes: known.map(|q| stored(q.quota_bytes)),
        }
    };
    let runs = host.trace.segments.iter().flat_map(|run| {
        let begin = run.start;
        run.clone().filter(in_time).map(move |at| (at, at == begin))
    });
    runs.map(sample).collect()
}
