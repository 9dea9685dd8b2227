//! Arguments of `gleaner fidelity`.

use super::error::{FidelityError, Result};
use gleaner_traces::published::PublishedWork;
use std::path::PathBuf;

/// Default number of seeds.
const SEEDS: u64 = 20;
/// Default first seed.
const FIRST_SEED: u64 = 1001;
/// Default length of a trace, in days.
const DAYS: u32 = 14;

/// A paper with published figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Paper {
    /// Availability and utility of idle memory (1999), by synthetic clusters
    AcharyaSetia,
    /// A remote memory paging system (1991), by its queueing model
    FeltenZahorjan,
    /// Global memory management (1995), by simulations of its cluster
    Gms,
    /// Remote memory access in workstation clusters (1997), by its models on recorded programs
    VergheseRosenblum,
    /// Distributed adaptive network memory engine (2006), by results of benches
    Anemone,
}

/// Compare a paper's figures with ours.
///
/// With --paper felten-zahorjan, the paper's queueing model is solved; no seeds are needed. With --paper gms, the
/// paper's cluster is simulated with each seed. With --paper verghese-rosenblum, the paper's models are applied to
/// its tables and to recordings of workloads like the paper's. With --paper anemone, the results of benches
/// (--measured) are compared. Otherwise, for each seed, both clusters of Acharya & Setia are generated (`gleaner
/// synth`) and analysed (`gleaner analyze`). For each figure of the paper, the output has the mean over the seeds,
/// spread, error, and whether the figure was calibrated, derived or predicted. --simulate also runs the study's
/// programs on the clusters. The datasets are removed at the end.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner fidelity
  gleaner fidelity --item 'Table 4' --seeds 40
  gleaner fidelity --json | jq '.[] | select(.holds == false)'
  gleaner fidelity --item 'Table 5' --item 'Table 6' --simulate
  gleaner fidelity --simulate --markdown docs/fidelity.md
  gleaner fidelity --paper felten-zahorjan
  gleaner fidelity --paper gms --seeds 10
  gleaner fidelity --paper gms --seeds 2 --item 'Figure 9'
  gleaner fidelity --paper verghese-rosenblum --workloads recorded
  gleaner fidelity --paper anemone --measured out/bench/latency.json --measured out/bench/control.json

20 seeds take some minutes; simulating a week of three seeds takes as long. A figure holds if our mean rounds to the printed figure, or if the printed figure lies in the \
interval of the seeds. Meaning and limits of the figures: traces/published/README.md.")]
pub struct Fidelity {
    /// Paper whose figures are compared.
    #[arg(long, value_enum, default_value_t = Paper::AcharyaSetia)]
    pub(crate) paper: Paper,
    /// Print a list of records as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Number of seeds, 1 to 10000; each generates both clusters anew.
    #[arg(long, value_name = "N", default_value_t = SEEDS, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// First seed; the others follow it. The model was fitted to seeds below 1001.
    #[arg(long, value_name = "SEED", default_value_t = FIRST_SEED)]
    pub(crate) first_seed: u64,
    /// Length of each trace in days, 1 to 366; the paper's counts cover 14.
    #[arg(long, value_name = "N", default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: u32,
    /// Simulate the study's programs on the clusters of the first N seeds (3 without N): Tables 5 and 6, Figures 8 to 10.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3",
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) simulate: Option<u64>,
    /// Hours to simulate, 1 to 168, from the start of the last week; the study simulates 168.
    #[arg(long, value_name = "N", default_value_t = 168, value_parser = clap::value_parser!(u64).range(1..=168), requires = "simulate")]
    pub(crate) simulated_hours: u64,
    /// Print only this table or figure of the paper, like `Table 4` (repeatable).
    #[arg(long, value_name = "ITEM")]
    pub(crate) item: Vec<String>,
    /// Also write all results as Markdown into this file.
    #[arg(long, value_name = "FILE", conflicts_with = "item")]
    pub(crate) markdown: Option<PathBuf>,
    /// For --paper verghese-rosenblum: folder with the recordings that bench/simulated/record makes. Without it, only
    /// figures that follow from the paper alone are computed.
    #[arg(long, value_name = "DIR")]
    pub(crate) workloads: Option<PathBuf>,
    /// Folder for the temporary datasets, about 100 MB [default: the system's folder for temporary files].
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// Result that a bench wrote with --json (repeatable): of bench/latency.py, programs.py, window.py, control.py.
    #[arg(long, value_name = "FILE")]
    pub(crate) measured: Vec<PathBuf>,
}

impl Fidelity {
    /// Returns true if the output shall have this table or figure.
    pub(crate) fn requests(&self, item: &str) -> bool {
        self.item.is_empty() || self.item.iter().any(|requested| requested == item)
    }

    /// Rejects a table or figure that is neither in `published` nor among `others`.
    pub(crate) fn refuse_unknown_items(
        &self,
        published: &PublishedWork,
        others: &[&str],
    ) -> Result<()> {
        let mut known: Vec<&str> = Vec::new();
        let items = published.figures.iter().map(|f| f.item.as_str());
        for item in items.chain(others.iter().copied()) {
            if !known.contains(&item) {
                known.push(item);
            }
        }
        match self
            .item
            .iter()
            .find(|item| !known.contains(&item.as_str()))
        {
            Some(item) => Err(FidelityError::Item {
                item: item.clone(),
                known: known.join(", "),
            }),
            None => Ok(()),
        }
    }

    /// Rejects options of seeds, for a paper whose figures do not depend on chance.
    pub(crate) fn refuse_seeds(&self) -> Result<()> {
        Self::refuse(&[
            ("--seeds", self.seeds != SEEDS),
            ("--first-seed", self.first_seed != FIRST_SEED),
        ])
    }

    /// Rejects options of synthetic clusters, for a paper without them.
    pub(crate) fn refuse_options_of_clusters(&self) -> Result<()> {
        Self::refuse(&[
            ("--days", self.days != DAYS),
            ("--simulate", self.simulate.is_some()),
            ("--work", self.work.is_some()),
        ])
    }

    /// Rejects results of benches, for a paper that is not compared with them.
    pub(crate) fn refuse_results(&self) -> Result<()> {
        match self.paper {
            Paper::Anemone => Ok(()),
            _ if self.measured.is_empty() => Ok(()),
            _ => Err(FidelityError::OptionOfBenches),
        }
    }

    /// Rejects recordings of workloads, for a paper whose figures do not depend on them.
    pub(crate) fn refuse_workloads(&self) -> Result<()> {
        match (self.paper, &self.workloads) {
            (Paper::VergheseRosenblum, _) | (_, None) => Ok(()),
            (_, Some(_)) => Err(FidelityError::OptionOfWorkloads),
        }
    }

    fn refuse(given: &[(&'static str, bool)]) -> Result<()> {
        match given.iter().find(|(_, is_given)| *is_given) {
            Some(&(option, _)) => Err(FidelityError::OptionOfClusters { option }),
            None => Ok(()),
        }
    }
}
