//! Directories of a catalog. Rows are sorted by the bytes of their paths, so a search halves the rows at each
//! step, and needs no index.

use super::CatalogEntry;
use super::columns::Columns;

/// Row with this path.
pub(super) fn find(columns: &Columns, path: &[u8]) -> Option<u64> {
    let row = lower_bound(columns, path);
    (columns.path(row).ok()? == path).then_some(row)
}

/// Path of the directory of `path`; empty for entries of the sealed folder, and for that itself.
pub(super) fn parent_of(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|b| *b == b'/');
    slash
        .and_then(|slash| path.get(..slash))
        .unwrap_or_default()
}

/// First row whose path is `path` or later; the number of rows if there is none.
fn lower_bound(columns: &Columns, path: &[u8]) -> u64 {
    let (mut low, mut high) = (0, columns.rows());
    while low < high {
        let middle = low + (high - low) / 2;
        if columns.path(middle).is_ok_and(|found| found < path) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

pub(super) fn child<'a>(
    columns: &'a Columns,
    directory: u64,
    name: &[u8],
) -> Option<CatalogEntry<'a>> {
    if name.contains(&b'/') || name.is_empty() {
        return None;
    }
    let mut path = prefix(columns, directory)?;
    path.extend_from_slice(name);
    columns.entry(find(columns, &path)?).ok()
}

pub(super) fn parent(columns: &Columns, row: u64) -> Option<u64> {
    find(columns, parent_of(columns.path(row).ok()?))
}

/// Beginning of the paths of a directory's entries.
fn prefix(columns: &Columns, directory: u64) -> Option<Vec<u8>> {
    let mut path = columns.path(directory).ok()?.to_vec();
    if directory != 0 {
        path.push(b'/');
    }
    Some(path)
}

/// Entries of a directory.
pub struct Children<'a> {
    columns: &'a Columns,
    /// `None` if there is no such directory.
    prefix: Option<Vec<u8>>,
    row: u64,
}

impl<'a> Children<'a> {
    pub(super) fn new(columns: &'a Columns, directory: u64, from_row: u64) -> Self {
        let prefix = prefix(columns, directory);
        let first = prefix.as_ref().map_or(0, |p| lower_bound(columns, p));
        // The sealed folder has the empty path, with which all paths begin.
        let first = if directory == 0 { 1 } else { first };
        Self {
            columns,
            prefix,
            row: first.max(from_row),
        }
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = CatalogEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let prefix = self.prefix.as_deref()?;
        loop {
            let path = self.columns.path(self.row).ok()?;
            let rest = path.strip_prefix(prefix)?;
            let Some(slash) = rest.iter().position(|b| *b == b'/') else {
                let row = self.row;
                self.row += 1;
                return self.columns.entry(row).ok();
            };
            // Everything below this subdirectory comes before the byte after `/`.
            let mut after = path.get(..prefix.len() + slash)?.to_vec();
            after.push(b'/' + 1);
            // At least one row further, should the file have changed.
            self.row = lower_bound(self.columns, &after).max(self.row + 1);
        }
    }
}
