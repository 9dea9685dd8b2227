//! Use of memory, dips and idleness by hour of the week, in the fleet's time zone.
//!
//! A sample counts for the hour in which it was taken.

use crate::availability::dips::Threshold;
use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{Measure, MeasureOutput};
use crate::trace::calendar::{HOURS_OF_WEEK, weekday_and_hour};
use crate::trace::reads::ReadSet;
use gleaner_schemas::findings::{
    Category, DipsByHour, Findings, IdleByHour, MemoryUsageByHour, Parameters,
};
use serde::{Deserialize, Serialize};

/// Names of the figures of each hour, in the order of the findings.
const MEASURED: [&str; 7] = [
    "kernel",
    "process",
    "file_cache",
    "live_file_cache",
    "available",
    "available_paper",
    "harvestable",
];

/// Figures of one host or one class by hour of the week.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hours {
    /// For each of [`MEASURED`], the sizes in each hour of the week.
    usage: Vec<Vec<Sizes>>,
    /// For each threshold (absolute, then relative), the share of samples below it in each hour.
    dips: Vec<Vec<Share>>,
    idle: Vec<Share>,
}

/// Sizes in one hour of the week. The sums are integers, so the order of merging changes nothing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Sizes {
    count: i64,
    sum_bytes: i128,
    min_bytes: Option<i64>,
    /// Sum of the shares of physical memory, in parts per billion.
    shares: i128,
}

/// Number of samples, and number of those with a property.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Share {
    count: i64,
    of: i64,
}

impl Sizes {
    fn add(&mut self, bytes: i64, physical_bytes: i64) {
        self.count += 1;
        self.sum_bytes += i128::from(bytes);
        self.min_bytes = Some(self.min_bytes.map_or(bytes, |least| least.min(bytes)));
        if physical_bytes > 0 {
            self.shares += i128::from(bytes) * 1_000_000_000 / i128::from(physical_bytes);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_bytes += other.sum_bytes;
        self.shares += other.shares;
        self.min_bytes = [self.min_bytes, other.min_bytes]
            .into_iter()
            .flatten()
            .min();
    }
}

impl Share {
    fn add(&mut self, holds: bool) {
        self.count += i64::from(holds);
        self.of += 1;
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.of += other.of;
    }
}

impl Measure for Hours {
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<MemoryUsageByHour>(ReadSet::SAMPLES.and_files()),
        MeasureOutput::of::<DipsByHour>(ReadSet::FEW),
        MeasureOutput::of::<IdleByHour>(ReadSet::FEW),
    ];

    fn of_host(host: &HostHistory<'_>, parameters: &Parameters) -> Result<Self> {
        let samples = &host.trace.samples;
        let hours = || host.hours_of_week.iter().map(|&hour| usize::from(hour));
        let usage = MEASURED.map(|name| {
            let mut by_hour = vec![Sizes::default(); HOURS_OF_WEEK];
            for (sample, hour) in hours().enumerate() {
                if let Some(bytes) = measured(host, name, sample) {
                    by_hour[hour].add(bytes, samples.physical_bytes[sample]);
                }
            }
            by_hour
        });
        let below = |threshold: Threshold| {
            let mut by_hour = vec![Share::default(); HOURS_OF_WEEK];
            let sizes = samples.available_bytes.iter().zip(&samples.physical_bytes);
            for (hour, (&bytes, &physical)) in hours().zip(sizes) {
                by_hour[hour].add(bytes < threshold.on(physical));
            }
            by_hour
        };
        let mut idle = vec![Share::default(); HOURS_OF_WEEK];
        for (hour, is_idle) in hours().zip(host.idleness.by_sample()) {
            if let Some(is_idle) = is_idle {
                idle[hour].add(is_idle);
            }
        }
        Ok(Self {
            usage: usage.into(),
            dips: Threshold::all(parameters).map(below).collect(),
            idle,
        })
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self
            .usage
            .iter_mut()
            .flatten()
            .zip(other.usage.iter().flatten())
        {
            mine.merge(theirs);
        }
        for (mine, theirs) in self
            .dips
            .iter_mut()
            .flatten()
            .zip(other.dips.iter().flatten())
        {
            mine.merge(theirs);
        }
        for (mine, theirs) in self.idle.iter_mut().zip(&other.idle) {
            mine.merge(theirs);
        }
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        for (name, by_hour) in MEASURED.iter().zip(&self.usage) {
            let records = by_hour.iter().enumerate().filter_map(|(at, sizes)| {
                let (weekday, hour) = weekday_and_hour(at);
                Some(MemoryUsageByHour {
                    size_class: size_class.to_owned(),
                    weekday,
                    hour,
                    category: (*name).to_owned(),
                    samples_count: sizes.count,
                    mean_bytes: sizes.sum_bytes as f64 / sizes.count as f64,
                    min_bytes: sizes.min_bytes?,
                    mean_share: sizes.shares as f64 / 1e9 / sizes.count as f64,
                })
            });
            findings.memory_usage_by_hour.extend(records);
        }
        for (threshold, by_hour) in Threshold::all(parameters).zip(&self.dips) {
            let (threshold_bytes, threshold_share) = threshold.asked();
            let seen = by_hour.iter().enumerate().filter(|(_, share)| share.of > 0);
            findings.dips_by_hour.extend(seen.map(|(at, share)| {
                let (weekday, hour) = weekday_and_hour(at);
                DipsByHour {
                    size_class: size_class.to_owned(),
                    weekday,
                    hour,
                    threshold_bytes,
                    threshold_share,
                    intervals_count: share.count,
                    samples_count: share.of,
                }
            }));
        }
        let seen = self
            .idle
            .iter()
            .enumerate()
            .filter(|(_, share)| share.of > 0);
        findings.idle_by_hour.extend(seen.map(|(at, share)| {
            let (weekday, hour) = weekday_and_hour(at);
            IdleByHour {
                size_class: size_class.to_owned(),
                weekday,
                hour,
                samples_count: share.of,
                idle_share: share.count as f64 / share.of as f64,
            }
        }));
    }
}

fn measured(host: &HostHistory<'_>, name: &str, sample: usize) -> Option<i64> {
    let of = |category| host.trace.samples.category(category, sample);
    match name {
        "kernel" => {
            let static_kernel = of(Category::StaticKernel).unwrap_or(0);
            Some(of(Category::DynamicKernel)?.saturating_add(static_kernel))
        }
        "process" => of(Category::Process),
        "file_cache" => of(Category::FileCache),
        "available" => of(Category::Available),
        "live_file_cache" => *host.live_files.file_cache_bytes.get(sample)?,
        "available_paper" => *host.live_files.available_bytes.get(sample)?,
        _ => host.trace.samples.harvestable_bytes[sample],
    }
}
