//! `gleaner explain`: how the figures of one host at one instant were computed.

use crate::tables::plain;
use crate::values::instant;
use gleaner_schemas::findings::{
    ExplainedCategory, ExplainedConsumer, ExplainedQuota, Explanation, Parameters, Term,
};
use gleaner_schemas::units::{Bytes, Seconds};
use jiff::Timestamp;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

/// Show how a host's memory categories, idle state and quota were computed at one time.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner explain out/demo/dataset --host otter
  gleaner explain DATASET --host otter --at 2026-11-21T14:03:00+01:00
  gleaner explain DATASET --host 3f2a9c0d1b4e5f60 --at 1795269780000 --json

--at takes a date (UTC), an RFC 3339 time, or ms since 1970-01-01 UTC; the last sample before it is explained.")]
pub(crate) struct Explain {
    /// Folder of the dataset, or s3://bucket/prefix.
    pub(crate) dataset: PathBuf,
    /// Id or name of the host.
    #[arg(long)]
    pub(crate) host: String,
    /// Time to explain [default: the host's last sample].
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) at: Option<i64>,
    /// Percentage of physical memory that is never lent.
    #[arg(long, value_name = "PERCENT", default_value_t = 15.0)]
    pub(crate) headroom: f64,
    /// Print the explanation as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Explain, output: &mut dyn Write) -> anyhow::Result<()> {
    let dataset = gleaner_objects::open(&args.dataset)?;
    let parameters = Parameters {
        headroom_share: args.headroom / 100.0,
        ..Parameters::default()
    };
    let found = gleaner_analysis::explain(&dataset, &args.host, args.at, &parameters)?;
    let text = if args.json {
        serde_json::to_string_pretty(&found)? + "\n"
    } else {
        plain(&words(&found))
    };
    output.write_all(text.as_bytes())?;
    Ok(())
}

fn words(e: &Explanation) -> String {
    let mut text = format!(
        "{} ({}), sample of {} (record {} of database {})\n",
        e.host_name,
        e.host_id,
        time(e.time_ms),
        e.sequence,
        e.database_id
    );
    if let Some(source) = &e.source {
        let _ = writeln!(
            text,
            "imported from {}\n  {}",
            source.name,
            source.meaning()
        );
    }
    text += "\nMemory\n";
    for category in &e.categories {
        text += &self::category(category);
    }
    text += &idle(e);
    match &e.quota {
        Some(quota) => text += &self::quota(quota, e.idle.verdict == "idle"),
        None => text += "\nLease quota\n  unknown: the trace does not say where memory went\n",
    }
    text += &consumers("Active processes, largest first", &e.processes);
    text += &consumers("Files in use, most cached first", &e.files);
    if !e.missing_values.is_empty() {
        text += "\nCould not be read then\n";
        for missing in &e.missing_values {
            let _ = writeln!(text, "  {missing}");
        }
    }
    text
}

fn category(c: &ExplainedCategory) -> String {
    let bytes = |bytes: Option<i64>| bytes.map_or_else(|| "not known".into(), signed);
    let share = c
        .share
        .map_or_else(String::new, |s| format!("{:.1} %", s * 100.0));
    let mut text = format!(
        "  {:<15} {:>10} {share:>7}   {}\n",
        c.category.replace('_', " "),
        bytes(c.bytes),
        c.meaning
    );
    text += &terms(&c.terms, 17);
    if let Some(rest) = c.unexplained_bytes.filter(|rest| *rest != 0) {
        let _ = writeln!(
            text,
            "{:17} {:>11}  not explained by the above",
            "",
            signed(rest)
        );
    }
    text
}

fn terms(terms: &[Term], indent: usize) -> String {
    let shown = terms.iter().filter(|t| t.bytes != Some(0));
    shown.fold(String::new(), |mut text, term| {
        let bytes = match term.bytes {
            Some(bytes) if bytes < 0 => format!("− {}", Bytes::from(-bytes)),
            Some(bytes) => format!("+ {}", Bytes::from(bytes)),
            None => "not known".to_owned(),
        };
        let _ = writeln!(text, "{:indent$} {bytes:>12}  {}", "", term.name);
        text
    })
}

fn idle(e: &Explanation) -> String {
    let idle = &e.idle;
    let owner = idle
        .owner_idle_s
        .map_or_else(|| "unknown".to_owned(), |s| format!("{} ago", Seconds(s)));
    let load = idle
        .load5
        .map_or_else(|| "unknown".to_owned(), |l| format!("{l:.2}"));
    let mut text = format!(
        "\nIdle?  {}: {}\n  owner last active {owner}; 5-minute load {load}; the rule: no activity and a load below {:.2}, both for {}\n",
        idle.verdict,
        idle.reason,
        idle.load_limit,
        Seconds(idle.idle_after_s)
    );
    if let (Some(from), Some(to)) = (idle.from_time_ms, idle.to_time_ms) {
        let _ = writeln!(
            text,
            "  in an idle period from {} to {}",
            time(from),
            time(to)
        );
    }
    text
}

fn quota(q: &ExplainedQuota, is_idle: bool) -> String {
    let mut text = format!("\nLease quota  {}\n", signed(q.quota_bytes));
    let _ = writeln!(text, "  paper's quota {}", signed(q.paper_quota_bytes));
    text += &terms(&q.paper_quota_terms, 4);
    let harvestable = q
        .harvestable_bytes
        .map_or_else(|| "not known".into(), signed);
    let lent = q
        .paper_quota_terms
        .iter()
        .find(|t| t.name == "lent already");
    let lent = lent.and_then(|t| t.bytes).filter(|bytes| *bytes > 0);
    let lent = lent.map_or_else(String::new, |bytes| {
        format!(", and {} lent already", signed(bytes))
    });
    let _ = writeln!(
        text,
        "  harvestable {harvestable} (MemAvailable less the headroom){lent}"
    );
    let _ = writeln!(
        text,
        "  the smaller of the two, {}, {}",
        signed(q.idle_quota_bytes),
        if is_idle {
            "since the host is idle"
        } else {
            "were the host idle; it is not"
        }
    );
    text
}

fn consumers(heading: &str, all: &[ExplainedConsumer]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut t = gleaner_terminal::table(&["name", "pid", "size"], 1);
    for consumer in all {
        t.add_row(vec![
            consumer.name.clone(),
            consumer.pid.map_or_else(String::new, |pid| pid.to_string()),
            consumer.bytes.map_or_else(|| "not known".into(), signed),
        ]);
    }
    format!("\n{heading}\n{}\n", t.trim_fmt())
}

fn signed(bytes: i64) -> String {
    Bytes::from(bytes).to_string()
}

fn time(ms: i64) -> String {
    let time = Timestamp::from_millisecond(ms);
    time.map_or_else(|_| format!("{ms} ms"), |time| time.to_string())
}
