//! Columns and tables that are read of a host.

/// Columns of the samples, and further tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadSet {
    /// True for all columns of the samples, false for a few of them.
    pub(super) all_columns: bool,
    pub(super) processes: bool,
    pub(super) files: bool,
}

impl ReadSet {
    /// Sizes of physical and available memory, and what the idle rule goes by: all else of a sample stays absent.
    pub(crate) const FEW: Self = Self {
        all_columns: false,
        processes: false,
        files: false,
    };
    /// All columns of the samples.
    pub(crate) const SAMPLES: Self = Self {
        all_columns: true,
        ..Self::FEW
    };
    /// All columns of all tables.
    pub(crate) const ALL: Self = Self::SAMPLES.and_processes().and_files();

    /// Adds the active processes of each sample.
    pub(crate) const fn and_processes(self) -> Self {
        Self {
            processes: true,
            ..self
        }
    }

    /// Adds the files in use.
    pub(crate) const fn and_files(self) -> Self {
        Self {
            files: true,
            ..self
        }
    }

    /// Union of both.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            all_columns: self.all_columns || other.all_columns,
            processes: self.processes || other.processes,
            files: self.files || other.files,
        }
    }
}
