//! Control groups, version 2 (`Documentation/admin-guide/cgroup-v2.rst`).

use super::{lines, number};

/// Path of a process' group from its `/proc/[pid]/cgroup`; `None` without a group of version 2.
#[must_use]
pub fn path(text: &[u8]) -> Option<String> {
    let path = lines(text).find_map(|line| line.strip_prefix(b"0::"))?;
    Some(String::from_utf8_lossy(path).into_owned())
}

/// Contents of `memory.stat`, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStat {
    /// Anonymous memory, in bytes.
    pub anon_bytes: Option<u64>,
    /// Page cache, including shared memory.
    pub file_bytes: Option<u64>,
    /// Shared memory, in bytes.
    pub shmem_bytes: Option<u64>,
    /// Kernel memory (Linux 5.18).
    pub kernel_bytes: Option<u64>,
}

impl MemoryStat {
    /// Parses the known lines; `None` without `anon`, which every kernel gives.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut stat = Self::default();
        for line in lines(text) {
            let mut parts = line.splitn(2, |&b| b == b' ');
            let figure = match parts.next() {
                Some(b"anon") => &mut stat.anon_bytes,
                Some(b"file") => &mut stat.file_bytes,
                Some(b"shmem") => &mut stat.shmem_bytes,
                Some(b"kernel") => &mut stat.kernel_bytes,
                _ => continue,
            };
            *figure = parts.next().and_then(number);
        }
        stat.anon_bytes.map(|_| stat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_path_of_version_2_among_those_of_version_1() {
        let text = b"4:memory:/other\n1:name=systemd:/x\n0::/user.slice/a:b.scope\n";
        assert_eq!(path(text).as_deref(), Some("/user.slice/a:b.scope"));
        assert_eq!(path(b"4:memory:/other\n"), None);
    }

    #[test]
    fn figures_by_whole_name() {
        let stat = MemoryStat {
            anon_bytes: Some(4096),
            file_bytes: Some(8192),
            shmem_bytes: Some(0),
            kernel_bytes: None,
        };
        let text =
            b"anon 4096\nfile 8192\nkernel_stack 16384\nanon_thp 1\nshmem 0\nfile_mapped 7\n";
        assert_eq!(MemoryStat::parse(text), Some(stat));
        assert_eq!(MemoryStat::parse(b"file 8192\n"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "((anon|0::|file)?[ /0-9a-z\n-]{0,20}){0,5}") {
            let _ = path(text.as_bytes());
            let _ = MemoryStat::parse(text.as_bytes());
        }
    }
}
