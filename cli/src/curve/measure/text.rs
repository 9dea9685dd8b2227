//! Measurements as a table and sentences.

use gleaner_schemas::curve::{Curve, FaultBand, LimitedMeasurement, Measurements};
use gleaner_schemas::units::{Bytes, thousands};

/// Cell for a figure that is absent.
const ABSENT: &str = "—";

/// Table of all sizes, then a sentence for each.
pub(super) fn text(document: &Measurements, curve: Option<&Curve>) -> String {
    let native = &document.native;
    let mut text = format!(
        "{}: {:.2} s, {:.2} s of CPU, {} without a limit\n\n",
        document.program,
        native.wall_s,
        native.cpu_s,
        Bytes::from(native.peak_bytes),
    );
    let mut table = gleaner_terminal::table(
        &[
            "local",
            "faults",
            "predicted",
            "pages in",
            "pages out",
            "s",
            "CPU s",
            "slowdown",
            "predicted",
        ],
        0,
    );
    let absent = || ABSENT.to_owned();
    let count = |count: Option<u64>| count.map_or_else(absent, thousands);
    for found in &document.measurements {
        let slowdowns = found.prediction.as_ref();
        let slowdowns =
            slowdowns.map(|by| format!("{:.2} ({:.2} to {:.2})", by.slowdown, by.low, by.high));
        table.add_row([
            Bytes::from(found.local_bytes).to_string(),
            count(found.major_faults_count),
            found.predicted_faults.map_or_else(absent, band),
            count(found.page_ins_count),
            count(found.page_outs_count),
            format!("{:.2}", found.wall_s),
            found
                .cpu_s
                .map_or_else(absent, |cpu_s| format!("{cpu_s:.2}")),
            format!("{:.2}", found.slowdown),
            slowdowns.unwrap_or_else(absent),
        ]);
    }
    text += &(table.trim_fmt() + "\n\n");
    for found in &document.measurements {
        text += &format!("{}: {}.\n", document.program, found.sentence);
    }
    if let Some(cut) = curve.and_then(|curve| curve.cut.as_ref()) {
        text += &format!("The curve is cut: {cut}.\n");
    }
    text
}

/// The measurement in one sentence, and its place in the predicted bands.
pub(super) fn sentence(found: &LimitedMeasurement) -> String {
    let place = |is_inside: bool| if is_inside { "inside" } else { "outside" };
    let mut sentence = format!(
        "with {} local it ran {:.2} times as long as without a limit",
        Bytes::from(found.local_bytes),
        found.slowdown
    );
    if let (Some(by), Some(is_inside)) = (&found.prediction, found.is_slowdown_inside) {
        let (low, high, place) = (by.low, by.high, place(is_inside));
        sentence += &format!(" ({place} the predicted {low:.2} to {high:.2})");
    }
    if let Some(faults) = found.major_faults_count {
        sentence += &format!(", with {} major faults", thousands(faults));
        if let (Some(predicted), Some(is_inside)) =
            (found.predicted_faults, found.are_faults_inside)
        {
            sentence += &format!(" ({} the predicted {})", place(is_inside), band(predicted));
        }
    }
    if found.runs_count > 1 {
        sentence += &format!(", median of {} runs", found.runs_count);
    }
    if found.killed_runs_count > 0 {
        let killed = found.killed_runs_count;
        sentence += &format!("; {killed} more were killed for lack of memory");
    }
    sentence
}

fn band(band: FaultBand) -> String {
    format!(
        "{} to {}",
        thousands(band.low_count),
        thousands(band.high_count)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::{BoundBy, Evidence, Prediction};

    fn found() -> LimitedMeasurement {
        LimitedMeasurement {
            local_bytes: 60 << 20,
            runs_count: 1,
            major_faults_count: Some(23_142),
            slowdown: 1.384,
            ..LimitedMeasurement::default()
        }
    }

    #[test]
    fn a_sentence_compares_with_both_bands() {
        let mut found = found();
        assert_eq!(
            sentence(&found),
            "with 60.0 MiB local it ran 1.38 times as long as without a limit, with 23,142 major faults"
        );
        found.predicted_faults = Some(FaultBand {
            low_count: 17_503,
            high_count: 23_591,
        });
        found.are_faults_inside = Some(true);
        found.prediction = Some(Prediction {
            technology: "mine".to_owned(),
            evidence: Evidence::Measured,
            local_bytes: 60 << 20,
            faults_count: 17_503,
            page_outs_count: 0,
            slowdown: 1.25,
            page_outs_slowdown: 0.0,
            low: 1.2,
            high: 1.3,
            bound_by: BoundBy::Cpu,
            sentence: String::new(),
        });
        found.is_slowdown_inside = Some(false);
        (found.runs_count, found.killed_runs_count) = (3, 1);
        assert_eq!(
            sentence(&found),
            "with 60.0 MiB local it ran 1.38 times as long as without a limit (outside the predicted 1.20 to 1.30), \
             with 23,142 major faults (inside the predicted 17,503 to 23,591), median of 3 runs; \
             1 more were killed for lack of memory"
        );
        found.sentence = sentence(&found);
        let document = Measurements {
            program: "sort".to_owned(),
            measurements: vec![found],
            ..Measurements::default()
        };
        let text = text(&document, None);
        assert!(
            text.contains("17,503 to 23,591") && text.contains("1.25 (1.20 to 1.30)"),
            "{text}"
        );
        assert!(
            text.contains("—") && text.contains("\nsort: with 60.0 MiB local"),
            "{text}"
        );
    }
}
