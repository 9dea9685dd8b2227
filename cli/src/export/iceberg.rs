//! `gleaner export --to iceberg`: the tables for query engines. A later export brings them up to date.

use super::args::Export;
use gleaner_schemas::units::Bytes;
use gleaner_tables::{GRACE, Options, Progress, publish};
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

pub(super) fn run(args: &Export, dataset: &Path, output: &mut dyn Write) -> anyhow::Result<()> {
    let options = Options {
        location: args.iceberg.location.clone(),
        grace: args.iceberg.grace.unwrap_or(GRACE),
        ..Options::default()
    };
    let bar = gleaner_terminal::bar("export", 1);
    let progress = |p: &Progress<'_>| {
        bar.set_length(p.rows_in_all);
        bar.set_position(p.rows);
        bar.set_message(format!("{} {}", p.table, p.date));
    };
    let published = publish(dataset, &args.output, &options, SystemTime::now(), progress)?;
    bar.finish_and_clear();
    writeln!(
        output,
        "{} rows in {} tables and {} files ({}) in {}; {} files and {} tables are new or changed",
        published.rows,
        published.tables,
        published.files,
        Bytes::from(published.bytes),
        args.output.display(),
        published.written_files,
        published.changed_tables
    )?;
    Ok(())
}
