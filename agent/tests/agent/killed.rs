//! The agent is killed repeatedly at random points, always on the same database.
//!
//! `GLEANER_KILL_ROUNDS` (20) sets the number of times; `GLEANER_SEED` repeats a run.

use crate::running::{Running, column, is_sound, query, wait_for};
use crate::{agent, succeed};
use gleaner_dataset::Dataset;
use gleaner_harness::{Random, number};
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::{GapRow, SampleRow};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Numbers of the system calls poll and ppoll on x86-64, and of ppoll elsewhere.
const POLLS: [u32; 3] = [7, 271, 73];

/// Number of frames in the log after its last commit: a transaction that was being written.
fn unfinished_frames(log: &Path) -> usize {
    let bytes = fs::read(log).unwrap_or_default();
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    if bytes.len() < 32 {
        return 0;
    }
    let frame_bytes = 24 + word(8) as usize;
    let salts = bytes[16..24].to_vec();
    let frames = (32..).step_by(frame_bytes);
    let written =
        frames.take_while(|&at| at + frame_bytes <= bytes.len() && bytes[at + 8..at + 16] == salts);
    written.fold(0, |since_commit, at| {
        if word(at + 4) == 0 {
            since_commit + 1
        } else {
            0
        }
    })
}

#[test]
fn killed_at_work_again_and_again_nothing_is_half_there() {
    let rounds = number("GLEANER_KILL_ROUNDS", 20);
    let mut random = Random::new();
    let folder = tempfile::tempdir().unwrap();
    let (database, dataset) = (
        folder.path().join("trace.db"),
        folder.path().join("dataset"),
    );
    let log = gleaner_agent::state_files::beside(&database, "-wal");
    let mut in_transaction = 0;
    let mut known = 0;
    for round in 0..rounds {
        let mut run = agent();
        run.args(["run", "--sample-interval", "100ms", "--database"])
            .arg(&database);
        let traced = Running::start(&mut run);
        traced.hear("sampling every 100ms");
        let samples = || query::<i64>(&database, "SELECT count(*) FROM samples");
        wait_for("a sample of this round", || samples() > known);
        std::thread::sleep(Duration::from_millis(random.below(200)));
        traced.stop_at_work(&POLLS, &mut random);
        traced.kill();
        in_transaction += usize::from(unfinished_frames(&log) > 0);

        is_sound(&database);
        assert!(
            samples() > known,
            "round {round}: what was committed is gone"
        );
        known = samples();
        let stopped = "SELECT count(*) FROM gaps WHERE cause = 'stopped'";
        assert_eq!(query::<i64>(&database, stopped), round as i64);
        if random.below(3) == 0 {
            succeed(
                agent()
                    .arg("export")
                    .arg(&dataset)
                    .arg("--database")
                    .arg(&database),
            );
        }
    }
    println!("{rounds} rounds, all at work; in {in_transaction} a transaction was being written");

    succeed(
        agent()
            .arg("export")
            .arg(&dataset)
            .arg("--database")
            .arg(&database),
    );
    let exported = Dataset::open(&dataset).unwrap();
    let host = exported.hosts().unwrap().remove(0);
    for table in [SampleRow::TABLE, GapRow::TABLE] {
        let rows = exported.read_host(&table, &host, &["sequence"]).unwrap();
        let mut there: Vec<i64> = rows.column(0).to_data().buffers()[0]
            .typed_data::<i64>()
            .to_vec();
        there.sort_unstable();
        let stored = format!("SELECT sequence FROM {} ORDER BY sequence", table.name);
        assert_eq!(there, column::<i64>(&database, &stored), "each record once");
    }
}
