//! Table of the dataset's collectors on the status page.

use crate::peers::{GroupMember, GroupTotals};
use crate::wording::{brief_length, count, thousands, utc};
use gleaner_schemas::units::Bytes;

/// A collector as a row of the table.
pub(super) struct CollectorRow {
    pub(super) name: String,
    /// Address of the collector's own page; empty for this collector.
    pub(super) url: String,
    /// Class of the row, as for the states of hosts.
    pub(super) class: &'static str,
    pub(super) state: &'static str,
    pub(super) hosts: String,
    pub(super) batches: String,
    pub(super) lag: String,
    pub(super) rows: String,
    pub(super) disk: String,
    /// Faults of the collector, or the reason why it does not answer.
    pub(super) why: Vec<String>,
}

impl CollectorRow {
    pub(super) fn of(member: &GroupMember) -> Self {
        let (class, state) = match (&member.failure, &member.overview) {
            (Some(_), _) => ("rejected", "does not answer"),
            (None, None) => ("silent", "not asked yet"),
            (None, Some(overview)) if !overview.faults.is_empty() => ("clock_wrong", "fault"),
            (None, Some(_)) => ("well", "well"),
        };
        let failure = member.failure.as_ref().map(|reason| {
            let since = member.failing_since_time_ms.map(utc).unwrap_or_default();
            format!("no answer since {since} UTC: {reason}")
        });
        let present = member.present();
        let faults = present.map_or(&[][..], |overview| &overview.faults);
        let figure = |text: fn(&crate::peers::CollectorOverview) -> String| {
            present.map(text).unwrap_or_default()
        };
        Self {
            name: member.label().to_owned(),
            url: member.url.clone().unwrap_or_default(),
            class,
            state,
            hosts: figure(|o| {
                let reporting = o.sums.hosts_count.saturating_sub(o.sums.hosts_silent_count);
                format!(
                    "{} of {}",
                    thousands(reporting),
                    thousands(o.sums.hosts_count)
                )
            }),
            batches: figure(|o| thousands(o.sums.batches_per_minute)),
            lag: figure(|o| {
                o.max_lag_ms
                    .map_or(String::new(), |ms| brief_length(ms.max(0)))
            }),
            rows: figure(|o| thousands(o.sums.dataset_rows_count)),
            disk: figure(|o| Bytes::from(o.disk_free_bytes).to_string()),
            why: failure.into_iter().chain(faults.iter().cloned()).collect(),
        }
    }
}

/// Sums over the collectors that answer, as a sentence.
pub(super) fn caption(totals: &GroupTotals) -> String {
    let sums = &totals.sums;
    let answering = match totals.collectors_count - totals.answering_count {
        0 => count(totals.collectors_count, "collector"),
        _ => format!(
            "{} of {} answer",
            thousands(totals.answering_count),
            count(totals.collectors_count, "collector")
        ),
    };
    let reporting = sums.hosts_count.saturating_sub(sums.hosts_silent_count);
    format!(
        "{answering}: {} of {} heard of, {} batches a minute, {} in the dataset ({})",
        thousands(reporting),
        count(sums.hosts_count, "host"),
        thousands(sums.batches_per_minute),
        count(sums.dataset_rows_count, "row"),
        Bytes::from(sums.dataset_bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::{CollectorOverview, GroupSums};

    fn member(url: &str, failure: Option<&str>) -> GroupMember {
        GroupMember {
            url: Some(url.to_owned()),
            failing_since_time_ms: failure.map(|_| 1_795_280_846_000),
            failure: failure.map(str::to_owned),
            overview: Some(CollectorOverview {
                name: Some("east".to_owned()),
                max_lag_ms: Some(90_000),
                sums: GroupSums {
                    hosts_count: 25_000,
                    hosts_silent_count: 1,
                    ..GroupSums::default()
                },
                ..CollectorOverview::default()
            }),
            ..GroupMember::default()
        }
    }

    #[test]
    fn a_collector_that_does_not_answer_has_no_figures() {
        let row = CollectorRow::of(&member("https://east:7443", None));
        assert_eq!(
            (row.class, row.hosts.as_str()),
            ("well", "24,999 of 25,000")
        );
        assert_eq!(row.why, Vec::<String>::new());
        let row = CollectorRow::of(&member("https://east:7443", Some("no route")));
        assert_eq!((row.name.as_str(), row.hosts.as_str()), ("east", ""));
        assert_eq!(
            row.why,
            ["no answer since 2026-11-21 17:07:26 UTC: no route"]
        );
        let row = CollectorRow::of(&GroupMember::default());
        assert_eq!((row.class, row.state), ("silent", "not asked yet"));
    }

    #[test]
    fn the_caption_has_the_sums() {
        let members = [
            member("https://a:1", None),
            member("https://b:1", Some("x")),
        ];
        let text = caption(&GroupTotals::of(&members));
        assert!(
            text.starts_with(
                "1 of 2 collectors answer: 24,999 of 25,000 hosts heard of, 0 batches"
            ),
            "{text}"
        );
    }
}
