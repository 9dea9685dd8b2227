//! Makes a curve from a recorded stream of another program.

use super::super::args::Record;
use crate::export::args::ExportStreams;
use crate::export::streams::requests;
use anyhow::{Context, bail};
use gleaner_schemas::curve::{Curve, Recorder};
use gleaner_schemas::units::thousands;
use gleaner_simulator::references::{
    self, Faults, PAGE_BYTES, RunFacts, StreamAnalysis, analyse, estimate, memory_sizes,
};
use std::time::Instant;

/// Seeds of the two samples. The curve is of the first one; the second one shows the error.
const SEEDS: [u64; 2] = [1, 2];
/// Shortest duration of a stream that is taken for the program's, in seconds.
const LEAST_S: f64 = 1e-9;

/// Reads the streams, and returns their curve and a line on the cost.
pub(super) fn record(args: &Record) -> anyhow::Result<(Curve, String)> {
    let open = || {
        requests(&ExportStreams {
            stream: args.stream.clone(),
            stream_format: args.stream_format,
            stream_params: args.stream_params.clone(),
            // Pages of named objects have a size, but are no blocks of a volume.
            block: args.block.filter(|_| {
                args.stream_format
                    .is_some_and(|format| format.is_of_blocks())
            }),
        })
    };
    let page_bytes = args
        .block
        .map_or(Some(PAGE_BYTES), |bytes| u64::try_from(bytes).ok());
    let page_bytes =
        page_bytes.filter(|bytes| bytes.is_power_of_two() && (512..=1 << 31).contains(bytes));
    let page_bytes = page_bytes.context("--block is no power of two from 512 to 2GiB")?;
    let bar = gleaner_terminal::bar("analyse", 1);
    let progress = |done: u64| bar.set_message(format!("{} requests", thousands(done)));
    let sizes = |footprint_pages| memory_sizes(1, footprint_pages);
    let mut last_ns = 0;
    let begin = Instant::now();
    let first = open()?;
    let mut begin_ns = None;
    let timed = first.inspect(|read| {
        if let Ok(read) = read {
            let begin_ns = *begin_ns.get_or_insert(read.at_ns);
            last_ns = last_ns.max(read.at_ns.saturating_sub(begin_ns));
        }
    });
    let [seed, second_seed] = SEEDS;
    let analysed = match args.sampled {
        true => estimate(timed, seed, sizes, progress)?,
        false => analyse(timed, sizes, progress)?,
    };
    let seconds = begin.elapsed().as_secs_f64();
    let mut cost = format!(
        "{} requests were analysed in {seconds:.2} s.",
        thousands(analysed.references)
    );
    if args.sampled {
        let sizes = analysed.sizes.clone();
        let second = estimate(open()?, second_seed, |_| sizes, progress)?;
        let error = mean_difference(&analysed, &second.faults);
        cost += &format!(" A second sample differs by {error:.4} of the requests on average.");
    }
    bar.finish_and_clear();
    let native_s = args.native_s.unwrap_or(last_ns as f64 * 1e-9);
    if native_s < LEAST_S {
        bail!("the stream has no times: give the program's CPU time with --native-s");
    }
    let file = args.stream.first().and_then(|path| path.file_name());
    let measured = RunFacts {
        program: file.unwrap_or_default().to_string_lossy().into_owned(),
        native_cpu_s: native_s,
        native_wall_s: native_s,
        page_bytes,
        references: analysed.references,
        recorder: Recorder {
            name: args
                .stream_format
                .map(|format| format.name())
                .unwrap_or_default(),
            processes_count: 1,
            threads_count: 1,
            has_code: false,
        },
        sampled_share: analysed.sampled_share,
        ..RunFacts::default()
    };
    let StreamAnalysis {
        sizes,
        faults,
        profile,
        ..
    } = analysed;
    Ok((references::curve(measured, &sizes, &faults, profile), cost))
}

/// Mean absolute difference of two estimates, as a share of the references.
fn mean_difference(first: &StreamAnalysis, second: &[Faults]) -> f64 {
    let differences = first.faults.iter().zip(second);
    let sum: f64 = differences.map(|(a, b)| (a.reuse - b.reuse).abs()).sum();
    sum / first.faults.len().max(1) as f64 / (first.references as f64).max(1.0)
}
