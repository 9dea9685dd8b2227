//! Checks that swapped-out pages fit into the host's memory, and within the limits of control groups.

use super::failure::{AttachError, at};
use super::group::{self, Hierarchy};
use super::swap::{self, Area};
use std::fs;
use std::path::Path;

/// Maximum depth of nested control groups.
const DEEPEST: u32 = 32;

/// Returns an error if detaching would leave too little memory, so that programs would be killed.
pub(crate) fn check(area: &Area) -> Result<(), AttachError> {
    let available_bytes = available_bytes()?;
    if area.used_bytes > available_bytes {
        return Err(AttachError::DoesNotFit {
            used_bytes: area.used_bytes,
            available_bytes,
        });
    }
    // With several swap areas, pages beyond a group's limit can move to another area. So limits are checked
    // only if this area is the only one.
    let is_only = swap::areas()?.len() == 1;
    match group::hierarchy()? {
        Some(hierarchy) if is_only && area.used_bytes > 0 => {
            let (Hierarchy::Memory(root) | Hierarchy::Unified(root)) = &hierarchy;
            walk(root, &hierarchy, DEEPEST)
        }
        _ => Ok(()),
    }
}

fn walk(group: &Path, hierarchy: &Hierarchy, deeper: u32) -> Result<(), AttachError> {
    if let Some(held) = GroupMemory::of(group, hierarchy)
        && held.swapped_bytes > held.room_bytes()
    {
        return Err(AttachError::Crowded {
            group: group.to_owned(),
            swapped_bytes: held.swapped_bytes,
            room_bytes: held.room_bytes(),
        });
    }
    // A group that disappears in the meantime needs no memory.
    let Some(deeper) = deeper.checked_sub(1) else {
        return Ok(());
    };
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&entry.path(), hierarchy, deeper)?;
        }
    }
    Ok(())
}

/// Memory of a control group, including the groups within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupMemory {
    limit_bytes: u64,
    /// Memory that no file backs. Pages of files can be dropped to make room.
    anonymous_bytes: u64,
    swapped_bytes: u64,
}

impl GroupMemory {
    /// Memory of a group; `None` if it has no limit, as the root has none.
    fn of(group: &Path, hierarchy: &Hierarchy) -> Option<Self> {
        let read = |name: &str| fs::read_to_string(group.join(name)).ok();
        let stat = read("memory.stat")?;
        let (limit, keys) = match hierarchy {
            Hierarchy::Memory(_) => ("memory.limit_in_bytes", ["total_rss", "total_shmem"]),
            Hierarchy::Unified(_) => ("memory.max", ["anon", "shmem"]),
        };
        let swapped_bytes = match hierarchy {
            Hierarchy::Memory(_) => fact(&stat, "total_swap"),
            Hierarchy::Unified(_) => read("memory.swap.current")?.trim().parse().ok(),
        };
        Some(Self {
            limit_bytes: read(limit)?.trim().parse().ok()?,
            anonymous_bytes: keys.iter().filter_map(|key| fact(&stat, key)).sum(),
            swapped_bytes: swapped_bytes?,
        })
    }

    fn room_bytes(self) -> u64 {
        self.limit_bytes.saturating_sub(self.anonymous_bytes)
    }
}

fn fact(stat: &str, key: &str) -> Option<u64> {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.parse().ok();
    stat.lines().find_map(value)
}

/// MemAvailable of the host, in bytes.
fn available_bytes() -> Result<u64, AttachError> {
    const PATH: &str = "/proc/meminfo";
    let text = fs::read_to_string(PATH).map_err(at(PATH))?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let kib = kib.ok_or_else(|| at(PATH)(std::io::ErrorKind::InvalidData.into()))?;
    Ok(kib << 10)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_has_no_room_for_is_refused_with_both_figures() {
        let area = Area {
            device: "/dev/loop0".into(),
            used_bytes: 1 << 60,
            priority: 1,
        };
        let said = check(&area).unwrap_err().to_string();
        assert!(said.contains("1024.0 PiB are swapped out"), "{said}");
    }

    #[test]
    fn a_group_within_a_group_is_found_in_both_versions() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("outer/inner");
        fs::create_dir_all(&inner).unwrap();
        let write = |name: &str, text: &str| fs::write(inner.join(name), text).unwrap();
        let unified = Hierarchy::Unified(root.path().to_owned());
        write("memory.stat", "anon 60\nfile 900\nshmem 10\nanon_thp 7\n");
        write("memory.max", "100\n");
        write("memory.swap.current", "31\n");
        let said = walk(root.path(), &unified, DEEPEST).unwrap_err();
        assert!(
            said.to_string()
                .contains("31 B swapped out, and room for 30 B")
        );
        write("memory.swap.current", "30\n");
        walk(root.path(), &unified, DEEPEST).unwrap();
        write("memory.swap.current", "31\n");
        write("memory.max", "max\n");
        walk(root.path(), &unified, DEEPEST).unwrap();

        let first = Hierarchy::Memory(root.path().to_owned());
        write(
            "memory.stat",
            "rss 1\ntotal_rss 60\ntotal_shmem 10\ntotal_swap 31\n",
        );
        write("memory.limit_in_bytes", "101\n");
        walk(root.path(), &first, DEEPEST).unwrap();
        write("memory.limit_in_bytes", "100\n");
        walk(root.path(), &first, DEEPEST).unwrap_err();
    }
}
