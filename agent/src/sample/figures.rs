//! The kernel's figures of the whole host.

use crate::Error;
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::Tree;
use crate::read::arcstats::Arc;
use crate::read::damon::IdlePercentiles;
use crate::read::iomem::system_ram_bytes;
use crate::read::loadavg::LoadAverage;
use crate::read::meminfo::Meminfo;
use crate::read::pressure::Pressure;
use crate::read::vmstat::Vmstat;
use crate::read::zoneinfo::Zones;
use crate::read::zram::Zram;
use crate::sample::physical::physical_bytes;
use gleaner_schemas::units::pages_to_bytes;
use rustix::io::Errno;
use std::collections::BTreeMap;

/// The kernel's figures, as far as they could be read.
#[derive(Debug, Default)]
pub struct Figures {
    /// Figures of `/proc/meminfo`.
    pub meminfo: Meminfo,
    /// Physical memory, in bytes.
    pub physical_bytes: Option<u64>,
    /// Free pages on the zones' per-CPU lists.
    pub pcp_free_bytes: Option<u64>,
    /// Sum of the zones' high watermarks.
    pub reserve_bytes: Option<u64>,
    /// Figures of `/proc/loadavg`.
    pub load: Option<LoadAverage>,
    /// Figures of `/proc/vmstat`.
    pub vmstat: Vmstat,
    /// Figures of `/proc/pressure/memory`.
    pub memory_pressure: Option<Pressure>,
    /// Figures of `/proc/pressure/cpu`.
    pub cpu_pressure: Option<Pressure>,
    /// Figures of `/proc/pressure/io`.
    pub io_pressure: Option<Pressure>,
    /// Figures of `/proc/zoneinfo` by NUMA node; empty if unreadable.
    pub zones: BTreeMap<u16, Zones>,
    /// Sum over all zram devices; `None` without any.
    pub zram: Option<Zram>,
    /// Figures of ZFS' own cache; `None` without ZFS.
    pub arc: Option<Arc>,
    /// DAMON's estimate, if the owner allows reading it.
    pub idle: Option<IdlePercentiles>,
}

impl Figures {
    /// Reads the figures; DAMON's estimate only if `damon` is true. `sys` is `None` for a captured tree that
    /// has no `/sys`.
    ///
    /// # Errors
    /// [`Error::Kernel`] without MemTotal. Any other unreadable figure is absent.
    pub fn read(
        proc: &Tree,
        sys: Option<&Tree>,
        page_size_bytes: u64,
        damon: bool,
        text: &mut Vec<u8>,
        missing_values: &mut MissingValues,
    ) -> Result<Self, Error> {
        let meminfo = proc
            .parse("meminfo", text, Meminfo::parse)
            .map_err(|absent| Error::Kernel {
                path: proc.path().join("meminfo"),
                what: match (absent.reason, proc.is_procfs()) {
                    (Reason::Unsupported, true) => {
                        "mounted with subset=pid (a unit's ProcSubset=pid)".to_owned()
                    }
                    (reason, _) => format!("{reason}: {}", absent.detail),
                },
            })?;
        let zones = proc.parse("zoneinfo", text, Zones::by_node);
        let zones = missing_values.keep_for(&["reserve_bytes", "pcp_free_bytes"], zones);
        let zone_figures = zones.as_ref().map(|nodes| Zones::sum(nodes.values()));
        let iomem = proc
            .read("iomem", text)
            .map_err(|e| AbsentValue::from_kernel_file("iomem", e))
            .and_then(|()| system_ram_bytes(text));
        let mem_total_bytes = meminfo.get("MemTotal").unwrap_or(0); // the parser ensures that there is one
        let mut pressure = |file, columns: &[&'static str]| {
            missing_values.keep_for(columns, proc.parse(file, text, Pressure::parse))
        };
        let memory = ["psi_memory_some_total_us", "psi_memory_full_total_us"];
        let memory_pressure = pressure("pressure/memory", &memory);
        let cpu_pressure = pressure("pressure/cpu", &["psi_cpu_some_total_us"]);
        let io = ["psi_io_some_total_us", "psi_io_full_total_us"];
        let io_pressure = pressure("pressure/io", &io);
        let load = proc.parse("loadavg", text, LoadAverage::parse);
        let vmstat = proc.parse("vmstat", text, Vmstat::parse);
        let pages_bytes = |pages: fn(&Zones) -> Option<u64>| {
            let pages = zone_figures.as_ref().and_then(pages);
            pages.map(|pages| pages_to_bytes(pages, page_size_bytes))
        };
        Ok(Self {
            physical_bytes: physical_bytes(
                iomem,
                zone_figures.as_ref(),
                mem_total_bytes,
                page_size_bytes,
                missing_values,
            ),
            pcp_free_bytes: pages_bytes(|zones| zones.pcp_free_pages),
            reserve_bytes: pages_bytes(|zones| zones.high_pages),
            load: missing_values.keep_for(&LoadAverage::COLUMNS, load),
            vmstat: missing_values
                .keep_for(&Vmstat::COLUMNS, vmstat)
                .unwrap_or_default(),
            memory_pressure,
            cpu_pressure,
            io_pressure,
            zones: zones.unwrap_or_default(),
            idle: sys.filter(|_| damon).and_then(|sys| {
                let idle = IdlePercentiles::read(sys, text);
                missing_values.keep("damon_idle_p50_ms", idle)
            }),
            arc: arc(proc, text, missing_values),
            zram: sys.and_then(|sys| Zram::sum(sys, text, missing_values)),
            meminfo,
        })
    }
}

/// Reads the figures of ZFS' cache. Without ZFS there are none, and nothing is noted as missing.
fn arc(proc: &Tree, text: &mut Vec<u8>, missing_values: &mut MissingValues) -> Option<Arc> {
    const ARC: [&str; 2] = ["arc_bytes", "arc_min_bytes"];
    const ARCSTATS: &str = "spl/kstat/zfs/arcstats";
    match proc.read(ARCSTATS, text) {
        Ok(()) => {
            let malformed = || AbsentValue::new(Reason::Malformed, ARCSTATS);
            missing_values.keep_for(&ARC, Arc::parse(text).ok_or_else(malformed))
        }
        Err(Errno::NOENT) => None,
        Err(e) => missing_values.keep_for(&ARC, Err(AbsentValue::from_kernel_file(ARCSTATS, e))),
    }
}
