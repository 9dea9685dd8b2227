//! Arguments of `gleaner synth`.

use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// Generate a synthetic dataset.
///
/// The hosts of preset `modern` are invented: sizes, names, habits. Those of `acharya-setia` are calibrated to the
/// tables of a study of 1998. Equal seeds give equal bytes.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner synth -o out/synthetic --hosts 20 --days 7
  gleaner synth -o out/1998 --preset acharya-setia-a --seed 3
  gleaner synth -o out/large --hosts 10000 --days 1 --seed 42 --json
  gleaner synth --print --preset modern > mine.toml
  gleaner synth -o out/mine --fleet mine.toml
  gleaner analyze out/synthetic")]
pub(crate) struct Synth {
    /// Folder of the dataset; must be new or empty.
    #[arg(long, short, value_name = "DATASET", required_unless_present = "print")]
    pub(crate) output: Option<PathBuf>,
    /// Fleet shipped with Gleaner.
    #[arg(long, value_enum, default_value_t = SynthPreset::Modern)]
    pub(crate) preset: SynthPreset,
    /// Fleet of your own: classes of hosts and their habits, as TOML.
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub(crate) fleet: Option<PathBuf>,
    /// Cluster of the fleet [default: its first].
    #[arg(long, value_name = "NAME", requires = "fleet")]
    pub(crate) cluster: Option<String>,
    /// Number of hosts; if there are more than the cluster has, its list of classes repeats [default: as many
    /// as the cluster has].
    #[arg(long)]
    pub(crate) hosts: Option<usize>,
    /// Length of the trace in days [default: the fleet's].
    #[arg(long)]
    pub(crate) days: Option<u32>,
    /// Keep every host on day and night; by default some sleep or are off while their owners are away.
    #[arg(long)]
    pub(crate) always_on: bool,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// First day of the trace (UTC) [default: the fleet's].
    #[arg(long, value_name = "DATE")]
    pub(crate) start: Option<jiff::civil::Date>,
    /// Time between samples.
    #[arg(long, value_name = "TIME", default_value = "90s", value_parser = gleaner_schemas::interval::parse)]
    pub(crate) interval: Duration,
    /// Print the preset's fleet as TOML, to be edited, and write nothing.
    #[arg(long, conflicts_with_all = ["output", "fleet"])]
    pub(crate) print: bool,
    /// Print the result as one JSON document.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SynthPreset {
    /// Invented desktops and workstations, as sold since 2020.
    Modern,
    /// Cluster A of Acharya & Setia: 29 hosts in September 1998, calibrated.
    AcharyaSetiaA,
    /// Cluster B of Acharya & Setia: 23 hosts.
    AcharyaSetiaB,
    /// Both clusters of Acharya & Setia: 52 hosts, A's first.
    AcharyaSetia,
}
