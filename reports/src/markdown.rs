//! The short form: headline, figures, use by category.

use crate::Options;
use crate::clock::Clock;
use crate::headline::headline;
use crate::tables::{Cell, Table, memory};
use crate::view::View;
use gleaner_schemas::findings::Findings;

/// As Markdown.
pub(crate) fn render(findings: &Findings, clock: &Clock, options: &Options) -> String {
    let view = View::all(findings, clock);
    let headline = headline(&view);
    let mut text = format!(
        "# {}\n\n**{}**",
        plain(&options.title),
        plain(&headline.lead)
    );
    for sentence in &headline.support {
        text.push_str(&format!(" {}", plain(sentence)));
    }
    text.push_str("\n\n");
    for card in &headline.cards {
        text.push_str(&format!(
            "- {}: {} ({})\n",
            card.label,
            card.value,
            plain(&card.note)
        ));
    }
    for usage in memory::usage(&view) {
        text.push_str(&table(&usage));
    }
    text
}

fn table(table: &Table) -> String {
    let labels: Vec<&str> = table.columns.iter().map(|c| c.label).collect();
    let marks: Vec<&str> = table
        .columns
        .iter()
        .map(|c| if c.is_number { "---:" } else { "---" })
        .collect();
    let mut text = format!(
        "\n{}\n\n| {} |\n| {} |\n",
        plain(&table.caption),
        labels.join(" | "),
        marks.join(" | ")
    );
    for row in &table.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

fn cell(cell: &Cell) -> String {
    let unit = if cell.unit.is_empty() {
        String::new()
    } else {
        format!("\u{a0}{}", cell.unit)
    };
    plain(&format!("{}{unit}", cell.text))
}

/// Text without meaning to Markdown or HTML, on one line.
fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}
