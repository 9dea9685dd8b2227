//! Probabilities that a region which is available now remains available: the forecasts, the table from which
//! they are computed, and their quality on days from which they had not learnt.
//!
//! The size of a region is in bytes (`region_bytes`) or a share of each host's physical memory
//! (`region_share`); in pooled records one of the two is absent. *Remains available* means throughout. A
//! region is lost when less memory is available, when the host sleeps or is switched off, when its agent
//! falls silent, and in scope `idle` when the owner returns or the load rises.

use super::Scope;
use super::finding::{Finding, HostFields, ReportUse, TablePlace, printed};
use serde::{Deserialize, Serialize};

/// Quality of the forecasts of one model, over days after all days from which the model had learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastQuality {
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Horizon of the forecasts.
    pub ahead_s: i64,
    /// Name of the model: `gleaner`, or a simple model to compare with: `climatology` (one number for all),
    /// `age` (by the time available so far), `host_rate` (one number per host), `bins` (by age, margin and
    /// lowest available memory of the last 24 hours).
    pub model: String,
    /// Mean square of (probability − outcome): 0 is perfect, lower is better.
    pub brier_score: f64,
    /// Murphy's reliability over the bins of `forecast_calibration`: mean square of (mean forecast of the bin
    /// − share that remained available). 0 if each probability equals the observed frequency; lower is
    /// better.
    pub reliability: f64,
    /// Murphy's resolution over the same bins: mean square of (share of the bin that remained available −
    /// share of all). Higher is better.
    pub resolution: f64,
    /// Variance of the outcomes, share of all · (1 − share of all). `brier_score` is about reliability −
    /// resolution + uncertainty; the variance of the forecasts within a bin makes the difference.
    pub uncertainty: f64,
    /// Slope of the logistic regression of the outcome on the forecast's log-odds: 1 is right; above 1,
    /// forecasts are too close together; below 1, too far apart. Absent where no slope is finite: outcomes or
    /// forecasts are all alike, or no forecast was on the wrong side.
    pub calibration_slope: Option<f64>,
    /// Number of instants with a forecast whose outcome is known.
    pub instants_count: i64,
    /// Number of days that were forecast, each from all records before that day.
    pub origins_count: i64,
    /// Number of hosts with such instants.
    pub hosts_count: i64,
}

impl Finding for ForecastQuality {
    const PRINTED: Option<TablePlace> = printed(180, "Quality of the forecasts");
    const IN_REPORT: ReportUse = ReportUse::Alone;
    const PLAIN_TEXT: &'static [&'static str] = &["model"];
}

/// Calibration of the forecasts: a forecast with a given probability should come true with that frequency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastCalibration {
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region; all regions together where this and `region_share` are absent.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory.
    pub region_share: Option<f64>,
    /// Horizon of the forecasts.
    pub ahead_s: i64,
    /// Lower bound of the bin of probabilities.
    pub bin_low: f64,
    /// Upper bound of the bin, exclusive (in the last bin: inclusive).
    pub bin_high: f64,
    /// Mean of the bin's forecasts.
    pub mean_forecast: f64,
    /// Share of the regions that remained available.
    pub observed_share: f64,
    /// Number of instants in the bin.
    pub instants_count: i64,
}

impl Finding for ForecastCalibration {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Cell of the forecast table: the fates of regions in one state, on all hosts.
///
/// For a state without a cell, a coarser cell is used: first one without `low_bin`, then one without
/// `margin_bin`, then one without `age_bin`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastCell {
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Bin of the time for which the region has been available, as numbered by `policy::forecast`; absent:
    /// any time.
    pub age_bin: Option<i64>,
    /// Bin of available memory divided by the region's size; absent: any bin.
    pub margin_bin: Option<i64>,
    /// Bin of the lowest available memory of the last 24 hours divided by the region's size; absent: any bin.
    pub low_bin: Option<i64>,
    /// Horizon of the probability.
    pub ahead_s: i64,
    /// Probability that the region remains available. Where instants are few, it is drawn towards the
    /// probability of the coarser cell.
    pub probability: f64,
    /// Instants from which the probability is computed.
    pub instants_count: i64,
}

impl Finding for ForecastCell {
    const IN_REPORT: ReportUse = ReportUse::LeftOut;
}

/// Probabilities that a region on one host is lost. A record is either for a time of the week, in any state,
/// or for a state, at any time.
///
/// For a state without a record on a host, the record of all hosts is used (`forecast_table`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastHabit {
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Id of the host.
    pub host_id: String,
    /// Number of a four-hour slice of the day, in the fleet's time zone: 0 to 5 on working days, 6 to 11 at
    /// the weekend. Absent: any time; this record is used for slices without a record.
    pub slot: Option<i64>,
    /// Bin of the time for which the region has been available, in records for a state; absent: any time. The
    /// three bins are those of `forecast_table`, and either all or none are present.
    pub age_bin: Option<i64>,
    /// Bin of available memory divided by the region's size; absent: any bin.
    pub margin_bin: Option<i64>,
    /// Bin of the lowest available memory of the last 24 hours divided by the region's size; absent: any bin.
    pub low_bin: Option<i64>,
    /// Instants, with a horizon of ten minutes, from which the probabilities are computed.
    pub instants_count: i64,
    /// Probability that the region is lost within 10 minutes; absent where no instant could be followed that
    /// long.
    pub lost_in_10_min: Option<f64>,
    /// Probability of loss within 30 minutes.
    pub lost_in_30_min: Option<f64>,
    /// Probability of loss within an hour.
    pub lost_in_1_h: Option<f64>,
    /// Probability of loss within two hours.
    pub lost_in_2_h: Option<f64>,
    /// Probability of loss within four hours.
    pub lost_in_4_h: Option<f64>,
    /// Probability of loss within six hours.
    pub lost_in_6_h: Option<f64>,
    /// Probability of loss within eight hours.
    pub lost_in_8_h: Option<f64>,
    /// Probability of loss within twelve hours.
    pub lost_in_12_h: Option<f64>,
    /// Probability of loss within a day.
    pub lost_in_24_h: Option<f64>,
}

impl Finding for ForecastHabit {
    const IN_REPORT: ReportUse = ReportUse::LeftOut;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}

impl ForecastHabit {
    /// Returns the probabilities in the order of `policy::forecast::AHEAD_S`.
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

    /// Returns the record with these probabilities, in the order of [`Self::lost`].
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

/// Weight of habits in a forecast, and spread of the forecasts. A forecast is a weighted mean of two shares
/// of lost regions on the host: the share at that time of the week (the habit), and the share in the region's
/// state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastWeight {
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region; absent where it is a share.
    pub region_bytes: Option<i64>,
    /// Size of the region as a share of physical memory; absent where it is in bytes.
    pub region_share: Option<f64>,
    /// Horizon of the forecasts.
    pub ahead_s: i64,
    /// Weight of the habit, from 0 to 1: the one that would have made past forecasts best. The state's share
    /// has the rest.
    pub habit_weight: f64,
    /// Probability that a region is lost, over all states and hosts: the centre of the spread. Absent where
    /// it is 0 or 1.
    pub spread_about: Option<f64>,
    /// Factor, from 0.5 to 2, by which the difference between a forecast's log-odds and those of
    /// `spread_about` is multiplied: the one that would have made past forecasts best. Absent with
    /// `spread_about`: forecasts are then not spread.
    pub spread: Option<f64>,
}

impl Finding for ForecastWeight {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

/// Size of the forecast table: `forecast_table`, `forecast_habits` and `forecast_weights` together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct ForecastTableSize {
    /// Version of the table's bins and of the meaning of its figures.
    pub table_version: i64,
    /// Number of cells in `forecast_table`.
    pub cells_count: i64,
    /// Number of records in `forecast_habits`.
    pub habits_count: i64,
    /// Size as JSON, keys included.
    pub json_bytes: i64,
    /// Size as plain numbers: four bytes per probability.
    pub figures_bytes: i64,
}

impl Finding for ForecastTableSize {
    const IN_REPORT: ReportUse = ReportUse::Alone;
}

impl ForecastTableSize {
    /// Returns the size of a forecast table.
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

/// Size of a list as JSON, in bytes.
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
    // Neither counting bytes nor serialising flat records can fail.
    let _ = serde_json::to_writer(&mut count, list);
    count.0
}

/// Probability that a region on one host remains available, starting at the host's last sample. A region that
/// is not available at that sample has no forecast. Hosts observed for less than a day have none either.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct Forecast {
    /// Id of the host.
    pub host_id: String,
    /// Time of the host's last sample.
    pub time_ms: i64,
    /// Scope of the figures: the whole time or only idle periods.
    pub scope: Scope,
    /// Size of the region.
    pub region_bytes: i64,
    /// The requested share of the host's physical memory; absent where bytes were requested.
    pub region_share: Option<f64>,
    /// Horizon of the forecast.
    pub ahead_s: i64,
    /// Probability that the region remains available throughout.
    pub probability: f64,
}

impl Finding for Forecast {
    const IN_REPORT: ReportUse = ReportUse::Alone;

    fn host_fields(&mut self) -> HostFields<'_> {
        HostFields::id(&mut self.host_id)
    }
}
