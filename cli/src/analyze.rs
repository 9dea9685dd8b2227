//! `gleaner analyze`: findings as tables, or as JSON.

use crate::document::{Form, print_json};
use crate::tables;
use crate::values::{instant, part_of, range, size_bytes};
use anyhow::Context;
use gleaner_analysis::Plan;
use gleaner_dataset::Dataset;
use gleaner_schemas::findings::{Findings, Parameters};
use serde_json::{Map, Value};
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

/// Analyse a dataset: how much memory is available, when, for how long, and how much could be lent.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner analyze out/demo/dataset
  gleaner analyze DATASET --region 64MiB --region 1GiB --dip 512MiB
  gleaner analyze DATASET --time-zone Europe/Berlin --measure idle_by_hour --rows 168
  gleaner analyze DATASET --class 64MiB --class 128MiB --dip 8MiB --dip-percent 5
  gleaner analyze DATASET --from 2026-11-16T00:00:00+01:00 --until 2026-11-23T00:00:00+01:00
  gleaner analyze DATASET --json | jq '.availability_periods'
  gleaner analyze DATASET --json --records records > findings.json    # records of single hosts as Parquet
  gleaner analyze s3://traces/gleaner --json          # as a collector publishes it
  gleaner analyze DATASET --part 2/7 -o part-2        # on one of seven machines
  gleaner merge part-* --json > findings.json         # the same as of one machine

--from and --until take a date (UTC), an RFC 3339 time, or ms since 1970-01-01 UTC.
Durations look like 90s, 5m or 1h30m. Every measure: docs/analysis.md.")]
pub(crate) struct Analyze {
    /// Folder of the dataset, as written by `gleaner-agent export` or a collector, or s3://bucket/prefix.
    pub(crate) dataset: PathBuf,
    /// Print the findings as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the records of single hosts into Parquet files in this new folder, and leave them out of the JSON document.
    #[arg(long, value_name = "FOLDER", requires = "json")]
    pub(crate) records: Option<PathBuf>,
    /// Compute and print only this measure, named by its JSON key (repeatable, or comma-separated).
    #[arg(long, value_name = "KEY", value_delimiter = ',')]
    pub(crate) measure: Vec<String>,
    /// Maximum number of rows printed per measure.
    #[arg(long, default_value_t = 24, value_name = "N")]
    pub(crate) rows: usize,
    /// Use only records from this time on; periods that cross this time are cut.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) from: Option<i64>,
    /// Use only records before this time; periods that cross this time are cut.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) until: Option<i64>,
    /// Use the parameters of this JSON file, which may be findings, instead of options.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Measures", "measure", "from", "until"])]
    pub(crate) parameters: Option<PathBuf>,
    /// Print the plan of an analysis as JSON, for --plan: its parameters, with all defaults chosen, and the hosts. Analyse nothing.
    #[arg(long, conflicts_with_all = ["json", "part", "hosts", "plan"])]
    pub(crate) print_plan: bool,
    /// Plan of which --part or --hosts is a part. Without it, each part makes the plan anew, which takes a look at every file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["Measures", "measure", "from", "until", "parameters", "json"])]
    pub(crate) plan: Option<PathBuf>,
    /// Analyse only the hosts of part I, if the hosts are divided into N parts, and write the part to --output.
    #[arg(long, value_name = "I/N", value_parser = part_of, requires = "output", conflicts_with = "json")]
    pub(crate) part: Option<(usize, usize)>,
    /// Analyse only the hosts from A to before B in the order of ids, counted from 0, and write them to --output as a part.
    #[arg(long, value_name = "A..B", value_parser = range, requires = "output", conflicts_with_all = ["json", "part"])]
    pub(crate) hosts: Option<Range<usize>>,
    /// File for the part, which `gleaner merge` reads.
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) measures: Measures,
}

/// Thresholds of the measures.
#[derive(clap::Args)]
pub(crate) struct Measures {
    /// Drop availability periods shorter than this.
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) minimum_period: Duration,
    /// Time without activity and with low load after which a host counts as idle.
    #[arg(long, default_value = "5m", value_name = "TIME", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) idle_after: Duration,
    /// 5-minute load average from which a host counts as busy.
    #[arg(long, default_value_t = 0.3, value_name = "LOAD")]
    pub(crate) load_limit: f64,
    /// Percentage of physical memory that is never lent.
    #[arg(long, default_value_t = 15.0, value_name = "PERCENT")]
    pub(crate) headroom: f64,
    /// Upper bound of a class of hosts by memory size (repeatable; default: powers of two).
    #[arg(long = "class", value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) class_bytes: Vec<i64>,
    /// Time zone of the fleet (IANA name), used for hours and weekdays.
    #[arg(long, default_value = "UTC", value_name = "ZONE")]
    pub(crate) time_zone: String,
    /// Number of bootstrap resamples of the hosts, for confidence intervals (0: no intervals).
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) bootstrap: u32,
    /// Size of a region whose availability is measured (repeatable; default: chosen from the hosts' memory).
    #[arg(long = "region", value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) region_bytes: Vec<i64>,
    /// Available memory below which a sample counts as a dip (repeatable; default: chosen from the hosts' memory).
    #[arg(long = "dip", value_name = "SIZE", value_parser = size_bytes)]
    pub(crate) dip_bytes: Vec<i64>,
    /// Threshold of dips as a percentage of each host's memory (repeatable).
    #[arg(long, value_name = "PERCENT", default_values_t = [5.0, 10.0, 25.0])]
    pub(crate) dip_percent: Vec<f64>,
    /// Maximum number of points per survival curve (0: all points).
    #[arg(long, default_value_t = 60, value_name = "COUNT")]
    pub(crate) curve_points: u32,
}

pub(crate) fn run(args: &Analyze, output: &mut dyn Write) -> anyhow::Result<()> {
    let dataset = gleaner_objects::open(&args.dataset)?;
    if args.print_plan {
        return print_json(&Plan::new(&dataset, &requested(args)?)?, output);
    }
    if let Some(file) = &args.output {
        return write_part(&dataset, &planned(&dataset, args)?, file);
    }
    let mut parameters = requested(args)?;
    if !args.json && parameters.measures.is_empty() {
        parameters.measures = tables::printed();
    }
    let form = Form {
        json: args.json,
        records: args.records.as_deref(),
        measures: &args.measure,
        rows: args.rows,
    };
    form.check(dataset.hosts()?.len(), &parameters)?;
    form.print(findings_of(&dataset, &parameters, "analyse")?, output)
}

/// Plan of the part that the options name.
fn planned(dataset: &Dataset, args: &Analyze) -> anyhow::Result<Plan> {
    let plan = match &args.plan {
        Some(file) => {
            let text = std::fs::read(file).with_context(|| file.display().to_string())?;
            let plan = serde_json::from_slice(&text);
            plan.with_context(|| format!("{}: this is no plan of an analysis", file.display()))?
        }
        None => Plan::new(dataset, &requested(args)?)?,
    };
    let hosts = match (&args.part, &args.hosts) {
        (Some((number, parts_count)), _) => plan.ranges(*parts_count).nth(number - 1),
        (None, hosts) => hosts.clone(),
    };
    Ok(match hosts {
        Some(hosts) => plan.part(hosts)?,
        None => plan,
    })
}

/// Parameters from the file of `--parameters`, or from the options.
pub(crate) fn requested(args: &Analyze) -> anyhow::Result<Parameters> {
    if let Some(file) = &args.parameters {
        return from_file(file);
    }
    Ok(Parameters {
        from_time_ms: args.from,
        until_time_ms: args.until,
        measures: args.measure.clone(),
        ..parameters(&args.measures)
    })
}

/// Parameters in a JSON file: an object of parameters, or one whose key `parameters` has them.
fn from_file(path: &Path) -> anyhow::Result<Parameters> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let parsed = from_json(&text);
    parsed.with_context(|| format!("{}: these are no parameters of an analysis", path.display()))
}

/// Parameters in a JSON text: an object of parameters, or one whose key `parameters` has them. Absent keys have
/// their defaults. Unknown keys, which serde would ignore, are refused.
pub(crate) fn from_json(text: &str) -> anyhow::Result<Parameters> {
    let document: Map<String, Value> = serde_json::from_str(text)?;
    let given = match document.get("parameters") {
        Some(parameters) => parameters
            .as_object()
            .context("`parameters` is no object")?,
        None => &document,
    };
    let known = serde_json::to_value(Parameters::default())?;
    let known = known.as_object().context("parameters are no object")?;
    if let Some(unknown) = given.keys().find(|key| !known.contains_key(*key)) {
        let keys: Vec<&str> = known.keys().map(String::as_str).collect();
        anyhow::bail!(
            "there is no parameter {unknown:?}: there are {}",
            keys.join(", ")
        );
    }
    Ok(serde_json::from_value(Value::Object(given.clone()))?)
}

fn write_part(dataset: &Dataset, plan: &Plan, output: &Path) -> anyhow::Result<()> {
    let bar = gleaner_terminal::bar("analyse", plan.hosts_count() as u64);
    let part = gleaner_analysis::analyze_part(dataset, plan, &mut |p| {
        bar.set_position(p.hosts_done as u64);
    })?;
    bar.finish_and_clear();
    Ok(part.write(output)?)
}

/// Parameters of the measures, from the command's options. Parameters without an option have their defaults.
pub(crate) fn parameters(measures: &Measures) -> Parameters {
    Parameters {
        minimum_period_s: measures.minimum_period.as_secs_f64(),
        idle_after_s: measures.idle_after.as_secs_f64(),
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

/// Analyses the dataset in `folder` (or at a URL), and shows a progress bar.
pub(crate) fn findings(folder: &Path, parameters: &Parameters) -> anyhow::Result<Findings> {
    findings_of(&gleaner_objects::open(folder)?, parameters, "analyse")
}

/// Analyses an open dataset; `label` is the text of the progress bar.
pub(crate) fn findings_of(
    dataset: &Dataset,
    parameters: &Parameters,
    label: &str,
) -> anyhow::Result<Findings> {
    let bar = gleaner_terminal::bar(label, 0);
    let findings = gleaner_analysis::analyze(dataset, parameters, &mut |p| {
        bar.set_length(p.hosts_count as u64);
        bar.set_position(p.hosts_done as u64);
    })?;
    bar.finish_and_clear();
    Ok(findings)
}

/// Makes glibc keep freed memory. Each host's columns are as large as the previous host's. By default glibc
/// would return their memory to the kernel after each host and get it back page by page, which took a sixth
/// of the time. Only the program calls this: a library must not change its process's allocator.
pub(crate) fn keep_freed_memory() {
    const LARGEST_BYTES: i32 = 1 << 30;
    // SAFETY: mallopt(3) sets two numbers; no thread of the analysis runs yet.
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code)]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGEST_BYTES);
    }
}
