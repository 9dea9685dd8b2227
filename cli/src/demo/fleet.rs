//! Report page of a synthetic fleet, written in addition to this host's page: half a minute on one host shows
//! little of what a report contains.

use crate::{analyze, report};
use gleaner_schemas::findings::{Findings, Parameters as Measures};
use gleaner_traces::synth::{Cluster, Parameters, Preset, Progress, write};
use std::path::{Path, PathBuf};

const HOSTS: usize = 12;
const DAYS: u32 = 7;
const INTERVAL_MS: i64 = 15 * 60_000;
/// Number of bootstrap resamples for the intervals on the page. Few are enough, since the hosts are invented.
const RESAMPLES: u32 = 100;

/// Writes the fleet's dataset and its page into the demo's folder; returns the page's path.
pub(super) fn write_page(folder: &Path) -> anyhow::Result<PathBuf> {
    let mut parameters = Parameters::of_preset(Preset::Modern, 1)?;
    (parameters.hosts, parameters.days, parameters.interval_ms) = (HOSTS, DAYS, INTERVAL_MS);
    let dataset = folder.join("synthetic-fleet");
    let bar = gleaner_terminal::bar("synth", 1);
    write(&Cluster::new(&parameters)?, &dataset, |p: &Progress| {
        bar.set_length(p.host_days_in_all);
        bar.set_position(p.host_days);
    })?;
    bar.finish_and_clear();
    let measures = Measures {
        bootstrap_count: RESAMPLES,
        measures: Findings::keys(),
        ..Measures::default()
    };
    let findings = analyze::findings(&dataset, &measures)?;
    let title = format!("A synthetic fleet: {HOSTS} invented hosts, nothing measured");
    let path = folder.join("synthetic-fleet.html");
    report::write(&path, &report::page(&findings, title, "UTC")?)?;
    Ok(path)
}
