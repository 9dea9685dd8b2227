//! Records, readings and aims of a model as text for the terminal and as Markdown.

use super::reading::Reading;
use super::record::ModelRecord;
use crate::markdown::{list, table as markdown_table};
use crate::number::number;
use crate::wording::{kind, or_dash};
use gleaner_terminal::table;
use gleaner_traces::published::Kind;
use std::fmt::Write;

const HEADER: [&str; 8] = [
    "row", "column", "unit", "paper", "accepted", "ours", "kind", "holds",
];
const READINGS: [&str; 3] = ["contradicted", "by", "ours"];
const AIMS: [&str; 4] = ["aim", "reached", "", "missed by"];

pub(super) fn text(records: &[ModelRecord], readings: &[Reading]) -> String {
    let mut text = String::new();
    for (item, of_item) in by_item(records) {
        let mut t = table(&HEADER, 3);
        for record in &of_item {
            t.add_row(cells(record).to_vec());
        }
        let _ = writeln!(text, "{item}\n{}", t.trim_fmt());
        for note in notes(&of_item) {
            let _ = writeln!(text, "  {note}");
        }
        text.push('\n');
    }
    if !readings.is_empty() {
        let mut t = table(&READINGS, 2);
        for reading in readings {
            t.add_row(reading_cells(reading).to_vec());
        }
        let _ = writeln!(
            text,
            "Contradictions of the paper, by each reading\n{}\n",
            t.trim_fmt()
        );
    }
    let aims = aims(records);
    if !aims.is_empty() {
        let mut t = table(&AIMS, 4);
        for aim in aims {
            t.add_row(aim.to_vec());
        }
        let _ = writeln!(text, "Aims\n{}", t.trim_fmt());
    }
    text
}

/// Part of a page; `command` is the command line that writes it again.
pub(super) fn markdown(records: &[ModelRecord], readings: &[Reading], command: &str) -> String {
    let mut text =
        format!("<!-- Written by `{command}`. Do not edit: run it again. -->\n\n### Aims\n\n");
    markdown_table(&mut text, AIMS, aims(records).into_iter());
    if !readings.is_empty() {
        text += "### Contradictions, by each reading\n\n";
        markdown_table(&mut text, READINGS, readings.iter().map(reading_cells));
    }
    for (item, of_item) in by_item(records) {
        let _ = writeln!(text, "### {item}\n");
        markdown_table(&mut text, HEADER, of_item.iter().map(|r| cells(r)));
        list(&mut text, notes(&of_item).into_iter());
    }
    text + "<!-- end -->\n"
}

/// Records of each item, in the records' order.
fn by_item(records: &[ModelRecord]) -> Vec<(&str, Vec<&ModelRecord>)> {
    let mut items: Vec<(&str, Vec<&ModelRecord>)> = Vec::new();
    for record in records {
        match items.iter_mut().find(|(item, _)| *item == record.item) {
            Some((_, of_item)) => of_item.push(record),
            None => items.push((&record.item, vec![record])),
        }
    }
    items
}

fn cells(r: &ModelRecord) -> [String; 8] {
    let accepted = if r.low < r.high {
        format!("{} to {}", r.low, r.high)
    } else {
        r.paper.to_string()
    };
    let holds = match (r.holds, r.possible) {
        (None, _) => "—",
        (Some(true), _) => "yes",
        (Some(false), true) => "no",
        (Some(false), false) => "contradicted",
    };
    [
        r.row.clone(),
        r.column.clone(),
        r.unit.clone(),
        r.paper.to_string(),
        accepted,
        or_dash(r.ours.map(|ours| number(ours) + &of_seeds(r))),
        kind(r.kind).to_owned(),
        holds.to_owned(),
    ]
}

/// Range over the seeds, in brackets after the mean.
fn of_seeds(r: &ModelRecord) -> String {
    let range = r.seeds_low.zip(r.seeds_high);
    let range = range.map(|(low, high)| format!(" ({} to {})", number(low), number(high)));
    range.unwrap_or_default()
}

fn reading_cells(reading: &Reading) -> [String; 3] {
    let Reading {
        quantity,
        reading,
        value,
    } = reading;
    [(*quantity).to_owned(), reading.clone(), number(*value)]
}

/// Notes, each with the places to which it applies.
fn notes(records: &[&ModelRecord]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for record in records.iter().filter(|r| !r.note.is_empty()) {
        match notes.iter_mut().find(|(note, _)| *note == record.note) {
            Some((_, places)) => places.push(record.place()),
            None => notes.push((&record.note, vec![record.place()])),
        }
    }
    notes.iter().map(crate::wording::note).collect()
}

/// An aim for each kind of figure: all figures hold that are judged.
fn aims(records: &[ModelRecord]) -> Vec<[String; 4]> {
    let kinds = [
        Kind::Calibrated,
        Kind::Derived,
        Kind::Predicted,
        Kind::Shape,
    ];
    let aim = |of: Kind| {
        let judged: Vec<_> = records
            .iter()
            .filter(|r| r.kind == of && r.is_judged())
            .collect();
        let missed = judged.iter().filter(|r| r.holds != Some(true));
        let missed: Vec<String> = missed.map(|r| r.place()).collect();
        let reached = judged.len() - missed.len();
        (!judged.is_empty()).then(|| {
            [
                format!("all {} figures hold", kind(of)),
                format!("{reached} of {}", judged.len()),
                if missed.is_empty() { "met" } else { "not met" }.to_owned(),
                or_dash((!missed.is_empty()).then(|| missed.join("; "))),
            ]
        })
    };
    kinds.into_iter().filter_map(aim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::felten_zahorjan;

    fn records() -> Vec<ModelRecord> {
        let figures = felten_zahorjan().unwrap().figures;
        let record = |f| ModelRecord::new("a paper", f, Some(1000.0));
        figures.iter().map(record).collect()
    }

    fn readings() -> Vec<Reading> {
        ["as printed", "exchanged"]
            .map(|reading| Reading {
                quantity: "throughput lost, %",
                reading: reading.to_owned(),
                value: 4.2,
            })
            .to_vec()
    }

    #[test]
    fn every_figure_reading_and_aim_is_printed() {
        let said = text(&records(), &readings());
        for record in records() {
            assert!(said.contains(&format!("{}\n", record.item)) && said.contains(&record.row));
        }
        assert!(said.contains("exchanged") && said.contains("4.20"));
        assert!(said.contains("contradicted") && said.contains("not comparable"));
        assert!(said.contains("all shape figures hold") && said.contains("not met"));
        let few: Vec<ModelRecord> = records()
            .into_iter()
            .filter(|r| r.item == "Text 4.1")
            .collect();
        let said = text(&few, &[]);
        assert!(
            !said.contains("Aims") && !said.contains("Contradictions"),
            "{said}"
        );
    }

    #[test]
    fn rows_of_the_page_have_equal_numbers_of_cells() {
        let page = markdown(&records(), &readings(), "gleaner fidelity --markdown FILE");
        assert!(page.starts_with("<!-- Written by `gleaner fidelity --markdown FILE`."));
        assert!(page.ends_with("\n\n<!-- end -->\n") && !page.contains("\n\n\n"));
        let lines: Vec<&str> = page.lines().collect();
        for pair in lines.windows(2) {
            if pair.iter().all(|line| line.starts_with('|')) {
                let [above, below] = [0, 1].map(|at| pair[at].matches('|').count());
                assert_eq!(above, below, "{}", pair[1]);
            }
        }
    }

    #[test]
    fn an_aim_names_its_misses() {
        let mut few = records();
        few.retain(|r| r.item == "Table 1");
        assert_eq!(aims(&few)[0][1], "0 of 12");
        for record in &mut few {
            record.holds = Some(record.row != "J");
        }
        let found = aims(&few);
        let [aim, reached, met, missed] = &found[0];
        assert_eq!(aim, "all calibrated figures hold");
        assert_eq!((reached.as_str(), met.as_str()), ("11 of 12", "not met"));
        assert_eq!(missed, "J: jobs per client");
    }
}
