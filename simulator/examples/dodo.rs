//! `cargo run --release -p gleaner-simulator --example dodo -- CLUSTER_A CLUSTER_B [SCENARIO.json [PROGRAM
//! ...]]` prints Tables 5 and 6 of Acharya & Setia next to the results of a simulation. It simulates the week
//! from 14 September 1998 on two datasets, which `gleaner synth --preset acharya-setia-a` and `-b` make. The
//! settings of `SCENARIO.json` hold for all programs. For a client other than the study's, dmine, db2 and lu
//! are calibrated again.

use gleaner_dataset::{Dataset, instant_ms};
use gleaner_simulator::applications::Application;
use gleaner_simulator::calibrate;
use gleaner_simulator::dodo::{Client, Outcome, Scenario, simulate};
use gleaner_simulator::hosts::read;
use gleaner_traces::published::{PublishedWork, acharya_setia};
use std::time::Instant;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [a, b, rest @ ..] = &arguments[..] else {
        return Err("usage: dodo CLUSTER_A CLUSTER_B [SCENARIO.json [PROGRAM ...]]".into());
    };
    let (scenario, programs) = match rest {
        [file, programs @ ..] => (
            serde_json::from_str(&std::fs::read_to_string(file)?)?,
            programs,
        ),
        [] => (Scenario::default(), rest),
    };
    let is_wanted = |application: &Application| {
        programs.is_empty() || programs.iter().any(|name| name == application.name())
    };
    let published = acharya_setia()?;
    let begin_ms = instant_ms("1998-09-14").ok_or("no such day")?;
    let end_ms = begin_ms + (scenario.length_ns / 1_000_000).cast_signed();
    for (cluster, folder) in [("cluster A", a), ("cluster B", b)] {
        let begun = Instant::now();
        let reading = scenario.recruitment.reading(begin_ms, end_ms);
        let hosts = read(&Dataset::open(folder)?, &reading)?;
        let changes: usize = hosts.iter().map(|host| host.changes.len()).sum();
        println!(
            "{cluster}: {} hosts, {changes} changes, read in {:.1} s",
            hosts.len(),
            begun.elapsed().as_secs_f64()
        );
        println!(
            "         ideal       speedup     share of gain     reclaims/day context KB     median upper KB  held MiB of | runs  requests     s   p5  p95"
        );
        println!(
            "         paper ours  paper ours  paper ours diff   paper  ours  paper    ours  ours   ours      can be lent  |                      by hour"
        );
        for application in Application::STUDY.into_iter().filter(is_wanted) {
            let mut scenario = Scenario {
                application,
                ..scenario.clone()
            };
            // The compute times of these programs were calibrated on the study's client, so another client
            // needs new ones.
            if scenario.client != Client::default() && application.is_calibrated() {
                let ideal = published.get("Table 5", application.name(), "ideal");
                let ideal = ideal.map_or(f64::NAN, |figure| figure.paper);
                scenario.think_ns = calibrate(application, ideal, &scenario)?;
            }
            let begun = Instant::now();
            let outcome = simulate(&scenario, &hosts)?;
            print(&published, cluster, &outcome, begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

fn print(published: &PublishedWork, cluster: &str, outcome: &Outcome, seconds: f64) {
    let name = outcome.scenario.application.name();
    let paper = |item, column: &str| {
        let figure = published.get(item, name, column);
        figure.map_or(f64::NAN, |figure| figure.paper)
    };
    let (ideal, speedup) = (paper("Table 5", "ideal"), paper("Table 5", cluster));
    let share = (speedup - 1.0) / (ideal - 1.0);
    let reclaims = paper("Table 6", &format!("{cluster}, reclaims per host and day"));
    let context = paper("Table 6", &format!("{cluster}, memory context, mean"));
    let owners = &outcome.owners;
    let gain_share = outcome.gain_share.unwrap_or(f64::NAN);
    let kib = |bytes: Option<f64>| bytes.map_or(f64::NAN, |bytes| bytes / 1024.0);
    let mut hours: Vec<f64> = outcome.hours.iter().map(|hour| hour.speedup).collect();
    hours.sort_unstable_by(f64::total_cmp);
    let of_hours = |share: f64| {
        let at = (hours.len().saturating_sub(1)) as f64 * share;
        hours.get(at as usize).copied().unwrap_or(f64::NAN)
    };
    println!(
        "{name:<8} {ideal:.2} {:>5.2}  {speedup:>5.2} {:>5.2}  {share:>5.2} {:>5.2} {:>+5.2}  {reclaims:>5.1} {:>5.1} {context:>6.1} {:>8.1} {:>5} {:>8.0} {:>6.0} of {:>5.0} | {:>5} {:>10} {seconds:>5.1} {:>4.2} {:>4.2}",
        outcome.ideal_speedup,
        outcome.speedup,
        gain_share,
        gain_share - share,
        owners.reclaims_per_host_day,
        kib(owners.mean_memory_context_bytes),
        owners.median_memory_context_bytes.unwrap_or(0) / 1024,
        kib(owners.mean_upper_bound_bytes),
        outcome.regions.mean_leased_bytes / 1048576.0,
        outcome.regions.mean_quota_bytes / 1048576.0,
        outcome.runs.len(),
        outcome.counts.requests_count,
        of_hours(0.05),
        of_hours(0.95),
    );
}
