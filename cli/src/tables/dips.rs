//! Number of hosts by the number of dips of their available memory (Acharya & Setia, Table 3).

use super::is_worth_a_row;
use super::pivot::pivot;
use gleaner_schemas::findings::{DipHosts, Findings, Notion};
use gleaner_schemas::units::Bytes;

pub(super) fn hosts(findings: &Findings) -> String {
    let shown = findings.dip_hosts.iter();
    let shown =
        shown.filter(|d| d.notion == Notion::Available && is_worth_a_row(findings, &d.size_class));
    pivot(
        shown,
        &["class", "below"],
        1,
        |d| vec![d.size_class.clone(), threshold(d)],
        |d| match d.minimum_intervals_count {
            0 => "never".to_owned(),
            some => format!("≥ {some}"),
        },
        |d| d.hosts_count.to_string(),
    )
}

fn threshold(dip: &DipHosts) -> String {
    match (dip.threshold_bytes, dip.threshold_share) {
        (Some(bytes), _) => Bytes::from(bytes).to_string(),
        (None, Some(share)) => format!("{:.0} % of it", share * 100.0),
        (None, None) => "—".to_owned(),
    }
}
