//! Takes samples; keeps the data of one sample that the next one needs.

use crate::Error;
use crate::activity::{Activity, ActivityWatch, Look, Roots, owner_idle_ms};
use crate::clock::{Moment, monotonic_us, own_cpu_us};
use crate::config::Settings;
use crate::identity::{FileIdKey, boot_id};
use crate::missing_values::{AbsentValue, MissingValues};
use crate::read::meminfo::mem_available_bytes;
use crate::read::process::Statm;
use crate::read::{Tree, logind, number, words};
use crate::sample::cgroups::Cgroups;
use crate::sample::figures::Figures;
use crate::sample::files::{FileWalk, FilesInUse};
use crate::sample::numa_nodes;
use crate::sample::opens::{OpenWatch, OpenedFiles};
use crate::sample::processes::{CpuTimes, ProcessWalk};
use crate::sample::{Sample, in_use, note_what_is_absent, row};
use gleaner_policy::guest_load::GuestLoad;
use gleaner_schemas::rows::{FileRow, SampleRow};
use gleaner_schemas::units::{pages_to_bytes, stored};
use std::path::Path;

/// Takes samples of one host.
pub struct Sampler {
    settings: Settings,
    proc: Tree,
    /// `/sys`; `None` in a captured tree without it.
    sys: Option<Tree>,
    process_walk: ProcessWalk,
    cgroups: Cgroups,
    file_walk: FileWalk,
    /// Watch of file opens; `None` unless the owner enables it, an absence if it is unavailable.
    opens: Option<Result<OpenWatch, AbsentValue>>,
    file_id_key: FileIdKey,
    activity: Box<dyn Activity>,
    cpu_times: CpuTimes,
    /// Guest load since `load_from_ms`, on the clock that stops while the host sleeps, like the load average.
    guest_load: GuestLoad,
    load_from_ms: i64,
    boot_id: Option<String>,
    /// Lowest MemAvailable read since the last sample.
    lowest_available_bytes: Option<u64>,
    text: Vec<u8>,
    own_cpu_us: i64,
}

impl Sampler {
    /// Reads CPU times as the baseline of the first sample, and begins to watch input devices.
    ///
    /// A captured tree has only one moment: its processes count by the CPU time of their whole lives, unless
    /// [`Sampler::prime_from`] gives an earlier moment.
    ///
    /// # Errors
    /// [`Error::Read`] if the proc root cannot be read.
    pub fn new(settings: Settings, file_id_key: FileIdKey) -> Result<Self, Error> {
        let proc = Tree::open(&settings.proc_root)?;
        let mut process_walk = ProcessWalk::new(
            settings.units,
            settings.always_active.clone(),
            settings.guest_processes.clone(),
        );
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
        let watch = ActivityWatch::new(Roots::of(&settings), Moment::now().time_ms);
        Ok(Self {
            activity: Box::new(watch),
            cgroups: Cgroups::new(settings.always_active_cgroups.clone()),
            file_walk: FileWalk::default(),
            opens: settings.opens.then(|| OpenWatch::new(&proc)),
            own_cpu_us: own_cpu_us(),
            sys: Tree::open(&settings.sys_root).ok(),
            settings,
            proc,
            process_walk,
            file_id_key,
            cpu_times,
            guest_load: GuestLoad::default(),
            load_from_ms: Moment::now().monotonic_ms,
            boot_id,
            lowest_available_bytes: None,
            text,
        })
    }

    /// Takes the baseline CPU times of the first sample from another tree, captured earlier.
    ///
    /// # Errors
    /// [`Error::Read`] if that tree cannot be read.
    pub fn prime_from(&mut self, proc_root: &Path) -> Result<(), Error> {
        let earlier = Tree::open(proc_root)?;
        let primed = self.process_walk.prime(&earlier);
        self.cpu_times = primed.map_err(|e| unreadable(&earlier, e))?;
        Ok(())
    }

    /// Replaces the settings, except for the paths to read from.
    pub(crate) fn configure(&mut self, settings: &Settings) {
        self.process_walk.set_names(
            settings.always_active.clone(),
            settings.guest_processes.clone(),
        );
        self.cgroups
            .set_always_active(settings.always_active_cgroups.clone());
        if settings.opens != self.settings.opens {
            self.opens = settings.opens.then(|| OpenWatch::new(&self.proc));
        }
        self.settings = settings.clone();
    }

    /// Hash of this boot's id.
    #[must_use]
    pub fn boot_id(&self) -> Option<&str> {
        self.boot_id.as_deref()
    }

    /// Reads MemAvailable, so that the next sample includes a dip that ends before it. Also reads the pending
    /// opens, before the kernel's queue is full.
    pub fn look(&mut self) {
        if let Some(Ok(watch)) = &mut self.opens {
            watch.drain();
        }
        if self.proc.read_record("meminfo", &mut self.text).is_ok() {
            let now_bytes = mem_available_bytes(&self.text).into_iter();
            self.lowest_available_bytes = now_bytes.chain(self.lowest_available_bytes).min();
        }
    }

    /// Uses `activity` as the source of the owner's activity from now on.
    pub(crate) fn ask(&mut self, activity: Box<dyn Activity>) {
        self.activity = activity;
    }

    /// Takes one sample. The caller sets `interval_ms` and `is_complete_state`, which depend on gaps.
    ///
    /// # Errors
    /// [`Error::Kernel`] without MemTotal, [`Error::Read`] if processes cannot be listed, [`Error::Wait`] if
    /// the thread that watches the owner has ended. Any other unreadable value is absent in the sample.
    pub fn take(&mut self) -> Result<Sample, Error> {
        let begun_us = monotonic_us();
        let mut missing_values = MissingValues::default();
        let (moment, boottime_ms) = self.moment(&mut missing_values);
        let page_size_bytes = self.settings.units.page_size_bytes;
        let figures = Figures::read(
            &self.proc,
            self.sys.as_ref(),
            page_size_bytes,
            self.settings.damon,
            &mut self.text,
            &mut missing_values,
        )?;
        let numa_nodes = self.sys.as_ref().map_or_else(Vec::new, |sys| {
            numa_nodes::rows(
                sys,
                &figures.meminfo,
                &figures.zones,
                page_size_bytes,
                &mut self.text,
                &mut missing_values,
            )
        });
        let sys = self.sys.as_ref();
        let always_active = self.cgroups.always_active_pids(&self.proc, sys);
        let mut processes = self
            .process_walk
            .walk(
                &self.proc,
                &self.cpu_times,
                &always_active,
                &mut missing_values,
            )
            .map_err(|e| unreadable(&self.proc, e))?;
        let active = &mut processes.active;
        let cgroups = self.cgroups.rows(
            &self.proc,
            sys,
            active,
            &self.file_id_key,
            &mut missing_values,
        );
        let pids: Vec<i64> = processes.active.iter().map(|p| p.pid).collect();
        let kept = self.process_walk.open_descriptors();
        let files = self.file_walk.walk(
            &self.proc,
            &pids,
            &kept,
            page_size_bytes,
            &mut missing_values,
        );
        let shmem_bytes = figures.meminfo.get("Shmem").unwrap_or(0);
        let in_use = in_use(&processes, &files, shmem_bytes);
        let look = Look {
            now_ms: moment.time_ms,
            terminals: processes.terminals,
            sessions: logind::read(&self.settings.run_root, moment.time_ms),
        };
        let activity = self.activity.look(look, &mut missing_values)?;
        let owner_idle_ms = missing_values.keep("owner_idle_ms", owner_idle_ms(&activity));
        self.cpu_times = processes.cpu_times;

        let passed_ms = moment.monotonic_ms - self.load_from_ms;
        self.load_from_ms = moment.monotonic_ms;
        let guest_load5 = self.guest_load.step(processes.guest_cpu_ms, passed_ms);
        let mut row = SampleRow {
            guest_load5: self.proc.is_procfs().then_some(guest_load5),
            boot_id: self.boot_id.clone(),
            boottime_ms,
            owner_idle_ms,
            processes_count: stored(processes.count),
            active_processes_count: processes.active.len() as i64,
            ..row(&figures, &in_use, self.settings.headroom_share)
        };
        let lowest = self.lowest_available_bytes.take().map(stored);
        row.mem_available_min_bytes = row.mem_available_bytes.into_iter().chain(lowest).min();
        note_what_is_absent(&row, &figures.meminfo, &mut missing_values);
        let opened = self.opened(&files, page_size_bytes, &mut missing_values);
        let files = self.file_rows(files, opened);
        row.agent_rss_bytes = own_rss_bytes();
        row.agent_wall_us = monotonic_us() - begun_us;
        // CPU time since the end of the last sample: storing that sample is part of the cost of tracing.
        let cpu_us = own_cpu_us();
        row.agent_cpu_us = cpu_us - std::mem::replace(&mut self.own_cpu_us, cpu_us);
        Ok(Sample {
            moment,
            row,
            processes: processes.active,
            files,
            activity,
            numa_nodes,
            cgroups,
            missing_values,
        })
    }

    /// Present moment on this host's clocks, and the sampled host's time since boot. A captured tree has its
    /// own time since boot (`None` if it lacks one); intervals between samples then come from this host's
    /// clocks only.
    fn moment(&mut self, missing_values: &mut MissingValues) -> (Moment, Option<i64>) {
        let mut moment = Moment::now();
        if self.proc.is_procfs() {
            return (moment, Some(moment.boottime_ms));
        }
        let uptime = self.proc.parse("uptime", &mut self.text, uptime_ms);
        let boottime_ms = missing_values.keep("boottime_ms", uptime);
        moment.boottime_ms = boottime_ms.unwrap_or(moment.boottime_ms);
        (moment, boottime_ms)
    }

    /// Files opened since the last sample; `None` if opens are not watched.
    fn opened(
        &mut self,
        files: &FilesInUse,
        page_size_bytes: u64,
        missing_values: &mut MissingValues,
    ) -> Option<OpenedFiles> {
        match self.opens.as_mut()? {
            Ok(watch) => {
                let own = self.file_walk.own();
                Some(watch.take(&self.proc, files, own, page_size_bytes, missing_values))
            }
            Err(absent) => {
                missing_values.note("opens", absent.clone());
                None
            }
        }
    }

    /// Makes rows of the files in use, and of those opened and closed since the last sample.
    fn file_rows(&self, files: FilesInUse, mut opened: Option<OpenedFiles>) -> Vec<FileRow> {
        let mut opens_count = |key| {
            let opened = opened.as_mut()?.remove(&key).unwrap_or_default();
            Some(stored(opened.opens_count))
        };
        let mut rows: Vec<FileRow> = files
            .into_iter()
            .map(|(key, file)| FileRow {
                file_id: self.file_id_key.file_id(key.device, key.inode),
                path: Some(file.path),
                open_processes_count: stored(file.open_processes_count),
                mapping_processes_count: stored(file.mapping_processes_count),
                size_bytes: file.size_bytes.map(stored),
                cached_bytes: file.cached_bytes.map(stored),
                mapped_cached_bytes: file.mapped_cached_bytes.map(stored),
                opens_count: opens_count(key),
            })
            .collect();
        let closed_again = opened.unwrap_or_default().into_iter();
        rows.extend(closed_again.map(|(key, file)| FileRow {
            file_id: self.file_id_key.file_id(key.device, key.inode),
            path: file.path,
            size_bytes: file.size_bytes.map(stored),
            cached_bytes: file.cached_bytes.map(stored),
            opens_count: Some(stored(file.opens_count)),
            ..FileRow::default()
        }));
        rows.sort_unstable_by_key(|row| row.file_id);
        rows
    }
}

/// Time since boot, from `/proc/uptime`.
fn uptime_ms(text: &[u8]) -> Option<i64> {
    let seconds: f64 = number(words(text).next()?)?;
    let is_time = seconds.is_finite() && seconds >= 0.0;
    is_time.then_some((seconds * 1000.0).round() as i64)
}

/// Resident memory of the agent itself, from the real `/proc`, even when a captured tree is sampled.
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
    use crate::config::Units;

    #[test]
    fn a_dip_between_two_samples_is_in_the_second_alone() {
        let dir = tempfile::tempdir().unwrap();
        let available = |kib: u64| {
            let text = format!("MemTotal: 9000 kB\nMemFree: 0 kB\nMemAvailable: {kib} kB\n");
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
            guest_processes: Vec::new(),
            always_active_cgroups: Vec::new(),
            damon: false,
            opens: false,
        };
        let mut sampler = Sampler::new(settings, FileIdKey::random().unwrap()).unwrap();
        let lowest_kib = |sampler: &mut Sampler| {
            let row = sampler.take().unwrap().row;
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
