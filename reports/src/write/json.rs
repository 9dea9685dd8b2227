//! Headline, answers and tables as one JSON document.

use super::csv::tables;
use crate::document::Page;
use crate::page::table::{Cell, Table};
use crate::page::{Part, Section};
use serde_json::{Map, Value, json};

pub(crate) fn render(page: &Page) -> String {
    let tables: Map<String, Value> = tables(page).map(|t| (t.id.clone(), table(t))).collect();
    let document = json!({
        "title": page.title,
        "subject": page.subject,
        "period": page.period,
        "lead": page.headline.lead,
        "support": page.headline.support,
        "answers": page.sections.iter().map(answer).collect::<Vec<_>>(),
        "tables": tables,
    });
    format!("{document:#}\n")
}

fn answer(section: &Section) -> Value {
    let said = |part: &Part| match part {
        Part::Heading(text) | Part::Say(text) => Some(text.clone()),
        Part::Figure(figure) => Some(format!("{}. {}", figure.title, figure.sentence)),
        Part::Table(_) => None,
    };
    json!({
        "id": section.id,
        "question": section.title,
        "answer": section.answer,
        "sentences": section.parts.iter().filter_map(said).collect::<Vec<_>>(),
    })
}

fn table(table: &Table) -> Value {
    let keys = table.keys();
    let row = |cells: &Vec<Cell>| {
        let named = keys.iter().cloned().zip(cells.iter().map(value));
        Value::Object(named.collect())
    };
    json!({
        "caption": table.caption,
        "note": table.note,
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn value(cell: &Cell) -> Value {
    match cell.value {
        Some(value) => json!(value),
        None if cell.absent => Value::Null,
        None => json!(cell.text),
    }
}
