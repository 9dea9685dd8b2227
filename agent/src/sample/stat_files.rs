//! Open `stat` files of processes, kept between walks: opening and closing one costs the kernel as much as
//! computing its figures.
//!
//! The kernel keeps a buffer of one page per file that was read, so their number is limited. A descriptor
//! belongs to a process, not to its id: once another process has the id, reading fails with ESRCH (proc(5)).

use crate::read::Tree;
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

/// Maximum number of open files, with 16 MiB of kernel buffers: the unit's `MemoryHigh` is 64 MiB.
const MOST_KEPT: usize = 4096;

/// Number of descriptors left for other uses.
const SPARE: u64 = 256;

/// Raises the process' limit of open files to the number that [`StatFiles`] uses, as far as the system
/// allows.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = MOST_KEPT as u64 + SPARE;
    let wanted = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(wanted),
            ..limit
        };
        let _ = setrlimit(Resource::Nofile, raised); // if this fails, fewer files are kept
    }
}

/// Open `stat` files by process id.
#[derive(Debug, Default)]
pub(crate) struct StatFiles {
    kept: HashMap<i32, OwnedFd>,
    most: usize,
    path: String,
}

impl StatFiles {
    /// Begins a walk over `pids`, in ascending order; closes the files of all other processes. Files of a
    /// captured tree are not kept open, since they are replaced rather than changed.
    pub(crate) fn begin(&mut self, proc: &Tree, pids: &[i32]) {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let most = usize::try_from(limit.saturating_sub(SPARE)).unwrap_or(usize::MAX);
        self.most = if proc.is_procfs() {
            most.min(MOST_KEPT)
        } else {
            0
        };
        self.kept.retain(|pid, _| pids.binary_search(pid).is_ok());
    }

    /// Descriptors of the files that are open.
    pub(crate) fn descriptors(&self) -> HashSet<RawFd> {
        self.kept.values().map(AsRawFd::as_raw_fd).collect()
    }

    /// Reads `stat` of process `pid` into `buffer`, which is cleared first.
    ///
    /// # Errors
    /// The kernel's error; `NOENT` or `SRCH` for a process that has ended.
    pub(crate) fn read(
        &mut self,
        proc: &Tree,
        pid: i32,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Errno> {
        if let Some(file) = self.kept.get(&pid) {
            if Tree::read_record_of(file, buffer).is_ok() {
                return Ok(());
            }
            self.kept.remove(&pid);
        }
        self.path.clear();
        let _ = write!(self.path, "{pid}/stat"); // writing to a String cannot fail
        let file = proc.open_file(&self.path)?;
        Tree::read_record_of(&file, buffer)?;
        if self.kept.len() < self.most {
            self.kept.insert(pid, file);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::process::Stat;
    use std::path::Path;
    use std::process::{Child, Command};

    fn pid_of(child: &Child) -> i32 {
        i32::try_from(child.id()).unwrap()
    }

    fn sleeper() -> Child {
        Command::new("sleep").arg("600").spawn().unwrap()
    }

    #[test]
    fn a_kept_file_gives_what_a_new_one_gives_until_its_process_ends() {
        let proc = Tree::open(Path::new("/proc")).unwrap();
        let mut files = StatFiles::default();
        let mut child = sleeper();
        let pid = pid_of(&child);
        files.begin(&proc, &[pid]);
        let mut text = Vec::new();
        for _ in 0..3 {
            files.read(&proc, pid, &mut text).unwrap();
            assert_eq!(files.kept.len(), 1);
            let mut fresh = Vec::new();
            proc.read_record(&format!("{pid}/stat"), &mut fresh)
                .unwrap();
            let stat = |text: &[u8]| Stat::parse(text).map(|s| (s.started_ticks, s.name.to_vec()));
            assert!(stat(&text).is_some());
            assert_eq!(stat(&text), stat(&fresh));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let ended = files.read(&proc, pid, &mut text);
        assert!(
            matches!(ended, Err(Errno::NOENT | Errno::SRCH)),
            "{ended:?}"
        );
        assert_eq!(files.kept.len(), 0);
    }

    #[test]
    fn the_number_of_kept_files_is_bounded_and_falls_with_the_processes() {
        let proc = Tree::open(Path::new("/proc")).unwrap();
        let mut files = StatFiles::default();
        let mut children = [sleeper(), sleeper(), sleeper()];
        let mut pids: Vec<i32> = children.iter().map(pid_of).collect();
        pids.sort_unstable();
        files.begin(&proc, &pids);
        files.most = 2;
        let mut text = Vec::new();
        for &pid in &pids {
            files.read(&proc, pid, &mut text).unwrap();
            assert!(!text.is_empty());
        }
        assert_eq!((files.kept.len(), files.descriptors().len()), (2, 2));
        files.begin(&proc, &pids[1..2]);
        assert_eq!(files.kept.keys().copied().collect::<Vec<_>>(), [pids[1]]);
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn files_of_a_captured_tree_are_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("7");
        std::fs::create_dir(&folder).unwrap();
        let proc = Tree::open(dir.path()).unwrap();
        let mut files = StatFiles::default();
        files.begin(&proc, &[7]);
        let mut text = Vec::new();
        for content in ["first", "second"] {
            std::fs::write(folder.join("new"), content).unwrap();
            std::fs::rename(folder.join("new"), folder.join("stat")).unwrap();
            files.read(&proc, 7, &mut text).unwrap();
            assert_eq!(text, content.as_bytes());
        }
    }
}
