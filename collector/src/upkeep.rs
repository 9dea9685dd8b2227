//! Runs `gleaner-collector verify` and `repair`, and formats their results as text and JSON.

use gleaner_dataset::{
    Dataset, DatasetError, LostRows, Problem, RepairResult, Verification, repair,
};
use gleaner_schemas::units::Bytes;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Result of `verify` or `repair`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatasetCheck {
    /// The result as text.
    pub text: String,
    /// Result as JSON.
    pub json: Value,
    /// True if all files are as they were sealed.
    pub is_sound: bool,
}

/// Reads every file of the dataset and compares it with its hashes and counts.
///
/// # Errors
/// There is no dataset, or its manifest cannot be read (`repair` rebuilds it).
pub fn verified(dataset: &Path) -> Result<DatasetCheck, DatasetError> {
    let found = Dataset::open(dataset)?.verify();
    let Verification {
        files,
        rows,
        bytes,
        problems,
    } = &found;
    let mut text = String::new();
    for problem in problems {
        line(&mut text, &format!("damaged: {problem}"));
    }
    let size = Bytes::from(*bytes);
    line(
        &mut text,
        &match problems.len() {
            0 => format!("{files} files, {rows} rows, {size}: all as they were sealed"),
            bad => format!(
                "{bad} of {files} files are damaged; `gleaner-collector repair {}` sets them aside and saves what is whole",
                dataset.display()
            ),
        },
    );
    let json = json!({
        "files_count": files,
        "rows_count": rows,
        "bytes": bytes,
        "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
    });
    Ok(DatasetCheck {
        text,
        json,
        is_sound: problems.is_empty(),
    })
}

/// Sets damaged files aside, saves their intact rows, and rebuilds a lost manifest.
///
/// # Errors
/// [`DatasetError`]; repairs made before it stay.
pub fn repaired(dataset: &Path) -> Result<DatasetCheck, DatasetError> {
    let done = repair(dataset)?;
    let RepairResult {
        manifest_rebuilt,
        problems,
        saved_rows,
        unproven_rows,
        lost: lost_rows,
    } = &done;
    let mut text = String::new();
    if *manifest_rebuilt {
        line(&mut text, "the manifest was made anew from the files");
    }
    for problem in problems {
        line(&mut text, &format!("set aside in .damaged: {problem}"));
    }
    for one in lost_rows {
        line(&mut text, &lost_text(one));
    }
    if problems.is_empty() {
        line(&mut text, "nothing to repair");
    } else {
        line(&mut text, &format!("{saved_rows} rows were saved"));
    }
    if *unproven_rows > 0 {
        line(
            &mut text,
            &format!("of those, {unproven_rows} are whole rows whose hashes were lost"),
        );
    }
    let json = json!({
        "manifest_rebuilt": manifest_rebuilt,
        "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
        "saved_rows_count": saved_rows,
        "unproven_rows_count": unproven_rows,
        "lost_rows": lost_rows.iter().map(lost_json).collect::<Vec<_>>(),
    });
    Ok(DatasetCheck {
        text,
        json,
        is_sound: problems.is_empty() && !manifest_rebuilt,
    })
}

fn line(text: &mut String, words: &str) {
    let _ = writeln!(text, "{words}"); // writing to a string does not fail
}

fn problem_json(problem: &Problem) -> Value {
    json!({
        "path": problem.path,
        "table": problem.table,
        "date": problem.date,
        "fault": problem.kind.to_string(),
        "rows_count": problem.rows,
        "hosts_count": problem.hosts_count,
        "host_ids": problem.hosts,
    })
}

fn lost_text(lost: &LostRows) -> String {
    let rows = lost
        .rows
        .map_or("unknown".to_owned(), |rows| rows.to_string());
    let host = lost.host_id.as_deref().unwrap_or("unknown hosts");
    format!(
        "lost: {rows} rows of {} on {}: {host}",
        lost.table, lost.date
    )
}

fn lost_json(lost: &LostRows) -> Value {
    json!({
        "table": lost.table,
        "date": lost.date,
        "host_id": lost.host_id,
        "rows_count": lost.rows,
    })
}
