//! Use of memory by category, over samples (Acharya & Setia, Table 2).

use crate::distribution::Distribution;
use crate::samples::Samples;
use gleaner_schemas::findings::{Category, MemoryUsage, Residual};

/// What is counted, in the order of the findings: the categories, then what stands beside them.
pub(crate) fn names() -> Vec<&'static str> {
    let category = |c: &Category| c.column().trim_end_matches("_bytes");
    let mut names: Vec<&str> = Category::ALL.iter().map(category).collect();
    names.extend(["kernel", "physical", "harvestable", "remainder"]);
    names
}

/// One host's use, one distribution for each of [`names`].
pub(crate) fn of_host(samples: &Samples) -> Vec<Distribution> {
    let physical = || samples.physical_bytes.iter().copied();
    let known = |sizes: &[Option<i64>]| {
        let with_whole = sizes.iter().zip(physical());
        Distribution::of(with_whole.filter_map(|(size, whole)| Some(((*size)?, whole))))
    };
    let mut found: Vec<Distribution> = samples.categories.iter().map(|c| known(c)).collect();
    found.push(Distribution::of(kernel(samples).zip(physical())));
    found.push(Distribution::of(physical().zip(physical())));
    found.push(known(&samples.harvestable_bytes));
    let remainder = samples.remainder_bytes.iter().copied();
    found.push(Distribution::of(remainder.zip(physical())));
    found
}

/// Static and dynamic kernel together; where the static part is unknown it is in no category, and
/// physical memory begins at MemTotal.
fn kernel(samples: &Samples) -> impl Iterator<Item = i64> {
    (0..samples.len()).map(|i| {
        let part = |category| samples.category(category, i).unwrap_or(0);
        part(Category::StaticKernel).saturating_add(part(Category::DynamicKernel))
    })
}

/// As a finding; `None` when no sample has it.
pub(crate) fn finding(size_class: &str, category: &str, all: &Distribution) -> Option<MemoryUsage> {
    Some(MemoryUsage {
        size_class: size_class.to_owned(),
        category: category.to_owned(),
        hosts_count: all.hosts,
        samples_count: all.count,
        mean_bytes: all.mean()?,
        sd_bytes: all.deviation(),
        min_bytes: all.min,
        median_bytes: all.median()?,
        max_bytes: all.max,
        mean_share: all.mean_share()?,
    })
}

/// How far the two ways to count available memory differ; `None` without samples.
pub(crate) fn residual(host: &str, samples: &Samples) -> Option<Residual> {
    let residuals = || samples.residual_bytes.iter().zip(&samples.physical_bytes);
    let mean_bytes = Distribution::of(residuals().map(|(r, p)| (*r, *p))).mean()?;
    let share = |(residual, physical): (&i64, &i64)| {
        if *physical > 0 {
            residual.unsigned_abs() as f64 / *physical as f64
        } else {
            0.0
        }
    };
    let largest = samples.residual_bytes.iter().map(|r| r.saturating_abs());
    Some(Residual {
        host: host.to_owned(),
        mean_bytes,
        max_abs_bytes: largest.max()?,
        max_abs_share: residuals().map(share).fold(0.0, f64::max),
    })
}
