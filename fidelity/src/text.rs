//! The table of fidelity as text for the terminal.

use super::aims::{Aim, aims};
use super::contradictions::contradictions;
use super::gains::gains;
use super::number::number;
use super::record::Record;
use super::shapes::Shape;
use super::wording::{self, HEADER, SHAPES, cells, items, note, notes, or_dash};
use gleaner_terminal::table;
use std::fmt::Write;

pub(super) fn text(records: &[Record], shapes: &[Shape]) -> String {
    let mut text = String::new();
    for item in items(records) {
        let of_item: Vec<&Record> = records.iter().filter(|r| r.item == item).collect();
        let mut t = table(&HEADER, 3);
        for r in &of_item {
            t.add_row(cells(r).to_vec());
        }
        let _ = writeln!(text, "{item}\n{}", t.trim_fmt());
        for one in &notes(&of_item) {
            let _ = writeln!(text, "  {}", note(one));
        }
        text.push('\n');
    }
    if !shapes.is_empty() {
        let mut t = table(&SHAPES, 4);
        for shape in shapes {
            t.add_row(wording::shape(shape).to_vec());
        }
        let _ = writeln!(
            text,
            "What the paper says of Figures 8 to 10\n{}\n",
            t.trim_fmt()
        );
    }
    let gains = gains(records);
    if !gains.is_empty() {
        let mut t = table(
            &["share of the possible gain", "cluster", "paper", "ours"],
            2,
        );
        for gain in &gains {
            t.add_row(wording::gain(gain).to_vec());
        }
        let _ = writeln!(text, "{}\n", t.trim_fmt());
    }
    let contradicted = contradictions(records);
    if !contradicted.is_empty() {
        let mut t = table(
            &["no trace has all of these", "by", "cluster A", "cluster B"],
            2,
        );
        for c in contradicted {
            let [a, b] = c.clusters.map(|value| or_dash(value.map(number)));
            t.add_row(vec![c.quantity.to_owned(), c.by.to_owned(), a, b]);
        }
        let _ = writeln!(text, "Contradictions of the paper\n{}\n", t.trim_fmt());
    }
    let aims = aims(records, shapes);
    if !aims.is_empty() {
        let mut t = table(&["aim", "", "reached", ""], 4);
        for aim in &aims {
            let met = if aim.is_met { "met" } else { "not met" };
            t.add_row(vec![aim.item, &aim.aim, &aim.reached, met]);
        }
        let _ = writeln!(text, "Aims\n{}", t.trim_fmt());
        for missed in aims.iter().filter_map(Aim::missed) {
            let _ = writeln!(text, "  {missed}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::acharya_setia;

    #[test]
    fn every_part_is_told_and_what_was_not_asked_for_is_not() {
        let figures = acharya_setia().unwrap().figures;
        let record = |f| Record::new(f, &[1.0, 3.0], "of two seeds");
        let mut records: Vec<Record> = figures.iter().map(record).collect();
        let said = text(&records, &[]);
        for f in &figures {
            assert!(said.contains(&format!("{}\n", f.item)) && said.contains(&f.row));
        }
        assert!(said.contains("Contradictions of the paper") && said.contains("not met"));
        assert!(said.contains("impossible") && said.contains("is missed by: 32 MB: kernel, mean"));
        records.retain(|r| r.item == "Table 5");
        let shape = Shape::example();
        let said = text(&records, &[shape]);
        assert!(
            said.contains("dmine") && !said.contains("Table 4") && said.contains("possible gain")
        );
        assert!(said.contains("negligible impact") && said.contains("2 of 3 seeds"));
        records.retain(|r| r.column == "cluster A");
        records.iter_mut().for_each(|r| r.ours = None);
        let said = text(&records, &[]);
        assert!(!said.contains("Aims") && !said.contains("possible gain"));
    }
}
