//! Every open of a file on a disk between two samples (fanotify(7)), if the owner enables the watch.
//!
//! The kernel names files by handle: it opens no file for the agent, no event keeps a file or mount busy, and a
//! file is examined once per sample, however often it was opened. The kernel merges several unread opens by one
//! process into one event.

use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::Tree;
use crate::read::cachestat::cached_pages;
use crate::read::fanotify::{Event, Group, events};
use crate::read::handle::open_by_handle;
use crate::read::mountinfo::{Mount, mounts};
use crate::sample::files::{FileKey, FilesInUse, key};
use gleaner_schemas::units::pages_to_bytes;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, fstatvfs, openat, readlinkat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

/// Maximum number of files recorded by a sample; further opens are counted as absent. Each file takes some 14
/// us of CPU, and a sample should take at most 50 ms.
pub const MOST_FILES: usize = 2048;

/// Maximum number of reads per look: enough for more events than the kernel queues (16384). It keeps the look
/// finite if programs open files faster than the agent reads the events.
const MOST_READS: usize = 32;

/// Types of disk filesystem that use a device number of their own.
const DISKS_OF_THEIR_OWN: [&str; 2] = ["btrfs", "bcachefs"];

/// A file that was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenedFile {
    /// Number of times the file was opened.
    pub opens_count: u64,
    /// Path as the agent sees it.
    pub path: Option<String>,
    /// Size, in bytes.
    pub size_bytes: Option<u64>,
    /// Bytes in the page cache.
    pub cached_bytes: Option<u64>,
}

/// Opened files; for files that are also in use, only the count is set.
pub type OpenedFiles = BTreeMap<FileKey, OpenedFile>;

/// Watches the filesystems on disks.
#[derive(Debug)]
pub struct OpenWatch {
    group: Group,
    own_pid: i32,
    /// Number of events by filesystem and handle.
    counts: HashMap<Box<[u8]>, u64>,
    lost: UncountedOpens,
    buffer: Vec<u8>,
    text: Vec<u8>,
}

/// Opens that could not be counted.
#[derive(Debug, Default)]
struct UncountedOpens {
    by_the_kernel: u64,
    beyond_most_files: u64,
}

impl OpenWatch {
    /// Begins to watch.
    ///
    /// # Errors
    /// The absence: denied without CAP_SYS_ADMIN, unsupported before Linux 5.1.
    pub fn new(proc: &Tree) -> Result<Self, AbsentValue> {
        if !proc.is_procfs() {
            return Err(AbsentValue::new(
                Reason::Unsupported,
                "not this host's /proc",
            ));
        }
        let group = Group::new().map_err(|e| AbsentValue::from_kernel_file("fanotify", e))?;
        let mut watch = Self {
            group,
            own_pid: rustix::process::getpid().as_raw_nonzero().get(),
            counts: HashMap::new(),
            lost: UncountedOpens::default(),
            buffer: vec![0; 64 << 10],
            text: Vec::new(),
        };
        watch.mark(proc, &mut MissingValues::default()); // each sample marks again, and reports failures
        Ok(watch)
    }

    /// Reads the pending events.
    pub fn drain(&mut self) {
        for _ in 0..MOST_READS {
            let Ok(length @ 1..) = rustix::io::read(self.group.as_fd(), &mut self.buffer[..])
            else {
                return; // no events are left
            };
            for event in events(&self.buffer[..length]) {
                match event {
                    Event::Overflow => self.lost.by_the_kernel += 1,
                    Event::File { pid, .. } if pid == self.own_pid => {}
                    Event::File { file, .. } => {
                        if let Some(count) = self.counts.get_mut(file) {
                            *count += 1;
                        } else if self.counts.len() < MOST_FILES {
                            self.counts.insert(file.into(), 1);
                        } else {
                            self.lost.beyond_most_files += 1;
                        }
                    }
                }
            }
        }
    }

    /// Returns the files opened since the last call, except this process' `own`. Files in use are known
    /// already; the others are examined.
    pub fn take(
        &mut self,
        proc: &Tree,
        in_use: &FilesInUse,
        own: &HashSet<FileKey>,
        page_size_bytes: u64,
        missing_values: &mut MissingValues,
    ) -> OpenedFiles {
        self.drain();
        let disks = self.mark(proc, missing_values);
        let mut opened = OpenedFiles::new();
        for (file, count) in std::mem::take(&mut self.counts) {
            let (filesystem, handle) = file.split_at(8);
            let Some(disk) = disks.get(filesystem) else {
                missing_values.note("opens", AbsentValue::new(Reason::Vanished, "filesystem"));
                continue;
            };
            // The file is opened only as a path. To really open a device has effects, and to close one of the
            // agent's own files would drop the agent's locks on it.
            let reached = open_by_handle(disk, handle, OFlags::PATH)
                .and_then(|fd| Ok((fstat(&fd)?, fd)))
                .map_err(gone);
            let Some((stat, fd)) = missing_values.keep("opens", reached) else {
                continue;
            };
            let key = key(&stat);
            let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if !is_file || own.contains(&key) {
                continue;
            }
            let known = opened.entry(key).or_default();
            known.opens_count += count;
            if !in_use.contains_key(&key) && known.size_bytes.is_none() {
                known.size_bytes = u64::try_from(stat.st_size).ok();
                let (path, pages) = look_at(&fd);
                known.path = path;
                let pages = pages.map_err(|e| AbsentValue::from_errno("cachestat", e));
                known.cached_bytes = missing_values
                    .keep("opens", pages)
                    .map(|pages| pages_to_bytes(pages, page_size_bytes));
            }
        }
        self.note_what_was_lost(missing_values);
        opened
    }

    fn note_what_was_lost(&mut self, missing_values: &mut MissingValues) {
        let lost = std::mem::take(&mut self.lost);
        if lost.by_the_kernel > 0 {
            let absent = AbsentValue::new(Reason::Exceeded, "the kernel's queue was full");
            missing_values.note("opens", absent);
        }
        if lost.beyond_most_files > 0 {
            let detail = format!("{} opens beyond {MOST_FILES} files", lost.beyond_most_files);
            missing_values.note("opens", AbsentValue::new(Reason::Exceeded, detail));
        }
    }

    /// Marks every filesystem on a disk, including new ones; to mark one again changes nothing. Returns
    /// descriptors by filesystem id. Drop them soon: an open descriptor prevents unmounting.
    fn mark(
        &mut self,
        proc: &Tree,
        missing_values: &mut MissingValues,
    ) -> HashMap<[u8; 8], OwnedFd> {
        let mut disks = HashMap::new();
        if let Err(e) = proc.read("self/mountinfo", &mut self.text) {
            missing_values.note("opens", AbsentValue::from_errno("mountinfo", e));
            return disks;
        }
        let mut seen = BTreeSet::new();
        for mount in mounts(&self.text).filter(is_on_a_disk) {
            if !seen.insert(mount.device) {
                continue;
            }
            let marked = self.group.watch_opens(&mount.point);
            let marked = marked.and_then(|()| filesystem(&mount.point));
            let marked = marked.map_err(|e| AbsentValue::from_errno(&mount.kind, e));
            disks.extend(missing_values.keep("opens", marked));
        }
        disks
    }
}

fn is_on_a_disk(mount: &Mount) -> bool {
    mount.device.0 != 0 || DISKS_OF_THEIR_OWN.contains(&mount.kind.as_str())
}

/// Id of a mounted filesystem as in events, and a descriptor by which its files can be reached.
fn filesystem(point: &Path) -> Result<([u8; 8], OwnedFd), Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(CWD, point, flags, Mode::empty())?;
    // Events contain two numbers of 32 bits, which statvfs(3) combines into one.
    let fsid = fstatvfs(&fd)?.f_fsid;
    let mut id = [0; 8];
    id[..4].copy_from_slice(&(fsid as u32).to_ne_bytes());
    id[4..].copy_from_slice(&((fsid >> 32) as u32).to_ne_bytes());
    Ok((id, fd))
}

/// Returns a file's path, if the kernel still knows one, and its pages in the page cache.
fn look_at(fd: &OwnedFd) -> (Option<String>, Result<u64, Errno>) {
    use rustix::fd::AsRawFd;
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let path = readlinkat(CWD, &link, Vec::new()).ok();
    let path = path.map(|path| path.to_string_lossy().into_owned());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let pages =
        openat(CWD, &link, flags, Mode::empty()).and_then(|file| cached_pages(&file, &(0..0)));
    (path.filter(|path| path.len() > 1), pages)
}

/// Makes the absence of an opened file that cannot be reached. A file deleted in the meantime counts as
/// vanished, like a process that ended.
fn gone(e: Errno) -> AbsentValue {
    match e {
        Errno::STALE => AbsentValue::new(Reason::Vanished, "deleted"),
        e => AbsentValue::from_errno("open_by_handle_at", e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    /// Returns the files opened while `act` ran, and the messages about lost opens. Repeats while other
    /// programs open more files than the queue holds.
    fn opened_while(act: impl Fn()) -> (OpenedFiles, Vec<String>) {
        let proc = Tree::open(Path::new("/proc")).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let mut watch = OpenWatch::new(&proc).unwrap();
            act();
            let mut missing_values = MissingValues::default();
            let opened = watch.take(
                &proc,
                &FilesInUse::new(),
                &HashSet::new(),
                4096,
                &mut missing_values,
            );
            let told: Vec<_> = missing_values
                .rows()
                .into_iter()
                .map(|r| r.reason)
                .collect();
            if !told.contains(&"exceeded".to_owned()) || Instant::now() > deadline {
                return (opened, told);
            }
        }
    }

    fn file(name: &str) -> (tempfile::TempPath, String) {
        let mut builder = tempfile::Builder::new();
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
        let file = builder.prefix(name).tempfile_in(target).unwrap();
        std::fs::write(&file, vec![7; 3 * 4096]).unwrap();
        let path = file.into_temp_path();
        let real = std::fs::canonicalize(&path).unwrap();
        (path, real.to_str().unwrap().to_owned())
    }

    fn cat(path: &str) {
        assert!(
            Command::new("cat")
                .arg(path)
                .output()
                .unwrap()
                .status
                .success()
        );
    }

    #[test]
    fn what_others_open_is_counted_and_what_we_open_is_not() {
        let (_shared, shared) = file("shared");
        let (_own, own) = file("own");
        let (opened, _) = opened_while(|| {
            for _ in 0..3 {
                cat(&shared); // three processes
            }
            std::fs::read(&own).unwrap();
        });
        let of = |path: &str| opened.values().find(|f| f.path.as_deref() == Some(path));
        let expected = OpenedFile {
            opens_count: 3,
            path: Some(shared.clone()),
            size_bytes: Some(3 * 4096),
            cached_bytes: Some(3 * 4096),
        };
        assert_eq!(of(&shared), Some(&expected));
        assert_eq!(of(&own), None);
    }

    #[test]
    fn what_one_process_opens_again_before_a_look_counts_once() {
        let (_again, again) = file("again");
        let (opened, _) = opened_while(|| {
            let script = "for i in 1 2 3; do : <\"$1\"; done";
            let shell = Command::new("sh")
                .args(["-c", script, "sh", &again])
                .status();
            assert!(shell.unwrap().success());
        });
        let counts: Vec<_> = opened
            .values()
            .filter(|f| f.path.as_deref() == Some(&again))
            .collect();
        assert_eq!(
            counts.iter().map(|f| f.opens_count).collect::<Vec<_>>(),
            [1]
        );
    }

    #[test]
    fn a_file_that_is_deleted_again_is_told_as_vanished() {
        let (opened, told) = opened_while(|| {
            let (path, name) = file("deleted");
            cat(&name);
            path.close().unwrap();
        });
        assert!(told.contains(&"vanished".to_owned()), "{told:?}");
        let is_deleted = |f: &OpenedFile| f.path.as_deref().is_some_and(|p| p.contains("/deleted"));
        assert!(!opened.values().any(is_deleted));
    }

    #[test]
    fn another_hosts_tree_is_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        let watch = OpenWatch::new(&Tree::open(dir.path()).unwrap());
        assert_eq!(watch.err().map(|a| a.reason), Some(Reason::Unsupported));
    }
}
