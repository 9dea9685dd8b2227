//! `gleaner export`.

use crate::args::{self, Format};
use crate::progress;
use anyhow::bail;
use gleaner_dataset::batch::is_id;
use gleaner_dataset::{Dataset, Selection};
use gleaner_schemas::units::Bytes;
use gleaner_traces::{Export, Progress};
use std::collections::BTreeSet;

pub(crate) fn run(args: &args::Export) -> anyhow::Result<()> {
    let dataset = Dataset::open(&args.dataset)?;
    let export = export(args, &dataset)?;
    let bar = progress::bar("export", 1);
    let progress = |p: &Progress<'_>| {
        bar.set_length(p.rows_in_all);
        bar.set_position(p.rows);
        bar.set_message(format!("{} {}", p.table, p.date));
    };
    let exported = gleaner_traces::export(&dataset, &args.output, &export, progress)?;
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

fn export(args: &args::Export, dataset: &Dataset) -> anyhow::Result<Export> {
    let mut export = Export::all(match args.to {
        Format::Parquet => gleaner_traces::Format::Parquet,
        Format::Csv => gleaner_traces::Format::Csv,
        Format::Arrow => gleaner_traces::Format::Arrow,
    });
    export.is_compressed = !args.uncompressed;
    if !args.table.is_empty() {
        export.tables.clone_from(&args.table);
    }
    let hosts = args.host.iter().map(|host| host_id(host, dataset));
    let hosts = hosts.collect::<anyhow::Result<BTreeSet<_>>>()?;
    export.selection = Selection {
        hosts: Some(hosts).filter(|hosts| !hosts.is_empty()),
        from_ms: args.from,
        until_ms: args.until,
        columns: Some(args.columns.clone()).filter(|columns| !columns.is_empty()),
    };
    Ok(export)
}

/// The id of the host of this id or name.
fn host_id(host: &str, dataset: &Dataset) -> anyhow::Result<String> {
    if is_id(host) {
        return Ok(host.to_owned());
    }
    let named: Vec<String> = dataset.hosts_named(host)?.into_iter().collect();
    match &named[..] {
        [id] => Ok(id.clone()),
        [] => bail!(
            "no host of {} is called {host:?}; `gleaner analyze` lists hosts",
            dataset.root().display()
        ),
        several => bail!(
            "several hosts are called {host:?}; choose by id: {}",
            several.join(", ")
        ),
    }
}
