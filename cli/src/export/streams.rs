//! `gleaner export --stream FILE --to oracleGeneral|csv`: converts requests that programs made from one
//! format to another.

use super::args::{Export, ExportStreams, Format, StreamFormat};
use anyhow::{Context, bail};
use gleaner_schemas::units::Bytes;
use gleaner_simulator::streams::read::{self, BlockBytes, Columns, Requests};
use gleaner_simulator::streams::write;
use std::io::Write;

pub(super) fn run(args: &Export, output: &mut dyn Write) -> anyhow::Result<()> {
    let requests = requests(&args.streams)?;
    let written = match args.to {
        Format::OracleGeneral => write::oracle_general(&args.output, requests)?,
        Format::Csv => write::csv(&args.output, requests)?,
        _ => bail!("streams are written --to oracleGeneral or csv"),
    };
    writeln!(
        output,
        "{} requests ({}) in {}",
        written.requests,
        Bytes::from(written.bytes),
        args.output.display()
    )?;
    Ok(())
}

/// Opens the files and returns their requests as one stream. (`streams::of_program` generates such a stream
/// from a simulated program.)
pub(crate) fn requests(asked: &ExportStreams) -> anyhow::Result<Requests> {
    let format = asked.stream_format.context("--stream-format is missing")?;
    if asked.block.is_some() && !format.is_of_blocks() {
        bail!("--block does not apply to this format, whose objects are named");
    }
    if asked.stream_params.is_some() && format != StreamFormat::Csv {
        bail!("--stream-params does not apply to this format, whose columns are fixed");
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
        StreamFormat::Lackey => read::Format::Lackey(block),
    };
    Ok(read::open_all(&asked.stream, &format)?)
}
