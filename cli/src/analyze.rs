//! `gleaner analyze`: findings as tables, or as JSON.

use crate::args::{Analyze, Measures};
use crate::{progress, tables};
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
use std::io::Write;
use std::path::Path;

pub(crate) fn run(args: &Analyze) -> anyhow::Result<()> {
    let mut parameters = parameters(&args.measures);
    parameters.from_time_ms = args.from;
    parameters.until_time_ms = args.until;
    parameters.measures = match (args.json, args.measure.is_empty()) {
        (false, true) => tables::printed(),
        _ => args.measure.clone(),
    };
    let findings = findings(&args.dataset, &parameters)?;
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    if args.json {
        // As it is made: a fleet's document may be large.
        serde_json::to_writer_pretty(&mut output, &findings).map_err(std::io::Error::from)?;
        writeln!(output)?;
    } else {
        output.write_all(tables::all(&findings, &args.measure, args.rows)?.as_bytes())?;
    }
    output.flush()?;
    Ok(())
}

/// The measures asked for; what was not said keeps the paper's value.
pub(crate) fn parameters(measures: &Measures) -> Parameters {
    Parameters {
        minimum_period_s: measures.minimum_period,
        idle_after_s: measures.idle_after,
        load_limit: measures.load_limit,
        headroom_share: measures.headroom / 100.0,
        curve_points_count: measures.curve_points,
        region_bytes: measures.region_bytes.clone(),
        dip_threshold_bytes: measures.dip_bytes.clone(),
        dip_threshold_shares: measures.dip_percent.iter().map(|p| p / 100.0).collect(),
        size_class_bytes: measures.class_bytes.clone(),
        time_zone: measures.time_zone.clone(),
        bootstrap_count: measures.bootstrap,
        ..Parameters::default()
    }
}

/// Analyses the dataset in `folder`, with a bar while it works.
pub(crate) fn findings(folder: &Path, parameters: &Parameters) -> anyhow::Result<Findings> {
    findings_of(&Dataset::open(folder)?, parameters, "analyse")
}

/// The same of a dataset that is open, with a label for the bar.
pub(crate) fn findings_of(
    dataset: &Dataset,
    parameters: &Parameters,
    label: &str,
) -> anyhow::Result<Findings> {
    keep_freed_memory();
    let bar = progress::bar(label, dataset.hosts()?.len() as u64);
    let findings = gleaner_analysis::analyze(dataset, parameters, &mut |p| {
        bar.set_position(p.hosts_done as u64);
    })?;
    bar.finish_and_clear();
    Ok(findings)
}

/// Each host's columns are as large as the last one's: glibc would give them back and fetch them anew, page by page, for
/// every host (a sixth of the time).
fn keep_freed_memory() {
    const LARGEST_BYTES: i32 = 1 << 30;
    // SAFETY: mallopt(3) sets two numbers; no thread of the analysis runs yet.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGEST_BYTES);
    }
}

/// The findings as one JSON document.
pub(crate) fn json(findings: &Findings) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(findings)? + "\n")
}
