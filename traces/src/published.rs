//! Published figures with which Gleaner's are compared: those of Acharya & Setia, to which synthetic clusters are
//! fitted, those of Felten & Zahorjan, whose queueing model the simulator solves, those of Feeley et al., whose cluster
//! it simulates, those of Verghese & Rosenblum, whose models it applies to recorded programs, and those of Anemone, with
//! which benches are compared. Each paper has a table in `traces/published`; the README there explains the intervals and
//! kinds.

use serde::{Deserialize, Serialize};

const ACHARYA_SETIA: &str = include_str!("../published/acharya_setia.csv");
const ANEMONE: &str = include_str!("../published/anemone.csv");
const FEELEY: &str = include_str!("../published/feeley.csv");
const FELTEN_ZAHORJAN: &str = include_str!("../published/felten_zahorjan.csv");
const VERGHESE_ROSENBLUM: &str = include_str!("../published/verghese_rosenblum.csv");

/// The work whose figures [`acharya_setia`] returns.
pub const ACHARYA_SETIA_SOURCE: &str = "Acharya & Setia 1999";
/// The work whose figures [`anemone`] returns.
pub const ANEMONE_SOURCE: &str = "Anemone, US patent 7,917,599";
/// The work whose figures [`feeley`] returns.
pub const FEELEY_SOURCE: &str = "Feeley et al. 1995";
/// The work whose figures [`felten_zahorjan`] returns.
pub const FELTEN_ZAHORJAN_SOURCE: &str = "Felten & Zahorjan 1991";
/// The work whose figures [`verghese_rosenblum`] returns.
pub const VERGHESE_ROSENBLUM_SOURCE: &str = "Verghese & Rosenblum 1997";

/// Dependence of our figure on the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The model's parameters were fitted to this figure.
    Calibrated,
    /// Figure that follows from calibrated figures by arithmetic alone.
    Derived,
    /// Figure that is neither calibrated nor derived.
    Predicted,
    /// Figure of other hardware or programs than ours: printed, never judged.
    NotComparable,
    /// Statement in words about a curve: it holds, or it does not.
    Shape,
}

/// A published figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Table or figure of the paper, such as `Table 4`; `Text` for a figure in the text.
    pub item: String,
    /// Row of the table, such as `64 MB, idle`.
    pub row: String,
    /// Column of the table, such as `16 MB`.
    pub column: String,
    /// Unit of `paper`, `low` and `high`.
    pub unit: String,
    /// Value as printed in the paper.
    pub paper: f64,
    /// Smallest value that rounds to the printed one.
    pub low: f64,
    /// Largest value that rounds to the printed one.
    pub high: f64,
    /// Dependence of our figure on the paper's.
    pub kind: Kind,
    /// False if no trace can have this figure, or if the paper's own parameters contradict it.
    pub possible: bool,
    /// Explanation for readers; may be empty.
    pub note: String,
}

/// Figures of one work, in the work's order.
#[derive(Clone, Debug)]
pub struct PublishedWork {
    /// All published figures.
    pub figures: Vec<Figure>,
}

impl PublishedWork {
    /// The figure in this item, row and column of the paper.
    #[must_use]
    pub fn get(&self, item: &str, row: &str, column: &str) -> Option<&Figure> {
        let at = |f: &&Figure| (&*f.item, &*f.row, &*f.column) == (item, row, column);
        self.figures.iter().find(at)
    }
}

/// A table of published figures that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the built-in table of published figures, {name}, is damaged: {source}; build anew")]
pub struct PublishedError {
    name: &'static str,
    source: csv::Error,
}

/// The figures of A. Acharya and S. Setia, Availability and Utility of Idle Memory in Workstation Clusters (1999).
///
/// # Errors
/// [`PublishedError`]: the program was built from a damaged table.
pub fn acharya_setia() -> Result<PublishedWork, PublishedError> {
    read("acharya_setia.csv", ACHARYA_SETIA)
}

/// The figures of E. Felten and J. Zahorjan, Issues in the Implementation of a Remote Memory Paging System (1991).
/// Statements in words have bounds, which are our reading of the words.
///
/// # Errors
/// [`PublishedError`]: the program was built from a damaged table.
pub fn felten_zahorjan() -> Result<PublishedWork, PublishedError> {
    read("felten_zahorjan.csv", FELTEN_ZAHORJAN)
}

/// The figures of the patent Distributed adaptive network memory engine (Anemone). Curves and statements in words have
/// bounds, which are our reading of them.
///
/// # Errors
/// [`PublishedError`]: the program was built from a damaged table.
pub fn anemone() -> Result<PublishedWork, PublishedError> {
    read("anemone.csv", ANEMONE)
}

/// The figures of M. Feeley et al., Implementing Global Memory Management in a Workstation Cluster (1995). Curves and
/// statements in words have bounds, which are our reading of them.
///
/// # Errors
/// [`PublishedError`]: the program was built from a damaged table.
pub fn feeley() -> Result<PublishedWork, PublishedError> {
    read("feeley.csv", FEELEY)
}

/// The figures of B. Verghese and M. Rosenblum, Remote Memory Access in Workstation Clusters (1997). Slowdowns of curves
/// without numbers are worked by hand from the paper's Table 2; statements in words have bounds, which are our reading.
///
/// # Errors
/// [`PublishedError`]: the program was built from a damaged table.
pub fn verghese_rosenblum() -> Result<PublishedWork, PublishedError> {
    read("verghese_rosenblum.csv", VERGHESE_ROSENBLUM)
}

fn read(name: &'static str, table: &str) -> Result<PublishedWork, PublishedError> {
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let figures = rows.deserialize().collect::<Result<_, _>>();
    Ok(PublishedWork {
        figures: figures.map_err(|source| PublishedError { name, source })?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn figures() -> Vec<Figure> {
        acharya_setia().unwrap().figures
    }

    #[test]
    fn each_place_of_the_paper_once_with_its_figure_inside_its_interval() {
        let models = [felten_zahorjan(), feeley(), anemone(), verghese_rosenblum()];
        let models = models.map(|work| work.unwrap().figures);
        for figures in models.into_iter().chain([figures()]) {
            let mut places = BTreeSet::new();
            for f in figures {
                assert!(f.low <= f.paper && f.paper <= f.high, "{f:?}");
                assert!(f.low >= 0.0 && f.high.is_finite(), "{f:?}");
                assert!(f.possible || !f.note.is_empty(), "{f:?}");
                assert!(f.kind != Kind::Shape || !f.note.is_empty(), "{f:?}");
                assert!(places.insert((f.item, f.row, f.column)));
            }
        }
    }

    #[test]
    fn the_queueing_models_parameters_and_statements_are_there() {
        let mut counts = BTreeMap::new();
        for f in felten_zahorjan().unwrap().figures {
            *counts.entry((f.item, f.kind)).or_insert(0) += 1;
        }
        // Table 1 has six counts and speeds, and three times each of a page-out and of a page-in.
        let expected = [
            ("Table 1", Kind::Calibrated, 6 + 3 + 3),
            ("Text 4.1", Kind::NotComparable, 3),
            ("Text 4.2.1", Kind::Derived, 1),
            ("Text 4.2.1", Kind::Predicted, 2),
            ("Text 4.2.2", Kind::NotComparable, 1),
            ("Text 4.2.2", Kind::Predicted, 12),
            ("Text 4.2.2", Kind::Shape, 4),
            ("Figure 2", Kind::Predicted, 1),
            ("Figure 3", Kind::Predicted, 1),
        ];
        let expected = expected.map(|(item, kind, count)| ((item.to_owned(), kind), count));
        assert_eq!(counts, expected.into());
    }

    #[test]
    fn figures_of_remote_memory_access_are_there() {
        let mut counts = BTreeMap::new();
        for f in verghese_rosenblum().unwrap().figures {
            *counts.entry((f.item, f.kind)).or_insert(0) += 1;
        }
        // Six workloads. Table 2: misses of three caches, and two shares. Figure 3: two models with two sizes of memory.
        let expected = [
            ("Table 1", Kind::Calibrated, 5),
            ("Table 1", Kind::NotComparable, 1),
            ("Table 2", Kind::NotComparable, 6 * (3 + 2)),
            ("Figure 3", Kind::Derived, 6 * 2 * 2),
            ("Figure 3", Kind::Shape, 3),
            ("Figure 4", Kind::Shape, 1),
            ("Figure 5", Kind::Shape, 5),
            ("Figure 6", Kind::Shape, 1),
            ("Text 2.1", Kind::Calibrated, 2),
            ("Text 2.2", Kind::Calibrated, 2),
            ("Text 3.0", Kind::Calibrated, 2),
            ("Text 4.0", Kind::Shape, 1),
            ("Text 4.1", Kind::Shape, 1),
            ("Text 4.1.3", Kind::Derived, 1),
            ("Text 4.1.3", Kind::NotComparable, 1),
            ("Text 4.1.3", Kind::Shape, 1),
            ("Text 5.0", Kind::Calibrated, 4),
            ("Text 6.1", Kind::NotComparable, 1),
            ("Text 8.0", Kind::Derived, 2),
        ];
        let expected = expected.map(|(item, kind, count)| ((item.to_owned(), kind), count));
        assert_eq!(counts, expected.into());
    }

    #[test]
    fn the_parts_of_tables_1_and_2_of_global_memory_sum_to_their_totals() {
        let published = feeley().unwrap();
        let in_column = |item: &str, column: &str| -> Vec<(String, f64)> {
            let figures = published.figures.iter();
            let figures = figures.filter(|f| f.item == item && f.column == column);
            figures.map(|f| (f.row.clone(), f.paper)).collect()
        };
        let mut parts = 0;
        for (column, difference_us) in [
            ("private miss", 0.0),
            ("private hit", 0.0),
            ("shared miss", 0.0),
            ("shared hit", 40.0),
        ] {
            let rows = in_column("Table 1", column);
            let is_total = |row: &&(String, f64)| row.0 == "total";
            let total: f64 = rows.iter().filter(is_total).map(|row| row.1).sum();
            let sum: f64 = rows.iter().map(|row| row.1).sum();
            assert_eq!(sum - total, total + difference_us, "{column}");
            parts += rows.len() - 1;
        }
        assert_eq!(parts, 16);
        assert_eq!(in_column("Table 2", "private page").len(), 5);
    }

    #[test]
    fn every_cell_of_every_table_is_there() {
        let mut counts = BTreeMap::new();
        for f in figures() {
            *counts.entry(f.item).or_insert(0) += 1;
        }
        // Expected number of figures. Table 1: hosts by size, and four sums for each cluster. Table 2: mean
        // and deviation of four categories, in four rows. Table 3: six columns in three rows. Table 4: all
        // cells that are not a dash. Table 6: three figures of five applications for each of two clusters,
        // and two bounds.
        let tables = [
            ("Table 1", 5 + 4 + 2 * 4),
            ("Table 2", 4 * 4 * 2),
            ("Table 3", 3 * 6),
            ("Table 4", 2 * (3 + 4 + 5 + 6 + 8)),
            ("Table 5", 5 * 3),
            ("Table 6", 5 * 3 * 2 + 2),
            ("Figure 6", 8),
            ("Figure 7", 2),
            ("Figure 10", 1),
            ("Text", 14),
        ];
        assert_eq!(counts, tables.map(|(i, n)| (i.to_owned(), n)).into());
    }

    #[test]
    fn the_table_agrees_with_itself_where_the_paper_does() {
        let published = acharya_setia().unwrap();
        let paper =
            |item: &str, row: &str, column: &str| published.get(item, row, column).unwrap().paper;
        // The means of a host's four memory categories sum to its memory.
        for (row, size_mib) in [("32 MB", 32.0), ("64 MB", 64.0), ("256 MB", 256.0)] {
            let parts = ["kernel", "file cache", "process", "available"];
            let parts = parts.map(|part| paper("Table 2", row, &format!("{part}, mean")));
            let sum_kib: f64 = parts.iter().sum();
            assert!((sum_kib - size_mib * 1024.0).abs() <= 2.0, "{row}");
        }
        // Each host has either no dip or at least one.
        let hosts = |cluster| paper("Table 1", cluster, "hosts in all");
        for row in ["4 MB", "6 MB", "8 MB"] {
            let either = paper("Table 3", row, "0") + paper("Table 3", row, ">=1");
            assert_eq!(either, hosts("cluster A") + hosts("cluster B"));
        }
        for cluster in ["cluster A", "cluster B"] {
            let sizes =
                |f: &&Figure| f.item == "Table 1" && f.row == cluster && f.kind == Kind::Calibrated;
            let sum: f64 = published
                .figures
                .iter()
                .filter(sizes)
                .map(|f| f.paper)
                .sum();
            assert_eq!(sum, 2.0 * hosts(cluster));
        }
    }

    #[test]
    fn intervals_are_those_of_the_printed_unit() {
        let published = acharya_setia().unwrap();
        let interval = |row, column| {
            let f = published.get("Table 4", row, column).unwrap();
            (f.low, f.paper, f.high)
        };
        assert_eq!(interval("32 MB, all", "16 MB"), (30.0, 60.0, 90.0));
        assert_eq!(interval("64 MB, all", "32 MB"), (38.5, 39.0, 39.5));
        assert_eq!(interval("128 MB, all", "64 MB"), (85.0, 90.0, 95.0));
        assert_eq!(interval("256 MB, all", "4 MB"), (13680.0, 14400.0, 15120.0));
    }
}
