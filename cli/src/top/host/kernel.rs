//! Current figures of the kernel, between the agent's samples.

use anyhow::Context;
use gleaner_agent::read::loadavg::LoadAverage;
use gleaner_agent::read::meminfo::Meminfo;
use gleaner_agent::read::pressure::Pressure;
use serde::Serialize;
use std::path::Path;

/// A reading of /proc.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Reading {
    /// Time of the reading, ms since 1970-01-01 UTC.
    pub(super) time_ms: i64,
    pub(super) mem_total_bytes: u64,
    pub(super) mem_free_bytes: u64,
    pub(super) mem_available_bytes: Option<u64>,
    /// Sum of Buffers and Cached.
    pub(super) page_cache_bytes: Option<u64>,
    pub(super) anon_bytes: Option<u64>,
    pub(super) swap_total_bytes: Option<u64>,
    pub(super) swap_free_bytes: Option<u64>,
    pub(super) load1: Option<f64>,
    pub(super) load5: Option<f64>,
    /// Time in which at least one task waited for memory, since boot.
    pub(super) psi_memory_some_total_us: Option<u64>,
    pub(super) psi_io_some_total_us: Option<u64>,
}

impl Reading {
    /// Reads the files in the folder `proc`, normally `/proc`.
    pub(super) fn take(proc: &Path, time_ms: i64) -> anyhow::Result<Self> {
        let file = |name: &str| std::fs::read(proc.join(name)).ok();
        let path = proc.join("meminfo");
        let text =
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let meminfo = Meminfo::parse(&text)
            .with_context(|| format!("{} has neither MemTotal nor MemFree", path.display()))?;
        let load = file("loadavg").and_then(|text| LoadAverage::parse(&text));
        let pressure = |name| {
            let pressure = Pressure::parse(&file(name)?)?;
            Some(pressure.some_total_us)
        };
        let cached = meminfo.get("Cached");
        Ok(Self {
            time_ms,
            mem_total_bytes: meminfo.get("MemTotal").unwrap_or_default(),
            mem_free_bytes: meminfo.get("MemFree").unwrap_or_default(),
            mem_available_bytes: meminfo.get("MemAvailable"),
            page_cache_bytes: cached.map(|b| b.saturating_add(meminfo.get("Buffers").unwrap_or(0))),
            anon_bytes: meminfo.get("AnonPages"),
            swap_total_bytes: meminfo.get("SwapTotal"),
            swap_free_bytes: meminfo.get("SwapFree"),
            load1: load.map(|load| load.load1),
            load5: load.map(|load| load.load5),
            psi_memory_some_total_us: pressure("pressure/memory"),
            psi_io_some_total_us: pressure("pressure/io"),
        })
    }

    /// Shares of the time since `before` in which at least one task waited for memory, and for
    /// the disk.
    pub(super) fn pressure_since(&self, before: &Self) -> Option<(f64, f64)> {
        let elapsed_us = self
            .time_ms
            .checked_sub(before.time_ms)
            .filter(|ms| *ms > 0)? as f64
            * 1000.0;
        let share = |now: Option<u64>, then: Option<u64>| {
            let waited_us = now?.checked_sub(then?)?;
            Some((waited_us as f64 / elapsed_us).min(1.0))
        };
        let memory = share(
            self.psi_memory_some_total_us,
            before.psi_memory_some_total_us,
        )?;
        let io = share(self.psi_io_some_total_us, before.psi_io_some_total_us);
        Some((memory, io.unwrap_or(0.0)))
    }
}
