//! Footprint of an owner's processes at a return: the A of the memory context size (Acharya & Setia, section
//! 3.4).

/// An active process at one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    /// Process number (PID).
    pub pid: Option<i64>,
    /// Start, in ms since boot.
    pub start_boottime_ms: Option<i64>,
    /// Proportional memory of the process; absent if none of the three parts is known ([`Process::new`]).
    pub bytes: Option<u64>,
}

impl Process {
    /// Makes a process from the columns of a row; `parts_bytes` are anonymous, shared and mapped file memory.
    #[must_use]
    pub fn new(
        pid: Option<i64>,
        start_boottime_ms: Option<i64>,
        parts_bytes: [Option<i64>; 3],
    ) -> Self {
        let known = parts_bytes.into_iter().flatten();
        let known = known.map(|bytes| u64::try_from(bytes).unwrap_or(0));
        Self {
            pid,
            start_boottime_ms,
            bytes: known.reduce(u64::saturating_add),
        }
    }
}

/// Memory of the processes that were active in the window after a return.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Sum over all processes; each counts with its largest size in the window.
    pub bytes: u64,
    /// Sum over the processes that started, or may have started, before the return.
    pub cached_bytes: u64,
}

impl Footprint {
    /// Sums the sizes of the active processes in a window. `is_recorded` is false if the trace has no
    /// processes at all. `returned_boottime_ms` is the return's time since boot. Returns `None` if no size is
    /// known, but 0 if processes are recorded and none was active.
    #[must_use]
    pub fn of(
        is_recorded: bool,
        window: impl Iterator<Item = Process>,
        returned_boottime_ms: Option<i64>,
    ) -> Option<Self> {
        let mut sizes = Vec::new();
        let mut is_unknown = !is_recorded;
        for process in window {
            match process.bytes {
                Some(bytes) => sizes.push((process.pid, process.start_boottime_ms, bytes)),
                None => is_unknown = true,
            }
        }
        if sizes.is_empty() && is_unknown {
            return None;
        }
        sizes.sort_unstable();
        let mut found = Self::default();
        for same in sizes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let Some(&(_, start_boottime_ms, largest)) = same.last() else {
                continue;
            };
            found.bytes = found.bytes.saturating_add(largest);
            // If one of the two times is unknown, the process counts as started before: the sum is an upper
            // bound.
            if start_boottime_ms
                .zip(returned_boottime_ms)
                .is_none_or(|(started, back)| started < back)
            {
                found.cached_bytes = found.cached_bytes.saturating_add(largest);
            }
        }
        Some(found)
    }
}

/// Returns a return's time since boot, in ms, from the first sample after it; `None` if that sample's time
/// since boot is unknown.
#[must_use]
pub fn returned_boottime_ms(
    sample_time_ms: i64,
    sample_boottime_ms: Option<i64>,
    returned_ms: i64,
) -> Option<i64> {
    let since_ms = sample_time_ms.saturating_sub(returned_ms);
    Some(sample_boottime_ms?.saturating_sub(since_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(rows: &[(i64, i64, Option<i64>)], returned_ms: Option<i64>) -> Option<Footprint> {
        let process =
            |&(pid, started, bytes)| Process::new(Some(pid), Some(started), [bytes, None, None]);
        Footprint::of(true, rows.iter().map(process), returned_ms)
    }

    #[test]
    fn each_process_at_its_largest_and_those_from_before_apart() {
        let rows = [
            (1, 5, Some(10)),
            (2, 1085, Some(7)),
            (1, 5, Some(30)),
            (1, 1100, Some(100)), // the same pid, started after the return
            (3, 6, None),
        ];
        let footprint = |bytes, cached_bytes| Footprint {
            bytes,
            cached_bytes,
        };
        assert_eq!(of(&rows, Some(1088)), Some(footprint(137, 37)));
        // Without the return's time since boot, all processes count as started before the return.
        assert_eq!(of(&rows, None), Some(footprint(137, 137)));
        assert_eq!(returned_boottime_ms(90, Some(1090), 88), Some(1088));
        assert_eq!(returned_boottime_ms(90, None, 88), None);
    }

    #[test]
    fn sizes_that_nobody_knows_are_not_nothing() {
        assert_eq!(of(&[(1, 5, None)], None), None);
        let none = std::iter::empty();
        assert_eq!(Footprint::of(false, none.clone(), Some(5)), None);
        let nobody = Footprint::of(true, none, Some(5));
        assert_eq!(nobody, Some(Footprint::default()));
    }

    #[test]
    fn the_parts_that_are_known_count() {
        let bytes = |parts| Process::new(None, None, parts).bytes;
        assert_eq!(bytes([Some(4), None, Some(3)]), Some(7));
        assert_eq!(bytes([Some(-4), None, Some(3)]), Some(3));
        assert_eq!(bytes([None; 3]), None);
    }
}
