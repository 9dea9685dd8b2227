//! Arguments of `gleaner simulate`.

use crate::values::part_of;
use clap::Args;
use gleaner_simulator::applications::Application;
use gleaner_simulator::sweep::SweptKey;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Simulate lending on a dataset's hosts: benefit and cost.
///
/// A scenario names the borrowing programs or recorded streams, the datasets, the length, the rules, and the
/// values to try. Settings that it leaves out default to those of Acharya & Setia's study. Hosts and owners
/// come from a trace; the rules are the daemons' own.
#[derive(Args)]
#[command(after_help = "Examples:
  gleaner simulate --list                         # scenarios that come with Gleaner
  gleaner simulate study --print > mine.toml      # one of them, to be edited
  gleaner simulate study --dataset A=/srv/clusters/a --page study.html
  gleaner simulate mine.toml --sweep placement=random,spread --sweep recruitment.mode=paper,gentle
  gleaner simulate headroom --dataset DATASET --from 2026-11-16 --days 5 --program lu --csv headroom.csv
  gleaner simulate mine.toml --json - | jq '.rows[] | {program, gain: .gain_share.median}'
  gleaner simulate mine.toml --part 2/7 -o part-2  # on one of seven machines
  gleaner merge part-* --csv mine.csv              # the same as of one machine
  gleaner simulate gms-skew --seed 1               # global memory, without a dataset
  gleaner simulate gms-clusters --dataset DATASET --page memory.html

The same seeds give the same bytes of JSON and CSV for any --jobs. Keys, measures, scenarios: docs/simulator.md.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Simulate {
    /// Scenario file, or the name of a scenario shipped with Gleaner.
    #[arg(required_unless_present = "list")]
    pub(crate) scenario: Option<String>,
    /// List the scenarios shipped with Gleaner.
    #[arg(long, conflicts_with = "scenario")]
    pub(crate) list: bool,
    /// Print the scenario file, and run nothing.
    #[arg(long)]
    pub(crate) print: bool,
    /// Simulate only the runs of part I, if the runs are divided into N parts, and write the part to --output.
    #[arg(long, value_name = "I/N", value_parser = part_of, requires = "output", conflicts_with_all = ["json", "csv", "page"])]
    pub(crate) part: Option<(usize, usize)>,
    /// File for the part, which `gleaner merge` reads (`-`: standard output).
    #[arg(short, long, value_name = "FILE", requires = "part")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Instead of the scenario's")]
    pub(crate) instead: Replacements,
    #[command(flatten, next_help_heading = "Results")]
    pub(crate) results: Results,
    /// Number of concurrent simulations [default: one per CPU].
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// Replacements for settings of the scenario.
#[derive(Args)]
pub(crate) struct Replacements {
    /// Values of a setting to try (repeatable: every combination); the first parts of a dotted key may be left
    /// out if its end is unique.
    #[arg(long, value_name = "KEY=V1,V2", value_parser = swept)]
    pub(crate) sweep: Vec<SweptKey>,
    /// Dataset to use instead of the scenario's, a folder or s3://bucket/prefix, with a name [default name: the
    /// folder's] (repeatable).
    #[arg(long, value_name = "[NAME=]DIR", value_parser = dataset)]
    pub(crate) dataset: Vec<(String, PathBuf)>,
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help = programs())]
    pub(crate) program: Vec<String>,
    /// Seeds of the runs, comma-separated.
    #[arg(long, value_name = "SEEDS", value_delimiter = ',')]
    pub(crate) seed: Vec<u64>,
    /// Start of the simulated time: a date (UTC), an RFC 3339 time, or ms since 1970-01-01 UTC.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Length of the simulated time, in days.
    #[arg(long, value_name = "DAYS")]
    pub(crate) days: Option<f64>,
}

/// Help of `--program`: every program that there is.
fn programs() -> String {
    let names = Application::ALL.map(Application::name).join(", ");
    format!("Programs, comma-separated: {names}; not for scenarios with recorded clients")
}

/// Outputs beside the table.
#[derive(Args)]
pub(crate) struct Results {
    /// Write one JSON document (`-`: to standard output, instead of the table).
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write CSV, one line per row (`-`: to standard output, instead of the table).
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write an HTML page of benefit against cost, with its figures inside.
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

fn swept(text: &str) -> Result<SweptKey, String> {
    text.parse()
        .map_err(|e: gleaner_simulator::sweep::SweepError| e.to_string())
}

fn dataset(text: &str) -> Result<(String, PathBuf), String> {
    let named = text
        .split_once('=')
        .filter(|(name, _)| !name.contains("://"));
    let (name, folder) = match named {
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
        let east = |name: &str| Ok((name.to_owned(), PathBuf::from("s3://traces/site=east")));
        assert_eq!(dataset("s3://traces/site=east"), east("site=east"));
        assert_eq!(dataset("E=s3://traces/site=east"), east("E"));
        for wrong in ["=out", "A=", ""] {
            assert!(dataset(wrong).is_err(), "{wrong}");
        }
    }
}
