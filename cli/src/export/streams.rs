//! `gleaner export --stream FILE --to oracleGeneral|csv`: requests that programs made, from one format into another.

use crate::args::{self, Format};
use anyhow::{Context, bail};
use clap::ValueEnum;
use gleaner_schemas::units::Bytes;
use gleaner_simulator::streams::read::{self, BlockBytes, Columns, Requests};
use gleaner_simulator::streams::write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct ExportStreams {
    /// A recorded stream (repeatable: recorded at once, a client each). `.zst` is decompressed.
    #[arg(
        long,
        value_name = "FILE",
        requires = "stream_format",
        required_if_eq("to", "oracleGeneral")
    )]
    pub(crate) stream: Vec<PathBuf>,
    /// Its format.
    #[arg(long, value_enum, requires = "stream")]
    pub(crate) stream_format: Option<StreamFormat>,
    /// Of csv: which column is what, as libCacheSim says it: time-col=2,obj-id-col=5,obj-size-col=4,has-header=true
    /// [default: the columns that --to csv writes].
    #[arg(long, value_name = "PARAMETERS", requires = "stream")]
    pub(crate) stream_params: Option<String>,
    /// Of spc and blocks: the size of the blocks that are the objects, a power of two from 512 on [default: 4KiB].
    #[arg(long, value_name = "SIZE", value_parser = args::size_bytes, requires = "stream")]
    pub(crate) block: Option<i64>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StreamFormat {
    /// libCacheSim's binary format, 24 bytes a request.
    #[value(name = "oracleGeneral")]
    OracleGeneral,
    /// Text, a request a line.
    Csv,
    /// The Storage Performance Council's: ASU, LBA, size, opcode, timestamp.
    Spc,
    /// CSV of requests to volumes: time_s, client, op, offset_bytes, bytes.
    Blocks,
}

pub(super) fn run(args: &args::Export) -> anyhow::Result<()> {
    let requests = requests(&args.streams)?;
    let written = match args.to {
        Format::OracleGeneral => write::oracle_general(&args.output, requests)?,
        Format::Csv => write::csv(&args.output, requests)?,
        _ => bail!("streams are written --to oracleGeneral or csv"),
    };
    println!(
        "{} requests ({}) in {}",
        written.requests,
        Bytes::from(written.bytes),
        args.output.display()
    );
    Ok(())
}

/// What is written: files, opened. The requests of an application's generator are as good a stream (`streams::of_program`).
pub(crate) fn requests(asked: &ExportStreams) -> anyhow::Result<Requests> {
    let format = asked.stream_format.context("--stream-format is missing")?;
    let is_of_blocks = matches!(format, StreamFormat::Spc | StreamFormat::Blocks);
    if asked.block.is_some() && !is_of_blocks {
        bail!("--block says nothing of this format: its objects are named");
    }
    if asked.stream_params.is_some() && format != StreamFormat::Csv {
        bail!("--stream-params says nothing of this format: its columns are fixed");
    }
    let block = match asked.block {
        None => Some(BlockBytes::default()),
        Some(bytes) => u32::try_from(bytes).ok().and_then(BlockBytes::new),
    };
    let block = block.context("--block is no power of two from 512 to 2GiB")?;
    let format = match format {
        StreamFormat::OracleGeneral => read::Format::OracleGeneral,
        StreamFormat::Csv => read::Format::Csv(match &asked.stream_params {
            Some(text) => Columns::of(text).context("--stream-params")?,
            None => Columns::ours(),
        }),
        StreamFormat::Spc => read::Format::Spc(block),
        StreamFormat::Blocks => read::Format::BlockCsv(block),
    };
    Ok(read::open_all(&asked.stream, &format)?)
}
