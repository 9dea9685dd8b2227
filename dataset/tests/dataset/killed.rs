//! `kill -9` at random moments of a seal and of the compaction after it. The dataset stays readable; it
//! contains each seal completely and once, or not at all.

use crate::made_rows::{Name, batch, read_names};
use gleaner_dataset::{Compaction, Dataset, Writer};
use gleaner_schemas::column::{Row, Table};
use gleaner_schemas::rows::{FileRow, SampleRow};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const STRIKES_IN_FLIGHT: u32 = 12;
const STRIKES_IN_COMPACTION: u32 = 4;
const FOLDER: &str = "GLEANER_KILLED_DATASET";

fn tables() -> [Table; 2] {
    [SampleRow::TABLE, FileRow::TABLE]
}

/// Rows of the seal numbered `seal`, from 1. Their sequence is `seal`; they belong to three hosts with two
/// databases each, and each database has its own days.
fn rows_of(seal: i64, table: &Table) -> Vec<Name> {
    let keys = if table.key.is_empty() { 1 } else { 4 };
    let mut names = Vec::new();
    for host in 0..3 {
        for database in 0..2 {
            names.extend((0..keys).map(|key| Name::new(host, database, seal, key)));
        }
    }
    names
}

/// Seals again and again, in the child process that the test kills.
fn seal_for_ever(root: &str) -> ! {
    let mut stdout = std::io::stdout();
    let compaction = Compaction {
        quiet: Duration::ZERO,
        ..Compaction::default()
    };
    let later = UNIX_EPOCH + Duration::from_secs(100 * 365 * 86_400); // every day is past
    loop {
        let mut writer = Writer::open(root).unwrap();
        let last = writer.last_sequence("host-0", "database-0").unwrap();
        let seal = 1 + last.unwrap_or(0);
        for table in &tables() {
            writer
                .append(table, batch(table, &rows_of(seal, table)))
                .unwrap();
        }
        writeln!(stdout, "sealing {seal}").unwrap();
        writer.seal().unwrap();
        writeln!(stdout, "compacting {seal}").unwrap();
        while writer.compact_step(&compaction, later).unwrap().is_some() {}
        writeln!(stdout, "sealed {seal}").unwrap();
    }
}

/// Progress of a killed child, from its output.
struct Strike {
    sealed: i64,
    in_flight: bool,
    in_compaction: bool,
}

/// Starts a child, lets it seal twice, and kills it after `share` of the duration of a seal.
fn strike(root: &Path, share: f64) -> Strike {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::killed_seals_are_whole_or_absent"])
        .arg("--nocapture")
        .env(FOLDER, root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut number = |word: &str| -> Option<i64> {
        let line = said.by_ref().map_while(Result::ok);
        let mut found = line.filter_map(|l| l.strip_prefix(word)?.trim().parse().ok());
        found.next()
    };
    number("sealed").unwrap();
    number("sealing").unwrap();
    let start = Instant::now();
    let mut sealed = number("sealed").unwrap();
    let a_seal = start.elapsed();
    let sealing = number("sealing").unwrap();
    std::thread::sleep(a_seal.mul_f64(share));
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    let mut compacting = 0;
    for line in said.map_while(Result::ok) {
        let number = |word| line.strip_prefix(word)?.trim().parse().ok();
        sealed = number("sealed").unwrap_or(sealed);
        compacting = number("compacting").unwrap_or(compacting);
    }
    Strike {
        sealed,
        in_flight: sealed < sealing,
        in_compaction: sealed < compacting,
    }
}

#[test]
fn killed_seals_are_whole_or_absent() {
    if let Ok(root) = std::env::var(FOLDER) {
        seal_for_ever(&root); // in the child started by `strike`
    }
    let folder = tempfile::tempdir().unwrap();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = since.subsec_nanos();
    let mut random = seed;
    let (mut in_flight, mut attempts, mut absent, mut in_place) = (0, 0, 0, 0);
    let mut in_compaction = 0;
    while in_flight < STRIKES_IN_FLIGHT || in_compaction < STRIKES_IN_COMPACTION {
        attempts += 1;
        assert!(
            attempts < 20 * STRIKES_IN_FLIGHT,
            "{in_flight} in flight, seed {seed}"
        );
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let share = f64::from(random >> 8) / f64::from(1 << 24);
        let strike = strike(folder.path(), share);

        let dataset = Dataset::open(folder.path()).unwrap();
        assert_eq!(dataset.verify().problems, []);
        let held = seals_held(&dataset);
        // The child may have been killed when a seal was durable but not yet reported.
        assert!(
            held == strike.sealed || held == strike.sealed + 1,
            "{held} seals after {} were told of, seed {seed}",
            strike.sealed
        );
        in_flight += u32::from(strike.in_flight);
        in_compaction += u32::from(strike.in_compaction);
        in_place += u32::from(!orphans(folder.path()).is_empty());
        absent += u32::from(strike.in_flight && held == strike.sealed);
    }
    println!(
        "seed {seed}: {in_flight} strikes in flight of {attempts}, {in_compaction} of them in a compaction; \
         {absent} seals absent, the others whole; files in place that the manifest did not name: {in_place} \
         times"
    );
    drop(Writer::open(folder.path()).unwrap()); // the dead child's lock is free
    assert_eq!(orphans(folder.path()), Vec::<PathBuf>::new());
}

/// Number of seals in the dataset. Asserts that each is complete in every table.
fn seals_held(dataset: &Dataset) -> i64 {
    let counts = tables().map(|table| {
        let mut seals = 0;
        let mut rows = 0;
        for host in dataset.hosts().unwrap() {
            let found = read_names(dataset, &table, &host);
            seals = found.iter().map(|n| n.sequence).max().unwrap_or(0);
            let mut expected: Vec<Name> = (1..=seals)
                .flat_map(|seal| rows_of(seal, &table))
                .filter(|n| n.host == host)
                .collect();
            expected.sort();
            assert_eq!(found, expected);
            rows += found.len() as u64;
        }
        assert_eq!(dataset.rows(&table), rows, "no row lies in two files");
        seals
    });
    assert_eq!(
        counts[0], counts[1],
        "a seal is in one table and not in the other"
    );
    counts[0]
}

/// Files in the tables' folders that the manifest does not name.
fn orphans(root: &Path) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let dataset = Dataset::open(root).unwrap();
    let files = &dataset.manifest().files;
    let named: Vec<_> = files.iter().map(|f| root.join(&f.path)).collect();
    let dates = tables()
        .into_iter()
        .flat_map(|t| entries(root.join(t.name)));
    let found = dates.flat_map(entries);
    found.filter(|path| !named.contains(path)).collect()
}
