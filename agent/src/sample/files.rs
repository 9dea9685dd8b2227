//! Walks the files that active processes have open or mapped, and measures their pages in the cache.
//!
//! Only regular files on filesystems with a page cache are measured. Pages of tmpfs, memfd and hugetlbfs are
//! shared memory, which the processes' sizes already include. A file is reached through a process that uses
//! it, so that mount namespaces do not matter, and is identified by device and inode.

use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::Tree;
use crate::read::maps::{complement, union};
use crate::sample::mapped::{MappedInode, WalkLimits, gather};
use crate::sample::residency::{CachedFile, Residency};
use gleaner_schemas::units::pages_to_bytes;
use rustix::fd::{OwnedFd, RawFd};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, StatxFlags, fstat, makedev, openat, readlinkat, stat,
    statat, statx,
};
use rustix::io::Errno;
use std::collections::{BTreeMap, HashSet};
use std::fs::DirEntry;
use std::ops::Range;
use std::path::Path;

/// Capacity that the buffer for `maps` keeps between walks. It suffices for some hundred mappings; a process
/// with very many mappings needs some MiB.
const MAPS_BYTES: usize = 64 << 10;

/// Identity of a file: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileKey {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
}

/// A file in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInUse {
    /// Path as the first process that uses it sees it.
    pub path: String,
    /// Number of active processes that have the file open.
    pub open_processes_count: u64,
    /// Number of active processes that map the file.
    pub mapping_processes_count: u64,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes in the page cache.
    pub cached_bytes: Option<u64>,
    /// Cached bytes in the ranges that active processes map, each counted once.
    pub mapped_cached_bytes: Option<u64>,
}

/// All files in use, by device and inode.
pub type FilesInUse = BTreeMap<FileKey, FileInUse>;

/// Walks files; keeps its buffer and its knowledge of the kernel and of devices.
#[derive(Debug, Default)]
pub struct FileWalk {
    text: Vec<u8>,
    residency: Residency,
    own: HashSet<FileKey>,
    most: WalkLimits,
}

impl FileWalk {
    /// Walks the files of the processes `pids`. `kept` are this process' descriptors of files in /proc, which
    /// are not examined.
    pub fn walk(
        &mut self,
        proc: &Tree,
        pids: &[i64],
        kept: &HashSet<RawFd>,
        page_size_bytes: u64,
        missing_values: &mut MissingValues,
    ) -> FilesInUse {
        let live = proc.is_procfs();
        let mut files = FilesInUse::new();
        self.residency.begin_walk();
        self.own = own_files(kept);
        for ((device, inode), mapped) in
            gather(proc, pids, self.most, &mut self.text, missing_values)
        {
            let measured = if live {
                self.measure_mapped(proc, inode, &mapped, page_size_bytes, missing_values)
            } else {
                // Files of another machine must never be looked up on this machine.
                missing_values.note(
                    "files",
                    AbsentValue::new(Reason::Vanished, "not this host's /proc"),
                );
                Some((FileKey { device, inode }, unmeasured(&mapped)))
            };
            if let Some((key, file)) = measured {
                files.insert(key, file);
            }
        }
        for &pid in pids {
            let opened = if live {
                self.add_open(proc, pid, page_size_bytes, &mut files, missing_values)
            } else {
                Ok(())
            };
            missing_values.keep("files", opened);
        }
        self.text.shrink_to(MAPS_BYTES);
        files
    }

    /// Files that this process had open at the last walk.
    pub(crate) const fn own(&self) -> &HashSet<FileKey> {
        &self.own
    }

    /// Measures a mapped file, identified by its own device and inode; `None` if it has no page cache.
    fn measure_mapped(
        &mut self,
        proc: &Tree,
        inode: u64,
        mapped: &MappedInode,
        page_size_bytes: u64,
        missing_values: &mut MissingValues,
    ) -> Option<(FileKey, FileInUse)> {
        if self.is_own(proc, inode, mapped) {
            return None;
        }
        // Devices are not compared, since btrfs gives each subvolume its own.
        let by_path = open(proc, &mapped.reach).and_then(|file| {
            let stat = fstat(&file)?;
            if stat.st_ino == inode {
                Ok((file, stat))
            } else {
                Err(Errno::NOENT)
            }
        });
        let opened = by_path.or_else(|_| {
            let file = open(proc, &mapped.reach_by_address)?;
            let stat = fstat(&file)?;
            Ok((file, stat))
        });
        let (file, stat) = missing_values.keep(
            "files",
            opened.map_err(|e: Errno| AbsentValue::from_errno("mapped file", e)),
        )?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        let size_bytes = u64::try_from(stat.st_size).unwrap_or(0); // never negative
        let file = self.residency.file(file, stat.st_dev, size_bytes)?;
        let mut in_use = unmeasured(mapped);
        in_use.size_bytes = Some(size_bytes);
        in_use.cached_bytes = self.cached_bytes(&file, &(0..0), page_size_bytes, missing_values);
        if let Some(cached_bytes) = in_use.cached_bytes {
            let ranges = union(mapped.ranges.clone());
            let gaps = complement(&ranges, size_bytes);
            let length =
                |ranges: &[Range<u64>]| ranges.iter().map(|r| r.end - r.start).sum::<u64>();
            let mut cached = |ranges: &[Range<u64>]| -> Option<u64> {
                ranges
                    .iter()
                    .map(|range| self.cached_bytes(&file, range, page_size_bytes, missing_values))
                    .sum()
            };
            // Most libraries are mapped except for their end: measuring the unmapped part spares the kernel a second
            // walk over the mapped pages.
            in_use.mapped_cached_bytes = if length(&gaps) < length(&ranges) {
                cached(&gaps).map(|unmapped_bytes| cached_bytes.saturating_sub(unmapped_bytes))
            } else {
                cached(&ranges)
            };
        }
        Some((key(&stat), in_use))
    }

    /// Adds the files that a process has open.
    fn add_open(
        &mut self,
        proc: &Tree,
        pid: i64,
        page_size_bytes: u64,
        files: &mut FilesInUse,
        missing_values: &mut MissingValues,
    ) -> Result<(), AbsentValue> {
        let gone = |e| AbsentValue::from_errno("fd", e);
        let mut counted = HashSet::new();
        let folder = format!("{pid}/fd");
        for entry in proc.list(&folder).map_err(gone)? {
            let Ok(number) = entry.map_err(gone)?.file_name().to_str().map(str::to_owned) else {
                continue;
            };
            let link = format!("{folder}/{number}");
            // Sockets, pipes and anonymous inodes have no path: most links end here.
            let Ok(target) = readlinkat(proc, &link, Vec::new()) else {
                continue;
            };
            if !target.to_bytes().starts_with(b"/") || target.to_bytes().starts_with(b"/memfd:") {
                continue;
            }
            let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE;
            let Ok(stat) = statx(proc, &link, AtFlags::STATX_DONT_SYNC, wanted) else {
                continue;
            };
            if FileType::from_raw_mode(u32::from(stat.stx_mode)) != FileType::RegularFile {
                continue;
            }
            let key = FileKey {
                device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
                inode: stat.stx_ino,
            };
            if self.own.contains(&key) || !counted.insert(key) {
                continue;
            }
            if counted.len() > self.most.of_process {
                let most = self.most.of_process;
                let detail = format!("a process has more than {most} files open");
                return Err(AbsentValue::new(Reason::Exceeded, detail));
            }
            if let Some(file) = files.get_mut(&key) {
                file.open_processes_count += 1;
                continue;
            }
            if files.len() >= self.most.files {
                missing_values.note("files", self.most.absence_beyond_limits());
                continue;
            }
            let opened =
                open(proc, Path::new(&link)).map_err(|e| AbsentValue::from_errno("open file", e));
            let cached_bytes = match missing_values.keep("files", opened) {
                Some(file) => {
                    let Some(file) = self.residency.file(file, key.device, stat.stx_size) else {
                        continue;
                    };
                    self.cached_bytes(&file, &(0..0), page_size_bytes, missing_values)
                }
                None => None,
            };
            files.insert(
                key,
                FileInUse {
                    path: target.to_string_lossy().into_owned(),
                    open_processes_count: 1,
                    mapping_processes_count: 0,
                    size_bytes: Some(stat.stx_size),
                    cached_bytes,
                    mapped_cached_bytes: cached_bytes.map(|_| 0),
                },
            );
        }
        Ok(())
    }

    /// Returns true if this process itself has the file open; does not open the file.
    fn is_own(&self, proc: &Tree, inode: u64, mapped: &MappedInode) -> bool {
        self.own.iter().any(|own| own.inode == inode)
            && [&mapped.reach, &mapped.reach_by_address]
                .into_iter()
                .any(|path| {
                    statat(proc, path, AtFlags::empty())
                        .is_ok_and(|stat| self.own.contains(&key(&stat)))
                })
    }

    fn cached_bytes(
        &mut self,
        file: &CachedFile,
        range: &Range<u64>,
        page_size_bytes: u64,
        missing_values: &mut MissingValues,
    ) -> Option<u64> {
        let pages = self.residency.cached_pages(file, range);
        missing_values
            .keep("files", pages)
            .map(|pages| pages_to_bytes(pages, page_size_bytes))
    }
}

pub(crate) fn key(stat: &Stat) -> FileKey {
    FileKey {
        device: stat.st_dev,
        inode: stat.st_ino,
    }
}

/// Files that this process has open, above all its database. Such a file must not be opened a second time:
/// closing any descriptor of a file drops the process' locks on the file (fcntl(2)), including SQLite's, and
/// another program would then truncate the WAL's index while it is in use. The descriptors `kept` are left
/// out: they are thousands of files in /proc, and to examine one costs as much as to read it.
fn own_files(kept: &HashSet<RawFd>) -> HashSet<FileKey> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return HashSet::new();
    };
    let is_kept = |entry: &DirEntry| {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        number.is_some_and(|number| kept.contains(&number))
    };
    let entries = entries.flatten().filter(|entry| !is_kept(entry));
    let stats = entries.filter_map(|entry| stat(entry.path()).ok());
    stats.map(|stat| key(&stat)).collect()
}

fn unmeasured(mapped: &MappedInode) -> FileInUse {
    FileInUse {
        path: mapped.path.to_string_lossy().into_owned(),
        open_processes_count: 0,
        mapping_processes_count: mapped.processes,
        size_bytes: None,
        cached_bytes: None,
        mapped_cached_bytes: None,
    }
}

/// Opens without waiting: a file lease or a device must not delay the sample.
fn open(proc: &Tree, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    openat(proc, path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsRawFd;
    use std::io::Write;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    /// Process that ends with its test.
    struct FileHolder(Child);

    impl Drop for FileHolder {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Starts a process that has `count` files on a disk open; the folder is removed with the test.
    fn holder_of(count: usize) -> (FileHolder, tempfile::TempDir) {
        let program = std::env::current_exe().unwrap();
        let folder = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
        for number in 0..count {
            std::fs::write(folder.path().join(format!("{number}")), "x").unwrap();
        }
        let script = "for f in *; do exec {fd}<\"$f\"; done; echo; exec sleep 300 >&-";
        let mut holder = Command::new("bash")
            .args(["-c", script])
            .current_dir(folder.path())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let opened = holder.stdout.take().unwrap();
        std::io::Read::read_exact(&mut { opened }, &mut [0]).unwrap();
        (FileHolder(holder), folder)
    }

    #[test]
    fn files_beyond_the_bounds_are_noted_and_not_held() {
        const OPEN: usize = 60;
        let (holder, _folder) = holder_of(OPEN);
        let proc = Tree::open(Path::new("/proc")).unwrap();
        let walked = |of_process, files| {
            let mut walk = FileWalk {
                most: WalkLimits { of_process, files },
                ..FileWalk::default()
            };
            let mut missing_values = MissingValues::default();
            let pids = [i64::from(holder.0.id())];
            let found = walk.walk(&proc, &pids, &HashSet::new(), 4096, &mut missing_values);
            let rows = missing_values.rows().into_iter();
            let exceeded = rows.filter(|row| row.reason == "exceeded");
            let exceeded: i64 = exceeded.map(|row| row.missing_count).sum();
            let open = found
                .values()
                .filter(|file| file.open_processes_count > 0)
                .count();
            (found.len(), open, exceeded)
        };
        let (_, open, exceeded) = walked(1000, 1000);
        assert_eq!((open, exceeded), (OPEN, 0));
        let (_, open, exceeded) = walked(16, 1000);
        assert_eq!((open, exceeded), (16, 1)); // one absence stands for all further files of the process
        let (all, _, exceeded) = walked(1000, 16);
        assert_eq!(all, 16);
        assert!(exceeded >= OPEN as i64 - 16, "{exceeded}");
        // The limit counts mapped files, too.
        let (all, _, exceeded) = walked(1000, 1);
        assert_eq!(all, 1);
        assert!(exceeded > OPEN as i64 - 1, "{exceeded}");
    }

    #[test]
    fn own_files_are_those_of_all_descriptors_but_the_kept_ones() {
        let own = tempfile::tempfile().unwrap();
        let identity = key(&fstat(&own).unwrap());
        assert!(own_files(&HashSet::new()).contains(&identity));
        let kept = HashSet::from([own.as_raw_fd()]);
        assert!(!own_files(&kept).contains(&identity));
    }

    #[test]
    fn without_cachestat_the_files_are_the_same() {
        let program = std::env::current_exe().unwrap(); // on a disk: /tmp may be shared memory
        let mut opened = tempfile::NamedTempFile::new_in(program.parent().unwrap()).unwrap();
        opened.write_all(&vec![7; 3 << 20]).unwrap();
        opened.as_file().set_len(5 << 20).unwrap();
        let opened = opened.into_temp_path(); // files that this process has open are not examined
        let input = std::fs::File::open(&opened).unwrap();
        let holder = Command::new("sleep").arg("300").stdin(input).spawn();
        let holder = FileHolder(holder.unwrap());

        let proc = Tree::open(Path::new("/proc")).unwrap();
        let page_size_bytes = rustix::param::page_size() as u64;
        let walk = |residency| {
            let mut walk = FileWalk {
                residency,
                ..FileWalk::default()
            };
            let pids = [i64::from(holder.0.id())];
            let none = HashSet::new();
            walk.walk(
                &proc,
                &pids,
                &none,
                page_size_bytes,
                &mut MissingValues::default(),
            )
        };
        let own = key(&stat(&*opened).unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        let (told, fallback) = loop {
            let told = walk(Residency::default());
            let fallback = walk(Residency::without_cachestat());
            // Until the holder has loaded its libraries, two walks see different files.
            let are_same = fallback.keys().eq(told.keys());
            if told.contains_key(&own) && told.len() > 2 && are_same {
                break (told, fallback);
            }
            assert!(Instant::now() < deadline, "{told:?} {fallback:?}");
        };
        assert_eq!(told[&own].cached_bytes, Some(3 << 20)); // the remainder is a hole
        assert_eq!(fallback[&own], told[&own]);
        let mapped = |file: &&FileInUse| file.mapped_cached_bytes > Some(0);
        assert!(fallback.values().filter(mapped).count() > 1); // sleep itself, and its libraries
    }
}
