//! Arguments of `gleaner fidelity`.

use std::path::PathBuf;

/// Print the paper's figures beside those of synthetic clusters that were made after them.
///
/// For each seed, both clusters of Acharya & Setia are made (`gleaner synth`), analysed (`gleaner analyze`), and each figure
/// that the paper prints is taken out of the findings: mean over the seeds, spread, error, and whether it was calibrated, derived or
/// predicted. With --simulate the study's programs are run on them, too. Nothing is kept.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner fidelity
  gleaner fidelity --item 'Table 4' --seeds 40
  gleaner fidelity --json | jq '.[] | select(.holds == false)'
  gleaner fidelity --item 'Table 5' --item 'Table 6' --simulate
  gleaner fidelity --simulate --markdown docs/fidelity.md

20 seeds take some minutes, and so does a simulated week of each of three. A figure holds where the mean of ours rounds to what is printed, or what is printed lies in the interval of \
the seeds. What the figures are, and what they may stand for: traces/published/README.md.")]
pub struct Fidelity {
    /// Print a list of records as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Seeds: each makes both clusters anew.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) seeds: u64,
    /// The first of them; the others follow. The model was fitted to seeds below 1001.
    #[arg(long, value_name = "SEED", default_value_t = 1001)]
    pub(crate) first_seed: u64,
    /// Days of each trace; the paper's counts are of 14.
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = clap::value_parser!(u32).range(1..=366))]
    pub(crate) days: u32,
    /// Simulate the study's programs on the clusters of the first N seeds, 3 unless said otherwise: Tables 5 and 6, Figures 8 to 10.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3",
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) simulate: Option<u64>,
    /// Hours of it, from the begin of the last week on; the study's have 168.
    #[arg(long, value_name = "N", default_value_t = 168, value_parser = clap::value_parser!(u64).range(1..=168), requires = "simulate")]
    pub(crate) simulated_hours: u64,
    /// Print this table or figure of the paper alone, as `Table 4` (repeatable).
    #[arg(long, value_name = "ITEM")]
    pub(crate) item: Vec<String>,
    /// Write all of it as Markdown, too, into this file.
    #[arg(long, value_name = "FILE", conflicts_with = "item")]
    pub(crate) markdown: Option<PathBuf>,
    /// Folder for the datasets, some 100 MB that are removed at the end [default: the system's for temporary files].
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
}
