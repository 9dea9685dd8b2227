//! Share of the possible gain that a program reaches: (speedup − 1) / (ideal − 1). Speedups are judged by
//! this share, because a constant speedup of 1.2 would have small errors in percent.

use super::name::Name;
use super::record::Record;

/// Gain of one program on one cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Gain {
    pub(super) application: String,
    pub(super) cluster: Name,
    pub(super) paper: f64,
    /// Gain from our median speedups.
    pub(super) ours: f64,
}

/// Gains from Table 5's records, in its order; none without simulations.
pub(super) fn gains(records: &[Record]) -> Vec<Gain> {
    let find = |row: &str, column: &str| {
        let mut all = records.iter().filter(|r| r.item == "Table 5");
        all.find(|r| r.row == row && r.column == column)
    };
    let share = |speedup: f64, ideal: f64| (speedup - 1.0) / (ideal - 1.0);
    let ideals = records
        .iter()
        .filter(|r| r.item == "Table 5" && r.column == "ideal");
    let of = |ideal: &Record, cluster: Name| {
        let speedup = find(&ideal.row, cluster.row())?;
        Some(Gain {
            application: ideal.row.clone(),
            cluster,
            paper: share(speedup.paper, ideal.paper),
            ours: share(speedup.ours?, ideal.ours?),
        })
    };
    ideals
        .flat_map(|ideal| {
            Name::BOTH
                .into_iter()
                .filter_map(move |cluster| of(ideal, cluster))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::{Figure, acharya_setia};

    #[test]
    fn shares_by_hand() {
        let figures = acharya_setia().unwrap().figures;
        // Our speedups are half as far above 1 as the paper's; random on B is unknown.
        let record = |f: &Figure| match (&*f.row, &*f.column) {
            ("random", "cluster B") => Record::new(f, &[], ""),
            (_, "ideal") => Record::new(f, &[f.paper], ""),
            _ => Record::new(f, &[1.0 + (f.paper - 1.0) / 2.0], ""),
        };
        let records: Vec<Record> = figures.iter().map(record).collect();
        let found = gains(&records);
        assert_eq!(found.len(), 9);
        assert!(found.iter().all(|g| (g.ours - g.paper / 2.0).abs() < 1e-12));
        // The paper's dmine on A gains 1.08 of a possible 2.29.
        assert_eq!(
            (&*found[0].application, found[0].cluster),
            ("dmine", Name::A)
        );
        assert!((found[0].paper - 0.4716).abs() < 1e-4);
        let none: Vec<Record> = figures.iter().map(|f| Record::new(f, &[], "")).collect();
        assert!(gains(&none).is_empty());
    }
}
