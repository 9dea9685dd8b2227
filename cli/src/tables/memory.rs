//! Tables about the use of memory.

use super::{bytes, is_worth_a_row, or_dash, percent, table, text};
use gleaner_schemas::findings::{Findings, MemoryUsage, Quota};
use gleaner_schemas::units::Bytes;
use std::fmt::Write;

/// Use of memory over all hosts, and memory that could be lent.
pub(crate) fn memory(findings: &Findings) -> String {
    let mut t = table(
        &["memory", "mean", "deviation", "least", "most", "share"],
        1,
    );
    let all = |category: &str| {
        findings
            .memory_usage
            .iter()
            .find(|u| u.size_class == "all" && u.category == category)
    };
    for (category, label) in [
        ("physical", "total"),
        ("kernel", "kernel"),
        ("process", "process"),
        ("file_cache", "file cache"),
        ("reserve", "reserve"),
        ("available", "available"),
        ("harvestable", "harvestable"),
    ] {
        match all(category) {
            Some(usage) => t.add_row(usage_row(label, usage)),
            None => t.add_row(vec![label.to_owned(), "not known".to_owned()]),
        };
    }
    let quotas = &findings.quotas;
    let now: i64 = quotas.iter().map(|q| q.quota_bytes).sum();
    t.add_row(vec![
        "lease quota now".to_owned(),
        Bytes::from(now).to_string(),
    ]);
    let were_idle: i64 = quotas.iter().map(idle_quota_bytes).sum();
    t.add_row(vec![
        "lease quota, if idle".to_owned(),
        Bytes::from(were_idle).to_string(),
    ]);
    let mut text = format!("{}\n", t.trim_fmt());
    if let [quota] = quotas.as_slice() {
        let _ = writeln!(
            text,
            "\nReason for this quota (last sample): {}.",
            quota.reason
        );
    }
    text
}

/// Bytes that an idle host would lend in the lending mode `gentle`: the paper's quota, limited by harvestable
/// memory.
fn idle_quota_bytes(quota: &Quota) -> i64 {
    quota
        .harvestable_bytes
        .map_or(0, |h| h.min(quota.paper_quota_bytes))
}

fn usage_row(label: &str, usage: &MemoryUsage) -> Vec<String> {
    vec![
        label.to_owned(),
        bytes(usage.mean_bytes),
        or_dash(usage.sd_bytes.map(bytes)),
        Bytes::from(usage.min_bytes).to_string(),
        Bytes::from(usage.max_bytes).to_string(),
        percent(usage.mean_share),
    ]
}

/// Use of memory in each class.
pub(super) fn by_class(findings: &Findings) -> String {
    let mut t = table(
        &[
            "class",
            "category",
            "mean",
            "deviation",
            "least",
            "median",
            "most",
            "share",
        ],
        2,
    );
    for u in findings
        .memory_usage
        .iter()
        .filter(|u| is_worth_a_row(findings, &u.size_class))
        // Leaves out categories that are always 0, as balloon, guest and category correction are on most
        // hosts.
        .filter(|u| u.min_bytes != 0 || u.max_bytes != 0)
    {
        let mut row = usage_row(&u.category.replace('_', " "), u);
        row.insert(0, u.size_class.clone());
        row.insert(5, bytes(u.median_bytes));
        t.add_row(row);
    }
    text(&t)
}
