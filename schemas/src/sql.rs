//! SQLite: the steps that create the agent's database, and the statements for it, made from [`crate::rows`].

use crate::SCHEMA_VERSION;
use crate::column::Table;
use crate::renames;
use std::fmt::Write;

/// `PRAGMA application_id` of an agent's database: "Glnr".
pub const APPLICATION_ID: i32 = 0x476c_6e72;

/// Steps from an empty database to the newest version: step `i` leads from version `i` to `i + 1`. Steps are
/// only ever added. The agent's tests compare the database that the steps create with [`crate::rows`].
pub const MIGRATIONS: [&str; SCHEMA_VERSION as usize] = [
    include_str!("../migrations/1.sql"),
    include_str!("../migrations/2.sql"),
    include_str!("../migrations/3.sql"),
    include_str!("../migrations/4.sql"),
    include_str!("../migrations/5.sql"),
    include_str!("../migrations/6.sql"),
    include_str!("../migrations/7.sql"),
];

/// Returns the statement that inserts one row of `table`. Its parameters are, in order: the sequence, the
/// row's own time if the table has one, and the columns.
#[must_use]
pub fn insert(table: &Table) -> String {
    let names = column_names(table);
    let marks = vec!["?"; names.len()].join(", ");
    format!(
        "INSERT INTO {} ({}) VALUES ({marks})",
        table.name,
        names.join(", ")
    )
}

/// Returns the query for the rows of `table` in records after `:after` up to `:until`, in order. Each result
/// has the sequence, the time and the columns. `present` are the columns that the database has; other
/// columns, which an older version's database lacks, are read as absent.
#[must_use]
pub fn select_between(table: &Table, present: &[String]) -> String {
    let columns: String = table.columns.iter().fold(String::new(), |mut text, c| {
        let _ = if present.iter().any(|name| name == c.name) {
            write!(text, ", t.{}", c.name) // writing to a String cannot fail
        } else {
            write!(text, ", NULL")
        };
        text
    });
    let (time, join) = if table.has_own_time() {
        ("t.time_ms", "")
    } else {
        ("s.time_ms", " JOIN samples s ON s.sequence = t.sequence")
    };
    let order = table.key.iter().fold("t.sequence".to_owned(), |text, key| {
        format!("{text}, t.{key}")
    });
    format!(
        "SELECT t.sequence, {time}{columns} FROM {} t{join} \
         WHERE t.sequence > :after AND t.sequence <= :until ORDER BY {order}",
        table.name
    )
}

/// Returns the statement that makes a temporary view of the database's table `stored`, with the present names
/// of the table and its columns. `columns` are the columns that this table has in the database. `None` if all
/// names are the present ones already, or if `columns` is empty.
#[must_use]
pub fn view_by_present_names(stored: &str, columns: &[String]) -> Option<String> {
    let table = renames::table_name(stored);
    let present = |column: &'_ String| renames::column_name(table, column).to_owned();
    let differs = table != stored || columns.iter().any(|column| present(column) != *column);
    if columns.is_empty() || !differs {
        return None;
    }
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let named = columns.iter().map(|column| {
        let (stored, present) = (quoted(column), quoted(&present(column)));
        format!("{stored} AS {present}")
    });
    let named = named.collect::<Vec<_>>().join(", ");
    Some(format!(
        "CREATE TEMP VIEW {table} AS SELECT {named} FROM main.{stored}"
    ))
}

/// Names of all columns of a table in SQLite, those that all tables share first.
#[must_use]
pub fn column_names(table: &Table) -> Vec<&'static str> {
    let time = table.has_own_time().then_some("time_ms");
    std::iter::once("sequence")
        .chain(time)
        .chain(table.columns.iter().map(|c| c.name))
        .collect()
}
