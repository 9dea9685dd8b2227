//! `gleaner export --to parquet|csv|arrow`: the tables as they are stored.

use super::args;
use gleaner_dataset::{Dataset, Selection};
use gleaner_traces::{Export, ExportSummary, Format, Progress};

pub(super) fn run(
    args: &args::Export,
    dataset: &Dataset,
    format: Format,
) -> anyhow::Result<ExportSummary> {
    let mut export = Export::all(format);
    export.is_compressed = !args.uncompressed;
    if !args.tables.table.is_empty() {
        export.tables.clone_from(&args.tables.table);
    }
    let columns = &args.tables.columns;
    export.selection = Selection {
        hosts: super::hosts(args, dataset)?,
        from_ms: args.from,
        until_ms: args.until,
        columns: Some(columns.clone()).filter(|columns| !columns.is_empty()),
    };
    let bar = gleaner_terminal::bar("export", 1);
    let progress = |p: &Progress<'_>| {
        bar.set_length(p.rows_in_all);
        bar.set_position(p.rows);
        bar.set_message(format!("{} {}", p.table, p.date));
    };
    let exported = gleaner_traces::export(dataset, &args.output, &export, progress)?;
    bar.finish_and_clear();
    Ok(exported)
}
