//! Use of memory by category, over samples (Acharya & Setia, Table 2).

use crate::derived::HostHistory;
use crate::error::Result;
use crate::measure::{HostMeasure, Measure, MeasureOutput, Pass};
use crate::statistics::distribution::Distribution;
use crate::trace::HostTrace;
use crate::trace::reads::ReadSet;
use crate::trace::samples::Samples;
use gleaner_schemas::findings::{
    Category, FindingList, Findings, HostMemory, MemoryUsage, Parameters, Residual,
};
use serde::{Deserialize, Serialize};

/// Members of [`names`] whose figures need recorded files.
const FROM_FILES: [&str; 2] = ["live_file_cache", "available_paper"];

/// The one of [`names`] that is given only for single hosts: over several hosts it adds nothing to the
/// categories.
const OF_HOST: &str = "used";

/// Names of the figures, in the order of the findings: first the categories, then the other figures.
pub(crate) fn names() -> Vec<&'static str> {
    let category = |c: &Category| c.column().trim_end_matches("_bytes");
    let mut names: Vec<&str> = Category::ALL.iter().map(category).collect();
    names.extend(["kernel", "physical", "harvestable", "category_correction"]);
    names.extend(["live_file_cache", "available_paper", "kernel_paper"]);
    names.push(OF_HOST);
    names
}

/// A distribution for each of [`names`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Usage(Vec<Distribution>);

impl Measure for Usage {
    const OUTPUTS: &'static [MeasureOutput] = &[
        MeasureOutput::of::<MemoryUsage>(ReadSet::SAMPLES.and_files()),
        MeasureOutput::of::<HostMemory>(ReadSet::SAMPLES),
    ];

    fn of_host(host: &HostHistory<'_>, _: &Parameters) -> Result<Self> {
        Ok(Self(of_host(host)))
    }

    fn write_host(
        &self,
        host: &str,
        _size_class: &str,
        parameters: &Parameters,
        findings: &mut Findings,
    ) {
        if parameters.wants(&[HostMemory::KEY]) {
            findings.memory_by_host.extend(self.records(host));
        }
    }

    fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.merge(theirs);
        }
    }

    fn write(&self, size_class: &str, parameters: &Parameters, findings: &mut Findings) {
        if !parameters.wants(&[MemoryUsage::KEY]) {
            return; // two of the categories need files, which were not read
        }
        let records = names().into_iter().zip(&self.0);
        let records = records.filter(|(name, _)| *name != OF_HOST);
        let records = records.filter_map(|(name, all)| finding(size_class, name, all));
        findings.memory_usage.extend(records);
    }
}

impl Usage {
    /// Records of one host, from the figures that need samples only.
    fn records(&self, host: &str) -> Vec<HostMemory> {
        let named = names().into_iter().zip(&self.0);
        let from_samples = named.filter(|(name, _)| !FROM_FILES.contains(name));
        let record = |(name, all): (&str, &Distribution)| {
            Some(HostMemory {
                host_id: host.to_owned(),
                category: name.to_owned(),
                samples_count: all.count,
                mean_bytes: all.mean()?,
                sd_bytes: all.deviation(),
                min_bytes: all.min,
                p5_bytes: all.quantile(0.05)?,
                median_bytes: all.median()?,
                p95_bytes: all.quantile(0.95)?,
                max_bytes: all.max,
                mean_share: all.mean_share()?,
            })
        };
        from_samples.filter_map(record).collect()
    }
}

fn of_host(host: &HostHistory<'_>) -> Vec<Distribution> {
    let (samples, live) = (&host.trace.samples, &host.live_files);
    let physical = || samples.physical_bytes.iter().copied();
    let known = |sizes: &[Option<i64>]| {
        let with_whole = sizes.iter().zip(physical());
        Distribution::of(with_whole.filter_map(|(size, whole)| Some(((*size)?, whole))))
    };
    let mut found: Vec<Distribution> = samples.categories.iter().map(|c| known(c)).collect();
    found.push(known(&kernel(samples)));
    found.push(Distribution::of(physical().zip(physical())));
    found.push(known(&samples.harvestable_bytes));
    found.push(known(&samples.category_correction_bytes));
    found.push(known(&live.file_cache_bytes));
    found.push(known(&live.available_bytes));
    found.push(known(&kernel_with_reserve(samples)));
    found.push(known(&used(samples)));
    found
}

/// Static and dynamic kernel memory together. If the static part is unknown, no category holds it, and
/// physical memory is MemTotal.
fn kernel(samples: &Samples) -> Vec<Option<i64>> {
    let of = |i| {
        let dynamic = samples.category(Category::DynamicKernel, i)?;
        let static_kernel = samples.category(Category::StaticKernel, i).unwrap_or(0);
        Some(dynamic.saturating_add(static_kernel))
    };
    (0..samples.len()).map(of).collect()
}

/// Table 2's kernel column. It includes the reserve, because only then do the table's rows sum to physical
/// memory.
fn kernel_with_reserve(samples: &Samples) -> Vec<Option<i64>> {
    let reserve = |i| samples.category(Category::Reserve, i);
    let with = |(i, kernel): (usize, Option<i64>)| Some(kernel?.saturating_add(reserve(i)?));
    kernel(samples).into_iter().enumerate().map(with).collect()
}

/// Memory that was not available at each sample. It cannot be derived from the minimum of available memory:
/// if memory was added or removed, that minimum may belong to another physical size.
fn used(samples: &Samples) -> Vec<Option<i64>> {
    let of = |(i, physical): (usize, &i64)| {
        let available = samples.category(Category::Available, i)?;
        Some(physical.saturating_sub(available).max(0))
    };
    samples.physical_bytes.iter().enumerate().map(of).collect()
}

/// Distribution as a finding; `None` if no sample has the category.
fn finding(size_class: &str, category: &str, all: &Distribution) -> Option<MemoryUsage> {
    Some(MemoryUsage {
        size_class: size_class.to_owned(),
        category: category.to_owned(),
        hosts_count: all.hosts,
        samples_count: all.count,
        mean_bytes: all.mean()?,
        sd_bytes: all.deviation(),
        min_bytes: all.min,
        p5_bytes: all.quantile(0.05)?,
        median_bytes: all.median()?,
        p95_bytes: all.quantile(0.95)?,
        max_bytes: all.max,
        mean_share: all.mean_share()?,
    })
}

/// Difference of the two ways to count available memory, by host.
pub(crate) struct Residuals;

impl HostMeasure for Residuals {
    const OUTPUTS: &'static [MeasureOutput] = &[MeasureOutput::of::<Residual>(ReadSet::SAMPLES)];

    fn write(host: &mut HostHistory<'_>, _: &Pass<'_>, findings: &mut Findings) -> Result<()> {
        findings.residuals.extend(residual(&host.trace));
        Ok(())
    }
}

/// Residual of a host; `None` if its available memory was not counted in both ways.
fn residual(trace: &HostTrace<'_>) -> Option<Residual> {
    let samples = &trace.samples;
    let all = samples.residual_bytes.iter().zip(&samples.physical_bytes);
    let residuals: Vec<(i64, i64)> = all.filter_map(|(r, p)| Some(((*r)?, *p))).collect();
    let mean_bytes = Distribution::of(residuals.iter().copied()).mean()?;
    let share = |(residual, physical): &(i64, i64)| {
        if *physical > 0 {
            residual.unsigned_abs() as f64 / *physical as f64
        } else {
            0.0
        }
    };
    let largest = residuals.iter().map(|(r, _)| r.saturating_abs());
    Some(Residual {
        host_id: trace.host().to_owned(),
        mean_bytes,
        max_abs_bytes: largest.max()?,
        max_abs_share: residuals.iter().map(share).fold(0.0, f64::max),
    })
}
