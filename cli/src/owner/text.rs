//! Texts of the memory server's answers for display: aligned, with units.

use gleaner_schemas::lending::{HostQuota, LendingState, PagesServed, QuotaReason, ReclaimRecord};
use gleaner_schemas::units::{Bytes, Seconds};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use std::fmt::Write;

/// Result of a command: state of lending, and memory that the command reclaimed.
pub(super) fn done(lending: &LendingState, zone: &TimeZone) -> String {
    let mut said = match (lending.is_paused, lending.cap_bytes) {
        (true, _) => paused(lending, zone),
        (false, Some(cap)) => format!("lending, {} at most", size(cap)),
        (false, None) => "lending, without a cap of yours".to_owned(),
    };
    if let Some(reclaimed) = &lending.reclaimed {
        let (bytes, took) = (size(reclaimed.bytes), length_us(reclaimed.full_reclaim_us));
        let _ = write!(said, "; {bytes} reclaimed in {took}");
    }
    said + "\n"
}

/// Text of `gleaner owner status`: state of lending.
pub(super) fn status(lending: &LendingState, zone: &TimeZone) -> String {
    let quota = &lending.quota;
    let mut lines = vec![
        (
            "lent",
            format!(
                "{} of {} that may be lent: {}",
                size(quota.lent_bytes),
                size(quota.quota_bytes),
                why(quota)
            ),
        ),
        ("free", format!("{} to lease", size(quota.unleased_bytes))),
    ];
    if quota.quota_bytes != quota.idle_quota_bytes {
        lines.push(("once idle", size(quota.idle_quota_bytes)));
    }
    if let Some(bytes) = quota.low_water_bytes {
        lines.push((
            "24 hours",
            format!("{} could have been lent at any time", size(bytes)),
        ));
    }
    let cap = lending
        .cap_bytes
        .map_or_else(|| "none of yours".to_owned(), size);
    lines.push(("cap", cap));
    lines.push((
        "paused",
        if lending.is_paused {
            paused(lending, zone)
        } else {
            "no".to_owned()
        },
    ));
    let locked = if lending.is_locked {
        "locked"
    } else {
        "not locked"
    };
    let (resident, huge) = (size(lending.resident_bytes), size(lending.huge_page_bytes));
    lines.push((
        "in memory",
        format!("{resident}, {huge} of it in huge pages, {locked}"),
    ));
    lines.push((
        "gleaner-memoryd",
        format!("{} for itself", size(lending.daemon_bytes)),
    ));
    let pages = lending.pages.as_ref().map_or_else(
        || "served nowhere, so no lease is placed here: `listen` in memoryd.toml".to_owned(),
        served,
    );
    lines.push(("pages", pages));
    let agent = if lending.is_agent_connected {
        "heard"
    } else {
        "not heard: nothing is lent without it"
    };
    lines.push(("agent", agent.to_owned()));
    let recruiters = if lending.linked_recruiters.is_empty() {
        "none linked".to_owned()
    } else {
        lending.linked_recruiters.join(", ")
    };
    lines.push(("recruiters", recruiters));
    if let Some(held) = &lending.revocations {
        let made = clock(held.issued_time_ms, zone);
        let count = held.certificates_count;
        let text = format!("{count} certificates, by a list of {made}; their clients are refused");
        lines.push(("revoked", text));
    }
    let mut text = String::new();
    for (label, said) in lines {
        let _ = writeln!(text, "{label:<15}  {said}");
    }
    if lending.are_leases_hidden {
        text.push_str(
            "\nLeases are shown to root and to the group of the daemon's socket (gleaner).\n",
        );
    }
    if !lending.leases.is_empty() {
        let header = ["lease", "client", "granted", "held", "ends in"];
        let mut table = gleaner_terminal::table(&header, 2);
        for lease in &lending.leases {
            table.add_row(vec![
                lease.lease_id.get(..8).unwrap_or_default().to_owned(),
                plain(&lease.client),
                size(lease.granted_bytes),
                size(lease.remaining_bytes),
                Seconds::from_ms(lease.expires_in_ms).to_string(),
            ]);
        }
        let _ = writeln!(text, "\n{}", table.trim_fmt());
    }
    text
}

fn served(pages: &PagesServed) -> String {
    let within = |share| {
        let us = pages.quantile_us(share);
        us.map_or_else(|| "longer".to_owned(), |us| format!("{us} us"))
    };
    let mut text = format!(
        "{} connections, {} requests, {} of them failed",
        pages.connections_count, pages.requests_count, pages.failed_count
    );
    if pages.requests_count > 0 {
        let _ = write!(
            text,
            "; half within {}, 99 % within {}",
            within(0.5),
            within(0.99)
        );
    }
    text
}

/// List of all reclaims of lent memory.
pub(super) fn log(lines: &[ReclaimRecord], zone: &TimeZone) -> String {
    if lines.is_empty() {
        return "nothing has been lent yet\n".to_owned();
    }
    let header = [
        "reclaimed",
        "why",
        "memory",
        "first after",
        "all after",
        "lent for",
        "peak",
        "still lent",
        "clients",
    ];
    let mut table = gleaner_terminal::table(&header, 2);
    for line in lines {
        let all = length_us(line.full_reclaim_us);
        let all = match line.steps_count {
            0 | 1 => all,
            steps => format!("{steps} × {all}"),
        };
        let clients: Vec<String> = line.clients.iter().map(|client| plain(client)).collect();
        table.add_row(vec![
            clock(line.time_ms, zone),
            line.cause.replace('_', " "),
            size(line.bytes),
            length_us(line.first_reclaim_us),
            all,
            Seconds::from_ms(line.time_ms.saturating_sub(line.lent_since_time_ms)).to_string(),
            size(line.peak_lent_bytes),
            size(line.remaining_lent_bytes),
            clients.join(", "),
        ]);
    }
    table.trim_fmt() + "\n"
}

fn paused(lending: &LendingState, zone: &TimeZone) -> String {
    match lending.paused_until_time_ms {
        Some(until) => format!("paused until {}", clock(until, zone)),
        None => "paused until `gleaner owner resume`".to_owned(),
    }
}

fn why(quota: &HostQuota) -> String {
    let soon = |what: &str| match quota.idle_in_ms {
        Some(ms) => format!(
            "{what}, idle in {} if nothing happens",
            Seconds::from_ms(ms)
        ),
        None => what.to_owned(),
    };
    match quota.reason {
        QuotaReason::Idle => match quota.idle_for_ms {
            Some(ms) => format!("idle for {}", Seconds::from_ms(ms)),
            None => "idle".to_owned(),
        },
        QuotaReason::Spare => "in use, with memory to spare".to_owned(),
        QuotaReason::Waiting => soon("not idle for long enough"),
        QuotaReason::InUse => soon("in use"),
        QuotaReason::Loaded => "the load is too high".to_owned(),
        QuotaReason::Paused => "paused".to_owned(),
        QuotaReason::Pressure => "memory runs short".to_owned(),
        QuotaReason::Unknown => "the owner, or memory, cannot be seen".to_owned(),
    }
}

fn size(bytes: u64) -> String {
    Bytes::from(bytes).to_string()
}

fn length_us(us: u64) -> String {
    match us {
        0..10_000 => format!("{:.2} ms", us as f64 / 1000.0),
        10_000..1_000_000 => format!("{:.1} ms", us as f64 / 1000.0),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

fn clock(time_ms: i64, zone: &TimeZone) -> String {
    Timestamp::from_millisecond(time_ms).map_or_else(
        |_| "—".to_owned(),
        |time| {
            time.to_zoned(zone.clone())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string()
        },
    )
}

/// Replaces control characters in a client's name, since a terminal would obey them.
fn plain(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use gleaner_schemas::lending::{LatencyClass, Lease, RevocationCount};

    fn lending() -> LendingState {
        LendingState {
            quota: HostQuota {
                quota_bytes: 8 << 30,
                lent_bytes: 2 << 30,
                unleased_bytes: 6 << 30,
                idle_quota_bytes: 8 << 30,
                reason: QuotaReason::Idle,
                idle_for_ms: Some(400_000),
                ..HostQuota::default()
            },
            leases: vec![Lease {
                lease_id: "0123456789abcdef".into(),
                client: "ren\u{1b}der".into(),
                granted_bytes: 3 << 30,
                remaining_bytes: 2 << 30,
                expires_in_ms: 90_000,
                ..Lease::default()
            }],
            resident_bytes: 1 << 30,
            huge_page_bytes: 1 << 30,
            is_locked: true,
            daemon_bytes: 9 << 20,
            pages: Some(PagesServed {
                connections_count: 3,
                requests_count: 300,
                failed_count: 1,
                latency: [(Some(10), 200), (Some(20), 97), (None, 3)]
                    .map(|(at_most_us, requests_count)| LatencyClass {
                        at_most_us,
                        requests_count,
                    })
                    .to_vec(),
            }),
            is_agent_connected: true,
            revocations: Some(RevocationCount {
                issued_time_ms: 1_795_219_140_000,
                certificates_count: 2,
            }),
            ..LendingState::default()
        }
    }

    #[test]
    fn how_it_stands_is_aligned_and_has_units() {
        let expected = "\
lent             2.0 GiB of 8.0 GiB that may be lent: idle for 6 min 40 s
free             6.0 GiB to lease
cap              none of yours
paused           no
in memory        1.0 GiB, 1.0 GiB of it in huge pages, locked
gleaner-memoryd  9.0 MiB for itself
pages            3 connections, 300 requests, 1 of them failed; half within 10 us, 99 % within 20 us
agent            heard
recruiters       none linked
revoked          2 certificates, by a list of 2026-11-20 23:59:00; their clients are refused

";
        let text = status(&lending(), &TimeZone::UTC);
        let (head, table) = text.split_at(expected.len());
        assert_eq!(head, expected);
        for cell in [
            "01234567",
            "ren\u{fffd}der",
            "3.0 GiB",
            "2.0 GiB",
            "1 min 30 s",
        ] {
            assert!(table.contains(cell), "{cell}: {table}");
        }
    }

    #[test]
    fn what_was_done_says_how_fast() {
        let reclaimed = Some(ReclaimRecord {
            bytes: 2 << 30,
            full_reclaim_us: 5210,
            ..ReclaimRecord::default()
        });
        let mut found = LendingState {
            reclaimed,
            is_paused: true,
            ..lending()
        };
        let said = |lending: &LendingState| done(lending, &TimeZone::UTC);
        let expected = "paused until `gleaner owner resume`; 2.0 GiB reclaimed in 5.21 ms\n";
        assert_eq!(said(&found), expected);
        found.paused_until_time_ms = Some(1_700_000_000_000);
        assert!(said(&found).starts_with("paused until 2023-11-14 22:13:20; "));
        found = LendingState {
            cap_bytes: Some(4 << 30),
            ..lending()
        };
        assert_eq!(said(&found), "lending, 4.0 GiB at most\n");
        assert_eq!(said(&lending()), "lending, without a cap of yours\n");
    }

    #[test]
    fn the_log_is_a_table() {
        assert_eq!(log(&[], &TimeZone::UTC), "nothing has been lent yet\n");
        let line = ReclaimRecord {
            time_ms: 1_700_000_000_000,
            lent_since_time_ms: 1_699_999_910_000,
            cause: "agent_lost".into(),
            bytes: 8 << 30,
            first_reclaim_us: 310,
            full_reclaim_us: 21_470,
            steps_count: 1,
            clients: vec!["a".into(), "b".into()],
            ..ReclaimRecord::default()
        };
        let text = log(
            &[
                line.clone(),
                ReclaimRecord {
                    steps_count: 3,
                    ..line
                },
            ],
            &TimeZone::UTC,
        );
        for cell in [
            "2023-11-14 22:13:20",
            "agent lost",
            "8.0 GiB",
            "0.31 ms",
            "21.5 ms",
            "3 × 21.5 ms",
            "1 min 30 s",
            "a, b",
        ] {
            assert!(text.contains(cell), "{cell}: {text}");
        }
    }
}
