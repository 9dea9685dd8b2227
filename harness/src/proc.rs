//! Memory figures from files in /proc.
#![allow(clippy::unwrap_used)]

/// Returns the value of the line `KEY: N kB` in a file, in bytes.
///
/// # Panics
/// If the file has no such line.
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

/// Peak memory of a process, in bytes.
///
/// # Panics
/// If the process has ended.
#[must_use]
#[track_caller]
pub fn peak_bytes(process: u32) -> u64 {
    bytes_at(&format!("/proc/{process}/status"), "VmHWM")
}

/// Resident memory of a process, in bytes.
///
/// # Panics
/// If the process has ended.
#[must_use]
#[track_caller]
pub fn resident_bytes(process: u32) -> u64 {
    bytes_at(&format!("/proc/{process}/status"), "VmRSS")
}
