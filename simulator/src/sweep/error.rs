//! Errors on the way from a scenario's file to its rows.

use crate::dodo::SimulationError;
use crate::hosts::HostsError;
use crate::streams::StreamError;

/// Reason why a scenario gives no result rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The file is not a scenario.
    #[error("{}", reason.trim_end())]
    File {
        /// Position in the file, and the fault; unknown keys are named.
        reason: String,
    },
    /// A value that is invalid for its key, or an unknown key.
    #[error("{key} = {value} is no setting of a scenario: {reason}")]
    Value {
        /// Key as written.
        key: String,
        /// Value as written.
        value: String,
        /// Description of the fault.
        reason: String,
    },
    /// An abbreviated key that fits several settings.
    #[error("{key} may be any of {}: write one of them", keys.join(", "))]
    Ambiguous {
        /// Key as written.
        key: String,
        /// Keys that it may stand for.
        keys: Vec<String>,
    },
    /// A setting that must be set by another key of the file.
    #[error("{key} is not set as a part of the scenario: {instead} says it")]
    Elsewhere {
        /// Key as written.
        key: String,
        /// Key to be set instead.
        instead: &'static str,
    },
    /// A file with both programs, which run one at a time, and clients, which run concurrently.
    #[error("the scenario has both `programs` and `clients`: write one of them")]
    ProgramsAndClients,
    /// A setting for programs in a scenario of recorded clients.
    #[error(
        "{key} says nothing of `clients`, which compute as they were recorded and run once: leave it out"
    )]
    NotOfClients {
        /// Name of the setting.
        key: String,
    },
    /// A table of `[[clients]]` with invalid contents.
    #[error("clients.{key} = {value}: {reason}")]
    Client {
        /// Key of the client's table.
        key: &'static str,
        /// Value as written.
        value: String,
        /// Description of the fault, and the remedy.
        reason: String,
    },
    /// A stream that cannot be read, with place and reason.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// A swept key without a value.
    #[error("{key} is swept over no value: write {wanted}")]
    NoValues {
        /// Key as written.
        key: String,
        /// Form of valid values.
        wanted: &'static str,
    },
    /// The scenario has nothing to run.
    #[error("the scenario names no {what}: {wanted}")]
    Nothing {
        /// Name of the missing thing.
        what: &'static str,
        /// Remedy for the reader of the message.
        wanted: &'static str,
    },
    /// The dataset does not cover the requested time.
    #[error(
        "dataset {name} has samples from {first} to {last}, and not all of {days} days from {from}: choose another begin or fewer days"
    )]
    Span {
        /// The dataset's name.
        name: String,
        /// First day of the dataset.
        first: String,
        /// Last day of the dataset.
        last: String,
        /// The begin as written.
        from: String,
        /// Number of days.
        days: f64,
    },
    /// A case needs a forecast that was not learnt.
    #[error(
        "dataset {name}: nothing was learnt for recruitment.expected_for_s; learn what Plan::forecasts names, and give it to Cluster::learnt"
    )]
    NotLearnt {
        /// The dataset's name.
        name: String,
    },
    /// A dataset's hosts cannot be read.
    #[error("dataset {name}")]
    Hosts {
        /// The dataset's name.
        name: String,
        /// Error of reading the hosts.
        source: HostsError,
    },
    /// A dataset cannot be opened.
    #[error("dataset {name}")]
    Dataset {
        /// The dataset's name.
        name: String,
        /// Error of the dataset's reader.
        source: gleaner_dataset::DatasetError,
    },
    /// A setting that is invalid in any simulation.
    #[error(transparent)]
    Setting(#[from] SimulationError),
    /// A part of a sweep that cannot be used.
    #[error("{origin}: {source}")]
    Part {
        /// File or other origin of the part.
        origin: String,
        /// Reason in words.
        source: SweepPartError,
    },
    /// A simulation that failed.
    #[error("{case}")]
    Simulation {
        /// The case: program, dataset, settings, seed.
        case: String,
        /// Error of the simulation.
        source: SimulationError,
    },
}

/// Reason for which a part of a sweep cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SweepPartError {
    /// The bytes are not a part.
    #[error(
        "this is no part of a sweep: give files that `gleaner simulate --part` or `gleaner merge -o` wrote"
    )]
    NotAPart,
    /// Another version of Gleaner wrote the part.
    #[error(
        "the part has version {found}, and this program reads version {known}: simulate it again"
    )]
    Version {
        /// Version of the part.
        found: String,
        /// Version that this program reads.
        known: &'static str,
    },
    /// The part's content was altered or cut off.
    #[error("the part is damaged: copy it again, or simulate it again")]
    Damaged,
    /// The part could not be converted to JSON, or from it.
    #[error("the part's JSON is wrong: {0}")]
    Json(#[from] serde_json::Error),
    /// The part belongs to another sweep.
    #[error(
        "the part belongs to another sweep than the parts before it: {difference}. Parts must have been made of \
         the same scenario, with the same options and of the same datasets"
    )]
    OtherSweep {
        /// First difference, in words.
        difference: String,
    },
    /// Two parts have different results of the same run.
    #[error(
        "the part has other results of {run} than the parts before it: make all parts with the same version of \
         Gleaner"
    )]
    OtherResults {
        /// The run: program, dataset, settings, seed.
        run: String,
    },
    /// Runs are missing.
    #[error(
        "{missing_count} of {runs_count} runs are in no part: simulate them with {} and merge again",
        .parts.join(", ")
    )]
    Incomplete {
        /// Number of missing runs.
        missing_count: usize,
        /// Number of runs in the sweep.
        runs_count: usize,
        /// Options that name the missing parts, such as `--part 2/7`.
        parts: Vec<String>,
    },
}
