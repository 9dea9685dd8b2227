//! Results of a sweep: a row for each combination of the swept values.

use serde::Serialize;

/// Median and range of a figure over the seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Median; of an even number of seeds, the mean of the two middle values.
    pub median: f64,
    /// Smallest value of a seed.
    pub low: f64,
    /// Largest value of a seed.
    pub high: f64,
}

impl Spread {
    /// Spread of the seeds' values; `None` without values.
    pub(crate) fn new(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let upper = *values.get(values.len() / 2)?;
        let lower = *values.get(values.len().div_ceil(2) - 1)?;
        Some(Self {
            median: f64::midpoint(lower, upper),
            low,
            high,
        })
    }
}

/// Figures of a combination of the swept values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweptRow {
    /// Values of the swept settings, in the order of the file's keys.
    pub settings: Vec<String>,
    /// Figures, in the order of the system's measures; absent where a seed has none.
    pub values: Vec<Option<Spread>>,
}
