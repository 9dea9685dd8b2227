//! Files mapped by processes, gathered from `/proc/[pid]/maps`.

use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::maps::file_mapping;
use crate::read::{Tree, lines};
use rustix::fs::makedev;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Limits of a walk; files beyond them are noted as absent. Each file takes some 700 bytes until the sample
/// is stored, and the agent's unit limits its memory to 128 MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkLimits {
    /// Maximum number of open files of one process.
    pub(crate) of_process: usize,
    /// Maximum number of files of a sample.
    pub(crate) files: usize,
}

impl Default for WalkLimits {
    fn default() -> Self {
        Self {
            of_process: 8192,
            files: 16_384,
        }
    }
}

impl WalkLimits {
    /// Makes the absence for a file beyond the limit of one sample.
    pub(crate) fn absence_beyond_limits(self) -> AbsentValue {
        let detail = format!("files beyond {} of one sample", self.files);
        AbsentValue::new(Reason::Exceeded, detail)
    }
}

/// A mapped file and the paths to it.
pub(crate) struct MappedInode {
    /// Path as the first process that maps it sees it.
    pub(crate) path: PathBuf,
    /// Mapped ranges of the file, in bytes; may overlap.
    pub(crate) ranges: Vec<Range<u64>>,
    /// Number of processes that map the file.
    pub(crate) processes: u64,
    last_pid: i64,
    /// Path of the file below the proc root; it may lead to a newer file by now.
    pub(crate) reach: PathBuf,
    /// Path by a mapping's address: leads to the mapped file itself, but needs a capability.
    pub(crate) reach_by_address: PathBuf,
}

/// Gathers the files that the processes `pids` map, by the device and inode that `maps` shows.
pub(crate) fn gather(
    proc: &Tree,
    pids: &[i64],
    most: WalkLimits,
    text: &mut Vec<u8>,
    missing_values: &mut MissingValues,
) -> BTreeMap<(u64, u64), MappedInode> {
    let mut all: BTreeMap<(u64, u64), MappedInode> = BTreeMap::new();
    for &pid in pids {
        if let Err(e) = proc.read(&format!("{pid}/maps"), text) {
            missing_values.note("files", AbsentValue::from_errno("maps", e));
            continue;
        }
        for mapping in lines(text).filter_map(file_mapping) {
            let device = makedev(mapping.device.0, mapping.device.1);
            let file = (device, mapping.inode);
            if all.len() >= most.files && !all.contains_key(&file) {
                missing_values.note("files", most.absence_beyond_limits());
                continue;
            }
            let mapped = all.entry(file).or_insert_with(|| {
                let path = Path::new(OsStr::from_bytes(mapping.path));
                let inside = path.strip_prefix("/").unwrap_or(path);
                let Range { start, end } = mapping.addresses;
                MappedInode {
                    path: path.to_owned(),
                    ranges: Vec::new(),
                    processes: 0,
                    last_pid: 0,
                    reach: Path::new(&format!("{pid}/root")).join(inside),
                    reach_by_address: PathBuf::from(format!("{pid}/map_files/{start:x}-{end:x}")),
                }
            });
            if mapped.last_pid != pid {
                mapped.last_pid = pid;
                mapped.processes += 1;
            }
            mapped.ranges.push(mapping.range);
        }
    }
    all
}
