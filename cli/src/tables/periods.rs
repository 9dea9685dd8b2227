//! Lengths of the periods for which regions stay available.

use super::{is_worth_a_row, or_dash, percent, table, text};
use gleaner_schemas::findings::{Findings, Notion, Scope};
use gleaner_schemas::units::{Bytes, Seconds};

pub(super) fn periods(findings: &Findings) -> String {
    let mut t = table(
        &[
            "class",
            "scope",
            "region",
            "periods",
            "cut",
            "mean",
            "median",
            "longest",
            "restricted mean",
            "share of time",
        ],
        2,
    );
    for p in findings
        .availability_periods
        .iter()
        .filter(|p| p.notion == Notion::Available && is_worth_a_row(findings, &p.size_class))
    {
        let seconds = |s: Option<f64>| or_dash(s.map(|s| Seconds(s).to_string()));
        t.add_row(vec![
            p.size_class.clone(),
            match p.scope {
                Scope::All => "all",
                Scope::Idle => "idle",
            }
            .to_owned(),
            Bytes::from(p.region_bytes).to_string(),
            p.periods_count.to_string(),
            p.censored_count.to_string(),
            seconds(p.mean_s),
            seconds(p.median_s),
            seconds(p.longest_s),
            seconds(p.restricted_mean_s),
            or_dash(p.available_time_share.map(percent)),
        ]);
    }
    format!(
        "{}\n  Periods under {} are dropped. The trace does not cover the whole of a \"cut\" period.",
        text(&t),
        Seconds(findings.parameters.minimum_period_s)
    )
}
