//! The time of a report, and the time before it.

use super::args::Time;
use super::week::{Week, name};
use anyhow::Context;
use gleaner_dataset::Dataset;
use gleaner_reports::Span;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use jiff::civil::{Date, ISOWeekDate, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use std::collections::BTreeSet;

const HOUR_MS: i64 = 3_600_000;

/// Name of the report's files if the requested time is not a week.
const ALL: &str = "report";

/// Requested time, in the fleet's time zone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestedTime {
    /// Name of the report's files: `2026-W47`.
    pub(crate) name: String,
    /// Bounds of the time; `None`: everything recorded.
    pub(crate) span: Option<Span>,
    /// Start of the time before, which ends where the requested time starts.
    pub(crate) before_from_ms: Option<i64>,
}

/// Error: nothing was recorded in the requested time, so that there is no report. This is not a failure.
#[derive(Debug, thiserror::Error)]
#[error("nothing was recorded in {asked}: {covered}")]
pub(crate) struct EmptyReport {
    asked: String,
    covered: String,
}

/// Time zone with this name.
pub(crate) fn zone(name: &str) -> anyhow::Result<TimeZone> {
    TimeZone::get(name).with_context(|| {
        format!("unknown time zone {name:?}: give an IANA name such as Europe/Berlin, or UTC")
    })
}

impl RequestedTime {
    /// Time that `time` means for this dataset at `now`.
    pub(crate) fn new(
        time: &Time,
        dataset: &Dataset,
        zone: &TimeZone,
        now: Timestamp,
    ) -> anyhow::Result<Self> {
        let asked = match (time.week, time.from, time.until) {
            (Some(Week::Of(week)), ..) => of_week(week, zone)?,
            (Some(Week::Last), ..) => of_week(last_week(zone, now)?, zone)?,
            (None, None, None) => Self {
                name: ALL.to_owned(),
                span: None,
                before_from_ms: None,
            },
            (None, from, until) => {
                let (first, last) = covered_time(dataset).unwrap_or_default();
                // A time before or after the dataset may be requested. The request is valid, but has no
                // records.
                let until = until.unwrap_or(last.max(from.unwrap_or(first)).saturating_add(1));
                between(from.unwrap_or(first.min(until.saturating_sub(1))), until)?
            }
        };
        match &asked.span {
            Some(span) if !has_samples(dataset, span.from_ms, span.until_ms) => {
                Err(asked.nothing(dataset, zone).into())
            }
            _ => Ok(asked),
        }
    }

    /// Bounds of the time before; `None` if it can have no samples.
    pub(crate) fn before(&self, dataset: &Dataset) -> Option<(i64, i64)> {
        let (from, until) = (self.before_from_ms?, self.span.as_ref()?.from_ms);
        has_samples(dataset, from, until).then_some((from, until))
    }

    /// Error that nothing was recorded, with the time that the dataset covers.
    pub(crate) fn nothing(&self, dataset: &Dataset, zone: &TimeZone) -> EmptyReport {
        let moment = |ms: i64| {
            let time = Timestamp::from_millisecond(ms).unwrap_or_default();
            time.to_zoned(zone.clone())
                .strftime("%Y-%m-%d %H:%M %Z")
                .to_string()
        };
        let asked = match &self.span {
            Some(span) => format!(
                "{} ({} to {})",
                if self.name == ALL {
                    "that time"
                } else {
                    &span.label
                },
                moment(span.from_ms),
                moment(span.until_ms)
            ),
            None => "this dataset".to_owned(),
        };
        let covered = match covered_time(dataset) {
            Some((first, last)) => format!(
                "the dataset goes from {} to {}; its weeks are {}",
                moment(first),
                moment(last),
                weeks(dataset, zone)
            ),
            None => "the dataset holds no samples".to_owned(),
        };
        EmptyReport { asked, covered }
    }
}

/// Week from Monday 00:00 to the next Monday 00:00 in the fleet's time zone. It has 168 hours, or one more or
/// less if the clocks change.
fn of_week(week: ISOWeekDate, zone: &TimeZone) -> anyhow::Result<RequestedTime> {
    let monday = week.date();
    let too_far = "that week is too far away";
    let (before, after) = (
        monday.checked_sub(1.week()).context(too_far)?,
        monday.checked_add(1.week()).context(too_far)?,
    );
    let from_ms = midnight_ms(monday, zone)?;
    Ok(RequestedTime {
        name: name(week),
        span: Some(Span {
            label: format!("Week {} of {}", week.week(), week.year()),
            from_ms,
            until_ms: midnight_ms(after, zone)?,
            before_label: "the week before".to_owned(),
        }),
        before_from_ms: Some(midnight_ms(before, zone)?),
    })
}

fn last_week(zone: &TimeZone, now: Timestamp) -> anyhow::Result<ISOWeekDate> {
    let this = now.to_zoned(zone.clone()).date().iso_week_date();
    let monday = ISOWeekDate::new(this.year(), this.week(), Weekday::Monday)?.date();
    Ok(monday.checked_sub(1.week())?.iso_week_date())
}

/// Start of a day. It is not 00:00 if the clocks are set forward at that time.
fn midnight_ms(day: Date, zone: &TimeZone) -> anyhow::Result<i64> {
    let begin = day
        .to_zoned(zone.clone())
        .context("that week is too far away")?;
    Ok(begin.timestamp().as_millisecond())
}

fn between(from_ms: i64, until_ms: i64) -> anyhow::Result<RequestedTime> {
    anyhow::ensure!(
        from_ms < until_ms,
        "--until is not after --from: nothing lies between them"
    );
    let length_ms = until_ms - from_ms;
    let length = length(length_ms);
    Ok(RequestedTime {
        name: ALL.to_owned(),
        span: Some(Span {
            before_label: format!(
                "the {} before",
                length.strip_prefix("1 ").unwrap_or(&length)
            ),
            label: length,
            from_ms,
            until_ms,
        }),
        before_from_ms: from_ms.checked_sub(length_ms),
    })
}

/// Length as text: `3 days`, `36 hours`, `1 minute`.
fn length(ms: i64) -> String {
    let units = [(24 * HOUR_MS, "day"), (HOUR_MS, "hour")];
    let whole = units.into_iter().find(|(unit, _)| ms % unit == 0);
    let (count, unit) = match whole {
        Some((unit_ms, unit)) => (ms / unit_ms, unit),
        None => ((ms + 30_000) / 60_000, "minute"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// Times of the first and last sample of each file, as the manifest states them.
fn files(dataset: &Dataset) -> impl Iterator<Item = (i64, i64)> {
    let files = dataset.manifest().files.iter();
    files
        .filter(|f| f.table == SampleRow::TABLE.name)
        .map(|f| (f.first_time_ms, f.last_time_ms))
}

fn covered_time(dataset: &Dataset) -> Option<(i64, i64)> {
    files(dataset).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Returns true if a file may have samples of that time.
fn has_samples(dataset: &Dataset, from_ms: i64, until_ms: i64) -> bool {
    files(dataset).any(|(first, last)| first < until_ms && last >= from_ms)
}

/// The weeks with samples; if there are many, only the latest.
fn weeks(dataset: &Dataset, zone: &TimeZone) -> String {
    const TOLD: usize = 8;
    let week = |ms: i64| {
        let time = Timestamp::from_millisecond(ms).unwrap_or_default();
        name(time.to_zoned(zone.clone()).date().iso_week_date())
    };
    let weeks: BTreeSet<String> = files(dataset)
        .flat_map(|(a, b)| [week(a), week(b)])
        .collect();
    let left_out = weeks.len().saturating_sub(TOLD);
    let told: Vec<&str> = weeks.iter().skip(left_out).map(String::as_str).collect();
    let earlier = if left_out > 0 {
        format!("{left_out} earlier ones and ")
    } else {
        String::new()
    };
    earlier + &told.join(", ")
}

#[cfg(test)]
mod tests;
