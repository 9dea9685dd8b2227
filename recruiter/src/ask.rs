//! `gleaner-recruiter status`: asks a running recruiter for its status.

use crate::Error;
use crate::http::{CommonsList, Health, Hosts};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use gleaner_schemas::commons::{BLOCK_BYTES, CommonsView};
use gleaner_schemas::lending::{LeaseList, QuotaReason};
use gleaner_schemas::units::Bytes;
use gleaner_trust::LoopbackServer;
use serde::Serialize;
use std::fmt::Write as _;

const RECRUITER: LoopbackServer = LoopbackServer {
    kind: "recruiter",
    program: "gleaner-recruiter",
    from_elsewhere: "read /v1/hosts with a certificate",
};

/// Status of a recruiter, as printed in JSON.
#[derive(Serialize)]
struct Status {
    recruiter: Health,
    #[serde(flatten)]
    hosts: Hosts,
    #[serde(flatten)]
    commonses: CommonsList,
    /// `null` if this machine's programs may not see leases (`local_access = "status"`).
    leases: Option<LeaseList>,
}

/// Asks the recruiter at `url`, such as `http://127.0.0.1:7484`, for its status. Returns it as text or JSON.
///
/// # Errors
/// [`Error::Silent`] if there is no answer, or if the answer is not that of a recruiter.
pub fn ask(url: &str, as_json: bool) -> Result<String, Error> {
    let status = Status {
        recruiter: RECRUITER.get(url, "/healthz")?.value,
        hosts: RECRUITER.get(url, "/v1/hosts")?.value,
        commonses: RECRUITER.get(url, "/v1/commons")?.value,
        leases: match RECRUITER.get(url, "/v1/leases") {
            Ok(answer) => Some(answer.value),
            Err(error) if error.is_refusal => None,
            Err(error) => return Err(error.into()),
        },
    };
    if as_json {
        let text = serde_json::to_string_pretty(&status).unwrap_or_default(); // plain data
        return Ok(text + "\n");
    }
    Ok(said(&status))
}

fn said(status: &Status) -> String {
    let (hosts, recruiter) = (&status.hosts.hosts, &status.recruiter);
    let sum = |bytes: fn(&gleaner_schemas::lending::HostQuota) -> u64| {
        let bytes = hosts.iter().map(|host| u128::from(bytes(&host.quota)));
        Bytes(bytes.sum::<u128>() as f64)
    };
    let mut text = format!(
        "{} host{}, {} linked: {} may be lent, {} are, {} are free\n",
        hosts.len(),
        if hosts.len() == 1 { "" } else { "s" },
        recruiter.links_count,
        sum(|q| q.quota_bytes),
        sum(|q| q.lent_bytes),
        sum(|q| q.unleased_bytes),
    );
    if recruiter.grants_in_ms > 0 {
        let _ = writeln!(
            text,
            "It has just started: nothing is granted for {} s, until every host has announced itself.",
            (recruiter.grants_in_ms + 999) / 1000
        );
    }
    if !hosts.is_empty() {
        let header = [
            "host",
            "quota",
            "lent",
            "free",
            "leases",
            "reason",
            "announced",
        ];
        let mut table = table(&header, 1..5);
        for host in hosts {
            let quota = &host.quota;
            let bytes = |bytes: u64| Bytes(bytes as f64).to_string();
            let announced = if host.is_reachable {
                format!("{} s ago", host.last_announcement_age_ms / 1000)
            } else {
                format!("{} s ago, not linked", host.last_announcement_age_ms / 1000)
            };
            table.add_row(vec![
                quota.host_id.clone(),
                bytes(quota.quota_bytes),
                bytes(quota.lent_bytes),
                bytes(quota.unleased_bytes),
                host.leases_count.to_string(),
                match host.address {
                    Some(_) => reason(quota.reason).to_owned(),
                    None => "serves no pages".to_owned(),
                },
                announced,
            ]);
        }
        let _ = writeln!(text, "\n{}", table.trim_fmt());
    }
    match &status.leases {
        None => text.push_str("\nLeases are not shown here: local_access = \"status\".\n"),
        Some(LeaseList { leases }) if leases.is_empty() => text.push_str("\nNo leases.\n"),
        Some(LeaseList { leases }) => {
            let header = [
                "client", "key", "granted", "held", "ends in", "host", "lease",
            ];
            let mut table = table(&header, 2..5);
            for view in leases {
                let lease = &view.lease;
                table.add_row(vec![
                    lease.client.clone(),
                    lease.key.escape_debug().to_string(), // a client chose this text
                    Bytes(lease.granted_bytes as f64).to_string(),
                    Bytes(lease.remaining_bytes as f64).to_string(),
                    format!("{} s", lease.expires_in_ms / 1000),
                    view.host_id.clone(),
                    lease.lease_id.clone(),
                ]);
            }
            let _ = writeln!(text, "\n{}", table.trim_fmt());
        }
    }
    for view in &status.commonses.commonses {
        let _ = write!(text, "\n{}", commons(view));
    }
    text
}

/// Members of one commons, with their weights.
fn commons(view: &CommonsView) -> String {
    let blocks = |count: u64| Bytes(count as f64 * BLOCK_BYTES as f64).to_string();
    let mut text = format!(
        "Commons {}: {} member{}, epoch {}{}, weights {}\n",
        view.name,
        view.members.len(),
        if view.members.len() == 1 { "" } else { "s" },
        view.epoch,
        if view.is_initiator {
            ""
        } else {
            " of another recruiter"
        },
        blocks(view.weights_sum),
    );
    let header = ["member", "address", "weight", "limit", "heard"];
    let mut table = table(&header, 2..4);
    for member in &view.members {
        table.add_row(vec![
            member.member.host_id.clone(),
            member.member.address.escape_debug().to_string(), // a member chose this text
            blocks(member.weight),
            blocks(member.weight_limit),
            format!("{} s ago", member.last_message_age_ms / 1000),
        ]);
    }
    let _ = writeln!(text, "{}", table.trim_fmt());
    text
}

fn table(header: &[&str], numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn reason(reason: QuotaReason) -> &'static str {
    match reason {
        QuotaReason::Idle => "idle",
        QuotaReason::Spare => "spare",
        QuotaReason::Waiting => "idle soon",
        QuotaReason::InUse => "in use",
        QuotaReason::Loaded => "loaded",
        QuotaReason::Paused => "paused by its owner",
        QuotaReason::Pressure => "short of memory",
        QuotaReason::Unknown => "unknown",
    }
}
