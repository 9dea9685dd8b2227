//! `gleaner curve show`: a curve as table, JSON and page.

use super::args::Show;
use super::page;
use super::shown::{about, rows, working_sets};
use crate::report;
use crate::simulate::refuse_folder;
use crate::tables::plain;
use gleaner_schemas::curve::Curve;
use gleaner_schemas::units::{Bytes, thousands};
use gleaner_simulator::references::read_curve;
use std::io::Write;

pub(super) fn run(args: &Show, output: &mut dyn Write) -> anyhow::Result<()> {
    refuse_folder(args.page.as_deref())?;
    let curve = read_curve(&args.curve)?;
    if let Some(to) = &args.page {
        report::write(to, page::html(&curve, &[])?)?;
    }
    let text = match args.json {
        true => format!("{:#}\n", serde_json::to_value(&curve)?),
        false => plain(&text(&curve)),
    };
    Ok(output.write_all(text.as_bytes())?)
}

fn text(curve: &Curve) -> String {
    let mut text = about(curve) + "\n\n";
    let mut table = gleaner_terminal::table(
        &[
            "memory",
            "of footprint",
            "faults",
            "faults/CPU s",
            "write-backs",
        ],
        0,
    );
    for row in rows(curve) {
        table.add_row([
            Bytes::from(row.memory_bytes).to_string(),
            format!("{} %", row.percent),
            thousands(row.reuse.round() as u64),
            thousands(row.reuse_per_s.round() as u64),
            thousands(row.write_backs.round() as u64),
        ]);
    }
    text += &(table.trim_fmt() + "\n\n");
    let mut table = gleaner_terminal::table(&["working set in", "median", "largest"], 1);
    for (name, sizes) in working_sets(curve) {
        let pages = |at: usize| sizes.get(at).map_or(0, |set| set.pages);
        let bytes = |pages: u64| Bytes::from(pages.saturating_mul(curve.page_bytes)).to_string();
        table.add_row([
            name,
            bytes(pages(sizes.len() / 2)),
            bytes(pages(sizes.len().saturating_sub(1))),
        ]);
    }
    text + &table.trim_fmt() + "\n"
}
