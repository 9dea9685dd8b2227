//! Quality of the forecasts, compared with models that use less information.

use super::pivot::pivot;
use gleaner_schemas::findings::{Findings, ForecastQuality, Scope};
use gleaner_schemas::units::{Bytes, Seconds};

/// Horizons shown, in seconds: the shortest one (10 minutes), and those for which there are baselines (one,
/// six and 24 hours).
const AHEAD_S: [i64; 4] = [600, 3600, 21_600, 86_400];

/// Model whose calibration is shown. For the other models only the score is shown.
const OWN: &str = "gleaner";

/// Brier scores, and the calibration of our own forecasts: one line per region and horizon.
pub(super) fn quality(findings: &Findings, rows: usize) -> String {
    let shown = (findings.forecast_quality.iter()).filter(|q| AHEAD_S.contains(&q.ahead_s));
    let cells: Vec<(&ForecastQuality, String, String)> = shown.flat_map(cells).collect();
    let scores = pivot(
        cells.iter(),
        &["scope", "region", "ahead"],
        1,
        |(q, ..)| {
            vec![
                scope(q).to_owned(),
                region(q),
                Seconds(q.ahead_s as f64).to_string(),
            ]
        },
        |(_, column, _)| column.clone(),
        |(_, _, cell)| cell.clone(),
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
        "{said}\n  Brier score of each model, on days not used to fit the model: 0 is perfect, lower is better. Reliability: the part of \
         gleaner's score\n  that is due to wrong probabilities; 0 is perfect. Slope of gleaner's calibration: above 1, forecasts are too close \
         together;\n  below 1, too far apart."
    )
}

/// Cells of a model: its score, and for our own model the calibration.
fn cells(q: &ForecastQuality) -> Vec<(&ForecastQuality, String, String)> {
    let mut cells = vec![(
        q,
        q.model.replace('_', " "),
        format!("{:.4}", q.brier_score),
    )];
    if q.model == OWN {
        let slope = q.calibration_slope;
        let slope = slope.map_or_else(|| "—".to_owned(), |slope| format!("{slope:.2}"));
        cells.push((q, "reliability".to_owned(), format!("{:.5}", q.reliability)));
        cells.push((q, "slope".to_owned(), slope));
    }
    cells
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calibration_stands_beside_the_score() {
        let quality_of = |model: &str, calibration_slope| ForecastQuality {
            scope: Scope::All,
            region_bytes: None,
            region_share: Some(0.5),
            ahead_s: 3600,
            model: model.to_owned(),
            brier_score: 0.0125,
            reliability: 0.00025,
            resolution: 0.0077,
            uncertainty: 0.02,
            calibration_slope,
            instants_count: 100,
            origins_count: 3,
            hosts_count: 2,
        };
        let of = |slope| {
            let findings = Findings {
                forecast_quality: vec![quality_of("gleaner", slope), quality_of("age", None)],
                ..Findings::default()
            };
            let said = quality(&findings, 10);
            let words = |line: &str| -> Vec<String> {
                line.split_whitespace().map(str::to_owned).collect()
            };
            let [header, line] = [0, 1].map(|i| words(said.lines().nth(i).unwrap_or_default()));
            (header, line)
        };
        let (header, line) = of(Some(1.25));
        assert_eq!(header[3..], ["gleaner", "reliability", "slope", "age"]);
        let end = line.len() - 4;
        assert_eq!(line[end..], ["0.0125", "0.00025", "1.25", "0.0125"]);
        assert_eq!(of(None).1[end + 2], "—");
    }
}
