//! Report about a program's run, for people and as JSON.

use super::group::{Group, Version};
use super::keep::LimitRecord;
use gleaner_schemas::units::{Bytes, Seconds, thousands, ticks_to_ms};
use serde::Serialize;
use std::fs;
use std::time::{Duration, Instant};

/// Figures of one run. Values that this kernel does not have are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Report {
    /// Name of the program, without folder and arguments.
    program: String,
    /// Exit code; 128 and the signal's number if a signal ended the program.
    exit_code: u8,
    /// Memory that the program was given.
    local_bytes: u64,
    /// Time from the program's start to its end.
    wall_s: f64,
    /// CPU time of the program and of the children that it waited for.
    cpu_s: Option<f64>,
    /// Largest number of bytes in local memory, cached files included.
    peak_local_bytes: Option<u64>,
    /// Largest number of bytes in swap, of ten looks a second.
    peak_swap_bytes: Option<u64>,
    /// Page faults that waited for a device.
    major_faults: Option<u64>,
    /// Pages that the whole host read from swap during the run.
    host_pages_swapped_in: Option<u64>,
    /// Pages that the whole host wrote to swap during the run.
    host_pages_swapped_out: Option<u64>,
    /// Time in which programs waited for memory at the limit; control groups of version 1.
    oom_wait_s: Option<f64>,
    /// Number of times that the limit was raised by 1 MiB; control groups of version 1.
    limit_raises: Option<u64>,
    /// Processes that the kernel killed for lack of memory.
    oom_kills: Option<u64>,
    /// True if memory and swap were full, so that the kernel could kill the program.
    is_swap_full: bool,
}

/// Counters at the program's start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begin {
    time: Instant,
    swapped: [Option<u64>; 2],
}

impl Begin {
    /// Reads the counters now.
    pub(super) fn now() -> Self {
        Self {
            time: Instant::now(),
            swapped: host_swapped(),
        }
    }
}

impl Report {
    /// Makes the report after the program's end, and before its group is removed.
    pub(super) fn of(
        program: String,
        exit_code: u8,
        local_bytes: u64,
        begin: Begin,
        group: &Group,
        kept: &LimitRecord,
    ) -> Self {
        let wall = begin.time.elapsed();
        let since = |now: Option<u64>, begin: Option<u64>| Some(now?.saturating_sub(begin?));
        let ([ins, outs], [ins_begin, outs_begin]) = (host_swapped(), begin.swapped);
        let is_limit = group.version() == Version::Limit;
        Self {
            program,
            exit_code,
            local_bytes,
            wall_s: wall.as_secs_f64(),
            cpu_s: children_cpu().map(|time| time.as_secs_f64()),
            peak_local_bytes: group.peak_local_bytes(),
            peak_swap_bytes: kept.peak_swap_bytes,
            major_faults: group.major_faults(),
            host_pages_swapped_in: since(ins, ins_begin),
            host_pages_swapped_out: since(outs, outs_begin),
            oom_wait_s: is_limit.then_some(kept.shortage.as_secs_f64()),
            limit_raises: is_limit.then_some(kept.raises),
            oom_kills: group.kills(),
            is_swap_full: kept.is_full,
        }
    }

    /// Exit code to pass on.
    pub(super) fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Text of a few lines; a figure that is absent is left out.
    pub(super) fn text(&self) -> String {
        let bytes = |value: Option<u64>| value.map(|bytes| Bytes::from(bytes).to_string());
        let code = format!("exit code {}", self.exit_code);
        let mut facts = vec![code, format!("{:.2} s", self.wall_s)];
        facts.extend(self.cpu_s.map(|cpu_s| format!("{cpu_s:.2} s of CPU time")));
        let mut lines = vec![format!("{}: {}", self.program, facts.join(", "))];
        let mut peaks = vec![format!("{} allowed", Bytes::from(self.local_bytes))];
        peaks.extend(bytes(self.peak_local_bytes).map(|peak| format!("{peak} at most")));
        peaks.extend(bytes(self.peak_swap_bytes).map(|peak| format!("{peak} in swap at most")));
        lines.push(format!("local memory: {}", peaks.join(", ")));
        let mut faults = Vec::new();
        faults.extend(
            self.major_faults
                .map(|n| format!("{} major faults", thousands(n))),
        );
        if let (Some(ins), Some(outs)) = (self.host_pages_swapped_in, self.host_pages_swapped_out) {
            let (ins, outs) = (thousands(ins), thousands(outs));
            faults.push(format!(
                "the whole host swapped {ins} pages in and {outs} out"
            ));
        }
        if !faults.is_empty() {
            lines.push(format!("swapping: {}", faults.join("; ")));
        }
        if let (Some(raises @ 1..), Some(wait_s)) = (self.limit_raises, self.oom_wait_s) {
            let (raises, wait) = (thousands(raises), Seconds(wait_s));
            lines.push(format!(
                "limit: raised {raises} times by 1 MiB; programs waited {wait} for it"
            ));
        }
        if let Some(kills @ 1..) = self.oom_kills {
            lines.push(format!(
                "the kernel killed processes for lack of memory: {kills}"
            ));
        }
        if self.is_swap_full {
            lines.push(
                "memory and swap were full: give it more --local, or attach more swap".to_owned(),
            );
        }
        lines.join("\n  ")
    }
}

/// Pages that the host has read from swap and written to swap since boot.
fn host_swapped() -> [Option<u64>; 2] {
    let text = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    ["pswpin ", "pswpout "].map(|key| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().parse().ok()
    })
}

/// CPU time of this process's children that have ended.
fn children_cpu() -> Option<Duration> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = children_ticks(&stat)?;
    let per_second = rustix::param::clock_ticks_per_second();
    Some(Duration::from_millis(ticks_to_ms(ticks, per_second)))
}

/// Sum of `cutime` and `cstime` of /proc/PID/stat. The program's name may contain spaces and brackets.
fn children_ticks(stat: &str) -> Option<u64> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace().skip(13);
    let user: u64 = words.next()?.parse().ok()?;
    let system: u64 = words.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_leaves_out_absent_figures() {
        let mut report = Report {
            program: "sort".into(),
            local_bytes: 48 << 20,
            wall_s: 3.456,
            ..Report::default()
        };
        assert_eq!(
            report.text(),
            "sort: exit code 0, 3.46 s\n  local memory: 48.0 MiB allowed"
        );
        report.peak_local_bytes = Some(49 << 20);
        report.major_faults = Some(17_464);
        (report.limit_raises, report.oom_wait_s) = (Some(3), Some(0.012));
        report.oom_kills = Some(0);
        assert_eq!(
            report.text(),
            "sort: exit code 0, 3.46 s\n  local memory: 48.0 MiB allowed, 49.0 MiB at most\n  \
             swapping: 17,464 major faults\n  limit: raised 3 times by 1 MiB; programs waited 12 ms for it"
        );
    }

    #[test]
    fn the_ticks_of_children_are_the_fields_after_the_own_ones() {
        let line = "77 (a) R) S 1 2 3 4 5 6 7 8 9 10 11 12 130 140 15 16";
        assert_eq!(children_ticks(line), Some(270));
        assert_eq!(children_ticks("77 (a"), None);
    }
}
