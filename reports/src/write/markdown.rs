//! The short form of a report: headline, figures, answers.

use crate::document::Page;
use crate::page::table::{Cell, Table};
use crate::write::csv::of_section;

/// Ids of the tables in the short form.
const TABLES: [&str; 5] = [
    "sites-table",
    "cluster-available",
    "short-hosts",
    "odds-table",
    "memory-context",
];
/// Maximum number of rows of a table in the short form.
const MOST_ROWS: usize = 10;

/// Renders the page as Markdown.
pub(crate) fn render(page: &Page) -> String {
    let headline = &page.headline;
    let mut text = format!(
        "# {}\n\n{}\n\n**{}**",
        plain(&page.title),
        plain(&page.period),
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
    for section in page.sections.iter().filter(|s| !s.answer.is_empty()) {
        text.push_str(&format!(
            "\n## {}\n\n{}\n",
            section.title,
            plain(&section.answer)
        ));
        let is_in = |t: &&Table| TABLES.contains(&t.id.as_str());
        for short in of_section(section).filter(is_in) {
            text.push_str(&table(short));
        }
    }
    text
}

fn table(table: &Table) -> String {
    let labels: Vec<&str> = table.columns.iter().map(|c| &*c.label).collect();
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
    for row in table.rows.iter().take(MOST_ROWS) {
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

/// Text on one line, escaped for Markdown and HTML.
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
