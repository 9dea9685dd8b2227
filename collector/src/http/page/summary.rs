//! Summary of the status page: headline, figures of dataset and disk, caption of the list of hosts.

use super::{ago, lag};
use crate::http::status::Status;
use crate::wording::{brief_length, count, thousands, utc};
use gleaner_schemas::units::Bytes;

/// Headline: number of hosts, number of hosts heard, and lag of the hosts heard.
pub(super) fn lead(status: &Status) -> String {
    let hosts = status.hosts_count;
    if hosts == 0 {
        return "No host has sent anything yet.".to_owned();
    }
    let heard = hosts - status.hosts_silent_count;
    let heard = match (hosts, heard) {
        (1, 1) => "The one host is heard of".to_owned(),
        (1, 0) => "The one host is silent".to_owned(),
        (n, heard) if n == heard => format!("All {} are heard of", count(n, "host")),
        (n, heard) => format!(
            "{} of {} {} heard of",
            thousands(heard),
            count(n, "host"),
            if heard == 1 { "is" } else { "are" }
        ),
    };
    match (status.median_lag_ms, status.max_lag_ms) {
        (Some(_), Some(max_ms)) if hosts == 1 => format!("{heard}; lag {}.", lag(max_ms)),
        (Some(median_ms), Some(max_ms)) => format!(
            "{heard}; median lag {}, largest {}.",
            lag(median_ms),
            lag(max_ms)
        ),
        _ => format!("{heard}."),
    }
}

/// Line that says whether the dataset is written, and how long the disk will have room.
pub(super) fn support(status: &Status) -> String {
    let written = match (&status.seal.failure, status.seal.last_sealed_time_ms) {
        (Some(_), _) => "The dataset cannot be written".to_owned(),
        (None, Some(last_ms)) if status.dataset_files_count > 0 => {
            format!(
                "The dataset was last written {}",
                ago(status.time_ms - last_ms)
            )
        }
        (None, _) => "Nothing is in the dataset yet".to_owned(),
    };
    let room = Bytes::from(
        status
            .smallest_free_bytes()
            .saturating_sub(status.reserve_bytes),
    );
    let left = match status.days_until_disk_full {
        Some(days) if days > 3650.0 => {
            ", enough for more than ten years at the present rate".into()
        }
        Some(days) => format!(
            ", enough for about {} at the present rate",
            brief_length((days * 86_400_000.0) as i64)
        ),
        None => String::new(),
    };
    format!("{written}. {room} of disk are left{left}.")
}

/// Cards of figures: title, figure, and a line below it.
pub(super) fn cards(status: &Status) -> Vec<(&'static str, String, String)> {
    let rate = status.dataset_bytes_per_day;
    vec![
        (
            "Dataset",
            Bytes::from(status.dataset_bytes).to_string(),
            format!(
                "{} in {}",
                count(status.dataset_rows_count, "row"),
                count(status.dataset_files_count, "file")
            ),
        ),
        (
            "Growth",
            rate.map_or("not known yet".into(), |rate| {
                format!("{} a day", Bytes::from(rate))
            }),
            "by the last seven days' records".into(),
        ),
        (
            "Journal",
            Bytes::from(status.journal_bytes).to_string(),
            "kept, and not in the dataset yet".into(),
        ),
        (
            "Disk",
            format!("{} free", Bytes::from(status.smallest_free_bytes())),
            format!("{} of them in reserve", Bytes::from(status.reserve_bytes)),
        ),
        (
            "Connections",
            thousands(u64::try_from(status.connections_count).unwrap_or_default()),
            format!(
                "running for {}",
                brief_length(status.time_ms - status.started_time_ms)
            ),
        ),
        (
            "Certificate",
            status
                .certificate_expiry_time_ms
                .map_or("none".into(), |until| match until - status.time_ms {
                    left if left > 0 => format!("{} left", brief_length(left)),
                    _ => "ended".into(),
                }),
            status
                .certificate_expiry_time_ms
                .map_or("this machine only, without TLS".into(), |until| {
                    format!("until {} UTC", utc(until))
                }),
        ),
    ]
}

/// Caption of the list of hosts: `known` hosts, of which `found` match the filter and `shown` are on this page.
pub(super) fn caption(found: u64, known: u64, first: usize, shown: usize) -> String {
    let of = if found == known {
        count(known, "host")
    } else {
        format!("{} of {}", thousands(found), count(known, "host"))
    };
    if shown as u64 == found {
        return of;
    }
    format!(
        "{of}, {} to {}",
        thousands(first as u64 + 1),
        thousands((first + shown) as u64)
    )
}
