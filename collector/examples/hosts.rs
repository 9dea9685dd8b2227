//! Sends one batch of each of COUNT hosts to a collector on this machine with `local_access = "all"`: `cargo
//! run -p gleaner-collector --example hosts -- http://127.0.0.1:7480 COUNT`.
//!
//! The hosts are the same in each call, and some have problems: every seventh has a gap in its trace, every
//! twentieth a clock one hour ahead, every tenth an older agent. The name of the third host contains HTML,
//! which a page must escape. Of three hosts, one is idle, one has not been idle for long enough, and one is
//! loaded. Every eighth host has no idle verdict.

use anyhow::{Context, ensure};
use gleaner_dataset::batch::MEDIA_TYPE;
use gleaner_dataset::{Batch, Identity, RowsBuilder};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{GapRow, HostRow, ProcessRow, SampleRow};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const INTERVAL_MS: i64 = 90_000;
const HOUR_MS: i64 = 3_600_000;
const SAMPLES: i64 = 6; // in more than five minutes, so the idle rule can be fulfilled
const PROCESSES: i64 = 10;
/// Number of concurrent senders; each has one connection, as a host has.
const SENDERS: u64 = 16;

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(url), Some(count)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: hosts URL COUNT");
    };
    let count: u64 = count.parse().context("COUNT is a number of hosts")?;
    let next = AtomicU64::new(1);
    let rows = AtomicU64::new(0);
    thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|_| scope.spawn(|| send(&url, count, &next, &rows)))
            .collect();
        senders.into_iter().try_for_each(|sender| {
            sender
                .join()
                .unwrap_or_else(|e| std::panic::resume_unwind(e))
        })
    })?;
    println!("{} rows", rows.into_inner());
    Ok(())
}

/// Sends the batches of the next hosts until all `count` hosts have sent.
fn send(url: &str, count: u64, next: &AtomicU64, rows: &AtomicU64) -> anyhow::Result<()> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(Duration::from_secs(60)))
        .http_status_as_error(false)
        .build()
        .into();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number > count {
            return Ok(());
        }
        let is_ahead = number.is_multiple_of(20);
        let now_ms = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())?;
        let clock_ms = now_ms + if is_ahead { HOUR_MS } else { 0 };
        let (body, sent) = batch(number, clock_ms)?;
        let mut answer = agent
            .post(format!("{url}/v1/batches"))
            .header("Content-Type", MEDIA_TYPE)
            .header("Content-Encoding", "zstd")
            .header("Gleaner-Sent-Ms", clock_ms.to_string())
            .send(&body[..])?;
        let text = answer.body_mut().read_to_string()?;
        ensure!(answer.status() == 200, "{}: {text}", answer.status());
        rows.fetch_add(sent, Ordering::Relaxed);
    }
}

/// Makes an id of 32 digits; the ids are distributed like those of real hosts.
fn id(kind: &str, number: u64) -> String {
    let hash = blake3::hash(format!("{kind} {number}").as_bytes());
    hash.to_hex()[..32].to_owned()
}

fn name(number: u64) -> String {
    match number {
        3 => "<b>otter</b> & \"friends\"".to_owned(),
        _ => format!("host-{number:05}"),
    }
}

/// Makes a sample with memory and owner of a host that has 8, 16, 32 or 64 GiB.
fn sample(number: u64, sequence: i64) -> SampleRow {
    let physical_bytes = (8 << 30) << (number % 4);
    let of_physical = |percent: i64| physical_bytes / 100 * percent;
    let process_percent = 10 + i64::try_from(number % 50).unwrap_or_default();
    let (kernel, cache) = (of_physical(5), of_physical(10));
    let process = of_physical(process_percent);
    let available_bytes = physical_bytes - kernel - cache - process;
    SampleRow {
        boottime_ms: Some(HOUR_MS + sequence * INTERVAL_MS),
        interval_ms: (sequence > 1).then_some(INTERVAL_MS),
        physical_bytes,
        static_kernel_bytes: Some(kernel / 4),
        dynamic_kernel_bytes: kernel - kernel / 4 - (64 << 20),
        reserve_bytes: Some(64 << 20),
        process_bytes: process,
        file_cache_bytes: cache,
        available_bytes,
        harvestable_bytes: Some(available_bytes - of_physical(15)),
        owner_idle_ms: (!number.is_multiple_of(8)).then_some(match number % 3 {
            0 => 2 * HOUR_MS,
            _ => 20_000,
        }),
        load5: Some(if number % 3 == 1 { 1.5 } else { 0.1 }),
        psi_memory_some_total_us: Some(sequence * 90_000),
        ..SampleRow::default()
    }
}

/// Makes a batch with a host's inventory, its last samples and perhaps a gap. Returns it with the number of
/// its rows.
fn batch(number: u64, clock_ms: i64) -> anyhow::Result<(Vec<u8>, u64)> {
    let (host_id, database_id) = (id("host", number), id("database", number));
    let lag_ms = i64::try_from(number % 9)? * 20_000;
    let identity = |sequence: i64| Identity {
        host_id: &host_id,
        database_id: &database_id,
        sequence,
        time_ms: clock_ms - lag_ms - (SAMPLES - sequence) * INTERVAL_MS,
    };
    let mut hosts = RowsBuilder::new(&HostRow::TABLE);
    let mut samples = RowsBuilder::new(&SampleRow::TABLE);
    let mut processes = RowsBuilder::new(&ProcessRow::TABLE);
    let mut gaps = RowsBuilder::new(&GapRow::TABLE);
    let inventory = HostRow {
        host_name: name(number),
        agent_version: if number.is_multiple_of(10) {
            "0.0.9"
        } else {
            "0.1.0"
        }
        .to_owned(),
        sample_interval_ms: INTERVAL_MS,
        headroom_share: 0.15,
        ..HostRow::default()
    };
    hosts.push(identity(1), inventory.to_values())?;
    if number.is_multiple_of(7) {
        let gap = GapRow {
            cause: ["sleep", "off", "stopped"][(number % 3) as usize].to_owned(),
            ..GapRow::default()
        };
        gaps.push(identity(1), gap.to_values())?;
    }
    for sequence in 1..=SAMPLES {
        samples.push(identity(sequence), sample(number, sequence).to_values())?;
        for pid in 1..=PROCESSES {
            let process = ProcessRow {
                pid,
                name: "cc1".to_owned(),
                ..ProcessRow::default()
            };
            processes.push(identity(sequence), process.to_values())?;
        }
    }
    let mut tables = vec![
        (HostRow::TABLE, hosts.finish()?),
        (SampleRow::TABLE, samples.finish()?),
        (ProcessRow::TABLE, processes.finish()?),
    ];
    if number.is_multiple_of(7) {
        tables.push((GapRow::TABLE, gaps.finish()?));
    }
    let rows = tables.iter().map(|(_, rows)| rows.num_rows() as u64).sum();
    Ok((Batch::encode(&tables)?, rows))
}
