//! Names of the paper's clusters.

/// A cluster of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    A,
    B,
}

impl Name {
    pub(super) const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Name in the rows of the published figures.
    pub(super) const fn row(self) -> &'static str {
        match self {
            Self::A => "cluster A",
            Self::B => "cluster B",
        }
    }
}
