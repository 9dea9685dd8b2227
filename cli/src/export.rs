//! `gleaner export`.

use crate::args::{Export, Format};
use crate::progress;
use gleaner_dataset::Dataset;
use gleaner_schemas::units::Bytes;
use gleaner_traces::Progress;

pub(crate) fn run(args: &Export) -> anyhow::Result<()> {
    let dataset = Dataset::open(&args.dataset)?;
    let bar = progress::bar("export", 1);
    let progress = |p: &Progress<'_>| {
        bar.set_length(p.rows_in_all);
        bar.set_position(p.rows);
        bar.set_message(format!("{} {}", p.table, p.date));
    };
    let exported = match args.to {
        Format::Parquet => gleaner_traces::export_parquet(&dataset, &args.output, progress)?,
        Format::Csv => gleaner_traces::export_csv(&dataset, &args.output, progress)?,
    };
    bar.finish_and_clear();
    println!(
        "{} rows in {} files ({}) in {}",
        exported.rows,
        exported.files,
        Bytes::from(exported.bytes),
        args.output.display()
    );
    Ok(())
}
