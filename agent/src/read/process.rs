//! Parsers of `/proc/[pid]/{stat,statm,smaps_rollup,status}`.

use super::{LARGEST_BYTES, LARGEST_PAGES, lines, number, words};
use gleaner_schemas::units::kib_to_bytes;

/// Flag of a kernel thread (`PF_KTHREAD`, `linux/sched.h`).
const PF_KTHREAD: u64 = 0x0020_0000;

/// Contents of `stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// Name (comm), 15 bytes at most.
    pub name: &'a [u8],
    /// True for a kernel thread.
    pub is_kernel_thread: bool,
    /// Controlling terminal as (major, minor); `None` without one.
    pub terminal: Option<(u32, u32)>,
    /// CPU time of all threads of the process, user and system, in clock ticks.
    pub cpu_ticks: u64,
    /// Start, in clock ticks since boot.
    pub started_ticks: u64,
    /// Resident memory in pages, approximately: the kernel leaves out counts that each CPU keeps.
    pub resident_pages: u64,
}

impl<'a> Stat<'a> {
    /// Parses the file's only line. The name may contain spaces and parentheses: it ends at the last
    /// parenthesis.
    #[must_use]
    pub fn parse(text: &'a [u8]) -> Option<Self> {
        let open = text.iter().position(|&b| b == b'(')?;
        let close = text.iter().rposition(|&b| b == b')')?;
        let name = text.get(open + 1..close)?;
        // Fields from the third (state) on, as proc_pid_stat(5) numbers them.
        let mut fields = words(text.get(close + 1..)?);
        let mut field = 2;
        let mut word = |n: usize| {
            let word = fields.nth(n - field - 1);
            field = n;
            word
        };
        let tty_nr: i32 = number(word(7)?)?; // printed as signed: only its bits matter
        let mut at = |n| number::<u64>(word(n)?);
        let flags = at(9)?;
        let cpu_ticks = at(14)?.saturating_add(at(15)?);
        Some(Self {
            name,
            is_kernel_thread: flags & PF_KTHREAD != 0,
            terminal: terminal(tty_nr as u32),
            cpu_ticks,
            started_ticks: at(22)?,
            resident_pages: at(24).filter(|&pages| pages <= LARGEST_PAGES)?,
        })
    }
}

/// Decodes major and minor number: minor in bits 31-20 and 7-0, major in bits 19-8.
fn terminal(tty_nr: u32) -> Option<(u32, u32)> {
    let major = (tty_nr >> 8) & 0xfff;
    let minor = (tty_nr & 0xff) | ((tty_nr >> 12) & 0xf_ff00);
    (tty_nr != 0).then_some((major, minor))
}

/// Contents of `statm`, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statm {
    /// Number of resident pages.
    pub resident_pages: u64,
    /// File pages and shared memory within the resident pages.
    pub shared_pages: u64,
}

impl Statm {
    /// Parses the file's only line.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = words(text).skip(1);
        let mut pages = || number(words.next()?).filter(|&pages| pages <= LARGEST_PAGES);
        Some(Self {
            resident_pages: pages()?,
            shared_pages: pages()?,
        })
    }
}

/// A process' memory by kind, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Anonymous memory, in bytes.
    pub anon_bytes: Option<u64>,
    /// File pages, in bytes.
    pub file_bytes: Option<u64>,
    /// Shared memory (shmem, tmpfs).
    pub shmem_bytes: Option<u64>,
    /// Swapped-out memory, in bytes.
    pub swap_bytes: Option<u64>,
    /// Resident memory (including huge pages) that no other process maps; from `smaps_rollup` only.
    pub private_bytes: Option<u64>,
    /// Resident memory (including huge pages) that other processes also map; from `smaps_rollup` only.
    pub shared_bytes: Option<u64>,
}

impl Split {
    /// Proportional sizes from `smaps_rollup`; `None` on kernels that do not split them (before 5.4).
    #[must_use]
    pub fn from_smaps_rollup(text: &[u8]) -> Option<Self> {
        let mut split = Self::default();
        for (name, bytes) in sizes(text) {
            match name {
                b"Pss_Anon:" => split.anon_bytes = Some(bytes),
                b"Pss_File:" => split.file_bytes = Some(bytes),
                b"Pss_Shmem:" => split.shmem_bytes = Some(bytes),
                b"SwapPss:" => split.swap_bytes = Some(bytes),
                b"Private_Clean:" | b"Private_Dirty:" | b"Private_Hugetlb:" => {
                    add(&mut split.private_bytes, bytes);
                }
                b"Shared_Clean:" | b"Shared_Dirty:" | b"Shared_Hugetlb:" => {
                    add(&mut split.shared_bytes, bytes);
                }
                _ => {}
            }
        }
        split.whole()
    }

    /// Resident sizes from `status`; shared pages count in full for each process.
    #[must_use]
    pub fn from_status(text: &[u8]) -> Option<Self> {
        let mut split = Self::default();
        for (name, bytes) in sizes(text) {
            match name {
                b"RssAnon:" => split.anon_bytes = Some(bytes),
                b"RssFile:" => split.file_bytes = Some(bytes),
                b"RssShmem:" => split.shmem_bytes = Some(bytes),
                b"VmSwap:" => split.swap_bytes = Some(bytes),
                _ => {}
            }
        }
        split.whole()
    }

    /// Split for kernels before 4.5, where `status` gives resident memory but not its kinds. Resident memory
    /// that is not shared (both from `statm`) counts as anonymous; file pages and shared memory cannot be
    /// distinguished and stay absent. `None` for a process without memory.
    #[must_use]
    pub fn from_older_status(text: &[u8], resident_bytes: u64, shared_bytes: u64) -> Option<Self> {
        let of = |wanted: &[u8]| sizes(text).find(|(name, _)| *name == wanted);
        of(b"VmRSS:")?;
        Some(Self {
            anon_bytes: Some(resident_bytes.saturating_sub(shared_bytes)),
            swap_bytes: of(b"VmSwap:").map(|(_, bytes)| bytes),
            ..Self::default()
        })
    }

    /// Returns `None` unless all four parts are there: kernels have all or none, and a missing part would
    /// count as 0.
    fn whole(self) -> Option<Self> {
        let parts = [
            self.anon_bytes,
            self.file_bytes,
            self.shmem_bytes,
            self.swap_bytes,
        ];
        parts.iter().all(Option::is_some).then_some(self)
    }
}

/// Parses lines like `Pss_Anon: 300 kB` into bytes; skips malformed lines.
/// A process's memory by its latest use, from `smaps_rollup`. Shared pages count in full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentUse {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Resident memory that was used since `clear_refs` was written, in bytes.
    pub referenced_bytes: u64,
    /// Swapped-out memory, in bytes.
    pub swap_bytes: u64,
}

impl RecentUse {
    /// Parses the file; `None` if a size is missing. Without swap support, the kernel counts 0 bytes as swapped.
    #[must_use]
    pub fn from_smaps_rollup(text: &[u8]) -> Option<Self> {
        let size = |wanted: &[u8]| {
            let mut found = sizes(text).filter(|(name, _)| *name == wanted);
            found.next().map(|(_, bytes)| bytes)
        };
        Some(Self {
            resident_bytes: size(b"Rss:")?,
            referenced_bytes: size(b"Referenced:")?,
            swap_bytes: size(b"Swap:")?,
        })
    }
}

fn sizes(text: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    lines(text).filter_map(|line| {
        let mut words = words(line);
        let (name, kib) = (words.next()?, number(words.next()?)?);
        Some((name, kib_to_bytes(kib))).filter(|(_, bytes)| *bytes <= LARGEST_BYTES)
    })
}

fn add(sum: &mut Option<u64>, bytes: u64) {
    *sum = Some(sum.unwrap_or(0).saturating_add(bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stat_line(name: &str, flags: u64) -> String {
        format!(
            "742 ({name}) S 1 742 742 34817 -1 {flags} 100 0 0 0 150 50 0 0 20 0 4 0 12345 1000000 250 184 1"
        )
    }

    #[test]
    fn stat_of_a_user_process_and_a_kernel_thread() {
        let line = stat_line("tmux: server", 0x0040_0100);
        let stat = Stat::parse(line.as_bytes()).unwrap();
        let expected = Stat {
            name: b"tmux: server",
            is_kernel_thread: false,
            terminal: Some((136, 1)), // 34817 = 136 << 8 | 1
            cpu_ticks: 200,
            started_ticks: 12345,
            resident_pages: 250,
        };
        assert_eq!(stat, expected);
        let line = stat_line("kworker/0:1", 0x0420_8060);
        assert!(Stat::parse(line.as_bytes()).unwrap().is_kernel_thread);
        assert_eq!(terminal(0), None);
        assert_eq!(
            terminal((300 & 0xff) | (300 >> 8 << 20) | 136 << 8),
            Some((136, 300))
        );
    }

    #[test]
    fn sizes() {
        let statm = Statm {
            resident_pages: 250,
            shared_pages: 100,
        };
        assert_eq!(Statm::parse(b"1000 250 100 5 0 60 0\n"), Some(statm));
        let rollup = b"5580000-7ffff ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss: 500 kB\nPss_Dirty: 1 kB\n\
            Pss_Anon: 300 kB\nPss_File: 150 kB\nPss_Shmem: 50 kB\nShared_Clean: 400 kB\nShared_Dirty: 30 kB\n\
            Private_Clean: 70 kB\nPrivate_Dirty: 400 kB\nShared_Hugetlb: 0 kB\nPrivate_Hugetlb: 2048 kB\n\
            Swap: 9 kB\nSwapPss: 8 kB\n";
        let split = Split {
            anon_bytes: Some(300 << 10),
            file_bytes: Some(150 << 10),
            shmem_bytes: Some(50 << 10),
            swap_bytes: Some(8 << 10),
            private_bytes: Some((70 + 400 + 2048) << 10),
            shared_bytes: Some(430 << 10),
        };
        assert_eq!(Split::from_smaps_rollup(rollup), Some(split));
        assert_eq!(
            Split::from_smaps_rollup(b"Rss: 900 kB\nPss: 500 kB\n"),
            None
        );
        for part in [
            "Pss_Anon: 300 kB\n",
            "Pss_File: 150 kB\n",
            "Pss_Shmem: 50 kB\n",
            "SwapPss: 8 kB\n",
        ] {
            let text = String::from_utf8_lossy(rollup);
            for other in [
                "",
                &part.replace("kB", ""),
                &part.replace(' ', " -"),
                &part.replace(": ", ": 9999999999999999"),
            ] {
                let text = text.replace(part, other);
                let expected = (other == part.replace("kB", "")).then_some(split);
                assert_eq!(
                    Split::from_smaps_rollup(text.as_bytes()),
                    expected,
                    "{other}"
                );
            }
        }
        let status =
            b"Name:\tx\nRssAnon:\t 300 kB\nRssFile:\t 150 kB\nRssShmem:\t 50 kB\nVmSwap:\t 8 kB\n";
        let resident = Split {
            private_bytes: None,
            shared_bytes: None,
            ..split
        };
        assert_eq!(Split::from_status(status), Some(resident));
        // Linux 4.4 does not tell the kinds of memory.
        let status = b"Name:\tx\nVmRSS:\t 500 kB\nVmSwap:\t 8 kB\n";
        assert_eq!(Split::from_status(status), None);
        let older = Split {
            anon_bytes: Some(300 << 10),
            swap_bytes: Some(8 << 10),
            ..Split::default()
        };
        assert_eq!(
            Split::from_older_status(status, 500 << 10, 200 << 10),
            Some(older)
        );
        assert_eq!(Split::from_older_status(b"Name:\tx\n", 0, 0), None);
    }

    #[test]
    fn recent_use_of_a_captured_rollup() {
        // Linux 6.18: a shell, right after `echo 1 >/proc/self/clear_refs`; the sizes of swap are altered.
        let captured =
            b"5575bad4d000-7fff24959000 ---p 00000000 00:00 0                          [rollup]\n\
            Rss:                1624 kB\nPss:                 337 kB\nPss_Dirty:           108 kB\n\
            Pss_Anon:            108 kB\nPss_File:            229 kB\nPss_Shmem:             0 kB\n\
            Shared_Clean:       1400 kB\nShared_Dirty:          0 kB\nPrivate_Clean:       116 kB\n\
            Private_Dirty:       108 kB\nReferenced:          100 kB\nAnonymous:           108 kB\n\
            KSM:                   0 kB\nLazyFree:              0 kB\nAnonHugePages:         0 kB\n\
            ShmemPmdMapped:        0 kB\nFilePmdMapped:         0 kB\nShared_Hugetlb:        0 kB\n\
            Private_Hugetlb:       0 kB\nSwap:                  8 kB\nSwapPss:               4 kB\n\
            Locked:                0 kB\n";
        let used = RecentUse {
            resident_bytes: 1624 << 10,
            referenced_bytes: 100 << 10,
            swap_bytes: 8 << 10,
        };
        assert_eq!(RecentUse::from_smaps_rollup(captured), Some(used));
        let text = String::from_utf8_lossy(captured);
        for missing in ["\nRss:", "\nReferenced:", "\nSwap:"] {
            let torn = text.replacen(missing, "\nOther:", 1);
            assert_eq!(RecentUse::from_smaps_rollup(torn.as_bytes()), None);
        }
        assert_eq!(RecentUse::from_smaps_rollup(b""), None);
    }

    proptest! {
        #[test]
        fn any_name_is_read_back(name in "[ -~]{0,15}") {
            let line = stat_line(&name, 0);
            prop_assert_eq!(Stat::parse(line.as_bytes()).map(|s| s.name), Some(name.as_bytes()));
        }

        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..200), line in "[0-9() :a-zA-Z\n-]{0,120}") {
            for text in [text.as_slice(), line.as_bytes()] {
                let _ = Stat::parse(text);
                let _ = Statm::parse(text);
                let _ = Split::from_smaps_rollup(text);
                let _ = Split::from_status(text);
            }
        }
    }
}
