//! Memory figures of files in /proc.
#![allow(clippy::unwrap_used)]

/// Returns the figure of the line `KEY: N kB` of a file, in bytes.
///
/// # Panics
/// When the file has no such line.
#[must_use]
#[track_caller]
pub fn bytes_at(path: &str, key: &str) -> u64 {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let figure = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib: u64 = figure
        .unwrap()
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap();
    kib << 10
}

/// Most memory that a process ever had, in bytes.
///
/// # Panics
/// When the process has ended.
#[must_use]
#[track_caller]
pub fn peak_bytes(process: u32) -> u64 {
    bytes_at(&format!("/proc/{process}/status"), "VmHWM")
}

/// Memory that a process has, in bytes.
///
/// # Panics
/// When the process has ended.
#[must_use]
#[track_caller]
pub fn resident_bytes(process: u32) -> u64 {
    bytes_at(&format!("/proc/{process}/status"), "VmRSS")
}
