//! The table of fidelity on the terminal.

use super::aims::aims;
use super::contradictions::contradictions;
use super::record::Record;
use super::wording::{HEADER, cells, items, note, notes, number, or_dash};
use crate::tables::table;
use std::fmt::Write;

pub(super) fn text(records: &[Record]) -> String {
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
    let aims = aims(records);
    if !aims.is_empty() {
        let mut t = table(&["aim", "", "reached", ""], 4);
        for aim in &aims {
            let met = if aim.is_met { "met" } else { "not met" };
            t.add_row(vec![aim.item, &aim.aim, &aim.reached, met]);
        }
        let _ = writeln!(text, "Aims\n{}", t.trim_fmt());
        for aim in aims.iter().filter(|aim| !aim.misses.is_empty()) {
            let _ = writeln!(
                text,
                "  {}, {}, missed by: {}.",
                aim.item,
                aim.aim,
                aim.misses.join("; ")
            );
        }
    }
    text
}
