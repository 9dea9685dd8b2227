//! `gleaner synth`.

use crate::args::Synth;
use crate::progress;
use anyhow::Context;
use gleaner_schemas::units::Bytes;
use gleaner_traces::synth::{Cluster, Parameters, Progress, write};
use jiff::tz::TimeZone;
use std::io::Write;

pub(crate) fn run(args: &Synth) -> anyhow::Result<()> {
    let start = args.start.to_zoned(TimeZone::UTC);
    let cluster = Cluster::new(&Parameters {
        hosts: args.hosts,
        days: args.days,
        start_ms: start.context("--start")?.timestamp().as_millisecond(),
        interval_ms: i64::try_from(args.interval.as_millis()).unwrap_or(i64::MAX),
        seed: args.seed,
        always_on: args.always_on,
    })?;
    let bar = progress::bar("synth", 1);
    let written = write(&cluster, &args.output, |p: &Progress| {
        bar.set_length(p.host_days_in_all);
        bar.set_position(p.host_days);
        bar.set_message(format!("{} rows", p.rows));
    })?;
    bar.finish_and_clear();
    let text = if args.json {
        let summary = serde_json::json!({
            "dataset": written.dataset,
            "hosts_count": args.hosts,
            "days_count": args.days,
            "seed": args.seed,
            "records_count": written.records,
            "rows_count": written.rows,
            "files_count": written.files,
            "files_bytes": written.bytes,
        });
        format!("{summary:#}\n")
    } else {
        format!(
            "{} rows of {} synthetic hosts in {} files ({}) in {}\n",
            written.rows,
            args.hosts,
            written.files,
            Bytes::from(written.bytes),
            written.dataset.display()
        )
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}
