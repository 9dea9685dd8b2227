//! Measures sealing and compaction of one day of a fleet. A seal follows every SAMPLES_PER_SEAL samples.
//!
//! ```sh
//! cargo run --release -p gleaner-dataset --example fleet -- FOLDER HOSTS SEALS SAMPLES_PER_SEAL
//! cargo run --release -p gleaner-dataset --example fleet -- out/fleet 10000 1 7
//! cargo run --release -p gleaner-dataset --example fleet -- out/fleet 1000 144 7
//! ```
//!
//! Each sample has 10 rows of processes and one of files; the figures vary like those of a host.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

use gleaner_dataset::{Compaction, Dataset, Identity, RowsBuilder, Writer};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{FileRow, ProcessRow, SampleRow};
use std::fs;
use std::time::{Duration, Instant, SystemTime};

/// 2026-11-20 00:00:00 UTC.
const START_MS: i64 = 1_795_132_800_000;
const DAY_MS: i64 = 86_400_000;
const GIB: i64 = 1 << 30;

fn main() {
    let mut args = std::env::args().skip(1);
    let folder = args.next().expect("FOLDER HOSTS SEALS SAMPLES_PER_SEAL");
    let mut number = || -> i64 { args.next().expect("a number").parse().expect("a number") };
    let (hosts, seals, samples) = (number(), number(), number());
    let interval_ms = DAY_MS / (seals * samples).max(960);
    let mut random = Random(7);

    let mut writer = Writer::open(&folder).unwrap();
    let (mut sealing, mut longest) = (Duration::ZERO, Duration::ZERO);
    let (mut compacting, mut longest_step, mut steps) = (Duration::ZERO, Duration::ZERO, 0);
    let compaction = Compaction::default();
    let during = SystemTime::UNIX_EPOCH + Duration::from_millis(START_MS as u64);
    for seal in 0..seals {
        for host in 0..hosts {
            append(
                &mut writer,
                &mut random,
                host,
                seal * samples,
                samples,
                interval_ms,
            );
        }
        let pending = writer.pending_bytes();
        let start = Instant::now();
        let summary = writer.seal().unwrap();
        let took = start.elapsed();
        sealing += took;
        longest = longest.max(took);
        if seal == 0 {
            println!(
                "first seal: {} rows, {:.1} MB in memory, {} files of {:.1} MB together, {took:.2?}",
                summary.rows,
                pending as f64 / 1e6,
                summary.files,
                summary.bytes as f64 / 1e6,
            );
        }
        while compact(
            &mut writer,
            &compaction,
            during,
            &mut longest_step,
            &mut compacting,
        ) {
            steps += 1;
        }
    }
    println!("{seals} seals: {sealing:.1?}, the longest {longest:.2?}");
    println!(
        "{steps} steps of compaction meanwhile: {compacting:.1?}, the longest {longest_step:.2?}"
    );
    report(&folder, hosts * seals * samples);

    let quiet = Compaction {
        quiet: Duration::ZERO,
        ..compaction
    };
    let later = during + Duration::from_secs(100 * 365 * 86_400);
    let (mut steps, mut longest_step, mut compacting) = (0, Duration::ZERO, Duration::ZERO);
    while compact(
        &mut writer,
        &quiet,
        later,
        &mut longest_step,
        &mut compacting,
    ) {
        steps += 1;
    }
    println!(
        "{steps} steps when the day is over: {compacting:.1?}, the longest {longest_step:.2?}"
    );
    report(&folder, hosts * seals * samples);

    let start = Instant::now();
    let dataset = Dataset::open(&folder).unwrap();
    let some: Vec<String> = dataset.hosts().unwrap().into_iter().take(100).collect();
    let listed = start.elapsed();
    let start = Instant::now();
    for host in &some {
        for table in [SampleRow::TABLE, ProcessRow::TABLE] {
            let columns = ["time", table.columns[0].name];
            assert!(
                dataset
                    .read_host(&table, host, &columns)
                    .unwrap()
                    .num_rows()
                    > 0
            );
        }
    }
    println!(
        "hosts listed in {listed:.2?}; two columns of samples and processes of {} hosts in {:.2?}",
        some.len(),
        start.elapsed()
    );
    println!("{}", status("VmHWM"));
}

fn compact(
    writer: &mut Writer,
    compaction: &Compaction,
    now: SystemTime,
    longest: &mut Duration,
    all: &mut Duration,
) -> bool {
    let start = Instant::now();
    let done = writer.compact_step(compaction, now).unwrap().is_some();
    *longest = start.elapsed().max(*longest);
    *all += start.elapsed();
    done
}

fn report(folder: &str, samples: i64) {
    let dataset = Dataset::open(folder).unwrap();
    let files = &dataset.manifest().files;
    let bytes: u64 = files.iter().map(|f| f.bytes).sum();
    let manifest = fs::metadata(format!("{folder}/manifest.json"))
        .unwrap()
        .len();
    println!(
        "  {} files, {:.1} MB, {:.1} bytes a sample; manifest {:.1} KB; {}",
        files.len(),
        bytes as f64 / 1e6,
        bytes as f64 / samples as f64,
        manifest as f64 / 1e3,
        status("VmHWM"),
    );
}

fn status(field: &str) -> String {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|l| l.starts_with(field));
    line.unwrap()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn append(
    writer: &mut Writer,
    random: &mut Random,
    host: i64,
    first: i64,
    samples: i64,
    interval_ms: i64,
) {
    let id = |kind: i64| {
        format!(
            "{:016x}{:016x}",
            hash(host * 2 + kind),
            hash(host * 2 + kind + 77)
        )
    };
    let (host_id, database_id) = (id(0), id(1));
    let mut sample_rows = RowsBuilder::new(&SampleRow::TABLE);
    let mut process_rows = RowsBuilder::new(&ProcessRow::TABLE);
    let mut file_rows = RowsBuilder::new(&FileRow::TABLE);
    for sample in first..first + samples {
        let identity = Identity {
            host_id: &host_id,
            database_id: &database_id,
            sequence: sample + 1,
            time_ms: START_MS + sample * interval_ms + host % 90_000,
        };
        let used = 2 * GIB + random.below(1 << 22) * 4096 / 8;
        let cached = 6 * GIB + random.below(1 << 16) * 4096;
        let row = SampleRow {
            boot_id: Some(format!("{:032x}", hash(host))),
            boottime_ms: Some(sample * interval_ms),
            interval_ms: Some(interval_ms),
            physical_bytes: 32 * GIB,
            mem_total_bytes: 31 * GIB,
            dynamic_kernel_bytes: 600 << 20,
            available_bytes: 31 * GIB - used,
            category_correction_bytes: random.below(1 << 10) * 4096,
            mem_free_bytes: 31 * GIB - used - cached,
            load1: Some(random.below(200) as f64 / 100.0),
            load5: Some(random.below(200) as f64 / 100.0),
            load15: Some(random.below(200) as f64 / 100.0),
            ..SampleRow::default()
        };
        sample_rows.push(identity, row.to_values()).unwrap();
        for process in 0..10 {
            let row = ProcessRow {
                pid: 1000 + process * 37 + host % 100,
                start_boottime_ms: 1000 * process,
                name: format!("process{process}"),
                rss_bytes: (50 + process) << 20 | random.below(64) << 12,
                memory_source: "pss".into(),
                anon_bytes: Some((40 + process) << 20 | random.below(64) << 12),
                ..ProcessRow::default()
            };
            process_rows.push(identity, row.to_values()).unwrap();
        }
        let row = FileRow {
            file_id: hash(host * 100 + random.below(100)) as i64,
            open_processes_count: 1,
            size_bytes: Some(random.below(1 << 20)),
            cached_bytes: Some(random.below(1 << 10) * 4096),
            ..FileRow::default()
        };
        file_rows.push(identity, row.to_values()).unwrap();
    }
    writer
        .append(&SampleRow::TABLE, sample_rows.finish().unwrap())
        .unwrap();
    writer
        .append(&ProcessRow::TABLE, process_rows.finish().unwrap())
        .unwrap();
    writer
        .append(&FileRow::TABLE, file_rows.finish().unwrap())
        .unwrap();
}

/// SplitMix64 random numbers.
struct Random(i64);

impl Random {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(1);
        (hash(self.0) >> 1) as i64 % bound
    }
}

fn hash(value: i64) -> u64 {
    let mut z = (value as u64)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
