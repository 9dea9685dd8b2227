//! The table of fidelity as the Markdown page `docs/fidelity.md`.

use super::aims::{Aim, aims};
use super::contradictions::contradictions;
use super::gains::gains;
use super::number::number;
use super::record::Record;
use super::shapes::Shape;
use super::wording::{self, HEADER, SHAPES, cells, items, note, notes, or_dash};
use std::fmt::Write;

/// Origin of the page.
pub(super) struct PageOrigin {
    /// The command line that writes the page again.
    pub(super) command: String,
    /// Seeds, in words.
    pub(super) seeds: String,
    /// Simulated seeds in words, and the simulated hours of each.
    pub(super) simulated: Option<(String, u64)>,
}

pub(super) fn markdown(records: &[Record], shapes: &[Shape], told: &PageOrigin) -> String {
    let PageOrigin { command, seeds, .. } = told;
    let mut text = format!(
        "# Fidelity: the paper's figures beside ours

<!-- Written by `{command}`. Do not edit: run it again. -->

`{command}` wrote this page: for each of {seeds}, both clusters of A. Acharya and S. Setia, *Availability and Utility of Idle Memory in Workstation
Clusters* (SIGMETRICS 1999), made by `gleaner synth` and analysed by `gleaner analyze`. The hosts are synthetic: **calibrated** figures are those
that their model was fitted to, **derived** ones follow from them by arithmetic, **predicted** ones are neither. *Ours* is the mean over
the seeds, *spread* the standard deviation, *of the seeds* what lies between 2.5 and 97.5 % of them. A figure *holds* where ours rounds to what
is printed (what it may stand for: `traces/published/README.md`), or what is printed is among the seeds. Figures 4, 5, 8 and 9 print no numbers.

Tables 2 to 4 are of the hosts of both clusters, Figures 6 and 7 of each. Available is the paper's, which leaves files that are used again soon to the
owner; means of periods are plain, those cut by the trace's ends count as long as they were seen, those under five minutes do not count.
`gleaner fidelity --json` prints the same as a list of records.

"
    );
    match &told.simulated {
        Some((seeds, hours)) => {
            let _ = writeln!(
                text,
                "Tables 5 and 6 and Figures 8 to 10 are **simulated** ([simulator.md](simulator.md)): the study's programs for {hours} hours on the clusters of
{seeds}, each of which is the seed of programs and placement, too. There *ours* is the median over the seeds, *of the seeds* the least
and the most of them.\n"
            );
        }
        None => {
            text +=
                "Nothing was simulated: Tables 5 and 6 and Figures 8 to 10 take `--simulate`.\n\n"
        }
    }
    text += "## Aims\n\n";
    let aims = aims(records, shapes);
    let rows = aims.iter().map(|aim| {
        let met = if aim.is_met { "met" } else { "**not met**" };
        [aim.item, &aim.aim, &aim.reached, met].map(str::to_owned)
    });
    table(&mut text, ["item", "aim", "reached", ""], rows);
    list(&mut text, aims.iter().filter_map(Aim::missed));
    text += "How the model was fitted, and why some cells cannot be had together: [synth.md](synth.md). Why simulated figures miss theirs, as far as it is \
             known: [simulator.md](simulator.md#beside-the-study).\n\n";
    let gains = gains(records);
    if !gains.is_empty() {
        text += "## Share of the possible gain\n\n(speedup − 1) / (ideal − 1), of Table 5.\n\n";
        let header = ["program", "cluster", "paper", "ours"];
        table(&mut text, header, gains.iter().map(wording::gain));
    }
    if !shapes.is_empty() {
        text += "## Figures without numbers\n\nSpeedups that differ by less than 0.05 are taken for the same; *much* is less than half.\n\n";
        table(&mut text, SHAPES, shapes.iter().map(wording::shape));
    }
    text +=
        "## What the paper says twice\n\nNo trace has all of these. Ours is fitted to Table 4.\n\n";
    let rows = contradictions(records).into_iter().map(|c| {
        let [a, b] = c.clusters.map(|value| or_dash(value.map(number)));
        [c.quantity.to_owned(), c.by.to_owned(), a, b]
    });
    let header = ["quantity", "by", "cluster A", "cluster B"];
    table(&mut text, header, rows);
    for item in items(records) {
        let of_item: Vec<&Record> = records.iter().filter(|r| r.item == item).collect();
        let _ = writeln!(text, "## {item}\n");
        table(&mut text, HEADER, of_item.iter().map(|r| cells(r)));
        list(&mut text, notes(&of_item).iter().map(note));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Writes a table, with an empty line after it.
pub(super) fn table<const N: usize>(
    text: &mut String,
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
    *text += &line(&header.map(str::to_owned));
    *text += &line(&header.map(|_| "---".to_owned()));
    for row in rows {
        *text += &line(&row);
    }
    text.push('\n');
}

/// Writes a list, with an empty line after it; nothing if it has no lines.
pub(super) fn list(text: &mut String, lines: impl Iterator<Item = String>) {
    let mut is_empty = true;
    for line in lines {
        let _ = writeln!(text, "- {line}");
        is_empty = false;
    }
    if !is_empty {
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::acharya_setia;

    #[test]
    fn the_page_says_how_it_was_written_and_has_every_figure() {
        let figures = acharya_setia().unwrap().figures;
        let records: Vec<Record> = figures
            .iter()
            .map(|f| Record::new(f, &[f.paper], ""))
            .collect();
        let shape = Shape::example();
        let mut told = PageOrigin {
            command: "gleaner fidelity --seeds 1".to_owned(),
            seeds: "the seed 5".to_owned(),
            simulated: Some(("the seed 5".to_owned(), 168)),
        };
        let page = markdown(&records, &[shape], &told);
        assert!(page.contains("for 168 hours on the clusters of\nthe seed 5"));
        assert!(page.contains("| dmine | cluster A | 0.47 | 0.47 |\n"));
        assert!(page.contains("| negligible impact | 1.01 | 1.00 to 1.02 | in 2 of 3 seeds |\n"));
        told.simulated = None;
        assert!(markdown(&records, &[], &told).contains("take `--simulate`"));
        assert!(page.ends_with('\n') && !page.contains("\n\n\n"));
        assert!(page.contains("<!-- Written by `gleaner fidelity --seeds 1`."));
        for f in &figures {
            let row = format!("| {} | {} | {} | {} |", f.row, f.column, f.unit, f.paper);
            assert!(page.contains(&row), "{row}");
            assert!(page.contains(&format!("## {}\n", f.item)));
        }
        // Every row of a table has as many cells as the rows next to it.
        let lines: Vec<&str> = page.lines().collect();
        for pair in lines.windows(2) {
            if let [above, below] = pair
                && above.starts_with('|')
                && below.starts_with('|')
            {
                assert_eq!(
                    above.matches('|').count(),
                    below.matches('|').count(),
                    "{below}"
                );
            }
        }
    }
}
