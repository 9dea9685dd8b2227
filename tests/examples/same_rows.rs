//! Checks that a dataset has exactly the rows of the agents' databases, each once. Tests that are not written
//! in Rust use it: `same_rows AGENT DATASET DATABASE…`, where AGENT is the program `gleaner-agent`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(agent), Some(dataset)) = (paths.next(), paths.next()) else {
        eprintln!("usage: same_rows AGENT DATASET DATABASE…");
        return ExitCode::from(2);
    };
    let databases: Vec<PathBuf> = paths.collect();
    let scratch = std::env::temp_dir().join(format!("same-rows-{}", std::process::id()));
    let compared = gleaner_tests::same_rows(&agent, &dataset, &databases, &scratch);
    let _ = std::fs::remove_dir_all(&scratch); // if it remains, it does no harm
    match compared {
        Ok(rows) => {
            println!("{rows} rows, each once");
            ExitCode::SUCCESS
        }
        Err(difference) => {
            eprintln!("{difference}");
            ExitCode::FAILURE
        }
    }
}
