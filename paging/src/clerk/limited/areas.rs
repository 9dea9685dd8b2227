//! Swap areas on which a program's pages go, and the advice if they are missing or slow.

use super::failure::LimitError;
use crate::attachment::swap::{self, Area};
use std::fs;
use std::path::Path;

/// Returns advice if all swap is on disks; fails if there is no swap.
pub(super) fn check(runtime: &Path) -> Result<Option<String>, LimitError> {
    judge(&swap::areas()?, |area| is_memory(&area.device, runtime))
}

fn judge(areas: &[Area], is_memory: impl Fn(&Area) -> bool) -> Result<Option<String>, LimitError> {
    if areas.is_empty() {
        return Err(LimitError::NoSwap);
    }
    if areas.iter().any(is_memory) {
        return Ok(None);
    }
    let names: Vec<String> = areas
        .iter()
        .map(|area| area.device.display().to_string())
        .collect();
    Ok(Some(format!(
        "all swap is on disk ({}): the program may be slow; attach swap in other hosts' memory with `gleaner-clerk attach --swap`",
        names.join(", ")
    )))
}

/// Returns true if a device's pages are in memory: of this host (zram) or of other hosts.
fn is_memory(device: &Path, runtime: &Path) -> bool {
    let name = device.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("zram") || name.starts_with("nbd") {
        return true;
    }
    // An attachment through FUSE is a loop device on a file in the attachment's folder.
    let backing = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file"));
    backing.is_ok_and(|path| Path::new(path.trim_end()).starts_with(runtime))
}

/// Unused bytes of all swap areas, from /proc/meminfo's text; 0 if the text lacks them.
pub(super) fn free_bytes(meminfo: &str) -> u64 {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("SwapFree:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    gleaner_schemas::units::kib_to_bytes(kib.unwrap_or(0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn area(device: &str) -> Area {
        Area {
            device: device.into(),
            used_bytes: 0,
            priority: 1,
        }
    }

    #[test]
    fn no_swap_is_an_error_and_swap_on_disks_alone_a_warning() {
        let runtime = Path::new("/run/gleaner/clerk");
        let judge = |areas: &[Area]| judge(areas, |area| is_memory(&area.device, runtime));
        let said = judge(&[]).unwrap_err().to_string();
        assert!(said.contains("gleaner-clerk attach --swap"), "{said}");
        let disk = area("/dev/none-such");
        let said = judge(std::slice::from_ref(&disk)).unwrap().unwrap();
        assert!(said.contains("(/dev/none-such)"), "{said}");
        assert_eq!(judge(&[disk.clone(), area("/dev/zram0")]).unwrap(), None);
        assert_eq!(judge(&[area("/dev/nbd3"), disk]).unwrap(), None);
    }

    #[test]
    fn unused_swap_is_read_from_meminfo() {
        let text = "MemTotal: 100 kB\nSwapTotal:       8 kB\nSwapFree:        4 kB\n";
        assert_eq!(free_bytes(text), 4096);
        assert_eq!(free_bytes("MemTotal: 100 kB\n"), 0);
    }
}
