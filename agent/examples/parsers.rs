//! `cargo run --release -p gleaner-agent --example parsers`: time per file of our parsers and of the
//! procfs crate's. Both parse the same bytes of this host, read beforehand.
#![allow(clippy::unwrap_used)]

use gleaner_agent::read::{meminfo::Meminfo, process, vmstat::Vmstat};
use procfs_core::FromRead;
use procfs_core::process as theirs;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Length of the measurement of each parser.
const LENGTH: Duration = Duration::from_millis(300);

/// Mean duration of one call of `parse`, in nanoseconds.
fn mean_ns(parse: impl Fn()) -> f64 {
    let (begun, mut runs) = (Instant::now(), 0_u32);
    while begun.elapsed() < LENGTH {
        for _ in 0..100 {
            parse();
        }
        runs += 100;
    }
    begun.elapsed().as_nanos() as f64 / f64::from(runs)
}

fn row<O, T>(file: &str, ours: impl Fn(&[u8]) -> O, theirs: impl Fn(&[u8]) -> T) {
    let text = std::fs::read(format!("/proc/{file}")).unwrap();
    let ours_ns = mean_ns(|| {
        black_box(ours(black_box(&text)));
    });
    let theirs_ns = mean_ns(|| {
        black_box(theirs(black_box(&text)));
    });
    let ratio = theirs_ns / ours_ns;
    println!("| {file} | {ours_ns:.0} | {theirs_ns:.0} | {ratio:.1} |");
}

fn main() {
    println!("| /proc file | ours, ns | procfs-core, ns | ratio |\n| --- | ---: | ---: | ---: |");
    row(
        "self/stat",
        |t| process::Stat::parse(t).map(|s| s.cpu_ticks),
        |t| theirs::Stat::from_read(t).unwrap(),
    );
    row("self/statm", process::Statm::parse, |t| {
        theirs::StatM::from_read(t).unwrap()
    });
    row(
        "self/smaps_rollup",
        process::Split::from_smaps_rollup,
        |t| theirs::SmapsRollup::from_read(t).unwrap(),
    );
    row("self/status", process::Split::from_status, |t| {
        theirs::Status::from_read(t).unwrap()
    });
    row("meminfo", Meminfo::parse, |t| {
        procfs_core::Meminfo::from_read(t).unwrap()
    });
    row("vmstat", Vmstat::parse, |t| {
        procfs_core::VmStat::from_read(t).unwrap()
    });
}
