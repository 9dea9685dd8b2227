//! A published figure next to ours, over the seeds.

use super::cells::{self, MissingFigure};
use super::clusters::SeedResults;
use super::simulation::ITEMS;
use gleaner_traces::published::{ACHARYA_SETIA_SOURCE, Figure, Kind};
use serde::Serialize;

/// A record, as printed by `gleaner fidelity --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Record {
    pub(super) source: &'static str,
    pub(super) item: String,
    pub(super) row: String,
    pub(super) column: String,
    /// Unit of all figures except the relative error.
    pub(super) unit: String,
    pub(super) paper: f64,
    /// Smallest and largest value that round to the printed figure.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Mean over the seeds that have a value; median for simulated figures. Absent, like all of our values
    /// below, if no seed has a value.
    pub(super) ours: Option<f64>,
    /// Standard deviation (n − 1) over the seeds that have a value; absent for a single seed.
    pub(super) spread: Option<f64>,
    /// 2.5 and 97.5 % quantiles over the seeds that have a value. Simulated figures have few seeds, so
    /// minimum and maximum instead.
    pub(super) seeds_low: Option<f64>,
    pub(super) seeds_high: Option<f64>,
    /// Number of seeds that have a value.
    pub(super) seeds_count: usize,
    /// (ours − paper) / paper; absent if the paper has 0.
    pub(super) relative_error: Option<f64>,
    pub(super) kind: Kind,
    /// True if a trace can have the paper's figure.
    pub(super) possible: bool,
    /// True if our value rounds to the printed figure, or if that figure lies in the interval of the seeds.
    pub(super) holds: Option<bool>,
    pub(super) note: String,
}

impl Record {
    pub(super) fn new(figure: &Figure, values: &[f64], note: &str) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let mean = (!sorted.is_empty()).then(|| sorted.iter().sum::<f64>() / n);
        let squares = |mean: f64| sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let spread = mean
            .filter(|_| n > 1.0)
            .map(|mean| (squares(mean) / (n - 1.0)).sqrt());
        let (ours, ends) = if ITEMS.contains(&&*figure.item) {
            (quantile(&sorted, 0.5), [0.0, 1.0])
        } else {
            (mean, [0.025, 0.975])
        };
        let [seeds_low, seeds_high] = ends.map(|share| quantile(&sorted, share));
        let rounds = |ours: f64| (figure.low..=figure.high).contains(&ours);
        let in_seeds = seeds_low.zip(seeds_high);
        let in_seeds = in_seeds.is_some_and(|(low, high)| (low..=high).contains(&figure.paper));
        let notes = [figure.note.as_str(), note].into_iter();
        Self {
            source: ACHARYA_SETIA_SOURCE,
            item: figure.item.clone(),
            row: figure.row.clone(),
            column: figure.column.clone(),
            unit: figure.unit.clone(),
            paper: figure.paper,
            low: figure.low,
            high: figure.high,
            ours,
            spread,
            seeds_low,
            seeds_high,
            seeds_count: sorted.len(),
            relative_error: ours
                .filter(|_| figure.paper != 0.0)
                .map(|ours| (ours - figure.paper) / figure.paper),
            kind: figure.kind,
            possible: figure.possible,
            holds: ours.map(|ours| rounds(ours) || in_seeds),
            note: notes
                .filter(|n| !n.is_empty())
                .collect::<Vec<_>>()
                .join("; "),
        }
    }

    /// Place in the paper: `32 MB, idle: 16 MB`.
    pub(super) fn place(&self) -> String {
        format!("{}: {}", self.row, self.column)
    }
}

/// Quantile, interpolated linearly between the two nearest values.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (
        sorted.get(at.floor() as usize)?,
        sorted.get(at.ceil() as usize)?,
    );
    Some(below + (above - below) * at.fract())
}

/// A record for each figure, in the figures' order.
pub(super) fn records(figures: &[Figure], seeds: &[Values]) -> Vec<Record> {
    let of = |(at, figure): (usize, &Figure)| {
        // Not all seeds are simulated: seeds without a figure count only if no seed has it.
        let of_seeds = seeds.iter().filter_map(|seed| seed.get(at).copied());
        let (given, not_given): (Vec<_>, Vec<_>) = of_seeds.partition(Result::is_ok);
        match not_given.first() {
            Some(Err(MissingFigure(why))) if given.is_empty() => Record::new(figure, &[], why),
            _ => {
                let values: Vec<Option<f64>> = given.into_iter().flatten().collect();
                let missing = values.iter().filter(|v| v.is_none()).count();
                let note = match (missing, values.len()) {
                    (0, _) => String::new(),
                    (all, of) if all == of => "no seed has it".to_owned(),
                    (some, of) => format!("{some} of {of} seeds do not have it"),
                };
                let values: Vec<f64> = values.into_iter().flatten().collect();
                Record::new(figure, &values, &note)
            }
        }
    };
    figures.iter().enumerate().map(of).collect()
}

/// Values of all figures for one seed, in the figures' order.
pub(super) type Values = Vec<Result<Option<f64>, MissingFigure>>;

pub(super) fn values(figures: &[Figure], observed: &SeedResults) -> Values {
    figures
        .iter()
        .map(|figure| cells::ours(figure, observed))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::acharya_setia;

    fn figure(paper: f64, low: f64, high: f64) -> Figure {
        Figure {
            item: "Table 4".into(),
            row: "all, all".into(),
            column: "4 MB".into(),
            unit: "min".into(),
            paper,
            low,
            high,
            kind: Kind::Calibrated,
            possible: true,
            note: "rounded".into(),
        }
    }

    #[test]
    fn mean_spread_interval_and_error_by_hand() {
        let r = Record::new(&figure(10.0, 9.5, 10.5), &[16.0, 8.0, 12.0], "");
        assert_eq!(
            (r.ours, r.spread, r.seeds_count),
            (Some(12.0), Some(4.0), 3)
        );
        // With three seeds, the 2.5 % quantile lies a twentieth of the way from 8 to 12.
        assert!((r.seeds_low.unwrap() - 8.2).abs() < 1e-9);
        assert!((r.seeds_high.unwrap() - 15.8).abs() < 1e-9);
        assert_eq!(r.relative_error, Some(0.2));
        // 12 does not round to 10, but 10 is in the interval of the seeds.
        assert_eq!((r.holds, r.note.as_str()), (Some(true), "rounded"));
    }

    #[test]
    fn of_what_is_simulated_median_and_range() {
        let simulated = Figure {
            item: "Table 5".into(),
            ..figure(10.0, 9.5, 10.5)
        };
        let r = Record::new(&simulated, &[16.0, 8.0, 9.0], "");
        assert_eq!(
            (r.ours, r.seeds_low, r.seeds_high),
            (Some(9.0), Some(8.0), Some(16.0))
        );
        assert_eq!((r.relative_error, r.holds), (Some(-0.1), Some(true)));
    }

    #[test]
    fn a_seed_that_was_not_simulated_is_of_no_account() {
        let figures = [figure(10.0, 9.5, 10.5)];
        let not = Err(MissingFigure("not simulated"));
        let r = &records(&figures, &[vec![Ok(Some(10.0))], vec![not]])[0];
        assert_eq!(
            (r.ours, r.seeds_count, r.note.as_str()),
            (Some(10.0), 1, "rounded")
        );
        let r = &records(&figures, &[vec![not], vec![not]])[0];
        assert_eq!((r.ours, r.note.as_str()), (None, "rounded; not simulated"));
    }

    #[test]
    fn what_holds_and_what_does_not() {
        let holds = |values: &[f64]| Record::new(&figure(10.0, 9.5, 10.5), values, "").holds;
        assert_eq!(holds(&[10.4, 10.45]), Some(true), "rounds");
        assert_eq!(holds(&[10.6, 10.8]), Some(false));
        assert_eq!(holds(&[9.0, 12.0]), Some(true), "among the seeds");
        assert_eq!(holds(&[]), None);
        let none = Record::new(&figure(0.0, 0.0, 0.5), &[2.0], "");
        assert_eq!((none.relative_error, none.spread), (None, None));
    }

    #[test]
    fn every_published_figure_has_a_record_whatever_was_found() {
        let figures = acharya_setia().unwrap().figures;
        let seeds = [SeedResults::default(), SeedResults::default()];
        let seeds: Vec<Values> = seeds.iter().map(|seed| values(&figures, seed)).collect();
        let all = records(&figures, &seeds);
        assert_eq!(all.len(), figures.len());
        for kind in [Kind::Calibrated, Kind::Derived, Kind::Predicted] {
            let published = figures.iter().filter(|f| f.kind == kind).count();
            assert!(published > 0);
            assert_eq!(all.iter().filter(|r| r.kind == kind).count(), published);
        }
        for r in &all {
            assert!(r.ours.is_some() || !r.note.is_empty(), "{r:?}");
        }
        let table_5 = all.iter().find(|r| r.item == "Table 5").unwrap();
        assert!(table_5.ours.is_none() && table_5.note.contains("takes --simulate"));
    }

    #[test]
    fn a_seed_without_the_figure_is_counted_out_and_said() {
        let figures = [figure(10.0, 9.5, 10.5)];
        let seeds = [vec![Ok(Some(10.0))], vec![Ok(None)], vec![Ok(Some(12.0))]];
        let r = &records(&figures, &seeds)[0];
        assert_eq!((r.ours, r.seeds_count), (Some(11.0), 2));
        assert_eq!(r.note, "rounded; 1 of 3 seeds do not have it");
    }
}
