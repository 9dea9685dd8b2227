//! Memory and owner of hosts at their last sample, in compact form, as there may be ten thousand hosts.

use arrow::array::{Array, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{Float64Type, Int64Type, TimestampMillisecondType};
use arrow::record_batch::RecordBatch;
use gleaner_hosts::derived::Figures;
use gleaner_policy::guest_load::owner_load5;
use gleaner_policy::idle::{IdleRule, IdleState, Observation, Verdict};
use gleaner_policy::quota::{Limits, quota};
use gleaner_schemas::live::HostState;
use serde::{Deserialize, Serialize};

/// Largest memory size that is accepted. Larger sizes are reduced to it, so that sums over hosts stay exact.
const LARGEST_BYTES: u64 = 1 << 50;

/// Memory and owner of a host at its last sample. Implausible figures are corrected: sizes below 0 are absent, and no
/// part is larger than the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Id of the database that contains the sample's record.
    pub database_id: String,
    /// Sequence number of the sample's record in this database.
    pub sequence: i64,
    /// Time of the sample by the host's clock, ms since 1970-01-01 UTC.
    pub time_ms: i64,
    /// Arrival of the sample by the collector's clock, ms since 1970-01-01 UTC.
    pub received_time_ms: i64,
    /// Time of the sample since the host's boot.
    pub boottime_ms: Option<i64>,
    /// Time since the previous sample; `None` after a gap.
    pub interval_ms: Option<i64>,
    /// Physical memory and its categories, without the category correction.
    #[serde(flatten)]
    pub figures: Figures,
    /// Memory that could be lent without paging out the owner's pages.
    pub harvestable_bytes: Option<u64>,
    /// MemAvailable, from which the quota is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mem_available_bytes: Option<u64>,
    /// Quota by `policy::quota`, without the owner's limits.
    pub quota_bytes: Option<u64>,
    /// Quota that the host will have once it is idle.
    pub idle_quota_bytes: Option<u64>,
    /// Idle verdict of `policy::idle`; its times are on the host's clock.
    #[serde(flatten)]
    pub state: HostState,
    /// Time since the owner was last active.
    pub owner_idle_ms: Option<i64>,
    /// The owner's part of the 5-minute load average.
    pub load5: Option<f64>,
    /// Share of the time since the previous sample in which a task waited for memory.
    pub memory_pressure_share: Option<f64>,
    /// Time since boot in which a task waited for memory.
    pub psi_memory_some_total_us: Option<i64>,
}

impl Memory {
    /// Reads the batch's table `samples` in order; leaves out samples without physical memory.
    pub(super) fn of_samples(rows: &RecordBatch) -> Vec<Self> {
        (0..rows.num_rows())
            .filter_map(|row| Self::of_row(rows, row))
            .collect()
    }

    fn of_row(rows: &RecordBatch, row: usize) -> Option<Self> {
        let number = |name: &str| value::<Int64Type>(rows, name, row);
        let size = |name: &str| u64::try_from(number(name)?).ok();
        let physical_bytes = size("physical_bytes").filter(|b| *b > 0)?;
        let physical_bytes = physical_bytes.min(LARGEST_BYTES);
        let part = |name: &str| size(name).map(|bytes| bytes.min(physical_bytes));
        let load = |name: &str| {
            let load = value::<Float64Type>(rows, name, row);
            load.filter(|load| load.is_finite() && *load >= 0.0)
        };
        Some(Self {
            sequence: number("sequence")?,
            time_ms: value::<TimestampMillisecondType>(rows, "time", row)?,
            boottime_ms: number("boottime_ms").filter(|ms| *ms >= 0),
            interval_ms: number("interval_ms").filter(|ms| *ms > 0),
            figures: Figures::of(physical_bytes, |category| part(category.column()), None),
            harvestable_bytes: part("harvestable_bytes"),
            mem_available_bytes: part("mem_available_bytes"),
            owner_idle_ms: number("owner_idle_ms").map(|ms| ms.max(0)),
            load5: owner_load5(load("load5"), load("guest_load5")),
            psi_memory_some_total_us: number("psi_memory_some_total_us").filter(|us| *us >= 0),
            ..Self::default()
        })
    }

    /// Returns true if the sample was recorded after `known`, and false for a repeated sample. Samples are
    /// repeated after a lost acknowledgement.
    pub(super) fn is_after(&self, known: &Self) -> bool {
        if self.database_id == known.database_id {
            self.sequence > known.sequence
        } else {
            self.received_time_ms > known.received_time_ms
        }
    }

    /// Computes the figures that need both this sample and the previous one.
    pub(super) fn learn(&mut self, before: Option<&Self>, headroom_share: Option<f64>) {
        let before = before.filter(|before| self.follows(before));
        let rule = IdleRule::default();
        let verdict = before.map_or(Verdict::Unknown, Self::verdict);
        let seen = Observation {
            time_ms: self.boottime_ms.unwrap_or(self.time_ms),
            owner_idle_ms: self.owner_idle_ms,
            load5: self.load5,
        };
        let verdict = IdleState::after(&rule, verdict).step(&rule, seen);
        self.state = self.to_wall_clock(verdict);
        self.lends(verdict, headroom_share);
        self.memory_pressure_share = before.and_then(|before| {
            let waited_us = self
                .psi_memory_some_total_us?
                .checked_sub(before.psi_memory_some_total_us?)?;
            let share = waited_us as f64 / (self.interval_ms? as f64 * 1000.0);
            (0.0..=1.0).contains(&share).then_some(share)
        });
    }

    /// Returns true if `before` directly precedes this sample, without a gap.
    fn follows(&self, before: &Self) -> bool {
        let expected = self.boottime_ms.zip(self.interval_ms);
        let expected = expected.map(|(boottime, interval)| boottime.saturating_sub(interval));
        expected.is_some() && expected == before.boottime_ms
    }

    fn lends(&mut self, verdict: Verdict, headroom_share: Option<f64>) {
        if self.figures.available_bytes.is_none() {
            return;
        }
        let mut limits = Limits::default();
        let share = headroom_share.filter(|share| (0.0..=1.0).contains(share));
        limits.headroom_share = share.unwrap_or(limits.headroom_share);
        let found = quota(
            &self.figures.known(),
            self.mem_available_bytes,
            verdict,
            &limits,
        );
        self.quota_bytes = Some(found.quota_bytes);
        self.idle_quota_bytes = self.mem_available_bytes.map(|_| found.idle_quota_bytes);
    }

    /// Converts a verdict's times to the wall clock. The verdict's times are on the boot clock if the host
    /// has one, since nobody can set that clock.
    fn to_wall_clock(&self, verdict: Verdict) -> HostState {
        let wall = |ms: i64| ms.saturating_add(self.wall_less_boottime_ms());
        match verdict {
            Verdict::Idle { since_ms } => HostState::Idle {
                since_time_ms: wall(since_ms),
            },
            Verdict::Waiting { at_ms } => HostState::InUse {
                idle_at_time_ms: wall(at_ms),
            },
            Verdict::Loaded => HostState::Loaded,
            Verdict::Unknown => HostState::Unknown,
        }
    }

    /// Converts the stored state to a verdict; the inverse of `to_wall_clock`.
    fn verdict(&self) -> Verdict {
        let boottime = |ms: i64| ms.saturating_sub(self.wall_less_boottime_ms());
        match self.state {
            HostState::Idle { since_time_ms } => Verdict::Idle {
                since_ms: boottime(since_time_ms),
            },
            HostState::InUse { idle_at_time_ms } => Verdict::Waiting {
                at_ms: boottime(idle_at_time_ms),
            },
            HostState::Loaded => Verdict::Loaded,
            HostState::Unknown => Verdict::Unknown,
        }
    }

    fn wall_less_boottime_ms(&self) -> i64 {
        let boottime_ms = self.boottime_ms.unwrap_or(self.time_ms);
        self.time_ms.saturating_sub(boottime_ms)
    }
}

fn value<T: ArrowPrimitiveType>(rows: &RecordBatch, name: &str, row: usize) -> Option<T::Native> {
    let column = rows.column_by_name(name)?.as_primitive_opt::<T>()?;
    column.is_valid(row).then(|| column.value(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_dataset::{Identity, RowsBuilder};
    use gleaner_schemas::column::Row;
    use gleaner_schemas::rows::SampleRow;

    const MINUTE: i64 = 60_000;
    const BOOT_MS: i64 = 1_795_000_000_000;

    /// Samples of a quiet host at these minutes since boot, each directly after the one before.
    fn quiet(minutes: &[i64]) -> Vec<Memory> {
        let row = |i: usize| SampleRow {
            boottime_ms: Some(minutes[i] * MINUTE),
            interval_ms: (i > 0).then(|| (minutes[i] - minutes[i - 1]) * MINUTE),
            physical_bytes: 1000,
            available_bytes: 600,
            harvestable_bytes: Some(400),
            mem_available_bytes: Some(550),
            owner_idle_ms: Some(minutes[i] * MINUTE),
            load5: Some(2.25), // its memory server is busy
            guest_load5: Some(2.0),
            psi_memory_some_total_us: Some(minutes[i] * 6_000_000),
            ..SampleRow::default()
        };
        Memory::of_samples(&table((0..minutes.len()).map(row)))
    }

    fn table(rows: impl Iterator<Item = SampleRow>) -> RecordBatch {
        let mut builder = RowsBuilder::new(&SampleRow::TABLE);
        for (i, row) in rows.enumerate() {
            let identity = Identity {
                host_id: "0123456789abcdef0123456789abcdef",
                database_id: "0123456789abcdef0123456789abcdef",
                sequence: i as i64 + 1,
                time_ms: BOOT_MS + row.boottime_ms.unwrap(),
            };
            builder.push(identity, row.to_values()).unwrap();
        }
        builder.finish().unwrap()
    }

    fn learned(samples: Vec<Memory>) -> Memory {
        let mut last: Option<Memory> = None;
        for mut sample in samples {
            sample.learn(last.as_ref(), None);
            last = Some(sample);
        }
        last.unwrap()
    }

    /// Collectors of other versions wrote these names, and tools that read the status expect them.
    #[test]
    fn kept_and_told_under_the_names_of_the_columns() {
        let row = SampleRow {
            boottime_ms: Some(4),
            interval_ms: Some(5),
            physical_bytes: 100,
            static_kernel_bytes: Some(6),
            balloon_bytes: 7,
            dynamic_kernel_bytes: 8,
            reserve_bytes: Some(9),
            process_bytes: 10,
            file_cache_bytes: 11,
            guest_bytes: 12,
            available_bytes: 37,
            category_correction_bytes: -1,
            harvestable_bytes: Some(14),
            mem_available_bytes: Some(15),
            owner_idle_ms: Some(19),
            load5: Some(0.5),
            psi_memory_some_total_us: Some(20),
            ..SampleRow::default()
        };
        let mut memory = Memory::of_samples(&table(std::iter::once(row))).remove(0);
        (memory.database_id, memory.received_time_ms) = ("d".to_owned(), 3);
        (memory.quota_bytes, memory.idle_quota_bytes) = (Some(16), Some(17));
        memory.state = HostState::Idle { since_time_ms: 18 };
        memory.memory_pressure_share = Some(0.25);
        let text = serde_json::to_string(&memory).unwrap();
        let expected = "{\"database_id\":\"d\",\"sequence\":1,\"time_ms\":1795000000004,\"received_time_ms\":3,\
            \"boottime_ms\":4,\"interval_ms\":5,\"physical_bytes\":100,\"static_kernel_bytes\":6,\
            \"balloon_bytes\":7,\"dynamic_kernel_bytes\":8,\"reserve_bytes\":9,\"process_bytes\":10,\
            \"file_cache_bytes\":11,\"guest_bytes\":12,\"available_bytes\":37,\"harvestable_bytes\":14,\
            \"mem_available_bytes\":15,\"quota_bytes\":16,\"idle_quota_bytes\":17,\"state\":\"idle\",\
            \"since_time_ms\":18,\"owner_idle_ms\":19,\"load5\":0.5,\"memory_pressure_share\":0.25,\
            \"psi_memory_some_total_us\":20}";
        assert_eq!(text, expected);
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), memory);
        // An absent size is null.
        let none = serde_json::to_value(Memory::default()).unwrap();
        assert_eq!(none["balloon_bytes"], serde_json::Value::Null);
        assert_eq!(none.as_object().unwrap().len(), 23);
    }

    #[test]
    fn a_host_is_idle_after_five_calm_minutes_and_lends_then() {
        let waiting = learned(quiet(&[10, 12, 14]));
        let idle_at_time_ms = BOOT_MS + 15 * MINUTE;
        assert_eq!(waiting.state, HostState::InUse { idle_at_time_ms });
        assert_eq!(
            (waiting.quota_bytes, waiting.idle_quota_bytes),
            (Some(0), Some(400))
        );
        let idle = learned(quiet(&[10, 12, 14, 16]));
        let since_time_ms = BOOT_MS + 10 * MINUTE;
        assert_eq!(idle.state, HostState::Idle { since_time_ms });
        assert_eq!(idle.quota_bytes, Some(400));
        // Tasks waited for memory during 6 s of each minute.
        assert_eq!(idle.memory_pressure_share, Some(0.1));
    }

    #[test]
    fn nothing_is_assumed_across_a_gap_or_a_missing_sample() {
        let mut samples = quiet(&[10, 12, 14, 16]);
        samples[3].interval_ms = None;
        let after_gap = learned(samples.clone());
        let idle_at_time_ms = BOOT_MS + 21 * MINUTE;
        assert_eq!(after_gap.state, HostState::InUse { idle_at_time_ms });
        assert_eq!(after_gap.memory_pressure_share, None);
        samples[3].interval_ms = Some(2 * MINUTE);
        samples.remove(2); // the sample has not arrived yet
        assert_eq!(learned(samples).state, HostState::InUse { idle_at_time_ms });
    }

    #[test]
    fn senders_are_not_believed_beyond_reason() {
        let wild = SampleRow {
            boottime_ms: Some(i64::MIN),
            interval_ms: Some(i64::MIN),
            physical_bytes: i64::MAX,
            available_bytes: i64::MAX,
            process_bytes: -5,
            guest_bytes: i64::MAX,
            harvestable_bytes: Some(i64::MAX),
            mem_available_bytes: Some(i64::MAX),
            owner_idle_ms: Some(i64::MIN),
            load5: Some(f64::NAN),
            psi_memory_some_total_us: Some(i64::MIN),
            ..SampleRow::default()
        };
        let none = SampleRow::default();
        let negative = SampleRow {
            physical_bytes: -1,
            ..SampleRow::default()
        };
        let mut builder = RowsBuilder::new(&SampleRow::TABLE);
        for (sequence, (row, time_ms)) in [
            (wild.clone(), i64::MAX),
            (wild, i64::MIN),
            (none, 0),
            (negative, 0),
        ]
        .into_iter()
        .enumerate()
        {
            let id = "0123456789abcdef0123456789abcdef";
            let identity = Identity {
                host_id: id,
                database_id: id,
                sequence: sequence as i64,
                time_ms,
            };
            builder.push(identity, row.to_values()).unwrap();
        }
        let samples = Memory::of_samples(&builder.finish().unwrap());
        assert_eq!(samples.len(), 2, "{samples:?}");
        let last = learned(samples);
        assert_eq!(last.figures.physical_bytes, LARGEST_BYTES);
        assert_eq!(last.figures.available_bytes, Some(LARGEST_BYTES));
        assert_eq!((last.figures.process_bytes, last.load5), (None, None));
        assert_eq!(
            (last.owner_idle_ms, last.state),
            (Some(0), HostState::Unknown)
        );
        let mut calm = quiet(&[10]).remove(0);
        (calm.time_ms, calm.boottime_ms) = (i64::MIN, Some(i64::MAX));
        calm.learn(Some(&last), Some(f64::NAN));
        let text = serde_json::to_string(&calm).unwrap();
        assert_eq!(serde_json::from_str::<Memory>(&text).unwrap(), calm);
    }
}
