//! Text of `schemas/SCHEMA.md`, made from [`crate::rows`].

use crate::SCHEMA_VERSION;
use crate::column::{Column, Kind, Table};
use crate::renames;
use crate::rows::DATASET_TABLES;
use std::fmt::Write;

/// Returns the published description of every table and column.
#[must_use]
pub fn schema() -> String {
    let mut text = format!(
        "# What Gleaner stores (schema version {SCHEMA_VERSION})\n\n\
         Made from `schemas/src/rows.rs` by `gleaner schema --as markdown`; a test keeps the two equal.\n\n\
         In a dataset every table begins with `host_id` (text), `database_id` (text), `sequence` (integer) and `time`\n\
         (timestamp, ms, UTC); the agent's SQLite database has `sequence`, and `time_ms` in the tables whose rows have a\n\
         time of their own. `?` marks what may be absent: then `missing_values`\n\
         says why, unless the host has no such thing, its owner left it off, or an older version wrote the row.\n\
         `*` marks what Gleaner's agents always fill in, and what the traces of other programs that were imported into a\n\
         dataset (`hosts.source`) may lack.\n"
    );
    for table in &DATASET_TABLES {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "\n## {}\n\n{}\n\n| column | type | unit | meaning |\n| --- | --- | --- | --- |\n",
            table.name,
            table.doc.trim()
        );
        for column in table.columns {
            let _ = writeln!(text, "{}", row(table, column));
        }
    }
    text += &earlier_names();
    text
}

/// Returns the section that lists the earlier names of tables and columns.
fn earlier_names() -> String {
    let mut text = "\n## Earlier names\n\n\
         Files and databases of older versions have the earlier names, and Gleaner's programs read them under the\n\
         present ones. In a dataset the folder of a renamed table keeps its earlier name for the older files.\n\n\
         | earlier name | present name | since version |\n| --- | --- | --- |\n"
        .to_owned();
    for r in renames::TABLES {
        let _ = writeln!(text, "| table `{}` | `{}` | {} |", r.before, r.now, r.since);
    }
    for r in renames::COLUMNS {
        let (table, since) = (r.table, r.since);
        let _ = writeln!(text, "| `{table}.{}` | `{}` | {since} |", r.before, r.now);
    }
    text
}

fn row(table: &Table, column: &Column) -> String {
    let kind = match column.kind {
        Kind::Integer => "integer",
        Kind::Real => "real",
        Kind::Text => "text",
        Kind::Flag => "flag",
    };
    let absent = match (column.nullable, table.is_required(column)) {
        (true, _) => "?",
        (false, false) => "*",
        (false, true) => "",
    };
    format!(
        "| `{}` | {kind}{absent} | {} | {} |",
        column.name,
        column.unit().unwrap_or(""),
        column.doc.trim().replace('|', "\\|")
    )
}
