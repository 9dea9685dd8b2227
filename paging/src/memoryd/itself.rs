//! Settings of the daemon's own process: the OOM killer ends it first, it is never swapped or dumped, and it
//! has real-time priority.

use gleaner_paging::store::Store;
use std::ops::Range;
use std::path::Path;

/// The OOM killer ends the process with this score first, before any process of the owner. Raising one's own score
/// needs no privilege.
const KILLED_FIRST: &str = "1000";

/// Memory of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Guests' pages, in bytes.
    pub(crate) resident_bytes: u64,
    /// Part of `resident_bytes` in huge pages.
    pub(crate) huge_page_bytes: u64,
    /// Other memory of the daemon.
    pub(crate) daemon_bytes: u64,
}

/// Applies the settings; returns messages about those that failed.
pub(crate) fn apply_process_settings(store: &Store) -> Vec<String> {
    let mut notes = Vec::new();
    if let Err(e) = std::fs::write("/proc/self/oom_score_adj", KILLED_FIRST) {
        notes.push(format!(
            "the OOM killer may take others first: /proc/self/oom_score_adj: {e}"
        ));
    }
    // Guests' pages and clients' names are confidential: no core dump, and only root may debug.
    if let Err(e) =
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        notes.push(format!("a crash may leave a dump: {e}"));
    }
    if let Err(e) = call::lock_own() {
        notes.push(format!(
            "not locked in memory: {e}; give it CAP_IPC_LOCK, or LimitMEMLOCK=infinity"
        ));
    }
    // The call above has locked all mappings, also those of guests' pages.
    if !store.is_locked() {
        store.unlock_pages();
    }
    notes
}

/// Gives real-time priority to the calling thread and to threads that it starts, so that memory is given back
/// quickly even on a busy host. These threads run seldom, for milliseconds each time.
pub(crate) fn raise_priority() -> std::io::Result<()> {
    call::real_time()
}

#[allow(unsafe_code)]
mod call {
    use std::io;

    /// Locks all present and future mappings, page by page as they are touched.
    pub(super) fn lock_own() -> io::Result<()> {
        // SAFETY: locking changes nothing that is in memory.
        let failed =
            unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    pub(super) fn real_time() -> io::Result<()> {
        // SAFETY: the structure is plain numbers.
        let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
        parameters.sched_priority = 1;
        // SAFETY: 0 is the calling thread; the structure outlives the call.
        let failed = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Returns the memory of this process, counted by the kernel. This takes milliseconds per GiB of small pages,
/// so the core's thread must not call it.
///
/// # Errors
/// /proc cannot be read.
pub(crate) fn memory(guests: &Range<usize>) -> std::io::Result<Memory> {
    let smaps = std::fs::read_to_string(Path::new("/proc/self/smaps"))?;
    Ok(parse(&smaps, guests))
}

/// Sums the sizes in smaps, separately for mappings within and outside the range of guests' pages.
fn parse(smaps: &str, guests: &Range<usize>) -> Memory {
    let (mut memory, mut is_guests) = (Memory::default(), false);
    for line in smaps.lines() {
        let mut words = line.split_whitespace();
        let key = words.next().unwrap_or_default();
        if let Some((from, _)) = key.split_once('-') {
            let from = usize::from_str_radix(from, 16);
            is_guests = from.is_ok_and(|from| guests.contains(&from));
            continue;
        }
        let kib: u64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        match key {
            "Rss:" if is_guests => memory.resident_bytes += kib << 10,
            "Rss:" => memory.daemon_bytes += kib << 10,
            "AnonHugePages:" if is_guests => memory.huge_page_bytes += kib << 10,
            _ => {}
        }
    }
    memory
}

/// Returns the memory of the process that no file backs, from the kernel's running count. This is cheap, and
/// precise enough as an upper bound of guests' pages.
pub(crate) fn anonymous_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut words = statm.split_whitespace().skip(1);
    let mut pages = || words.next()?.parse::<u64>().ok();
    let (resident, of_files) = (pages()?, pages()?);
    let page_bytes = rustix::param::page_size() as u64;
    Some(resident.saturating_sub(of_files).saturating_mul(page_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_pages_are_told_from_its_own() {
        let smaps = "00400000-00401000 r-xp 00000000 08:01 12 /usr/bin/gleaner-memoryd\nRss:  4 kB\nAnonHugePages: 0 kB\n\
            7f0000000000-7f0000400000 rw-p 00000000 00:00 0\nRss:  4096 kB\nAnonHugePages: 2048 kB\n\
            7f0000400000-7f0000600000 rw-p 00000000 00:00 0\nRss:  8 kB\nVmFlags: rd wr\n";
        let found = parse(smaps, &(0x7f00_0000_0000..0x7f00_0040_0000));
        let expected = Memory {
            resident_bytes: 4 << 20,
            huge_page_bytes: 2 << 20,
            daemon_bytes: 12 << 10,
        };
        assert_eq!(found, expected);
        assert_eq!(parse("", &(0..1)), Memory::default());
        assert!(anonymous_bytes().is_some_and(|bytes| bytes > 0));
    }
}
