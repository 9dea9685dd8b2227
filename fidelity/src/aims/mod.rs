//! Aims of the calibrated figures, and whether they are met.

mod simulated;

use super::record::Record;
use super::shapes::Shape;

/// An aim of the calibration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Aim {
    pub(super) item: &'static str,
    pub(super) aim: String,
    pub(super) reached: String,
    pub(super) is_met: bool,
    /// Cells that miss the aim, each with its error.
    pub(super) misses: Vec<String>,
}

impl Aim {
    /// Cells that miss the aim, in words; `None` if there are none.
    pub(super) fn missed(&self) -> Option<String> {
        let cells = self.misses.join("; ");
        let words = || format!("{}, {}, is missed by: {cells}.", self.item, self.aim);
        (!self.misses.is_empty()).then(words)
    }
}

/// Maximum relative error of Table 2's means.
const MEAN_ERROR: f64 = 0.02;
/// Maximum relative error of Table 2's deviations.
const DEVIATION_ERROR: f64 = 0.25;
/// Maximum mean error of Table 3, in hosts.
const HOSTS: f64 = 3.0;
/// Minimum share of Table 4's cells that agree with the paper ([`Record::holds`]).
const CELLS_SHARE: f64 = 0.8;

/// All aims for which `records` have a cell, and the aims of the shapes.
pub(super) fn aims(records: &[Record], shapes: &[Shape]) -> Vec<Aim> {
    let of = |item: &'static str| move |r: &&Record| r.item == item;
    let table_2 = |statistic: &'static str| {
        let all = records.iter().filter(of("Table 2"));
        all.filter(move |r| r.column.ends_with(statistic))
            .collect::<Vec<_>>()
    };
    let (means, deviations) = (table_2("mean"), table_2("deviation"));
    let table_3: Vec<&Record> = records.iter().filter(of("Table 3")).collect();
    let table_4: Vec<&Record> = records.iter().filter(of("Table 4")).collect();
    let within = |what: &str, limit: f64, cells: &[&Record]| {
        (!cells.is_empty()).then(|| within(what, limit, cells))
    };
    [
        within("means", MEAN_ERROR, &means),
        within("deviations that are possible", DEVIATION_ERROR, &deviations),
        (!table_3.is_empty()).then(|| hosts(&table_3)),
        (!table_4.is_empty()).then(|| lengths(&table_4)),
    ]
    .into_iter()
    .flatten()
    .chain(simulated::aims(records, shapes))
    .collect()
}

/// Aim of Table 2: the error is within the limit in each cell that a trace can have.
fn within(what: &str, limit: f64, cells: &[&Record]) -> Aim {
    let possible: Vec<_> = cells.iter().filter(|r| r.possible).collect();
    let misses = possible
        .iter()
        .filter(|r| r.relative_error.is_none_or(|error| error.abs() > limit));
    let misses: Vec<String> = misses.map(|r| missed(r)).collect();
    Aim {
        item: "Table 2",
        aim: format!("{what} within {:.0} %", limit * 100.0),
        reached: format!("{} of {}", possible.len() - misses.len(), possible.len()),
        is_met: misses.is_empty(),
        misses,
    }
}

/// Aim of Table 3: a limit for the mean, over the cells, of the absolute error of our mean over seeds.
fn hosts(cells: &[&Record]) -> Aim {
    let off: Option<Vec<f64>> = cells
        .iter()
        .map(|r| r.ours.map(|ours| (ours - r.paper).abs()))
        .collect();
    let mean = off.map(|off| off.iter().sum::<f64>() / off.len() as f64);
    let misses = cells
        .iter()
        .filter(|r| r.ours.is_none_or(|o| (o - r.paper).abs() > HOSTS));
    Aim {
        item: "Table 3",
        aim: format!("within {HOSTS} hosts on average"),
        reached: mean.map_or("not known of every cell".to_owned(), |m| {
            format!("{m:.1} hosts")
        }),
        is_met: mean.is_some_and(|mean| mean <= HOSTS),
        misses: misses.map(|r| missed(r)).collect(),
    }
}

/// Aim of Table 4: a limit for the share of cells that agree with the paper. A cell that no trace can have
/// counts as a miss.
fn lengths(cells: &[&Record]) -> Aim {
    let misses: Vec<_> = cells.iter().filter(|r| r.holds != Some(true)).collect();
    let share = 1.0 - misses.len() as f64 / cells.len() as f64;
    Aim {
        item: "Table 4",
        aim: format!("{:.0} % of the cells hold", CELLS_SHARE * 100.0),
        reached: format!(
            "{:.0} %: {} of {}",
            share * 100.0,
            cells.len() - misses.len(),
            cells.len()
        ),
        is_met: share >= CELLS_SHARE,
        misses: misses.into_iter().map(|r| missed(r)).collect(),
    }
}

fn missed(r: &Record) -> String {
    let how = match (r.possible, r.relative_error) {
        (false, _) => "impossible".to_owned(),
        (true, Some(error)) => format!("{:+.0} %", error * 100.0),
        (true, None) => "not found".to_owned(),
    };
    format!("{} ({how})", r.place())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::{Figure, acharya_setia};

    /// A record for every figure of the paper; `of` computes our value from the figure.
    pub(super) fn records(of: impl Fn(&Figure) -> f64) -> Vec<Record> {
        let figures = acharya_setia().unwrap().figures;
        figures
            .iter()
            .map(|f| Record::new(f, &[of(f)], ""))
            .collect()
    }

    #[test]
    fn a_perfect_model_meets_all_that_can_be_met() {
        let found = aims(&records(|f| f.paper), &[]);
        let said: Vec<_> = found
            .iter()
            .map(|a| (a.item, a.reached.as_str(), a.is_met))
            .collect();
        let expected = [
            ("Table 2", "16 of 16", true),
            ("Table 2", "15 of 15", true),
            ("Table 3", "0.0 hosts", true),
            ("Table 4", "100 %: 52 of 52", true),
            ("Table 5", "10 of 10", true),
            ("Table 5", "20 of 20", true),
            ("Table 5", "4 of 4", true),
            ("Table 6", "10 of 10", true),
            ("Table 6", "10 of 10", true),
        ];
        assert_eq!(said, expected);
        assert!(found.iter().all(|a| a.misses.is_empty()));
    }

    #[test]
    fn misses_are_counted_and_named() {
        let other = records(|f| match (&*f.item, &*f.row) {
            ("Table 2", "64 MB") => f.paper * 1.05,
            ("Table 3", _) => f.paper + 3.5,
            ("Table 4", row) if row.starts_with("all") => f.paper * 3.0,
            _ => f.paper,
        });
        let found = aims(&other, &[]);
        assert_eq!(found[0].reached, "12 of 16");
        assert!(!found[0].is_met && found[0].misses[0] == "64 MB: kernel, mean (+5 %)");
        assert!(found[1].is_met, "a deviation may be further off");
        assert!(!found[2].is_met && found[2].misses.len() == 18);
        // 16 of the 52 cells, those for all hosts, are wrong.
        assert_eq!(
            (found[3].reached.as_str(), found[3].is_met),
            ("69 %: 36 of 52", false)
        );
        assert!(found[3].misses[0].contains("(+200 %)"));
    }

    #[test]
    fn what_was_not_found_is_missed() {
        let figures = acharya_setia().unwrap().figures;
        let none: Vec<Record> = figures.iter().map(|f| Record::new(f, &[], "")).collect();
        let found = aims(&none, &[]);
        assert!(found.iter().all(|a| !a.is_met && !a.misses.is_empty()));
        assert!(aims(&[], &[]).is_empty());
    }
}
