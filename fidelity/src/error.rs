//! Reasons why there are no figures to print.

use gleaner_analysis::AnalysisError;
use gleaner_dataset::DatasetError;
use gleaner_simulator::dodo::SimulationError;
use gleaner_simulator::gms::GmsError;
use gleaner_simulator::hosts::HostsError;
use gleaner_simulator::models::TechnologyError;
use gleaner_simulator::queueing::QueueingError;
use gleaner_simulator::references::ReferencesError;
use gleaner_traces::published::PublishedError;
use gleaner_traces::synth::SynthError;
use std::io;
use std::path::PathBuf;

/// Result of a comparison, or of a part of it.
pub(crate) type Result<T> = std::result::Result<T, FidelityError>;

/// Failure of `gleaner fidelity`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FidelityError {
    /// The paper has no such table or figure.
    #[error("--item {item}: the paper's are {known}")]
    Item {
        /// Name as given.
        item: String,
        /// Names of all tables and figures, separated by commas.
        known: String,
    },
    /// Only simulated figures were requested, but no simulation.
    #[error("{items} takes a simulation: add --simulate")]
    NeedsSimulation {
        /// Names as given, separated by commas.
        items: String,
    },
    /// An option of synthetic clusters was given for a paper that has none.
    #[error("{option} is for synthetic clusters (--paper acharya-setia): leave it out")]
    OptionOfClusters {
        /// Option as given.
        option: &'static str,
    },
    /// Results of benches were given for a paper that is not compared with benches.
    #[error("--measured is for results of benches (--paper anemone): leave it out")]
    OptionOfBenches,
    /// A bench's result cannot be read.
    #[error("--measured {}", .path.display())]
    Measured {
        /// Path of the result.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A bench's result is not the JSON that the bench writes.
    #[error("--measured {}: write it again with --json of the bench", .path.display())]
    MeasuredJson {
        /// Path of the result.
        path: PathBuf,
        /// Error of the parser.
        source: serde_json::Error,
    },
    /// A file has no result of the benches.
    #[error(
        "--measured {}: no result of bench/latency.py, programs.py, window.py or control.py",
        .path.display()
    )]
    MeasuredNothing {
        /// Path of the file.
        path: PathBuf,
    },
    /// Recordings of workloads were given for a paper that has none.
    #[error("--workloads is for --paper verghese-rosenblum: leave it out")]
    OptionOfWorkloads,
    /// A recording of a workload is missing or unusable.
    #[error("{}: {fault}; run bench/simulated/record anew (docs/fidelity-models.md)", .path.display())]
    Recording {
        /// Path of the recording.
        path: PathBuf,
        /// Description of the fault.
        fault: String,
    },
    /// The folder for the datasets cannot be made.
    #[error("{}: no folder can be made there", .work.display())]
    Folder {
        /// Parent folder in which the folder could not be made.
        work: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The page cannot be written.
    #[error("{}", .path.display())]
    Page {
        /// Path of the page.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Failure with one seed.
    #[error("seed {seed}")]
    Seed {
        /// Seed of the clusters.
        seed: u64,
        /// Failure with this seed.
        source: Box<FidelityError>,
    },
    /// A program cannot be simulated.
    #[error("{application} on {cluster}")]
    Simulation {
        /// Name of the program.
        application: String,
        /// Name of the cluster.
        cluster: &'static str,
        /// Failure of the simulation.
        source: SimulationError,
    },
    /// An experiment of global memory cannot be simulated.
    #[error("{experiment}, seed {seed}")]
    GlobalMemory {
        /// Name and size of the experiment.
        experiment: String,
        /// Seed of the simulation.
        seed: u64,
        /// Failure of the simulation.
        source: GmsError,
    },
    /// A thread ended early.
    #[error("{0} ended early")]
    Thread(&'static str),
    /// The table of published figures is damaged.
    #[error(transparent)]
    Published(#[from] PublishedError),
    /// A curve or an order of page references cannot be read.
    #[error(transparent)]
    References(#[from] ReferencesError),
    /// The times of a model cannot be read.
    #[error(transparent)]
    Technology(#[from] TechnologyError),
    /// A queueing model cannot be solved.
    #[error(transparent)]
    Queueing(#[from] QueueingError),
    /// A cluster cannot be made.
    #[error(transparent)]
    Synth(#[from] SynthError),
    /// A cluster's dataset cannot be read.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A cluster's dataset cannot be analysed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// A cluster's hosts cannot be read for a simulation.
    #[error(transparent)]
    Hosts(#[from] HostsError),
    /// The records cannot be written as JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}
