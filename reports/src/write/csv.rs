//! Every table as CSV (RFC 4180); the columns' names end with their units.

use crate::document::Page;
use crate::page::table::{Cell, Table};
use crate::page::{Part, Section};

/// A table as a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// File name without an ending, from the table's id.
    pub name: String,
    /// Caption above the table.
    pub caption: String,
    /// Content of the file.
    pub csv: String,
}

/// CSV files of the sections' tables. Tables of hosts' pages are left out, since the sections' tables have
/// all hosts.
pub(crate) fn files(page: &Page) -> Vec<TableFile> {
    tables(page)
        .map(|table| TableFile {
            name: table.id.clone(),
            caption: table.caption.clone(),
            csv: csv(table),
        })
        .collect()
}

/// Tables of the sections, of the imported hosts' sources, and of the limits.
pub(crate) fn tables(page: &Page) -> impl Iterator<Item = &Table> {
    let tables = page.sections.iter().flat_map(of_section);
    tables.chain(&page.sources).chain(&page.parameters)
}

/// Tables of one section.
pub(crate) fn of_section(section: &Section) -> impl Iterator<Item = &Table> {
    section.parts.iter().filter_map(|part| match part {
        Part::Table(table) => Some(table),
        _ => None,
    })
}

fn csv(table: &Table) -> String {
    let mut text = line(table.keys());
    for row in &table.rows {
        text.push_str(&line(row.iter().map(value)));
    }
    text
}

fn line(fields: impl IntoIterator<Item = String>) -> String {
    let quoted = |field: String| {
        if field.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", field.replace('"', "\"\""))
        } else {
            field
        }
    };
    let fields: Vec<String> = fields.into_iter().map(quoted).collect();
    fields.join(",") + "\r\n"
}

/// Text of a cell; empty for an unknown value.
fn value(cell: &Cell) -> String {
    match cell.value {
        Some(value) => value.to_string(),
        None if cell.absent => String::new(),
        None => inert(&cell.text),
    }
}

/// Text that no spreadsheet interprets as a formula. Names come from hosts and may begin with `=`; such a
/// text gets a leading apostrophe, which spreadsheets do not show. The JSON has the unchanged text.
fn inert(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::table::{numbers, words};

    #[test]
    fn fields_are_quoted_and_never_formulas() {
        let rows = [
            "plain",
            "a,b",
            "say \"x\"",
            "two\nlines",
            "=HYPERLINK(\"http://x\")",
            "-bash",
        ]
        .map(|name| vec![Cell::text(name), Cell::bytes_change(-5.0), Cell::absent()]);
        let columns = vec![words("name"), numbers("size"), numbers("size")];
        let table = Table::new("t".into(), "T", columns).with_rows(rows.to_vec());
        assert_eq!(
            csv(&table.unwrap()),
            "name,size_bytes,size\r\nplain,-5,\r\n\"a,b\",-5,\r\n\"say \"\"x\"\"\",-5,\r\n\"two\nlines\",-5,\r\n\
             \"'=HYPERLINK(\"\"http://x\"\")\",-5,\r\n'-bash,-5,\r\n"
        );
    }
}
