//! The catalog of a sealed folder: one Arrow IPC file with a row per file, directory and symbolic link,
//! sorted by path. It is read in place, from a memory mapping.
//!
//! A catalog may come from anybody. [`Catalog::open`] checks every row, allocates nothing per row, and names
//! the row that breaks a rule. Row 0 is the sealed folder itself, with an empty path; a row's inode number is
//! the row's number plus 1.

mod address;
mod columns;
mod error;
mod rules;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use address::CatalogAddress;
pub use error::CatalogError;
pub use tree::Children;
pub use write::{CatalogWriter, NewEntry};

use columns::Columns;
use gleaner_trust::hex;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Size of a block, in bytes. A file's last block may be shorter.
pub const BLOCK_BYTES: u64 = 64 << 10;

/// Number of bytes of a BLAKE3 hash.
pub const HASH_BYTES: usize = 32;

/// A BLAKE3 hash.
pub type Hash = [u8; HASH_BYTES];

/// Number of blocks of a file of `bytes` bytes.
#[must_use]
pub const fn blocks_of(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES)
}

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// Directory, which has no blocks.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
}

impl EntryKind {
    /// Name of the kind in the catalog's column `kind`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Directory => "directory",
            Self::File => "file",
            Self::Symlink => "symlink",
        }
    }

    fn parse(name: &[u8]) -> Option<Self> {
        let all = [Self::Directory, Self::File, Self::Symlink];
        all.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// A row of a catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogEntry<'a> {
    /// Number of the row, from 0.
    pub row: u64,
    /// Path below the sealed folder, with `/` between names; empty for row 0.
    pub path: &'a [u8],
    /// Kind of the entry.
    pub kind: EntryKind,
    /// Permission bits, at most 0o777.
    pub mode: u32,
    /// Time of the last change of the contents, in ns since 1970-01-01 UTC.
    pub mtime_ns: i64,
    /// Size of a file; 0 for directories and links.
    pub bytes: u64,
    /// Target of a symbolic link; empty for others.
    pub target: &'a [u8],
    /// Hash of a whole file; `None` for others.
    pub blake3: Option<Hash>,
    /// Hashes of the file's blocks, one after the other.
    blocks: &'a [u8],
}

impl CatalogEntry<'_> {
    /// Hash of a block of the file, counted from 0; `None` beyond the file's end.
    #[must_use]
    pub fn block(&self, index: u64) -> Option<Hash> {
        let index = usize::try_from(index).ok()?;
        let hashes = self.blocks.as_chunks::<HASH_BYTES>().0;
        hashes.get(index).copied()
    }

    /// Number of hashes of blocks in the row.
    #[must_use]
    pub const fn blocks_count(&self) -> u64 {
        (self.blocks.len() / HASH_BYTES) as u64
    }

    /// Number of bytes in a block of the file, counted from 0; 0 beyond the file's end.
    #[must_use]
    pub fn block_bytes(&self, index: u64) -> u64 {
        let begin = index.saturating_mul(BLOCK_BYTES);
        self.bytes.saturating_sub(begin).min(BLOCK_BYTES)
    }

    /// Last name of the path; empty for row 0.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.path.rsplit(|b| *b == b'/').next().unwrap_or_default()
    }
}

/// Path of a row as text for people: bytes that are no UTF-8 are replaced, control characters are escaped.
#[must_use]
pub fn shown(path: &[u8]) -> String {
    const MOST_CHARACTERS: usize = 200;
    let text = String::from_utf8_lossy(path);
    let escaped = text.chars().take(MOST_CHARACTERS).flat_map(|c| {
        let is_plain = !c.is_control();
        let plain = is_plain.then_some(c);
        let escaped = (!is_plain).then(|| c.escape_debug());
        plain.into_iter().chain(escaped.into_iter().flatten())
    });
    escaped.collect()
}

/// Numbers of a catalog's contents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CatalogTotals {
    /// Number of regular files.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Blocks of all files; equal blocks count each time.
    pub blocks: u64,
}

/// Bytes of a catalog's file.
type Contents = Box<dyn AsRef<[u8]> + Send + Sync>;

/// An open catalog, whose rows have been checked.
pub struct Catalog {
    path: PathBuf,
    columns: Columns,
    totals: CatalogTotals,
    hash: Hash,
}

impl Catalog {
    /// Maps and checks the catalog at `path`. With `pinned`, the file must have this hash.
    ///
    /// # Errors
    /// [`CatalogError`]; it names the row that breaks a rule.
    pub fn open(path: &Path, pinned: Option<Hash>) -> Result<Self, CatalogError> {
        let failed = |source| CatalogError::Io {
            path: path.to_owned(),
            source,
        };
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(CatalogError::malformed(path, "it is no regular file"));
        }
        // SAFETY: `seal` replaces a catalog by renaming another over it, which leaves a mapped file
        // unchanged. Every later access is checked against the length at this moment, whatever the bytes have
        // become.
        #[allow(unsafe_code)]
        let mapped = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
        Self::of(path, Box::new(mapped), pinned)
    }

    /// Checks a catalog whose file's contents are `contents`; `path` is for messages.
    ///
    /// # Errors
    /// Errors of [`Self::open`].
    pub fn of_contents(path: &Path, contents: Vec<u8>) -> Result<Self, CatalogError> {
        Self::of(path, Box::new(contents), None)
    }

    fn of(path: &Path, contents: Contents, pinned: Option<Hash>) -> Result<Self, CatalogError> {
        let hash: Hash = blake3::hash((*contents).as_ref()).into();
        if let Some(expected) = pinned.filter(|pinned| *pinned != hash) {
            return Err(CatalogError::OtherHash {
                path: path.to_owned(),
                expected: hex::encode(&expected),
                found: hex::encode(&hash),
            });
        }
        let columns = Columns::parse(contents).map_err(|e| CatalogError::malformed(path, e))?;
        let totals = rules::check(&columns).map_err(|fault| fault.at(path))?;
        Ok(Self {
            path: path.to_owned(),
            columns,
            totals,
            hash,
        })
    }

    /// Path of the catalog's file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Hash of the catalog's file: the name of this version of the folder, in hexadecimal digits.
    #[must_use]
    pub fn name(&self) -> String {
        hex::encode(&self.hash)
    }

    /// Number of rows, at least 1.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.columns.rows()
    }

    /// Numbers of files, bytes and blocks.
    #[must_use]
    pub const fn totals(&self) -> CatalogTotals {
        self.totals
    }

    /// Row of that number; `None` if the catalog has no such row.
    #[must_use]
    pub fn entry(&self, row: u64) -> Option<CatalogEntry<'_>> {
        self.columns.entry(row).ok()
    }

    /// Entry in a directory by its name.
    #[must_use]
    pub fn child(&self, directory: u64, name: &[u8]) -> Option<CatalogEntry<'_>> {
        tree::child(&self.columns, directory, name)
    }

    /// Directory that has this row; row 0 is its own parent.
    #[must_use]
    pub fn parent(&self, row: u64) -> Option<u64> {
        tree::parent(&self.columns, row)
    }

    /// Entries of a directory whose rows are `from_row` or later, in the order of their rows.
    #[must_use]
    pub fn children(&self, directory: u64, from_row: u64) -> Children<'_> {
        Children::new(&self.columns, directory, from_row)
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog")
            .field("path", &self.path)
            .field("rows", &self.rows())
            .finish_non_exhaustive()
    }
}
