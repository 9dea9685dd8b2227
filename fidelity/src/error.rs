//! Reasons why there are no figures to print.

use gleaner_analysis::AnalysisError;
use gleaner_dataset::DatasetError;
use gleaner_simulator::dodo::SimulationError;
use gleaner_simulator::gms::GmsError;
use gleaner_simulator::hosts::HostsError;
use gleaner_simulator::queueing::QueueingError;
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
