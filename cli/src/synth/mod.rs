//! The command `gleaner synth`.

pub(crate) mod args;

use anyhow::Context;
use args::{Synth, SynthPreset};
use gleaner_schemas::units::Bytes;
use gleaner_traces::synth::{Cluster, Fleet, Parameters, Preset, Progress, write};
use jiff::tz::TimeZone;
use std::io::Write;

pub(crate) fn run(args: &Synth, output: &mut dyn Write) -> anyhow::Result<()> {
    let preset = match args.preset {
        SynthPreset::Modern => Preset::Modern,
        SynthPreset::AcharyaSetiaA => Preset::AcharyaSetiaA,
        SynthPreset::AcharyaSetiaB => Preset::AcharyaSetiaB,
        SynthPreset::AcharyaSetia => Preset::AcharyaSetia,
    };
    // Without an output there is --print: clap guarantees that.
    let Some(folder) = &args.output else {
        output.write_all(preset.text().as_bytes())?;
        return Ok(());
    };
    let mut parameters = match &args.fleet {
        Some(path) => Parameters::of_fleet(Fleet::open(path)?, args.cluster.as_deref(), args.seed)?,
        None => Parameters::of_preset(preset, args.seed)?,
    };
    parameters.hosts = args.hosts.unwrap_or(parameters.hosts);
    parameters.days = args.days.unwrap_or(parameters.days);
    parameters.always_on = args.always_on;
    parameters.interval_ms = i64::try_from(args.interval.as_millis()).unwrap_or(i64::MAX);
    if let Some(start) = args.start {
        let start = start.to_zoned(TimeZone::UTC).context("--start")?;
        parameters.start_ms = start.timestamp().as_millisecond();
    }
    let cluster = Cluster::new(&parameters)?;
    let bar = gleaner_terminal::bar("synth", 1);
    let written = write(&cluster, folder, |p: &Progress| {
        bar.set_length(p.host_days_in_all);
        bar.set_position(p.host_days);
        bar.set_message(format!("{} rows", p.rows));
    })?;
    bar.finish_and_clear();
    let fleet = &parameters.fleet;
    let text = if args.json {
        let summary = serde_json::json!({
            "dataset": written.dataset,
            "fleet": fleet.name,
            "basis": fleet.basis,
            "hosts_count": parameters.hosts,
            "days_count": parameters.days,
            "seed": args.seed,
            "records_count": written.records,
            "rows_count": written.rows,
            "files_count": written.files,
            "files_bytes": written.bytes,
        });
        format!("{summary:#}\n")
    } else {
        format!(
            "{} rows of {} synthetic hosts in {} files ({}) in {}\nBasis of the fleet \"{}\": {}.\n",
            written.rows,
            parameters.hosts,
            written.files,
            Bytes::from(written.bytes),
            written.dataset.display(),
            fleet.name,
            fleet.basis,
        )
    };
    output.write_all(text.as_bytes())?;
    Ok(())
}
