//! The command `gleaner export`.

pub(crate) mod args;
mod by_host;
mod iceberg;
pub(crate) mod streams;
mod tables;

use anyhow::{Context, bail};
use args::{ColumnFormat, Export, Format};
use gleaner_dataset::Dataset;
use gleaner_dataset::batch::is_id;
use gleaner_schemas::units::Bytes;
use std::collections::BTreeSet;
use std::io::Write;

pub(crate) fn run(args: &Export, output: &mut dyn Write) -> anyhow::Result<()> {
    if let Some(option) = inapplicable_option(args) {
        bail!(
            "{option} does not apply to this format: `gleaner export --help` lists the options that do"
        );
    }
    let Some(dataset) = &args.dataset else {
        return streams::run(args, output);
    };
    let dataset = gleaner_objects::open(dataset)?;
    let exported = match args.to {
        Format::Parquet => tables::run(args, &dataset, gleaner_traces::Format::Parquet)?,
        Format::Csv => tables::run(args, &dataset, gleaner_traces::Format::Csv)?,
        Format::Arrow => tables::run(args, &dataset, gleaner_traces::Format::Arrow)?,
        Format::Availability | Format::Fta | Format::Simgrid => {
            let region_bytes = args.availability.region;
            let region_bytes =
                region_bytes.context("--region is missing: give the size of the region")?;
            by_host::run(args, &dataset, region_bytes)?
        }
        Format::Iceberg => return iceberg::run(args, dataset.root(), output),
        Format::OracleGeneral => bail!("--stream is missing: a dataset has no requests"),
    };
    gleaner_traces::export::describe_sources(&dataset, &args.output)?;
    writeln!(
        output,
        "{} rows in {} files ({}) in {}",
        exported.rows,
        exported.files,
        Bytes::from(exported.bytes),
        args.output.display()
    )?;
    Ok(())
}

/// First option on the command line that does not apply to the requested format.
fn inapplicable_option(args: &Export) -> Option<&'static str> {
    let (tables, asked) = (&args.tables, &args.availability);
    let of_tables = [
        ("--table", !tables.table.is_empty()),
        ("--columns", !tables.columns.is_empty()),
    ];
    let of_availability = [
        ("--region", asked.region.is_some()),
        ("--scope", asked.scope.is_some()),
        ("--minimum-period", asked.minimum_period.is_some()),
        ("--idle-after", asked.idle_after.is_some()),
        ("--load-limit", asked.load_limit.is_some()),
        ("--headroom", asked.headroom.is_some()),
    ];
    let as_columns = [("--as", asked.columns_as.is_some())];
    let of_iceberg = [
        ("--location", args.iceberg.location.is_some()),
        ("--grace", args.iceberg.grace.is_some()),
    ];
    let of_datasets = [
        ("--host", !args.host.is_empty()),
        ("--from", args.from.is_some()),
        ("--until", args.until.is_some()),
        ("--uncompressed", args.uncompressed),
    ];
    let given = |options: &[(&'static str, bool)]| {
        let mut given = options.iter().filter(|(_, is_given)| *is_given);
        given.next().map(|(name, _)| *name)
    };
    if args.dataset.is_none() {
        let of_hosts = given(&of_availability).or_else(|| given(&as_columns));
        return of_hosts
            .or_else(|| given(&of_tables))
            .or_else(|| given(&of_iceberg))
            .or_else(|| given(&of_datasets));
    }
    if args.to != Format::Iceberg
        && let Some(option) = given(&of_iceberg)
    {
        return Some(option);
    }
    match args.to {
        // A table has all rows and columns of the dataset: readers select.
        Format::Iceberg => given(&of_availability)
            .or_else(|| given(&as_columns))
            .or_else(|| given(&of_tables))
            .or_else(|| given(&of_datasets)),
        Format::Parquet | Format::Csv | Format::Arrow => {
            given(&of_availability).or_else(|| given(&as_columns))
        }
        Format::Availability => given(&of_tables),
        Format::Fta | Format::Simgrid | Format::OracleGeneral => {
            given(&of_tables).or_else(|| given(&as_columns))
        }
    }
}

fn column_format(format: Option<ColumnFormat>) -> gleaner_traces::Format {
    match format.unwrap_or(ColumnFormat::Parquet) {
        ColumnFormat::Parquet => gleaner_traces::Format::Parquet,
        ColumnFormat::Csv => gleaner_traces::Format::Csv,
        ColumnFormat::Arrow => gleaner_traces::Format::Arrow,
    }
}

/// Ids of the requested hosts; `None` if all hosts are requested.
fn hosts(args: &Export, dataset: &Dataset) -> anyhow::Result<Option<BTreeSet<String>>> {
    let hosts = host_ids(&args.host, dataset)?;
    Ok(Some(hosts).filter(|hosts| !hosts.is_empty()))
}

/// Ids of hosts given by their ids or names.
pub(crate) fn host_ids(hosts: &[String], dataset: &Dataset) -> anyhow::Result<BTreeSet<String>> {
    hosts.iter().map(|host| host_id(host, dataset)).collect()
}

/// Id of the host with this id or name.
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
