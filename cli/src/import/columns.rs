//! The columns that a source fills, for the help and for `--columns`.

use gleaner_traces::import::Source;
use std::fmt::Write as _;

/// Help text below the arguments of a source.
pub(crate) fn help(source: &Source<'_>, examples: &str) -> String {
    format!("{}\nExamples:{examples}", filled_columns(source))
}

/// Table of the columns that a source fills, for display.
pub(crate) fn columns_table(source: &Source<'_>) -> String {
    format!("{}\n{}", source.name, filled_columns(source))
}

fn filled_columns(source: &Source<'_>) -> String {
    let mut text = "Filled columns and their origins; all others are absent:\n".to_owned();
    let mut rows = gleaner_terminal::table(&["column", "unit", "origin"], 3);
    for f in source.fills {
        let name = format!("{}.{}", f.table, f.column);
        rows.add_row([
            name,
            f.unit().unwrap_or("-").to_owned(),
            f.origin.to_owned(),
        ]);
    }
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n{}", rows.trim_fmt(), source.available_meaning);
    text
}

/// Columns that a source fills, as a JSON document for programs.
pub(crate) fn json(source: &Source<'_>) -> serde_json::Value {
    let columns = source.fills.iter().map(|f| {
        serde_json::json!({"table": f.table, "column": f.column, "unit": f.unit(), "origin": f.origin})
    });
    serde_json::json!({
        "source": source.name,
        "available_meaning": source.available_meaning,
        "has_invented_sizes": source.has_invented_sizes,
        "columns": columns.collect::<Vec<_>>(),
    })
}
