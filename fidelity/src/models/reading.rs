//! Both readings of a contradiction in a paper, each with the figure that follows from it.

/// A quantity by one reading of a paper that contradicts itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// Quantity with its unit, the same for all readings of a contradiction.
    pub(super) quantity: &'static str,
    /// Reading of the paper.
    pub(super) reading: String,
    /// Value by this reading.
    pub(super) value: f64,
}
