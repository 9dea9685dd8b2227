//! `gleaner demo`: traces this host, analyses the trace and writes a report, with the real programs.

mod fleet;
mod load;
mod tracing;

use crate::{analyze, document, report, tables};
use anyhow::{Context, bail};
use gleaner_schemas::findings::{Findings, Parameters};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Trace this host for a short while under a small load, then analyse and report.
///
/// Runs `gleaner collect --local` with a sample each second while the demo's own load fills and frees memory and
/// touches a file. Ctrl-C ends the trace early; the shorter trace is still reported.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner demo
  gleaner demo --seconds 300 --output /tmp/demo

Writes trace.db, dataset/, findings.json and report.html into the output folder, and the files of `collect --local`.")]
pub(crate) struct Demo {
    /// Length of the trace in seconds, 3 to 86400.
    #[arg(long, env = "DEMO_SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(3..=86_400))]
    pub(crate) seconds: u64,
    /// Folder to write to; files of an earlier demo are replaced.
    #[arg(long, short, default_value = "out/demo")]
    pub(crate) output: PathBuf,
}

/// Files and folders that a demo writes. A folder is named with a file in it by which a folder of an earlier
/// demo is recognised: only such a folder is replaced, and nothing else in the output folder is touched.
const OUTPUTS: [(&str, Option<&str>); 14] = [
    ("trace.db", None),
    ("trace.db-wal", None),
    ("trace.db-shm", None),
    ("trace.db-lock", None),
    ("trace.db-key", None),
    ("trace.db-ship-lock", None),
    ("pki", Some("authority.crt")),
    ("ship", Some("host.pem")),
    ("collector", Some("lock")),
    ("dataset", Some("manifest.json")),
    ("findings.json", None),
    ("report.html", None),
    ("synthetic-fleet", Some("manifest.json")),
    ("synthetic-fleet.html", None),
];

/// Interval at which the progress bar moves and the agent is checked.
const TICK: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Demo) -> anyhow::Result<()> {
    let folder = &args.output;
    prepare(folder)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }

    trace(args, &stop)?;
    let dataset = folder.join("dataset");

    // A short trace contains no period of five minutes, so the demo counts shorter periods too.
    let parameters = Parameters {
        minimum_period_s: 0.0,
        measures: Findings::keys(),
        ..Parameters::default()
    };
    let findings = analyze::findings(&dataset, &parameters)?;
    report::write(&folder.join("findings.json"), &document::json(&findings)?)?;
    let page = report::page(&findings, report::title(&findings), "UTC")?;
    let report_path = folder.join("report.html");
    report::write(&report_path, &page)?;

    let fleet_path = fleet::write_page(folder)?;

    println!("{}", tables::memory(&findings));
    let shown = |path: PathBuf| path.canonicalize().unwrap_or(path).display().to_string();
    println!(
        "A synthetic fleet's report (invented hosts): {}",
        shown(fleet_path)
    );
    println!("Report: {}", shown(report_path));
    Ok(())
}

/// Traces for the requested time, or until a signal.
fn trace(args: &Demo, stop: &AtomicBool) -> anyhow::Result<()> {
    let mut collection = tracing::Collection::start(&args.output)?;
    let load = load::Load::start(&args.output)?;
    let bar = gleaner_terminal::bar("trace", args.seconds * 1000);
    let begin = Instant::now();
    let whole = Duration::from_secs(args.seconds);
    let mut early = false;
    while begin.elapsed() < whole {
        if stop.load(std::sync::atomic::Ordering::Relaxed) {
            early = true;
            break;
        }
        collection.check()?;
        bar.set_position(begin.elapsed().as_millis() as u64);
        bar.set_message(load.describe());
        std::thread::sleep(TICK);
    }
    bar.finish_and_clear();
    load.stop()?;
    collection.stop()?;
    if early {
        eprintln!(
            "Stopped after {:.0} s; reporting on what was traced.",
            begin.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

fn prepare(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, holds) in OUTPUTS {
        let path = folder.join(name);
        let removed = match fs::symlink_metadata(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => Err(e),
            Ok(m) if m.is_dir() && !holds.is_some_and(|file| path.join(file).exists()) => {
                bail!(
                    "{} was not made by an earlier demo: remove it, or choose another --output",
                    path.display()
                )
            }
            Ok(m) if m.is_dir() => fs::remove_dir_all(&path),
            Ok(_) => fs::remove_file(&path),
        };
        removed.with_context(|| format!("cannot replace {}", path.display()))?;
    }
    Ok(())
}
