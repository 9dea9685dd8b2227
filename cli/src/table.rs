//! Findings as aligned tables, each number with its unit.

mod lasting;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use gleaner_schemas::findings::{Findings, MemoryUsage, Quota};
use gleaner_schemas::units::{Bytes, Seconds};
use std::fmt::Write;

/// A table whose first `left` columns are text and whose others are numbers, aligned right.
pub(crate) fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((2, 0));
        if i >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

fn bytes(value: f64) -> String {
    Bytes(value).to_string()
}

fn or_dash(value: Option<String>) -> String {
    value.unwrap_or_else(|| "—".to_owned())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Where memory went, over all hosts, and what could be lent.
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
        ("lotsfree", "reserve"),
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
    let were_idle: i64 = quotas.iter().map(once_idle_bytes).sum();
    t.add_row(vec![
        "lease quota, were it idle".to_owned(),
        Bytes::from(were_idle).to_string(),
    ]);
    let mut text = format!("{}\n", t.trim_fmt());
    if let [quota] = quotas.as_slice() {
        let _ = writeln!(
            text,
            "\nWhy this quota now (last sample) — {}.",
            quota.reason
        );
    }
    text
}

/// What the gentle mode would lend of an idle host.
fn once_idle_bytes(quota: &Quota) -> i64 {
    quota
        .harvestable_bytes
        .map_or(0, |h| h.min(quota.recruitable_bytes))
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

/// Every measure.
pub(crate) fn all(findings: &Findings) -> String {
    let sections: [(&str, String); 12] = [
        ("Hosts", hosts(findings)),
        ("Use of memory", memory_by_class(findings)),
        ("Dips in available memory", dips(findings)),
        ("How long regions stay available", periods(findings)),
        (
            "What ends that, had they been leased",
            lasting::ends(findings),
        ),
        (
            "Of what is available now, still so",
            lasting::odds(findings),
        ),
        (
            "How long regions stay available at least",
            lasting::bounds(findings),
        ),
        ("Idle periods", idle(findings)),
        ("What could be lent at the last sample", quotas(findings)),
        ("Gaps", gaps(findings)),
        ("What could not be read", absences(findings)),
        ("What tracing cost", cost(findings)),
    ];
    let mut text = String::new();
    for (title, body) in sections {
        let _ = writeln!(text, "{title}\n{body}\n");
    }
    for missing in &findings.not_measured {
        let _ = writeln!(
            text,
            "Not measured ({}, {}): {}",
            missing.measure, missing.host, missing.reason
        );
    }
    text
}

/// A table's text, or a word where it has no rows.
fn text(table: &Table) -> String {
    if table.is_empty() {
        "  none".to_owned()
    } else {
        table.trim_fmt()
    }
}

fn name<'a>(findings: &'a Findings, host: &'a str) -> &'a str {
    findings
        .hosts
        .iter()
        .find(|h| h.host == host)
        .map_or(host, |h| h.host_name.as_str())
}

fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(
        |_| format!("{ms} ms"),
        |t| t.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

fn hosts(findings: &Findings) -> String {
    let mut t = table(
        &[
            "host",
            "class",
            "from (UTC)",
            "to (UTC)",
            "physical",
            "samples",
            "covered",
            "idle",
        ],
        4,
    );
    for h in &findings.hosts {
        t.add_row(vec![
            h.host_name.clone(),
            h.size_class.clone(),
            time(h.from_time_ms),
            time(h.to_time_ms),
            Bytes::from(h.physical_bytes).to_string(),
            h.samples_count.to_string(),
            percent(h.coverage_share),
            or_dash(h.idle_share.map(percent)),
        ]);
    }
    text(&t)
}

/// Where all hosts are of one class, `all` would only repeat it.
fn is_worth_a_row(findings: &Findings, size_class: &str) -> bool {
    size_class != "all"
        || findings
            .hosts
            .windows(2)
            .any(|pair| pair[0].size_class != pair[1].size_class)
}

fn memory_by_class(findings: &Findings) -> String {
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
    {
        let mut row = usage_row(&u.category.replace('_', " "), u);
        row.insert(0, u.size_class.clone());
        row.insert(5, bytes(u.median_bytes));
        t.add_row(row);
    }
    text(&t)
}

fn dips(findings: &Findings) -> String {
    let mut t = table(
        &[
            "host",
            "below",
            "intervals",
            "of",
            "least available",
            "at (UTC)",
        ],
        1,
    );
    for d in &findings.dips {
        t.add_row(vec![
            name(findings, &d.host).to_owned(),
            Bytes::from(d.threshold_bytes).to_string(),
            d.intervals.to_string(),
            d.samples_count.to_string(),
            Bytes::from(d.min_available_bytes).to_string(),
            time(d.min_time_ms),
        ]);
    }
    text(&t)
}

fn periods(findings: &Findings) -> String {
    let mut t = table(
        &[
            "class", "scope", "region", "periods", "cut", "mean", "median", "longest", "of time",
        ],
        2,
    );
    for p in findings
        .availability_periods
        .iter()
        .filter(|p| is_worth_a_row(findings, &p.size_class))
    {
        let seconds = |s: Option<f64>| or_dash(s.map(|s| Seconds(s).to_string()));
        t.add_row(vec![
            p.size_class.clone(),
            lasting::scope(p.scope).to_owned(),
            Bytes::from(p.region_bytes).to_string(),
            p.periods.to_string(),
            p.censored.to_string(),
            seconds(p.mean_s),
            seconds(p.median_s),
            seconds(p.longest_s),
            or_dash(p.available_time_share.map(percent)),
        ]);
    }
    format!(
        "{}\n  Periods under {} are dropped. \"Cut\" periods lasted longer than the trace could see.",
        text(&t),
        Seconds(findings.parameters.minimum_period_s)
    )
}

fn idle(findings: &Findings) -> String {
    let mut t = table(&["host", "from (UTC)", "to (UTC)", "length", "cut"], 3);
    for p in &findings.idle_periods {
        let cut = match (p.start_censored, p.end_censored) {
            (false, false) => "no",
            (true, false) => "start",
            (false, true) => "end",
            (true, true) => "both",
        };
        t.add_row(vec![
            name(findings, &p.host).to_owned(),
            time(p.from_time_ms),
            time(p.to_time_ms),
            Seconds(p.duration_s).to_string(),
            cut.to_owned(),
        ]);
    }
    text(&t)
}

fn quotas(findings: &Findings) -> String {
    let mut t = table(&["host", "quota", "recruitable", "harvestable", "why"], 1);
    for q in &findings.quotas {
        t.add_row(vec![
            name(findings, &q.host).to_owned(),
            Bytes::from(q.quota_bytes).to_string(),
            Bytes::from(q.recruitable_bytes).to_string(),
            or_dash(q.harvestable_bytes.map(|b| Bytes::from(b).to_string())),
            q.reason.clone(),
        ]);
    }
    if let Some(why) = t.column_mut(4) {
        why.set_cell_alignment(CellAlignment::Left);
    }
    text(&t)
}

fn gaps(findings: &Findings) -> String {
    let mut t = table(&["host", "cause", "from (UTC)", "to (UTC)", "length"], 4);
    for g in &findings.gaps {
        t.add_row(vec![
            name(findings, &g.host).to_owned(),
            g.cause.clone(),
            time(g.from_time_ms),
            time(g.to_time_ms),
            Seconds(g.duration_s).to_string(),
        ]);
    }
    text(&t)
}

fn absences(findings: &Findings) -> String {
    let mut t = table(&["host", "what", "why", "detail", "samples"], 4);
    for a in &findings.absences {
        t.add_row(vec![
            name(findings, &a.host).to_owned(),
            a.item.clone(),
            a.reason.clone(),
            a.detail.clone(),
            a.samples_count.to_string(),
        ]);
    }
    text(&t)
}

fn cost(findings: &Findings) -> String {
    let mut t = table(
        &[
            "host",
            "CPU a sample",
            "most",
            "of one CPU",
            "most resident",
        ],
        1,
    );
    for c in &findings.agent_cost {
        t.add_row(vec![
            name(findings, &c.host).to_owned(),
            format!("{:.1} ms", c.mean_cpu_ms),
            format!("{:.1} ms", c.max_cpu_ms),
            or_dash(c.cpu_share.map(|s| format!("{:.3} %", s * 100.0))),
            Bytes::from(c.max_rss_bytes).to_string(),
        ]);
    }
    text(&t)
}
