//! Arguments of `gleaner simulate`.

use clap::Args;
use gleaner_simulator::applications::Application;
use gleaner_simulator::sweep::SweptKey;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Simulate lending on a dataset's hosts: its benefit, and its cost.
///
/// A scenario names the programs or recorded streams that borrow, the datasets, the length, the rules, and
/// the values to try. Settings that it leaves out are those of Acharya & Setia's study. Hosts and owners come
/// from a trace; the rules are those of the daemons.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner simulate --list                         # scenarios that come with Gleaner
  gleaner simulate study --print > mine.toml      # one of them, to be altered
  gleaner simulate study --dataset A=/srv/clusters/a --page study.html
  gleaner simulate mine.toml --sweep placement=random,spread --sweep recruitment.mode=paper,gentle
  gleaner simulate headroom --dataset DATASET --from 2026-11-16 --days 5 --program lu --csv headroom.csv
  gleaner simulate mine.toml --json - | jq '.rows[] | {program, gain: .gain_share.median}'

The same seed gives the same bytes of JSON and CSV, however many jobs there are. Keys, measures, scenarios: docs/simulator.md.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Simulate {
    /// Scenario: a file, or the name of one shipped with Gleaner.
    #[arg(required_unless_present = "list")]
    pub(crate) scenario: Option<String>,
    /// List the scenarios shipped with Gleaner.
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) list: bool,
    /// Print the scenario's file, and run nothing.
    #[arg(long)]
    pub(crate) print: bool,
    #[command(flatten, next_help_heading = "Instead of the scenario's")]
    pub(crate) instead: Replacements,
    #[command(flatten, next_help_heading = "Results")]
    pub(crate) results: Results,
    /// Simulations side by side [default: one a CPU].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// Replacements for settings of the scenario.
#[derive(Args)]
pub(crate) struct Replacements {
    /// Try these values of a setting (repeatable: every combination). The beginning of a key may be left out
    /// if no other key has the same end.
    #[arg(long, value_name = "KEY=V1,V2", value_parser = swept)]
    pub(crate) sweep: Vec<SweptKey>,
    /// Dataset to use in place of the scenario's, with its name; default: the folder's name (repeatable).
    #[arg(long, value_name = "[NAME=]DIR", value_parser = dataset)]
    pub(crate) dataset: Vec<(String, PathBuf)>,
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help = programs())]
    pub(crate) program: Vec<String>,
    /// Seeds of the runs.
    #[arg(long, value_name = "SEEDS", value_delimiter = ',')]
    pub(crate) seed: Vec<u64>,
    /// Begin: a date (UTC), RFC 3339, or ms since 1970-01-01 UTC.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Length, in days.
    #[arg(long, value_name = "DAYS")]
    pub(crate) days: Option<f64>,
}

/// Help of `--program`: every program that there is.
fn programs() -> String {
    let names = Application::ALL.map(Application::name).join(", ");
    format!("Programs: {names}. Not of a scenario with recorded clients")
}

/// Outputs beside the table.
#[derive(Args)]
pub(crate) struct Results {
    /// Write one JSON document (`-`: on standard output, in the place of the table).
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write CSV, a line a row (`-` as well).
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write a page of benefit against cost, figures inside, no network needed.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

fn swept(text: &str) -> Result<SweptKey, String> {
    text.parse()
        .map_err(|e: gleaner_simulator::sweep::SweepError| e.to_string())
}

fn dataset(text: &str) -> Result<(String, PathBuf), String> {
    let (name, folder) = match text.split_once('=') {
        Some((name, folder)) => (name.to_owned(), PathBuf::from(folder)),
        None => {
            let folder = PathBuf::from(text);
            let name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
            (name.unwrap_or_else(|| "dataset".to_owned()), folder)
        }
    };
    if name.is_empty() || folder.as_os_str().is_empty() {
        return Err("write NAME=DIR, or DIR alone".to_owned());
    }
    Ok((name, folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datasets_have_names() {
        let a = || Ok(("A".to_owned(), PathBuf::from("out/a=b")));
        assert_eq!(dataset("A=out/a=b"), a());
        let own = ("week".to_owned(), PathBuf::from("out/week/"));
        assert_eq!(dataset("out/week/"), Ok(own));
        for wrong in ["=out", "A=", ""] {
            assert!(dataset(wrong).is_err(), "{wrong}");
        }
    }
}
