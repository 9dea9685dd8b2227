//! Probabilities that a region which is available now stays so: the forecasts, the table that they come from, and
//! their quality on days that they had not seen.
//!
//! A region is of a size in bytes (`region_bytes`), or a share of each host's physical memory (`region_share`); in
//! pooled records one of the two is absent. *Stays* means throughout: it is lost when less memory is
//! available, when the host sleeps, is switched off, or its agent falls silent, and in idle time when the owner returns
//! or the load rises.

use super::Scope;
use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// Quality of the forecasts of one model, over days that lay ahead of all that it had learnt from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastQuality {
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Time ahead.
    pub ahead_s: i64,
    /// `gleaner`, or what it has to beat: `climatology` (one number), `age` (how long available so far), `host_rate` (one
    /// number a host), `bins` (age, margin, lowest of the last 24 hours).
    pub model: String,
    /// Mean square of (probability − what happened): 0 is perfect, lower is better.
    pub brier_score: f64,
    /// Murphy's reliability over the bins of `forecast_calibration`: mean square of (mean forecast of the bin − share that
    /// stayed). 0 where whatever is forecast comes true as often; lower is better.
    pub reliability: f64,
    /// Murphy's resolution over the same bins: mean square of (share of the bin that stayed − share of all). Higher is better.
    pub resolution: f64,
    /// Variance of what happened, share of all · (1 − share of all). The score is about reliability − resolution + uncertainty;
    /// the remainder is what forecasts vary within a bin.
    pub uncertainty: f64,
    /// Slope of the logistic regression of the outcome on the forecast's log-odds: 1 is right, above 1 forecasts are too close
    /// together, below 1 too far apart. Absent where there is no finite one: outcomes or forecasts are all alike, or no forecast
    /// was on the wrong side.
    pub calibration_slope: Option<f64>,
    /// Instants that were forecast, and whose fate is known.
    pub instants: i64,
    /// Days forecast, each from all that was known before it.
    pub origins: i64,
    /// Hosts with such instants.
    pub hosts_count: i64,
}

impl Finding for ForecastQuality {
    const PRINTED: Option<TablePlace> = printed(180, "How good forecasts are");
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const PLAIN_TEXT: &'static [&'static str] = &["model"];
}

/// Calibration of the forecasts: a forecast with some probability should come true with that frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastCalibration {
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region; all regions together where this and `region_share` are absent.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory.
    pub region_share: Option<f64>,
    /// Time ahead.
    pub ahead_s: i64,
    /// Forecasts from this probability
    pub bin_low: f64,
    /// to below this (the last bin: to this).
    pub bin_high: f64,
    /// Mean of the forecasts.
    pub mean_forecast: f64,
    /// Share of the regions that stayed available.
    pub observed_share: f64,
    /// Instants in the bin.
    pub instants: i64,
}

impl Finding for ForecastCalibration {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// One cell of the forecast table: the fates of regions in one state, on all hosts.
///
/// A state that is not in the table is that of its coarser cell: without `low_bin`, then without `margin_bin`, then
/// without `age_bin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastCell {
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Time that it has been available: number of the bin of `policy::forecast`; absent: any.
    pub age_bin: Option<i64>,
    /// Available memory over the region's size; absent: any.
    pub margin_bin: Option<i64>,
    /// Lowest available memory of the last 24 hours over the region's size; absent: any.
    pub low_bin: Option<i64>,
    /// Time ahead.
    pub ahead_s: i64,
    /// Probability that it stays available, drawn towards the coarser cell where instants are few.
    pub probability: f64,
    /// Instants that it rests on.
    pub instants: i64,
}

impl Finding for ForecastCell {
    const IN_REPORT: ReportUse = ReportUse::LeftOut;
}

/// Fate of regions on one host, at a time of the week in any state, or in one state at any time: probabilities that a region
/// is lost.
///
/// A state that has no record on a host is that of all hosts (`forecast_table`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastHabit {
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Host id.
    pub host: String,
    /// Number of the four hours of a working day (0 to 5) or a day of the weekend (6 to 11), in the fleet's time zone;
    /// absent: any time, which holds for times that have no record.
    pub slot: Option<i64>,
    /// Bin of the time for which the region has been available, for records of a state; absent: any. The three bins are those of
    /// `forecast_table`, and stand or are absent together.
    pub age_bin: Option<i64>,
    /// Available memory over the region's size; absent: any.
    pub margin_bin: Option<i64>,
    /// Lowest available memory of the last 24 hours over the region's size; absent: any.
    pub low_bin: Option<i64>,
    /// Instants ten minutes ahead that it rests on.
    pub instants: i64,
    /// Probability to lose the region within 10 minutes; absent where nothing could be followed that long.
    pub lost_in_10_min: Option<f64>,
    /// Within 30 minutes.
    pub lost_in_30_min: Option<f64>,
    /// Within an hour.
    pub lost_in_1_h: Option<f64>,
    /// Within two hours.
    pub lost_in_2_h: Option<f64>,
    /// Within four hours.
    pub lost_in_4_h: Option<f64>,
    /// Within six hours.
    pub lost_in_6_h: Option<f64>,
    /// Within eight hours.
    pub lost_in_8_h: Option<f64>,
    /// Within twelve hours.
    pub lost_in_12_h: Option<f64>,
    /// Within a day.
    pub lost_in_24_h: Option<f64>,
}

impl Finding for ForecastHabit {
    const IN_REPORT: ReportUse = ReportUse::LeftOut;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}

impl ForecastHabit {
    /// The probabilities, in the order of `policy::forecast::AHEAD_S`.
    #[must_use]
    pub const fn lost(&self) -> [Option<f64>; 9] {
        [
            self.lost_in_10_min,
            self.lost_in_30_min,
            self.lost_in_1_h,
            self.lost_in_2_h,
            self.lost_in_4_h,
            self.lost_in_6_h,
            self.lost_in_8_h,
            self.lost_in_12_h,
            self.lost_in_24_h,
        ]
    }

    /// With these probabilities, in that order.
    #[must_use]
    pub fn with_lost(self, lost: [Option<f64>; 9]) -> Self {
        Self {
            lost_in_10_min: lost[0],
            lost_in_30_min: lost[1],
            lost_in_1_h: lost[2],
            lost_in_2_h: lost[3],
            lost_in_4_h: lost[4],
            lost_in_6_h: lost[5],
            lost_in_8_h: lost[6],
            lost_in_12_h: lost[7],
            lost_in_24_h: lost[8],
            ..self
        }
    }
}

/// Weight of the host's habit in a forecast (the rest is the state's share on that host), and spread of forecasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastWeight {
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Time ahead.
    pub ahead_s: i64,
    /// From 0 to 1: what would have served past forecasts best.
    pub habit_weight: f64,
    /// Probability to lose the region in any state on any host: forecasts are spread from it. Absent where it is 0 or 1.
    pub spread_about: Option<f64>,
    /// From 0.5 to 2: a forecast's log-odds, less those of `spread_about`, are multiplied by it; what would have served past
    /// forecasts best. Absent with `spread_about`: forecasts stay as they are.
    pub spread: Option<f64>,
}

impl Finding for ForecastWeight {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Size of the forecast table: `forecast_table`, `forecast_habits` and `forecast_weights` together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastTableSize {
    /// Version of the table's bins and of what its figures mean.
    pub table_version: i64,
    /// Cells.
    pub cells_count: i64,
    /// Records of habits.
    pub habits_count: i64,
    /// Size as JSON, keys included.
    pub json_bytes: i64,
    /// Size as figures alone: four bytes a probability.
    pub figures_bytes: i64,
}

impl Finding for ForecastTableSize {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

impl ForecastTableSize {
    /// Size of a table.
    #[must_use]
    pub fn of(
        table_version: i64,
        cells: &[ForecastCell],
        habits: &[ForecastHabit],
        weights: &[ForecastWeight],
    ) -> Self {
        let lost = habits.iter().flat_map(ForecastHabit::lost).flatten();
        let figures_count = cells.len() + lost.count() + weights.len();
        Self {
            table_version,
            cells_count: cells.len() as i64,
            habits_count: habits.len() as i64,
            json_bytes: json_bytes(cells) + json_bytes(habits) + json_bytes(weights),
            figures_bytes: 4 * figures_count as i64,
        }
    }
}

/// Bytes that a list takes as JSON.
fn json_bytes(list: &[impl Serialize]) -> i64 {
    struct Count(i64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as i64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting does not fail, nor do lists of flat records.
    let _ = serde_json::to_writer(&mut count, list);
    count.0
}

/// Probability that a region on one host stays available, from the host's last sample on. Regions that
/// are not available then have none; nor has a host that was watched for less than a day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Forecast {
    /// Host id.
    pub host: String,
    /// The sample.
    pub time_ms: i64,
    /// Time that counts.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// The share of the host's physical memory that was asked for; absent where bytes were.
    pub region_share: Option<f64>,
    /// Time ahead.
    pub ahead_s: i64,
    /// Probability that it stays available throughout.
    pub probability: f64,
}

impl Finding for Forecast {
    const IN_REPORT: ReportUse = ReportUse::Alone;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host)
    }
}
