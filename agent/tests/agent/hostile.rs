//! Trees that no kernel would show: whatever their files contain, a sample is taken, sums up correctly,
//! and notes its missing values.
//!
//! `GLEANER_FUZZ_ROUNDS` sets the number of mutated trees; `GLEANER_FUZZ_SEED` repeats a run.

use crate::copies::{Alteration, Copy, values};
use gleaner_agent::Error;
use gleaner_agent::print;
use gleaner_agent::sample::Sample;
use gleaner_agent::sample::sampler::Sampler;
use gleaner_schemas::column::Value;
use gleaner_schemas::findings::Category;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use std::cell::Cell;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// Time limit of one sample. A sample of such a small tree takes milliseconds; the limit allows for a
/// development build on a busy machine.
const TOO_LONG: Duration = Duration::from_secs(30);

/// Replacements for a number.
const NUMBERS: [&str; 16] = [
    "",
    "0",
    "-1",
    "-9223372036854775808",
    "4294967296",
    "9007199254740992",
    "36028797018963968",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999999",
    "1e308",
    "NaN",
    "ffffffffffffffff",
    "1\0",
];

/// Names of folders that look more or less like process ids.
const PIDS: [&str; 8] = [
    "0",
    "-5",
    "+7",
    "007",
    "2147483647",
    "2147483648",
    "18446744073709551616",
    "7 ",
];

/// A change of one file. Indices select positions in the file.
#[derive(Clone, Debug)]
enum Change {
    /// Flips a bit.
    Flip(Index, u8),
    /// Removes everything after a position.
    Truncate(Index),
    /// Removes a line.
    DeleteLine(Index),
    /// Duplicates a line.
    DuplicateLine(Index),
    /// Replaces a number by one of [`NUMBERS`].
    Number(Index, Index),
    /// Inserts bytes that are no text.
    Insert(Index, Vec<u8>),
    /// Inserts a line of several MiB.
    LongLine(Index, usize),
    /// Removes the newline at the end.
    NoLastNewline,
    /// Replaces the content by that of another file of the tree.
    Swap(Index),
    /// Removes the file.
    Remove,
    /// Replaces the file by a folder, a pipe or an endless file.
    Folder,
    Pipe,
    Endless,
    /// Copies the process' folder to one of [`PIDS`].
    Pid(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<Index>;
    prop_oneof![
        40 => (at(), at()).prop_map(|(at, number)| Change::Number(at, number)),
        20 => at().prop_map(Change::DeleteLine),
        10 => (at(), 0u8..8).prop_map(|(at, bit)| Change::Flip(at, bit)),
        10 => at().prop_map(Change::Truncate),
        10 => at().prop_map(Change::DuplicateLine),
        10 => (at(), proptest::collection::vec(any::<u8>(), 1..40)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        5 => Just(Change::NoLastNewline),
        5 => at().prop_map(Change::Swap),
        5 => Just(Change::Remove),
        3 => Just(Change::Folder),
        2 => Just(Change::Pipe),
        1 => Just(Change::Endless),
        5 => at().prop_map(Change::Pid),
        1 => (at(), 1..11usize).prop_map(|(at, mib)| Change::LongLine(at, mib)),
    ]
}

/// Changes one file of the tree.
fn apply(change: &Change, file: &Index, copy: &Copy) {
    let (name, _) = file.get(&copy.files);
    let path = copy.altered(name);
    // An earlier change may have removed the file or its folder.
    let Ok(text) = read_short(&path) else { return };
    let changed = match change {
        Change::Remove => return std::fs::remove_file(&path).unwrap(),
        Change::Folder => {
            std::fs::remove_file(&path).unwrap();
            return std::fs::create_dir(&path).unwrap();
        }
        Change::Pipe => {
            std::fs::remove_file(&path).unwrap();
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            let kind = rustix::fs::FileType::Fifo;
            return rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        }
        Change::Endless => {
            std::fs::remove_file(&path).unwrap();
            return std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        }
        Change::Pid(pid) => {
            let again = name
                .parent()
                .unwrap()
                .with_file_name(PIDS[pid.index(PIDS.len())]);
            return copy_files(path.parent().unwrap(), &copy.altered(&again));
        }
        Change::Swap(other) => other.get(&copy.files).1.clone(),
        _ => changed(text, change),
    };
    std::fs::write(path, changed).unwrap();
}

/// Reads a regular file. Any other file is an error, since reading a pipe would never end.
fn read_short(path: &Path) -> std::io::Result<Vec<u8>> {
    if std::fs::symlink_metadata(path)?.is_file() {
        std::fs::read(path)
    } else {
        Err(std::io::ErrorKind::InvalidInput.into())
    }
}

/// Copies the files of a process' folder.
fn copy_files(folder: &Path, copy: &Path) {
    let _ = std::fs::create_dir(copy);
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if let Ok(text) = read_short(&entry.path()) {
            std::fs::write(copy.join(entry.file_name()), text).unwrap();
        }
    }
}

/// Returns the text with one change.
fn changed(mut text: Vec<u8>, change: &Change) -> Vec<u8> {
    let place = |at: &Index| at.index(text.len() + 1);
    match change {
        Change::Flip(at, bit) if !text.is_empty() => {
            let at = at.index(text.len());
            text[at] ^= 1 << bit;
        }
        Change::Truncate(at) => text.truncate(place(at)),
        Change::Insert(at, bytes) => {
            let at = place(at);
            text.splice(at..at, bytes.iter().copied());
        }
        Change::LongLine(at, mib) => {
            let at = place(at);
            text.splice(at..at, std::iter::repeat_n(b'7', mib << 20));
        }
        Change::NoLastNewline => {
            text.pop_if(|last| *last == b'\n');
        }
        Change::DeleteLine(at) | Change::DuplicateLine(at) => {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
            if !lines.is_empty() {
                let at = at.index(lines.len());
                match change {
                    Change::DeleteLine(_) => drop(lines.remove(at)),
                    _ => lines.insert(at, lines[at]),
                }
            }
            return lines.concat();
        }
        Change::Number(at, number) => {
            let is_start = |&at: &usize| {
                text[at].is_ascii_digit() && (at == 0 || !text[at - 1].is_ascii_digit())
            };
            let starts: Vec<usize> = (0..text.len()).filter(is_start).collect();
            if !starts.is_empty() {
                let start = *at.get(&starts);
                let length = text[start..]
                    .iter()
                    .take_while(|b| b.is_ascii_digit())
                    .count();
                text.splice(
                    start..start + length,
                    NUMBERS[number.index(NUMBERS.len())].bytes(),
                );
            }
        }
        _ => {}
    }
    text
}

/// Columns that are null in the original tree without an absence: most hosts lack their sources.
fn need_no_word(copy: &Copy) -> Vec<&'static str> {
    copy.restore();
    let sample = copy.sampler().take().unwrap();
    let columns = values(&sample.row).into_iter();
    let null = columns.filter(|(_, value)| *value == Value::Null);
    let by_nature = null
        .map(|(name, _)| name)
        .filter(|name| !sample.missing_values.has(name));
    // If its file is removed, the host has no ZFS or no zram: then a null column needs no reason.
    let when_taken_away = [
        "arc_bytes",
        "arc_min_bytes",
        "zram_bytes",
        "zram_stored_bytes",
    ];
    by_nature.chain(when_taken_away).collect()
}

/// Takes a sample and checks what must hold for every sample; `None` if no sample could be taken, for the
/// only allowed reason.
fn checked(sampler: &mut Sampler, needs_no_word: &[&str]) -> Option<Sample> {
    let begun = Instant::now();
    let sample = match sampler.take() {
        Ok(sample) => sample,
        Err(Error::Kernel { path, what }) => {
            assert!(path.ends_with("meminfo"), "{} {what}", path.display());
            return None;
        }
        Err(other) => panic!("{other}"),
    };
    assert!(begun.elapsed() < TOO_LONG, "{:?}", begun.elapsed());
    let row = values(&sample.row);
    let integer = |name: &str| match row.iter().find(|(column, _)| *column == name) {
        Some((_, Value::Integer(value))) => i128::from(*value),
        Some((_, Value::Null)) => 0,
        other => panic!("{name}: {other:?}"),
    };
    let categories: i128 = Category::ALL.iter().map(|c| integer(c.column())).sum();
    assert_eq!(
        categories + integer("category_correction_bytes"),
        integer("physical_bytes")
    );
    for (name, value) in &row {
        if *value == Value::Null {
            let has_a_word = sample.missing_values.has(name) || needs_no_word.contains(name);
            assert!(has_a_word, "{name} without a word");
        }
        let may_be_negative =
            ["category_correction_bytes", "available_residual_bytes"].contains(name);
        match value {
            Value::Integer(value) => assert!(*value >= 0 || may_be_negative, "{name} {value}"),
            Value::Real(value) => assert!(*value >= 0.0, "{name} {value}"),
            _ => {}
        }
    }
    for process in &sample.processes {
        for (name, value) in values(process) {
            assert!(
                name == "pid" || !matches!(value, Value::Integer(..0)),
                "{process:?}"
            );
        }
    }
    for absence in sample.missing_values.rows() {
        assert!(
            absence.detail.len() < 200 && absence.missing_count > 0,
            "{absence:?}"
        );
    }
    assert!(!print::json(&sample).is_empty() && !print::text(&sample).is_empty());
    Some(sample)
}

fn setting<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_the_files_hold_a_sample_adds_up_and_says_what_is_absent() {
    let copies = ["desktop-6.1-amd64", "server-arm64-64k"].map(Copy::of);
    let needs_no_word = copies.each_ref().map(need_no_word);
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = setting("GLEANER_FUZZ_SEED").unwrap_or(now);
    let config = Config {
        cases: setting("GLEANER_FUZZ_ROUNDS").unwrap_or(300),
        failure_persistence: None,
        ..Config::default()
    };
    eprintln!(
        "GLEANER_FUZZ_SEED={seed} GLEANER_FUZZ_ROUNDS={}",
        config.cases
    );
    let mut seeds = [0; 32];
    seeds[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seeds);
    let changes = proptest::collection::vec((any::<Index>(), change()), 1..8);
    let taken = Cell::new(0);
    let result = TestRunner::new_with_rng(config.clone(), rng).run(
        &(0..2usize, changes),
        |(tree, changes)| {
            let copy = &copies[tree];
            copy.restore();
            let (first, rest) = changes.split_at(changes.len() / 2);
            for (file, change) in first {
                apply(change, file, copy);
            }
            let mut sampler = copy.sampler();
            let samples = checked(&mut sampler, &needs_no_word[tree]).iter().count() as u32;
            // The next sample finds other files than the last.
            for (file, change) in rest {
                apply(change, file, copy);
            }
            taken.set(
                taken.get()
                    + samples
                    + checked(&mut sampler, &needs_no_word[tree]).iter().count() as u32,
            );
            Ok(())
        },
    );
    match result {
        Ok(()) => {}
        Err(TestError::Fail(why, (tree, changes))) => {
            let named: Vec<_> = changes
                .iter()
                .map(|(file, change)| (&file.get(&copies[tree].files).0, change))
                .collect();
            panic!("{why}\n{named:#?}");
        }
        Err(abort) => panic!("{abort}"),
    }
    // Most changes damage other values than MemTotal.
    assert!(taken.get() > config.cases, "{} samples", taken.get());
}

/// Inputs that once broke a sample and must not again.
#[test]
fn what_once_broke_a_sample() {
    const SUMS: &str = "36028797018963967 kB\n"; // beyond the range of 64 signed bits when summed
    let copy = Copy::of("desktop-6.1-amd64");
    let needs_no_word = need_no_word(&copy);
    let says = |file: &'static str, line: &'static str, text: &str| {
        (
            file,
            Alteration::Says(line, String::leak(format!("{line}{text}"))),
        )
    };
    let meminfo = "t1/proc/meminfo";
    let cases = [
        vec![
            says(meminfo, "MemFree:", SUMS),
            says(meminfo, "Buffers:", SUMS),
        ],
        vec![says(meminfo, "Cached:", " 18014398509481983 kB\n")],
        vec![says(
            "t1/proc/2200/statm",
            "4500 ",
            "18446744073709551615 0\n",
        )],
        vec![says("t1/proc/2400/statm", "6000 ", "4503599627370495 0\n")],
        vec![says("t1/proc/900/smaps_rollup", "Pss_Anon:", SUMS)],
        vec![says("t1/proc/900/smaps_rollup", "Pss_Shmem:", SUMS)],
        vec![says(
            "t1/proc/zoneinfo",
            "count:",
            " 18446744073709551615\n",
        )],
        vec![says(
            "t1/proc/iomem",
            "100000000-",
            "ffffffffffffffff : System RAM\n",
        )],
        vec![("t1/proc/uptime", Alteration::Says("", "-1 0\n"))],
        vec![("t1/proc/uptime", Alteration::Says("", "1e308 0\n"))],
        vec![says("t1/proc/loadavg", "0.10", " 0.25 -1 2/600 1\n")],
        vec![says("t1/proc/loadavg", "0.10", " 0.25 1 -2/600 1\n")],
    ];
    for altered in cases {
        copy.restore();
        for (file, how) in &altered {
            copy.alter(file, how);
        }
        checked(&mut copy.sampler(), &needs_no_word);
    }
}
