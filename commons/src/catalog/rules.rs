//! Rules that every row of a catalog must obey.

use super::columns::{Columns, Fault};
use super::tree::{find, parent_of};
use super::{CatalogEntry, CatalogError, CatalogTotals, EntryKind, blocks_of, shown};
use std::path::Path;

/// Maximum length of a path or of a link's target, in bytes (PATH_MAX, without the final NUL).
const MOST_PATH_BYTES: usize = 4095;
/// Maximum length of a name, in bytes (NAME_MAX).
const MOST_NAME_BYTES: usize = 255;
/// Maximum size of a file, which the kernel holds as a signed number.
const MOST_FILE_BYTES: u64 = i64::MAX as u64;

/// A row that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowFault {
    row: u64,
    name: String,
    detail: Fault,
}

impl RowFault {
    pub(super) fn at(self, path: &Path) -> CatalogError {
        CatalogError::Row {
            path: path.to_owned(),
            row: self.row,
            name: self.name,
            detail: self.detail,
        }
    }
}

/// Checks every row. Hashes are not read. Memory is that of one row.
pub(super) fn check(columns: &Columns) -> Result<CatalogTotals, RowFault> {
    let mut totals = CatalogTotals::default();
    let mut before: Option<CatalogEntry<'_>> = None;
    // Directory of the row before; neighbours mostly have the same one.
    let mut known_parent: &[u8] = b"";
    for row in 0..columns.rows() {
        let fault = |detail: Fault| RowFault {
            row,
            name: columns.path(row).map(shown).unwrap_or_default(),
            detail,
        };
        let entry = columns.entry(row).map_err(fault)?;
        check_entry(&entry).map_err(|e| fault(e.to_owned()))?;
        if before.is_some_and(|before| before.path == entry.path) {
            return Err(fault("the row before it has the same path".to_owned()));
        }
        if before.is_some_and(|before| before.path > entry.path) {
            return Err(fault("rows are not sorted by path".to_owned()));
        }
        let parent = parent_of(entry.path);
        if parent != known_parent {
            let found = find(columns, parent).filter(|found| *found < row);
            let found = found.and_then(|found| columns.entry(found).ok());
            match found.map(|parent| parent.kind) {
                Some(EntryKind::Directory) => known_parent = parent,
                Some(_) => return Err(fault(format!("{:?} is no directory", shown(parent)))),
                None => {
                    return Err(fault(format!(
                        "its directory {:?} has no row",
                        shown(parent)
                    )));
                }
            }
        }
        if entry.kind == EntryKind::File {
            totals.files += 1;
            totals.blocks = totals.blocks.saturating_add(blocks_of(entry.bytes));
            totals.bytes = totals.bytes.saturating_add(entry.bytes);
        }
        before = Some(entry);
    }
    Ok(totals)
}

/// Checks a row by itself.
fn check_entry(entry: &CatalogEntry<'_>) -> Result<(), String> {
    if entry.row == 0 {
        if !entry.path.is_empty() || entry.kind != EntryKind::Directory {
            return Err("the first row is not the sealed folder".to_owned());
        }
    } else {
        check_path(entry.path)?;
    }
    if entry.mode > 0o777 {
        return Err(format!(
            "its mode {:o} has more than permissions",
            entry.mode
        ));
    }
    if entry.kind == EntryKind::Symlink {
        check_target(entry.target)?;
    }
    if entry.bytes > MOST_FILE_BYTES {
        return Err("its size is above 2^63 - 1".to_owned());
    }
    if entry.kind != EntryKind::File && entry.bytes != 0 {
        return Err("only a file has a size".to_owned());
    }
    let (wanted, found) = (blocks_of(entry.bytes), entry.blocks_count());
    if wanted != found {
        let bytes = entry.bytes;
        return Err(format!(
            "a size of {bytes} needs {wanted} blocks, and it lists {found}"
        ));
    }
    Ok(())
}

fn check_path(path: &[u8]) -> Result<(), &'static str> {
    if path.is_empty() {
        return Err("its path is empty");
    }
    if path.len() > MOST_PATH_BYTES {
        return Err("its path is longer than 4,095 bytes");
    }
    if path.contains(&0) {
        return Err("its path contains a NUL");
    }
    if path.starts_with(b"/") {
        return Err("its path is absolute");
    }
    for name in path.split(|b| *b == b'/') {
        match name {
            b"" => return Err("its path contains an empty name"),
            b"." | b".." => return Err("its path contains the name . or .."),
            name if name.len() > MOST_NAME_BYTES => {
                return Err("a name in its path is longer than 255 bytes");
            }
            _ => (),
        }
    }
    Ok(())
}

fn check_target(target: &[u8]) -> Result<(), &'static str> {
    if target.is_empty() {
        return Err("its target is empty");
    }
    if target.len() > MOST_PATH_BYTES {
        return Err("its target is longer than 4,095 bytes");
    }
    if target.contains(&0) {
        return Err("its target contains a NUL");
    }
    Ok(())
}
