//! Takes samples; keeps what one sample needs of the one before.

use crate::Error;
use crate::absence::{Absences, Absent};
use crate::activity::{ActivityWatch, Roots, owner_idle_ms};
use crate::clock::{Moment, monotonic_us, own_cpu_us};
use crate::files::{FileWalk, FilesInUse};
use crate::identity::{FileIdKey, boot_id};
use crate::physical::physical_bytes;
use crate::processes::{CpuTimes, ProcessWalk, Units};
use crate::read::iomem::system_ram_bytes;
use crate::read::loadavg::LoadAverage;
use crate::read::meminfo::{Meminfo, mem_available_bytes};
use crate::read::pressure::Pressure;
use crate::read::process::Statm;
use crate::read::vmstat::Vmstat;
use crate::read::zoneinfo::Zones;
use crate::read::{Tree, number};
use crate::sample::{Figures, Sample, in_use, note_what_is_absent, row};
use gleaner_schemas::rows::{FileRow, SampleRow};
use gleaner_schemas::units::{pages_to_bytes, stored};
use std::path::{Path, PathBuf};

/// What to sample, and how.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `/proc`, or a captured tree.
    pub proc_root: PathBuf,
    /// `/sys`, or a captured tree.
    pub sys_root: PathBuf,
    /// `/dev`, or a captured tree.
    pub dev_root: PathBuf,
    /// `/run`, or a captured tree.
    pub run_root: PathBuf,
    /// Page size and tick length of that host.
    pub units: Units,
    /// Share of physical memory that is never lent.
    pub headroom_share: f64,
    /// Further names of always-active processes.
    pub always_active: Vec<String>,
}

/// Takes samples of one host.
pub struct Sampler {
    settings: Settings,
    proc: Tree,
    process_walk: ProcessWalk,
    file_walk: FileWalk,
    file_id_key: FileIdKey,
    activity: ActivityWatch,
    cpu_times: CpuTimes,
    boot_id: Option<String>,
    /// Lowest MemAvailable that was read since the sample before.
    lowest_available_bytes: Option<u64>,
    text: Vec<u8>,
    own_cpu_us: i64,
}

impl Sampler {
    /// Begins: reads CPU times for the first sample to compare with, and watches input devices.
    ///
    /// A captured tree has one moment only: there a process counts by the CPU time of its whole life,
    /// unless [`Sampler::prime_from`] gives an earlier moment.
    ///
    /// # Errors
    /// [`Error::Read`] when the proc root cannot be read.
    pub fn new(settings: Settings, file_id_key: FileIdKey) -> Result<Self, Error> {
        let proc = Tree::open(&settings.proc_root)?;
        let mut process_walk = ProcessWalk::new(settings.units, settings.always_active.clone());
        let cpu_times = if proc.is_procfs() {
            process_walk
                .prime(&proc)
                .map_err(|e| unreadable(&proc, e))?
        } else {
            CpuTimes::new()
        };
        let mut text = Vec::with_capacity(16 << 10);
        let boot_id = proc
            .read("sys/kernel/random/boot_id", &mut text)
            .ok()
            .and_then(|()| boot_id(&text));
        let roots = Roots {
            dev: settings.dev_root.clone(),
            sys: settings.sys_root.clone(),
            run: settings.run_root.clone(),
        };
        Ok(Self {
            activity: ActivityWatch::new(roots, Moment::now().time_ms),
            file_walk: FileWalk::default(),
            own_cpu_us: own_cpu_us(),
            settings,
            proc,
            process_walk,
            file_id_key,
            cpu_times,
            boot_id,
            lowest_available_bytes: None,
            text,
        })
    }

    /// Takes the CPU times that the first sample compares with from another tree, captured earlier.
    ///
    /// # Errors
    /// [`Error::Read`] when it cannot be read.
    pub fn prime_from(&mut self, proc_root: &Path) -> Result<(), Error> {
        let earlier = Tree::open(proc_root)?;
        let primed = self.process_walk.prime(&earlier);
        self.cpu_times = primed.map_err(|e| unreadable(&earlier, e))?;
        Ok(())
    }

    /// This boot's name, hashed.
    #[must_use]
    pub fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }

    /// Reads MemAvailable alone, so that the next sample knows of a dip that ended before it.
    pub fn look(&mut self) {
        if self.proc.read_record("meminfo", &mut self.text).is_ok() {
            let now_bytes = mem_available_bytes(&self.text).into_iter();
            self.lowest_available_bytes = now_bytes.chain(self.lowest_available_bytes).min();
        }
    }

    /// The owner's activity.
    #[must_use]
    pub fn activity(&mut self) -> &mut ActivityWatch {
        &mut self.activity
    }

    /// Takes one sample. `interval_ms` and `files_whole` are left to the caller, who knows of gaps.
    /// `between` is called again and again, lest the owner's return wait for the sample's end.
    ///
    /// # Errors
    /// [`Error::Kernel`] without a MemTotal, [`Error::Read`] when processes cannot be listed. All
    /// else that cannot be read is absent in the sample.
    pub fn take(&mut self, between: &mut dyn FnMut(&mut ActivityWatch)) -> Result<Sample, Error> {
        let begun_us = monotonic_us();
        let moment = self.moment();
        let mut absences = Absences::default();
        let figures = self.figures(&mut absences)?;
        let mut between = || between(&mut self.activity);
        let processes = self
            .process_walk
            .walk(&self.proc, &self.cpu_times, &mut absences, &mut between)
            .map_err(|e| unreadable(&self.proc, e))?;
        let pids: Vec<i64> = processes.active.iter().map(|p| p.pid).collect();
        let page_size_bytes = self.settings.units.page_size_bytes;
        let files = self.file_walk.walk(
            &self.proc,
            &pids,
            page_size_bytes,
            &mut absences,
            &mut between,
        );
        let shmem_bytes = figures.meminfo.get("Shmem").unwrap_or(0);
        let in_use = in_use(&processes, &files, shmem_bytes);
        let activity = self
            .activity
            .look(moment.time_ms, &processes.terminals, &mut absences);
        let owner_idle_ms = absences.keep("owner_idle_ms", owner_idle_ms(&activity));
        self.cpu_times = processes.cpu_times;

        let mut row = SampleRow {
            boot_id: self.boot_id.clone(),
            boottime_ms: moment.boottime_ms,
            owner_idle_ms,
            processes_count: stored(processes.count),
            active_processes_count: processes.active.len() as i64,
            ..row(&figures, &in_use, self.settings.headroom_share)
        };
        let lowest = self.lowest_available_bytes.take().map(stored);
        row.mem_available_min_bytes = row.mem_available_bytes.into_iter().chain(lowest).min();
        note_what_is_absent(&row, &mut absences);
        let files = self.file_rows(files);
        row.agent_rss_bytes = own_rss_bytes();
        row.agent_wall_us = monotonic_us() - begun_us;
        // Since the end of the sample before: writing that one is part of what tracing costs.
        let cpu_us = own_cpu_us();
        row.agent_cpu_us = cpu_us - std::mem::replace(&mut self.own_cpu_us, cpu_us);
        Ok(Sample {
            moment,
            row,
            processes: processes.active,
            files,
            activity,
            nodes: Vec::new(),
            cgroups: Vec::new(),
            absences,
        })
    }

    fn figures(&mut self, absences: &mut Absences) -> Result<Figures, Error> {
        let (proc, text) = (&self.proc, &mut self.text);
        let meminfo = proc
            .parse("meminfo", text, Meminfo::parse)
            .map_err(|absent| Error::Kernel {
                path: proc.path().join("meminfo"),
                what: format!("{}: {}", absent.reason, absent.detail),
            })?;
        let zones = proc.parse("zoneinfo", text, Zones::parse);
        let zones = absences.keep("lotsfree_bytes", zones);
        let iomem = proc
            .read("iomem", text)
            .map_err(|e| Absent::from_kernel_file("iomem", e))
            .and_then(|()| system_ram_bytes(text));
        let mem_total_bytes = meminfo.get("MemTotal").unwrap_or(0); // parsed only where it is given
        let page_size_bytes = self.settings.units.page_size_bytes;
        let zone_figures = zones.as_ref();
        let mut pressure =
            |file, column| absences.keep(column, proc.parse(file, text, Pressure::parse));
        let memory_pressure = pressure("pressure/memory", "psi_memory_some_total_us");
        let cpu_pressure = pressure("pressure/cpu", "psi_cpu_some_total_us");
        let io_pressure = pressure("pressure/io", "psi_io_some_total_us");
        Ok(Figures {
            physical_bytes: physical_bytes(
                iomem,
                zone_figures,
                mem_total_bytes,
                page_size_bytes,
                absences,
            ),
            pcp_free_bytes: zone_figures.map(|z| pages_to_bytes(z.pcp_free_pages, page_size_bytes)),
            lotsfree_bytes: zone_figures.map(|z| pages_to_bytes(z.high_pages, page_size_bytes)),
            load: absences.keep("load5", proc.parse("loadavg", text, LoadAverage::parse)),
            vmstat: proc
                .parse("vmstat", text, Vmstat::parse)
                .unwrap_or_default(), // each column is noted
            memory_pressure,
            cpu_pressure,
            io_pressure,
            meminfo,
        })
    }

    /// Now, by this host's clocks; a captured tree's time since boot is its own.
    fn moment(&mut self) -> Moment {
        let mut moment = Moment::now();
        if !self.proc.is_procfs()
            && self.proc.read("uptime", &mut self.text).is_ok()
            && let Some(seconds) = crate::read::words(&self.text)
                .next()
                .and_then(number::<f64>)
        {
            moment.boottime_ms = (seconds * 1000.0).round() as i64;
        }
        moment
    }

    fn file_rows(&self, files: FilesInUse) -> Vec<FileRow> {
        let mut rows: Vec<FileRow> = files
            .into_iter()
            .map(|(key, file)| FileRow {
                file_id: self.file_id_key.file_id(key.device, key.inode),
                path: Some(file.path),
                open_count: stored(file.open_count),
                mapped_count: stored(file.mapped_count),
                size_bytes: file.size_bytes.map(stored),
                cached_bytes: file.cached_bytes.map(stored),
                mapped_cached_bytes: file.mapped_cached_bytes.map(stored),
                opened_count: None,
            })
            .collect();
        rows.sort_unstable_by_key(|row| row.file_id);
        rows
    }
}

/// The agent's own resident memory, from the real `/proc` whatever is being sampled.
fn own_rss_bytes() -> i64 {
    let statm = std::fs::read("/proc/self/statm").ok();
    let statm = statm.as_deref().and_then(Statm::parse);
    let page_size_bytes = rustix::param::page_size() as u64;
    statm.map_or(0, |s| {
        stored(pages_to_bytes(s.resident_pages, page_size_bytes))
    })
}

fn unreadable(proc: &Tree, errno: rustix::io::Errno) -> Error {
    Error::Read {
        path: proc.path().to_owned(),
        source: errno.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dip_between_two_samples_is_in_the_second_alone() {
        let dir = tempfile::tempdir().unwrap();
        let available = |kib: u64| {
            let text = format!("MemTotal: 9000 kB\nMemAvailable: {kib} kB\n");
            std::fs::write(dir.path().join("meminfo"), text).unwrap();
        };
        let root = dir.path().to_owned();
        let settings = Settings {
            proc_root: root.clone(),
            sys_root: root.clone(),
            dev_root: root,
            run_root: "/run".into(),
            units: Units {
                page_size_bytes: 4096,
                ticks_per_second: 100,
            },
            headroom_share: 0.15,
            always_active: Vec::new(),
        };
        let mut sampler = Sampler::new(settings, FileIdKey::random().unwrap()).unwrap();
        let lowest_kib = |sampler: &mut Sampler| {
            let row = sampler.take(&mut |_| {}).unwrap().row;
            row.mem_available_min_bytes.map(|bytes| bytes / 1024)
        };
        available(800);
        assert_eq!(lowest_kib(&mut sampler), Some(800));
        for kib in [700, 300, 500] {
            available(kib);
            sampler.look();
        }
        available(600);
        assert_eq!(lowest_kib(&mut sampler), Some(300));
        assert_eq!(lowest_kib(&mut sampler), Some(600));
    }
}
