//! Cached part of a file, by the system call that this kernel has.

use crate::missing_values::{AbsentValue, Reason};
use crate::read::{cachestat, mincore};
use rustix::fd::OwnedFd;
use rustix::fs::fstatfs;
use rustix::io::Errno;
use std::collections::HashMap;
use std::ops::Range;

/// Maximum bytes that one walk examines with mincore(2), which looks up each page, cached or not, and takes
/// 8 to 15 ms of CPU per GiB. cachestat(2) needs no limit: 3 us for 200 MiB.
const MINCORE_WALK_BYTES: u64 = 2 << 30;

/// Size limit of one file: larger files are skipped, so that they do not use up the limit of the walk.
const MINCORE_FILE_BYTES: u64 = 1 << 30;

/// Filesystems (`linux/magic.h`) whose files are shared memory, or views of the kernel without pages.
const NOT_CACHED: [u32; 12] = [
    0x0102_1994, // tmpfs
    0x9584_58f6, // hugetlbfs
    0x0000_9fa0, // proc
    0x6265_6572, // sysfs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0xcafe_4a11, // bpf
    0x6e73_6673, // nsfs
    0xde5e_81e4, // efivarfs
    0x0bad_1dea, // futex and other anonymous inodes
];

/// Magic number of overlayfs (`linux/magic.h`), which containers use. Pages of its files are in the cache of
/// the filesystem below. A mapping reaches these pages; cachestat(2) examines overlayfs itself, and reports
/// 0.
const OVERLAYFS: u32 = 0x794c_7630;

/// Asks the kernel for cached pages; remembers missing system calls, and the filesystem of each device.
#[derive(Debug)]
pub(crate) struct Residency {
    has_cachestat: bool,
    left_bytes: u64,
    filesystems: HashMap<u64, Option<u32>>,
}

/// An open file on a filesystem with a page cache.
#[derive(Debug)]
pub(crate) struct CachedFile {
    file: OwnedFd,
    size_bytes: u64,
    is_overlay: bool,
}

impl Default for Residency {
    fn default() -> Self {
        Self {
            has_cachestat: true,
            left_bytes: MINCORE_WALK_BYTES,
            filesystems: HashMap::new(),
        }
    }
}

impl Residency {
    /// Emulates kernels before Linux 6.5, which lack cachestat(2).
    #[cfg(test)]
    pub(crate) fn without_cachestat() -> Self {
        Self {
            has_cachestat: false,
            ..Self::default()
        }
    }

    /// Begins a walk: resets its limit, and forgets devices, whose numbers may be reused.
    pub(crate) fn begin_walk(&mut self) {
        self.left_bytes = MINCORE_WALK_BYTES;
        self.filesystems.clear();
    }

    /// Returns `file`, which has `size_bytes` on `device`, for measuring; `None` if its filesystem has no
    /// page cache.
    pub(crate) fn file(
        &mut self,
        file: OwnedFd,
        device: u64,
        size_bytes: u64,
    ) -> Option<CachedFile> {
        let filesystem = *self
            .filesystems
            .entry(device)
            .or_insert_with(|| fstatfs(&file).ok().map(|s| s.f_type as u32));
        filesystem
            .filter(|magic| !NOT_CACHED.contains(magic))
            .map(|magic| CachedFile {
                file,
                size_bytes,
                is_overlay: magic == OVERLAYFS,
            })
    }

    /// Number of pages of `file` that are in the page cache within `range` (in bytes; an empty range is the
    /// whole file).
    pub(crate) fn cached_pages(
        &mut self,
        file: &CachedFile,
        range: &Range<u64>,
    ) -> Result<u64, AbsentValue> {
        let &CachedFile {
            ref file,
            size_bytes,
            is_overlay,
        } = file;
        if self.has_cachestat && !is_overlay {
            match cachestat::cached_pages(file, range) {
                Err(Errno::NOSYS) => self.has_cachestat = false, // this kernel will never have it
                asked => return asked.map_err(|e| AbsentValue::from_errno("cachestat", e)),
            }
        }
        let length_bytes = if range.is_empty() {
            size_bytes
        } else {
            range.end - range.start
        };
        if length_bytes > self.left_bytes.min(MINCORE_FILE_BYTES) {
            return Err(AbsentValue::new(
                Reason::Unsupported,
                "too large for mincore",
            ));
        }
        self.left_bytes -= length_bytes;
        mincore::cached_pages(file, size_bytes, range).map_err(|e| match e {
            // The file is open, but its filesystem does not support mappings.
            Errno::NODEV => AbsentValue::from_kernel_file("mincore", e),
            e => AbsentValue::from_errno("mincore", e),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Uid, geteuid};
    use rustix::thread::set_thread_res_uid;
    use std::fs::File;
    use std::io::{Seek, SeekFrom, Write};

    const MIB: u64 = 1 << 20;

    /// Wraps the file, as if it were on an ordinary filesystem.
    fn cached(file: &File) -> CachedFile {
        CachedFile {
            file: file.try_clone().unwrap().into(),
            size_bytes: file.metadata().unwrap().len(),
            is_overlay: false,
        }
    }

    /// Makes a file of which only the second of every four MiB is cached; the others were never written.
    fn a_quarter_cached(size_bytes: u64) -> File {
        let mut file = tempfile::tempfile().unwrap();
        for at in (MIB..size_bytes).step_by(4 * MIB as usize) {
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(&vec![7; MIB as usize]).unwrap();
        }
        file.set_len(size_bytes).unwrap();
        file
    }

    #[test]
    fn mincore_equals_cachestat() {
        let page_bytes = rustix::param::page_size() as u64;
        let size_bytes = 136 * MIB + 5000; // three windows and a partial page
        let file = cached(&a_quarter_cached(size_bytes));
        let ranges = [
            0..0,
            0..size_bytes,
            MIB..2 * MIB,
            0..MIB,
            MIB + 16 * page_bytes..MIB + 32 * page_bytes,
            63 * MIB..68 * MIB, // across a window's end
            132 * MIB..200 * MIB,
            size_bytes..size_bytes + MIB,
        ];
        let (mut new, mut old) = (Residency::default(), Residency::without_cachestat());
        for range in ranges {
            let told = new.cached_pages(&file, &range).unwrap();
            let fallback = old.cached_pages(&file, &range);
            assert_eq!(fallback, Ok(told), "{range:?}");
        }
        let whole = old.cached_pages(&file, &(0..0));
        assert_eq!(whole, Ok(34 * MIB / page_bytes));
    }

    #[test]
    fn what_mincore_may_cost_is_bounded_for_each_walk() {
        let mut residency = Residency::without_cachestat();
        let file = tempfile::tempfile().unwrap();
        let asked = |residency: &mut Residency, size_bytes: u64| {
            file.set_len(size_bytes).unwrap();
            let pages = residency.cached_pages(&cached(&file), &(0..0));
            pages.map_err(|absent| absent.reason)
        };
        let too_large = Err(Reason::Unsupported);
        assert_eq!(asked(&mut residency, MINCORE_FILE_BYTES + 1), too_large);
        for _ in 0..MINCORE_WALK_BYTES / MINCORE_FILE_BYTES {
            assert_eq!(asked(&mut residency, MINCORE_FILE_BYTES), Ok(0));
        }
        assert_eq!(asked(&mut residency, 1), too_large);
        residency.begin_walk();
        assert_eq!(asked(&mut residency, 1), Ok(0));
    }

    /// For another user's file that is readable but not writable, mincore would report every page as cached.
    /// The request must fail instead.
    #[test]
    fn whom_mincore_would_lie_to_is_denied() {
        let told = std::thread::spawn(|| {
            if geteuid().is_root() {
                let nobody = Uid::from_raw(65_534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap(); // for this thread only
            }
            let file = File::open("/usr/bin/env").unwrap();
            let size_bytes = file.metadata().unwrap().len();
            let residency = Residency::without_cachestat().cached_pages(&cached(&file), &(0..0));
            let past_the_end = mincore::reports_pages_past_end(&file, size_bytes);
            (residency.map_err(|absent| absent.reason), past_the_end)
        });
        let expected = (Err(Reason::Denied), Ok(true));
        assert_eq!(told.join().unwrap(), expected);
    }
}
