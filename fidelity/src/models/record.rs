//! A published figure next to ours, which a model gives without chance, or a simulation over seeds.

use gleaner_traces::published::{Figure, Kind};
use serde::Serialize;

/// A record, as printed by `gleaner fidelity --json`. The fields mean the same as those of synthetic clusters' records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ModelRecord {
    pub(super) source: &'static str,
    pub(super) item: String,
    pub(super) row: String,
    pub(super) column: String,
    /// Unit of all figures except the relative error.
    pub(super) unit: String,
    pub(super) paper: f64,
    /// Smallest and largest accepted value: values that round to the printed figure, or our reading of words.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Our value, the mean over the seeds of a simulation; absent if the model has none.
    pub(super) ours: Option<f64>,
    /// Smallest and largest value over the seeds; absent where the value does not depend on chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seeds_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seeds_high: Option<f64>,
    /// (ours − paper) / paper; absent if the paper has 0, or a bound.
    pub(super) relative_error: Option<f64>,
    pub(super) kind: Kind,
    /// False if the paper's own parameters contradict the figure.
    pub(super) possible: bool,
    /// True if our value is accepted, of a simulation that of every seed; absent where it is not comparable.
    pub(super) holds: Option<bool>,
    pub(super) note: String,
}

impl ModelRecord {
    pub(super) fn new(source: &'static str, figure: &Figure, ours: Option<f64>) -> Self {
        let is_comparable = figure.kind != Kind::NotComparable;
        let is_bound =
            figure.low < figure.high && [figure.low, figure.high].contains(&figure.paper);
        let has_error = !is_bound && figure.paper != 0.0;
        Self {
            source,
            item: figure.item.clone(),
            row: figure.row.clone(),
            column: figure.column.clone(),
            unit: figure.unit.clone(),
            paper: figure.paper,
            low: figure.low,
            high: figure.high,
            ours,
            seeds_low: None,
            seeds_high: None,
            relative_error: ours
                .filter(|_| has_error)
                .map(|ours| (ours - figure.paper) / figure.paper),
            kind: figure.kind,
            possible: figure.possible,
            holds: ours
                .filter(|_| is_comparable)
                .map(|ours| (figure.low..=figure.high).contains(&ours)),
            note: figure.note.clone(),
        }
    }

    /// Record of a simulated figure, with one value for each seed. Without any value, the record has none.
    pub(super) fn of_seeds(source: &'static str, figure: &Figure, values: &[f64]) -> Self {
        let low = values.iter().copied().min_by(f64::total_cmp);
        let high = values.iter().copied().max_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let record = Self::new(source, figure, (!values.is_empty()).then_some(mean));
        if low == high {
            return record;
        }
        let is_accepted = |value: &f64| (figure.low..=figure.high).contains(value);
        Self {
            seeds_low: low,
            seeds_high: high,
            holds: record.holds.map(|_| values.iter().all(is_accepted)),
            ..record
        }
    }

    /// Adds to the note.
    pub(super) fn with_note(mut self, note: &str) -> Self {
        if !self.note.is_empty() {
            self.note += "; ";
        }
        self.note += note;
        self
    }

    /// Place in the paper: `page-in: time, measured`.
    pub(super) fn place(&self) -> String {
        format!("{}: {}", self.row, self.column)
    }

    /// Returns true if the figure counts for the aims.
    pub(super) const fn is_judged(&self) -> bool {
        self.holds.is_some() && self.possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(kind: Kind, [paper, low, high]: [f64; 3]) -> Figure {
        Figure {
            item: "Text".to_owned(),
            row: "50 clients".to_owned(),
            column: "throughput lost".to_owned(),
            unit: "%".to_owned(),
            paper,
            low,
            high,
            kind,
            possible: true,
            note: String::new(),
        }
    }

    fn record(kind: Kind, interval: [f64; 3], ours: f64) -> ModelRecord {
        ModelRecord::new("a paper", &figure(kind, interval), Some(ours))
    }

    #[test]
    fn a_simulated_figure_holds_in_every_seed_or_not_at_all() {
        let figure = figure(Kind::Shape, [1.0, 0.9, 1.1]);
        let of = |values: &[f64]| ModelRecord::of_seeds("a paper", &figure, values);
        let all = of(&[0.95, 1.05]);
        assert_eq!((all.ours, all.holds), (Some(1.0), Some(true)));
        assert_eq!((all.seeds_low, all.seeds_high), (Some(0.95), Some(1.05)));
        // The mean alone would hold.
        assert_eq!(of(&[0.8, 1.0, 1.2]).holds, Some(false));
        assert_eq!(
            (of(&[1.0, 1.0]).seeds_low, of(&[1.0]).holds),
            (None, Some(true))
        );
        assert_eq!((of(&[]).ours, of(&[]).holds), (None, None));
    }

    #[test]
    fn a_bound_holds_without_an_error_and_a_number_has_one() {
        let bound = record(Kind::Predicted, [25.0, 0.0, 25.0], 12.0);
        assert_eq!((bound.holds, bound.relative_error), (Some(true), None));
        let above = record(Kind::Shape, [25.0, 0.0, 25.0], 25.5);
        assert_eq!((above.holds, above.is_judged()), (Some(false), true));
        let number = record(Kind::Derived, [10.0, 9.5, 10.5], 12.0);
        assert_eq!(
            (number.holds, number.relative_error),
            (Some(false), Some(0.2))
        );
        let exact = record(Kind::Calibrated, [10.0, 10.0, 10.0], 10.0);
        assert_eq!((exact.holds, exact.relative_error), (Some(true), Some(0.0)));
    }

    #[test]
    fn figures_of_other_hardware_are_never_judged() {
        let other = record(Kind::NotComparable, [10.0, 9.5, 10.5], 10.0);
        assert_eq!((other.holds, other.is_judged()), (None, false));
        assert_eq!(other.relative_error, Some(0.0));
        assert_eq!(other.place(), "50 clients: throughput lost");
        let noted = other.with_note("first").with_note("second");
        assert_eq!(noted.note, "first; second");
    }
}
