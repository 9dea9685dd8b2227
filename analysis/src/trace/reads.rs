//! Columns and tables that are read of a host.

/// Set of columns of the samples, and of further tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadSet {
    /// True for all columns of the samples, false for those of [`ReadSet::FEW`].
    pub(super) all_columns: bool,
    pub(super) processes: bool,
    pub(super) files: bool,
}

impl ReadSet {
    /// Sizes of physical and available memory, and the idle rule's inputs; all other columns of a sample stay
    /// absent.
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

    /// Union of both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self {
            all_columns: self.all_columns || other.all_columns,
            processes: self.processes || other.processes,
            files: self.files || other.files,
        }
    }
}
