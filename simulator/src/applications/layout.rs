//! Layout of a program's data on its disks.

/// Files of equal size, in blocks that are numbered across all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Number of files, distributed over the client's disks in turn.
    pub files: u32,
    /// Blocks of each file.
    pub file_blocks: u32,
    /// Block size: the unit of the client's own cache.
    pub block_bytes: u32,
    /// Bytes of the largest request; regions are at least as large.
    pub largest_request_bytes: u32,
}

impl Layout {
    /// Blocks of all files.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        self.files * self.file_blocks
    }

    /// Bytes of all data.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.blocks() as u64 * self.block_bytes as u64
    }
}
