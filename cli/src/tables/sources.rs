//! Other programs' traces from which hosts were imported.

use super::{table, text};
use gleaner_schemas::findings::Findings;

/// All columns that the traces fill, and the source of each.
pub(super) fn columns(findings: &Findings) -> String {
    let mut t = table(&["source", "column", "origin"], 3);
    for source in &findings.sources {
        for column in &source.columns {
            t.add_row([
                source.name.clone(),
                format!("{}.{}", column.table, column.column),
                column.from.clone(),
            ]);
        }
    }
    text(&t)
}
