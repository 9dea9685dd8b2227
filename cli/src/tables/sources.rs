//! Traces of other programs that hosts were imported from.

use super::{table, text};
use gleaner_schemas::findings::Findings;

/// Every column that the traces fill, and its source.
pub(super) fn columns(findings: &Findings) -> String {
    let mut t = table(&["source", "column", "made of"], 3);
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
