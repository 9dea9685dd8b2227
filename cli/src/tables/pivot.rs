//! Table that shows records side by side in one line if they differ in only one field.

use super::{table, text};

/// A line of the table: its key, and its cells, each with the index of its column.
type Line = (Vec<String>, Vec<(usize, String)>);

/// Makes a table with one line for each run of records with the same `key`, and one column for each value of
/// `column`, in the order in which the values first occur. The first `left` of the key's columns are text,
/// and so aligned to the left.
pub(super) fn pivot<'a, R: 'a>(
    records: impl Iterator<Item = &'a R>,
    keys: &[&str],
    left: usize,
    key: impl Fn(&R) -> Vec<String>,
    column: impl Fn(&R) -> String,
    cell: impl Fn(&R) -> String,
) -> String {
    let mut columns: Vec<String> = Vec::new();
    let mut lines: Vec<Line> = Vec::new();
    for record in records {
        let (of, name) = (key(record), column(record));
        let at = columns.iter().position(|known| *known == name);
        let at = at.unwrap_or_else(|| {
            columns.push(name);
            columns.len() - 1
        });
        match lines.last_mut() {
            Some((last, cells)) if *last == of => cells.push((at, cell(record))),
            _ => lines.push((of, vec![(at, cell(record))])),
        }
    }
    let header: Vec<&str> = keys
        .iter()
        .copied()
        .chain(columns.iter().map(String::as_str))
        .collect();
    let mut t = table(&header, left);
    for (mut line, cells) in lines {
        let mut of_columns = vec!["—".to_owned(); columns.len()];
        for (at, cell) in cells {
            of_columns[at] = cell;
        }
        line.extend(of_columns);
        t.add_row(line);
    }
    text(&t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_each_key_and_a_dash_for_what_is_not_there() {
        let records = [("a", 1, 10), ("a", 2, 20), ("b", 2, 30)];
        let said = pivot(
            records.iter(),
            &["of"],
            1,
            |r| vec![r.0.to_owned()],
            |r| format!("at {}", r.1),
            |r| r.2.to_string(),
        );
        let lines: Vec<Vec<&str>> = said
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(lines[0], ["of", "at", "1", "at", "2"]);
        assert_eq!(lines[1], ["a", "10", "20"]);
        assert_eq!(lines[2], ["b", "—", "30"]);
    }
}
