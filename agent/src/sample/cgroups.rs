//! Control groups of active processes, with the memory that the kernel charges to them (cgroup v2).
//!
//! The root group is excluded: its memory is the whole host's, which the sample has already.

use crate::identity::FileIdKey;
use crate::missing_values::{AbsentValue, MissingValues, Reason};
use crate::read::cgroup::{MemoryStat, path};
use crate::read::mountinfo::mounts;
use crate::read::{Tree, lines, number};
use gleaner_schemas::rows::{CgroupRow, ProcessRow};
use gleaner_schemas::units::stored;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};

/// Reads control groups; remembers their paths.
#[derive(Debug)]
pub struct Cgroups {
    /// Groups whose processes are always active.
    always_active: Vec<String>,
    hierarchy: Option<Hierarchy>,
    text: Vec<u8>,
}

/// Hierarchy of version 2 at its mount point.
#[derive(Debug)]
struct Hierarchy {
    /// Mount point below the sys root.
    folder: PathBuf,
    /// Group that is mounted there: the root group, unless the agent runs in a container.
    root: PathBuf,
    /// True if the kernel charges memory in this hierarchy, and not in one of version 1.
    has_memory: bool,
}

impl Hierarchy {
    fn find(proc: &Tree, sys: &Tree, text: &mut Vec<u8>) -> Option<Self> {
        proc.read("self/mountinfo", text).ok()?;
        let mount = mounts(text).find(|mount| mount.kind == "cgroup2")?;
        let folder = mount.point.strip_prefix("/sys").ok()?.to_owned();
        let controllers = folder.join("cgroup.controllers");
        let has_memory = sys.read(controllers.to_str()?, text).is_ok()
            && crate::read::words(text).any(|controller| controller == b"memory");
        Some(Self {
            folder,
            root: mount.root,
            has_memory,
        })
    }

    /// Folder of a group; `None` for a group outside the agent's own namespace.
    fn folder_of(&self, group: &str) -> Option<String> {
        let inside = Path::new(group).strip_prefix(&self.root).ok()?;
        let leads_out = inside.components().any(|c| c == Component::ParentDir);
        let folder = self.folder.join(inside).to_str().map(str::to_owned);
        folder.filter(|_| !leads_out)
    }
}

impl Cgroups {
    /// Makes a reader; processes in the given groups, and in groups below them, are always active.
    #[must_use]
    pub fn new(always_active: Vec<String>) -> Self {
        Self {
            always_active,
            hierarchy: None,
            text: Vec::new(),
        }
    }

    /// Replaces the always-active groups.
    pub(crate) fn set_always_active(&mut self, always_active: Vec<String>) {
        self.always_active = always_active;
    }

    /// Ids of processes in always-active groups. Reading the groups' lists costs less than asking every
    /// process for its group.
    pub fn always_active_pids(&mut self, proc: &Tree, sys: Option<&Tree>) -> HashSet<i32> {
        let mut pids = HashSet::new();
        if let Some(sys) = sys.filter(|_| !self.always_active.is_empty()) {
            self.find(proc, sys);
            for group in &self.always_active {
                let hierarchy = self.hierarchy.as_ref();
                if let Some(folder) = hierarchy.and_then(|h| h.folder_of(group)) {
                    add_pids(sys, &folder, &mut self.text, &mut pids);
                }
            }
        }
        pids
    }

    /// Makes rows of the active processes' groups, and sets the group of each process.
    pub fn rows(
        &mut self,
        proc: &Tree,
        sys: Option<&Tree>,
        active: &mut [ProcessRow],
        key: &FileIdKey,
        missing_values: &mut MissingValues,
    ) -> Vec<CgroupRow> {
        if let Some(sys) = sys {
            self.find(proc, sys);
        }
        let (Some(sys), Some(hierarchy)) = (sys, &self.hierarchy) else {
            let absent = AbsentValue::new(Reason::Unsupported, "cgroup v2 is not mounted");
            missing_values.note("cgroups", absent);
            return Vec::new();
        };
        let mut groups: BTreeMap<String, CgroupRow> = BTreeMap::new();
        for process in active {
            let file = format!("{}/cgroup", process.pid);
            let read = proc.read_record(&file, &mut self.text);
            let read = read.map_err(|e| AbsentValue::from_errno("cgroup", e));
            let group = missing_values
                .keep("cgroups", read)
                .and_then(|()| path(&self.text));
            let Some(group) = group.filter(|group| group != "/") else {
                continue;
            };
            let row = groups.entry(group).or_insert_with_key(|group| CgroupRow {
                cgroup_id: key.cgroup_id(group),
                path: Some(group.clone()),
                ..CgroupRow::default()
            });
            row.active_processes_count += 1;
            process.cgroup_id = Some(row.cgroup_id);
        }
        if hierarchy.has_memory {
            for (group, row) in &mut groups {
                charge(hierarchy, sys, group, row, &mut self.text, missing_values);
            }
        } else {
            let detail = "memory is not charged in cgroup v2";
            missing_values.note("cgroups", AbsentValue::new(Reason::Unsupported, detail));
        }
        let mut rows: Vec<_> = groups.into_values().collect();
        rows.sort_unstable_by_key(|row| row.cgroup_id); // the order must not reveal paths
        rows
    }

    fn find(&mut self, proc: &Tree, sys: &Tree) {
        if self.hierarchy.is_none() {
            self.hierarchy = Hierarchy::find(proc, sys, &mut self.text);
        }
    }
}

/// Reads the memory that the kernel charges to a group.
fn charge(
    hierarchy: &Hierarchy,
    sys: &Tree,
    group: &str,
    row: &mut CgroupRow,
    text: &mut Vec<u8>,
    missing_values: &mut MissingValues,
) {
    let Some(folder) = hierarchy.folder_of(group) else {
        let detail = "outside of the agent's cgroup namespace";
        missing_values.note("cgroups", AbsentValue::new(Reason::Denied, detail));
        return;
    };
    let bytes = |text: &[u8]| number::<u64>(text.trim_ascii()).map(stored);
    let mut files = GroupFiles {
        sys,
        folder,
        text,
        missing_values,
    };
    row.memory_bytes = files.read("memory.current", bytes);
    row.swap_bytes = files.read("memory.swap.current", bytes);
    let stat = files.read("memory.stat", MemoryStat::parse);
    let stat = stat.unwrap_or_default(); // noted as absent above
    row.anon_bytes = stat.anon_bytes.map(stored);
    row.file_bytes = stat.file_bytes.map(stored);
    row.shmem_bytes = stat.shmem_bytes.map(stored);
    row.kernel_bytes = stat.kernel_bytes.map(stored);
}

/// Files of one group.
struct GroupFiles<'a> {
    sys: &'a Tree,
    folder: String,
    text: &'a mut Vec<u8>,
    missing_values: &'a mut MissingValues,
}

impl GroupFiles<'_> {
    fn read<T>(&mut self, name: &str, parser: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let read = self.sys.read(&format!("{}/{name}", self.folder), self.text);
        let parsed = read.map_err(|e| self.absent(name, e)).and_then(|()| {
            parser(self.text).ok_or_else(|| AbsentValue::new(Reason::Malformed, name))
        });
        self.missing_values.keep("cgroups", parsed)
    }

    /// A group without the file lacks a controller; a group without its folder has ended meanwhile.
    fn absent(&self, name: &str, errno: Errno) -> AbsentValue {
        if self.sys.list(&self.folder).is_ok() {
            AbsentValue::from_kernel_file(name, errno)
        } else {
            AbsentValue::from_errno(name, errno)
        }
    }
}

/// Adds the processes of a group and of groups below it; a missing group has none.
fn add_pids(sys: &Tree, folder: &str, text: &mut Vec<u8>, pids: &mut HashSet<i32>) {
    if sys.read(&format!("{folder}/cgroup.procs"), text).is_ok() {
        pids.extend(lines(text).filter_map(number::<i32>));
    }
    let Ok(entries) = sys.list(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_bytes();
        let is_group = entry.file_type() == rustix::fs::FileType::Directory;
        if let Some(name) = std::str::from_utf8(name).ok().filter(|_| is_group)
            && name != "."
            && name != ".."
        {
            add_pids(sys, &format!("{folder}/{name}"), text, pids);
        }
    }
}
