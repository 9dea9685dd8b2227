//! Output of `gleaner curve`: what a program's memory references would cost with less memory, as JSON documents.

use serde::{Deserialize, Serialize};

/// Version of the form of these documents. Fields may be added at any time; the version rises if a field is removed,
/// renamed or given another meaning.
pub const CURVE_VERSION: u32 = 1;

/// Curve of a program: faults and write-backs by memory size, working sets, and first touches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = CURVE_VERSION)))]
    pub curve_version: u32,
    /// Version of the `gleaner` that recorded.
    pub gleaner_version: String,
    /// Name of the program, without folders and arguments.
    pub program: String,
    /// CPU time of the program without recording, in seconds.
    pub native_cpu_s: f64,
    /// Duration of the program without recording, in seconds. Predictions are multiples of it.
    pub native_wall_s: f64,
    /// Largest resident memory without recording; absent where the program did not run so.
    pub peak_bytes: Option<u64>,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Number of distinct pages that were referenced.
    pub footprint_pages: u64,
    /// Instructions that were executed; absent for imported streams.
    pub instructions_count: Option<u64>,
    /// Loads and stores; for imported streams, requests.
    pub references_count: u64,
    /// Size of the cache whose misses were recorded instead of all references; absent for references.
    pub misses_of_bytes: Option<u64>,
    /// Faults by memory size, in steps of a hundredth at most, up to the footprint.
    pub faults: Vec<FaultPoint>,
    /// Working sets in windows of 10 ms and 1 s of CPU time, and since the begin.
    pub windows: Vec<WorkingSet>,
    /// References by the order in which pages were touched first.
    pub first_touch: Vec<FirstTouch>,
    /// Recorder of the references.
    pub recorder: Recorder,
    /// Share of the pages from which the faults were estimated; 1 where they were counted exactly.
    pub sampled_share: f64,
    /// Reason why the recording lacks a part of the program; absent where it is whole.
    pub cut: Option<String>,
}

/// Faults of a memory that keeps the pages used last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct FaultPoint {
    /// Size of the memory, in pages.
    pub memory_pages: u64,
    /// References to pages that were in memory before and have left it.
    pub reuse_count: u64,
    /// Written pages that left the memory.
    pub write_backs_count: u64,
}

/// Distinct pages that the program referenced in a window of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WorkingSet {
    /// Length of the window, in CPU time; absent for the time since the begin.
    pub window_ms: Option<u64>,
    /// Begin of the window, in CPU time since the program's begin.
    pub time_ms: f64,
    /// Number of pages. If a point stands for several windows, that of the largest.
    pub pages: u64,
}

/// References to the pages that were touched first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct FirstTouch {
    /// Number of pages, in the order of their first touches.
    pub pages: u64,
    /// References to these pages during the whole run.
    pub references_count: u64,
}

/// Recorder of a program's references.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Recorder {
    /// Name of the recorder: `qemu`, or the format of an imported stream.
    pub name: String,
    /// Processes that were recorded: the program, and those that it forked.
    pub processes_count: u64,
    /// Threads that were recorded. The 32 pages that each of them used last always count as in memory.
    pub threads_count: u64,
    /// True if the pages of instructions count, too.
    pub has_code: bool,
}

/// Predictions of a program's duration with less local memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Predictions {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = CURVE_VERSION)))]
    pub curve_version: u32,
    /// Version of the `gleaner` that predicted.
    pub gleaner_version: String,
    /// Name of the program.
    pub program: String,
    /// Copies of the program that run at the same time and share the link, each on a CPU of its own.
    pub processes_count: u32,
    /// Every prediction: first by local memory, then by technology.
    pub predictions: Vec<Prediction>,
}

/// Predicted duration with one technology and one size of local memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// Name of the technology.
    pub technology: String,
    /// Origin of the technology's figures.
    pub evidence: Evidence,
    /// Local memory of each process.
    pub local_bytes: u64,
    /// Pages (or cache lines) that are fetched from remote memory.
    pub faults_count: u64,
    /// Pages that are written to remote memory.
    pub page_outs_count: u64,
    /// Predicted duration, as a multiple of the duration with local memory alone.
    pub slowdown: f64,
    /// Part of `slowdown` that is due to page-outs.
    pub page_outs_slowdown: f64,
    /// Lower end of the band: exact LRU, and the technology's best figures.
    pub low: f64,
    /// Upper end of the band: 85 % of the memory, and the technology's worst figures.
    pub high: f64,
    /// Largest part of the predicted duration.
    pub bound_by: BoundBy,
    /// The prediction as a sentence.
    pub sentence: String,
}

/// Measured runs of a program with less local memory, beside the predictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Measurements {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = CURVE_VERSION)))]
    pub curve_version: u32,
    /// Version of the `gleaner` that measured.
    pub gleaner_version: String,
    /// Name of the program, without folders and arguments.
    pub program: String,
    /// Memory beyond the local one: `swap` or `zram`.
    pub by: String,
    /// Run without a limit.
    pub native: NativeRun,
    /// Measurements in the order of the sizes of local memory on the command line.
    pub measurements: Vec<LimitedMeasurement>,
}

/// Figures of a program's run without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct NativeRun {
    /// Time from the program's start to its end.
    pub wall_s: f64,
    /// CPU time of the program and of the children that it waited for.
    pub cpu_s: f64,
    /// Largest resident memory of one of these processes.
    pub peak_bytes: u64,
    /// Page faults that waited for a device.
    pub major_faults_count: u64,
}

/// Runs of a program with one size of local memory. Each figure is the median of the runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct LimitedMeasurement {
    /// Local memory of the program.
    pub local_bytes: u64,
    /// Number of runs that ended by themselves.
    pub runs_count: u64,
    /// Number of runs that the kernel killed for lack of memory; each was repeated.
    pub killed_runs_count: u64,
    /// Page faults that waited for a device.
    pub major_faults_count: Option<u64>,
    /// Pages that the whole host read from swap.
    pub page_ins_count: Option<u64>,
    /// Pages that the whole host wrote to swap.
    pub page_outs_count: Option<u64>,
    /// Time from the program's start to its end.
    pub wall_s: f64,
    /// CPU time of the program and of the children that it waited for.
    pub cpu_s: Option<f64>,
    /// `wall_s` as a multiple of that of the native run.
    pub slowdown: f64,
    /// Faults that the curve predicts; absent without a curve.
    pub predicted_faults: Option<FaultBand>,
    /// True if `major_faults_count` is within `predicted_faults`.
    pub are_faults_inside: Option<bool>,
    /// Prediction with the given technology; absent without one.
    pub prediction: Option<Prediction>,
    /// True if `slowdown` is within the prediction's band.
    pub is_slowdown_inside: Option<bool>,
    /// The measurement as a sentence.
    pub sentence: String,
}

/// Faults that a curve predicts for one size of local memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct FaultBand {
    /// Reuse faults with all of the memory, and exact LRU.
    pub low_count: u64,
    /// Reuse faults with 85 % of the memory, and exact LRU.
    pub high_count: u64,
}

impl FaultBand {
    /// Returns true if this number of faults is within the band, both ends included.
    #[must_use]
    pub fn contains(self, count: u64) -> bool {
        (self.low_count..=self.high_count).contains(&count)
    }
}

/// Use of a process's memory in a window of time, as `gleaner curve watch --json` prints it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct WatchedWindow {
    /// End of the window, since the command's begin.
    pub time_s: f64,
    /// Length of the window.
    pub window_s: f64,
    /// Resident memory that the process used in the window.
    pub referenced_bytes: u64,
    /// Resident memory at the window's end.
    pub resident_bytes: u64,
    /// Swapped-out memory at the window's end.
    pub swap_bytes: u64,
}

/// Origin of a technology's figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// Printed in a paper.
    Paper,
    /// Measured; the technology's file names the host.
    Measured,
    /// Assumed from published figures.
    Assumed,
}

/// Part of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BoundBy {
    /// Delays of fetched pages, without the link.
    Latency,
    /// Transmission on the link, and queueing for it.
    Link,
    /// The program's own duration.
    Cpu,
}
