//! SQLite: the DDL of the agent's database, made from [`crate::rows`].

use crate::column::{Column, Kind, Table};
use crate::rows::TABLES;
use std::fmt::Write;

/// `PRAGMA application_id` of an agent's database: "Glnr".
pub const APPLICATION_ID: i32 = 0x476c_6e72;

/// Steps from an empty database to the newest version: step `i` leads from version `i` to `i + 1`.
#[must_use]
pub fn migrations() -> Vec<String> {
    vec![create_all()]
}

/// Statement that inserts one row of `table`: sequence, own time where it has one, columns.
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

/// Query for the rows of `table` in records after `:after` up to `:until`, in order: sequence, time,
/// columns.
#[must_use]
pub fn select_between(table: &Table) -> String {
    let columns: String = table.columns.iter().fold(String::new(), |mut text, c| {
        let _ = write!(text, ", t.{}", c.name); // writing to a String cannot fail
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

fn column_names(table: &Table) -> Vec<&'static str> {
    let time = table.has_own_time().then_some("time_ms");
    std::iter::once("sequence")
        .chain(time)
        .chain(table.columns.iter().map(|c| c.name))
        .collect()
}

fn create_all() -> String {
    let mut ddl = String::from(
        "-- Identity of this database and of the host: host_id, database_id, created_time_ms.\n\
         CREATE TABLE meta (key TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;\n",
    );
    for table in &TABLES {
        ddl.push('\n');
        ddl.push_str(&create(table));
    }
    ddl
}

fn create(table: &Table) -> String {
    let mut lines = Vec::new();
    if table.has_own_time() {
        lines.push("  sequence INTEGER NOT NULL PRIMARY KEY".to_owned());
        lines.push("  time_ms INTEGER NOT NULL".to_owned());
    } else {
        lines.push(
            "  sequence INTEGER NOT NULL REFERENCES samples (sequence) ON DELETE CASCADE"
                .to_owned(),
        );
    }
    lines.extend(table.columns.iter().map(column));
    let options = if table.has_own_time() {
        "STRICT"
    } else {
        lines.push(format!(
            "  PRIMARY KEY (sequence, {})",
            table.key.join(", ")
        ));
        "STRICT, WITHOUT ROWID"
    };
    format!(
        "CREATE TABLE {} (\n{}\n) {options};\n",
        table.name,
        lines.join(",\n")
    )
}

fn column(column: &Column) -> String {
    let kind = match column.kind {
        Kind::Integer | Kind::Flag => "INTEGER",
        Kind::Real => "REAL",
        Kind::Text => "TEXT",
    };
    let null = if column.nullable { "" } else { " NOT NULL" };
    let check = if column.kind == Kind::Flag {
        format!(" CHECK ({} IN (0, 1))", column.name)
    } else {
        String::new()
    };
    format!("  {} {kind}{null}{check}", column.name)
}
