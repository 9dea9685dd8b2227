//! How good the forecasts are, beside models that know less.

use super::pivot::pivot;
use gleaner_schemas::findings::{Findings, ForecastQuality, Scope};
use gleaner_schemas::units::{Bytes, Seconds};

/// Times ahead that are shown: the shortest, and the baselines' (one, six and 24 hours).
const AHEAD_S: [i64; 4] = [600, 3600, 21_600, 86_400];

/// Brier scores: a line for each region and time ahead, a column a model.
pub(super) fn quality(findings: &Findings, rows: usize) -> String {
    let shown = findings.forecast_quality.iter();
    let scores = pivot(
        shown.filter(|q| AHEAD_S.contains(&q.ahead_s)),
        &["scope", "region", "ahead"],
        1,
        |q| {
            vec![
                scope(q).to_owned(),
                region(q),
                Seconds(q.ahead_s as f64).to_string(),
            ]
        },
        |q| q.model.replace('_', " "),
        |q| format!("{:.4}", q.brier_score),
    );
    let lines = scores.lines().count().saturating_sub(1);
    let mut said: String = scores.lines().take(rows + 1).collect::<Vec<_>>().join("\n");
    if lines > rows {
        said += &format!(
            "\n  … and {} more: --measure forecast_quality --rows {lines}",
            lines - rows
        );
    }
    format!(
        "{said}\n  Brier score on days that the model had not seen: 0 is perfect, less is better."
    )
}

const fn scope(quality: &ForecastQuality) -> &'static str {
    match quality.scope {
        Scope::All => "all",
        Scope::Idle => "idle",
    }
}

fn region(quality: &ForecastQuality) -> String {
    match (quality.region_bytes, quality.region_share) {
        (Some(bytes), _) => Bytes::from(bytes).to_string(),
        (None, Some(share)) => format!("{:.0} % of it", share * 100.0),
        (None, None) => "any".to_owned(),
    }
}
