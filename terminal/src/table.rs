//! Aligned tables without lines.

use comfy_table::CellAlignment;
pub use comfy_table::Table;
use comfy_table::presets::NOTHING;

/// Returns an empty table. Its first `left` columns are text; the others are numbers, aligned right.
#[must_use]
pub fn table(header: &[&str], left: usize) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.to_vec());
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((2, 0));
        if i >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}
