//! Lists problems in the order in which to fix them. Page, status and metrics show the same list.

use super::document::{HostStatus, State, Status};
use super::problem::{Kind, Problem};
use crate::wording::{brief_length, count, short, thousands, utc};
use gleaner_schemas::units::Bytes;
use std::collections::BTreeMap;

/// Remaining time by which a certificate of one year should have been renewed.
const CERTIFICATE_MS: i64 = 30 * DAY_MS;
const DAY_MS: i64 = 86_400_000;
/// A disk that will be full within this number of days is a fault today, since buying a disk takes days.
const DISK_DAYS: f64 = 7.0;
/// Maximum number of hosts that a problem names.
const NAMED: usize = 5;

fn problem(kind: Kind, text: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem {
        kind,
        severity: kind.severity(),
        text: text.into(),
        remedy: remedy.into(),
        hosts_count: 0,
        hosts: Vec::new(),
    }
}

/// All problems, the worst first.
pub(super) fn problems(status: &Status) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Some(reason) = &status.seal.failure {
        found.push(problem(
            Kind::CannotSeal,
            format!("The dataset cannot be written: {reason}."),
            format!(
                "New batches stay in the journal ({} so far) and are sealed once this is fixed; the collector retries every 30 seconds.",
                Bytes::from(status.journal_bytes)
            ),
        ));
    }
    if let Some(reason) = &status.dataset_failure {
        found.push(problem(
            Kind::DatasetUnreadable,
            format!("The dataset cannot be read: {reason}."),
            "`gleaner-collector verify` lists the damage, `gleaner-collector repair` sets damaged files aside.",
        ));
    }
    if let Some(reason) = &status.seal.merge_failure {
        found.push(problem(
            Kind::CannotMerge,
            format!("Small files of the dataset cannot be merged: {reason}."),
            "Reading gets slower with every file; nothing is lost. `gleaner-collector verify` says whether one is damaged.",
        ));
    }
    found.extend(disk(status));
    found.extend(certificate(status));
    if status.seal.lost_journal_bytes > 0 {
        found.push(problem(
            Kind::JournalDamaged,
            format!(
                "{} of the journal were damaged on the disk, and what they held is lost here.",
                Bytes::from(status.seal.lost_journal_bytes)
            ),
            "Look at the disk (`smartctl -a`, the kernel's log). The damaged segment lies in the journal's folder as *.damaged.",
        ));
    }
    if status.seal.damaged_files_count > 0 {
        found.push(problem(
            Kind::DatasetDamaged,
            format!(
                "{} of the dataset had been damaged on the disk; their intact records are served, the others are set aside.",
                count(status.seal.damaged_files_count, "file")
            ),
            "Look at the disk (`smartctl -a`, the kernel's log). `gleaner-collector verify` reads every file; the damaged ones lie in the dataset's folder .damaged.",
        ));
    }
    if status.seal.set_aside_batches_count > 0 {
        found.push(problem(
            Kind::BatchesSetAside,
            format!(
                "{} that had been acknowledged could not be sealed, so that their records are missing in the dataset.",
                count(status.seal.set_aside_batches_count, "batch")
            ),
            "The log names each with its host and its file in the journal's folder. Report it; the file is what is needed to find the cause.",
        ));
    }
    found.extend(peers(status));
    found.extend(publishing(status));
    found.extend(tables(status));
    found.extend(rejected(status));
    found.extend(silent(status));
    found.extend(clocks(status));
    found.extend(versions(status));
    found
}

fn disk(status: &Status) -> Option<Problem> {
    let (free, reserve) = (status.smallest_free_bytes(), status.reserve_bytes);
    let remedy = "Remove what else lies on the disk, or move the data folder to a larger one.";
    if free <= reserve {
        return Some(problem(
            Kind::DiskFull,
            format!(
                "The disk is full: {} are free, {} of them kept in reserve. Hosts are asked to retry later.",
                Bytes::from(free),
                Bytes::from(reserve)
            ),
            format!(
                "{remedy} Nothing is lost while the hosts keep their records: for 60 days by default."
            ),
        ));
    }
    let is_short = status
        .days_until_disk_full
        .is_some_and(|days| days < DISK_DAYS);
    if free > reserve.saturating_mul(2) && !is_short {
        return None;
    }
    let left = match status.days_until_disk_full {
        Some(days) => format!(
            ", for about {} at the present rate",
            brief_length((days * DAY_MS as f64) as i64)
        ),
        None => String::new(),
    };
    Some(problem(
        Kind::DiskNearlyFull,
        format!(
            "The disk is nearly full: {} are left{left}.",
            Bytes::from(free - reserve)
        ),
        remedy,
    ))
}

fn peers(status: &Status) -> Option<Problem> {
    let failing = status.collectors.iter().filter_map(|peer| {
        let since_ms = peer.failing_since_time_ms?;
        let reason = peer.failure.as_ref()?;
        let url = peer.url.as_deref().unwrap_or_default();
        let name = peer.overview.as_ref().and_then(|o| o.name.as_deref());
        let named = name.map_or(url.to_owned(), |name| format!("{name} ({url})"));
        Some(format!("{named}: since {} UTC: {reason}", utc(since_ms)))
    });
    let lines: Vec<String> = failing.collect();
    let text = match lines.as_slice() {
        [] => return None,
        [line] => format!("Another collector of the dataset does not answer: {line}."),
        lines => format!("{} collectors of the dataset do not answer.", lines.len()),
    };
    let remedy = "Look at that collector (`gleaner-collector status` there), at the network, and at the certificate that [peers] names. Its hosts keep their records meanwhile.";
    Some(Problem {
        hosts: if lines.len() > 1 { lines } else { Vec::new() },
        ..problem(Kind::PeerUnreachable, text, remedy)
    })
}

fn publishing(status: &Status) -> Option<Problem> {
    let publish = status.publish.as_ref()?;
    let reason = publish.failure.as_ref()?;
    let since = match publish.last_published_time_ms {
        Some(last_ms) => format!("is as it was on {} UTC", utc(last_ms)),
        None => "is not there yet".to_owned(),
    };
    Some(problem(
        Kind::CannotPublish,
        format!("The copy of the dataset on the object store {since}: {reason}."),
        format!(
            "The collector retries and then catches up ({}, {}); nothing is lost here.",
            count(publish.pending_files_count, "file"),
            Bytes::from(publish.pending_bytes)
        ),
    ))
}

fn tables(status: &Status) -> Option<Problem> {
    let tables = status.tables.as_ref()?;
    let reason = tables.failure.as_ref()?;
    let since = match tables.last_published_time_ms {
        Some(last_ms) => format!("were last updated on {} UTC", utc(last_ms)),
        None => "have not been updated since the collector started".to_owned(),
    };
    Some(problem(
        Kind::CannotPublishTables,
        format!("The Iceberg tables cannot be published: {reason}."),
        format!(
            "The tables in {} {since}. The collector retries; nothing is lost in the dataset.",
            tables.folder
        ),
    ))
}

fn certificate(status: &Status) -> Option<Problem> {
    let until_ms = status.certificate_expiry_time_ms?;
    let left_ms = until_ms - status.time_ms;
    if left_ms > CERTIFICATE_MS {
        return None;
    }
    let text = if left_ms <= 0 {
        format!(
            "The collector's certificate ended on {} UTC: hosts no longer accept it.",
            utc(until_ms)
        )
    } else {
        format!(
            "The collector's certificate ends in {}, on {} UTC; hosts will not accept it then.",
            brief_length(left_ms),
            utc(until_ms)
        )
    };
    Some(problem(
        Kind::CertificateEnding,
        text,
        "`gleaner pki issue --collector --name NAME -o /etc/gleaner/pki/collector` makes a new one; replacing the old files needs no restart.",
    ))
}

/// Name of a host, like `otter (0a1b2c3d)`.
fn named(host: &HostStatus) -> String {
    let name = host.known.host_name.as_deref().unwrap_or("unnamed");
    format!("{name} ({})", short(&host.host_id))
}

fn about_hosts<'a>(
    kind: Kind,
    hosts: impl IntoIterator<Item = &'a HostStatus>,
    say: impl Fn(&HostStatus) -> String,
    text: impl Fn(u64) -> String,
    remedy: &str,
) -> Option<Problem> {
    let mut hosts_count = 0;
    let mut lines = Vec::new();
    for host in hosts {
        hosts_count += 1;
        if lines.len() < NAMED {
            lines.push(say(host));
        }
    }
    (hosts_count > 0).then(|| Problem {
        hosts_count,
        hosts: lines,
        ..problem(kind, text(hosts_count), remedy)
    })
}

fn in_state(status: &Status, state: State) -> impl Iterator<Item = &HostStatus> {
    status.hosts.iter().filter(move |host| host.state == state)
}

fn rejected(status: &Status) -> Option<Problem> {
    let say = |host: &HostStatus| {
        let rejection = host.known.last_rejection.as_ref();
        let (kind, reason) = rejection.map_or(("", ""), |r| (r.kind.as_str(), r.reason.as_str()));
        format!("{}: {reason}. {}", named(host), remedy(kind))
    };
    about_hosts(
        Kind::HostsRejected,
        in_state(status, State::Rejected),
        say,
        |n| format!("{} rejected at the last request.", were(n)),
        "Their records stay on the hosts until this is fixed.",
    )
}

/// Remedy for a rejection of this kind; the text follows the reason.
fn remedy(kind: &str) -> &'static str {
    match kind {
        "unauthorized" => "Enrol it again: `gleaner-agent enroll` with a token.",
        "forbidden" => {
            "Was the machine cloned, or its certificate copied? Enrol each with a token of its own."
        }
        "malformed" => {
            "Where the reason names no clock, its agent may be damaged or of another version: install it again."
        }
        "newer" => "Upgrade this collector.",
        "too_large" => "Raise batch_limit here, if its agent does not send less by itself.",
        "too_slow" => "Look at its link.",
        "disk" => "Make room on the collector's disk.",
        _ => "",
    }
}

fn silent(status: &Status) -> Option<Problem> {
    let mut hosts: Vec<_> = in_state(status, State::Silent).collect();
    // Hosts that fell silent recently come first. Hosts that have been silent for months are no news.
    hosts.sort_by_key(|host| std::cmp::Reverse(host.known.last_received_time_ms));
    let say = |host: &HostStatus| match host.known.last_received_time_ms {
        Some(last_ms) => format!(
            "{}: for {}",
            named(host),
            brief_length(status.time_ms.saturating_sub(last_ms))
        ),
        None => format!("{}: never heard of", named(host)),
    };
    about_hosts(
        Kind::HostsSilent,
        hosts,
        say,
        |n| {
            format!(
                "{} not been heard of for longer than their interval explains.",
                have(n)
            )
        },
        "Hosts that are off or asleep send their records when they are back. If they are on: `gleaner-agent status` there, and the link.",
    )
}

fn clocks(status: &Status) -> Option<Problem> {
    let mut hosts: Vec<_> = status.hosts.iter().filter(|h| h.is_clock_wrong()).collect();
    hosts.sort_by_key(|h| std::cmp::Reverse(h.known.skew_ms.map(i64::unsigned_abs)));
    let say = |host: &HostStatus| {
        let skew_ms = host.known.skew_ms.unwrap_or_default();
        format!("{}: {}", named(host), crate::wording::clock(skew_ms))
    };
    about_hosts(
        Kind::ClocksWrong,
        hosts,
        say,
        |n| match n {
            1 => "1 host's clock is wrong by more than a minute.".to_owned(),
            n => format!(
                "{} hosts' clocks are wrong by more than a minute.",
                thousands(n)
            ),
        },
        "Their records keep the times that they had; the error is recorded beside. Let them ask a time server (`timedatectl`).",
    )
}

fn versions(status: &Status) -> Option<Problem> {
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    for host in &status.hosts {
        if let Some(version) = &host.known.agent_version {
            *versions.entry(version).or_default() += 1;
        }
    }
    if versions.len() < 2 {
        return None;
    }
    let mut versions: Vec<_> = versions.into_iter().collect();
    versions.sort_by_key(|(_, hosts)| std::cmp::Reverse(*hosts));
    let lines = versions
        .iter()
        .take(NAMED)
        .map(|(version, hosts)| format!("{version}: {}", count(*hosts, "host")));
    Some(Problem {
        hosts: lines.collect(),
        ..problem(
            Kind::SeveralVersions,
            format!("The agents are of {} versions.", versions.len()),
            "That works, as each version's columns are kept; the newest traces the most.",
        )
    })
}

fn were(n: u64) -> String {
    format!(
        "{} {}",
        count(n, "host"),
        if n == 1 { "was" } else { "were" }
    )
}

fn have(n: u64) -> String {
    format!(
        "{} {}",
        count(n, "host"),
        if n == 1 { "has" } else { "have" }
    )
}

#[cfg(test)]
mod tests;
