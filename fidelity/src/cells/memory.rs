//! Installed memory, use of memory, and dips, from the study's Tables 1 to 3.

use super::{CellResult, HOSTS_MIB, MissingFigure, NO_SUCH, class, mib, named};
use crate::clusters::SeedResults;
use gleaner_schemas::findings::{Findings, MemoryUsage, Notion};
use gleaner_traces::published::Figure;

const MIB: i64 = 1 << 20;

/// Value for a cell of Table 1.
pub(super) fn installed(figure: &Figure, observed: &SeedResults) -> CellResult {
    let hosts = &observed.of(named(figure)?).hosts;
    let mut sizes: Vec<i64> = hosts.iter().map(|h| h.physical_bytes).collect();
    sizes.sort_unstable();
    let sum = sizes.iter().sum::<i64>() as f64;
    Ok(match &*figure.column {
        "hosts in all" => Some(sizes.len() as f64),
        "memory in all" => (!sizes.is_empty()).then_some(sum),
        "memory, mean" => (!sizes.is_empty()).then(|| sum / sizes.len() as f64),
        // The number of hosts is odd.
        "memory, median" => sizes.get(sizes.len() / 2).map(|bytes| *bytes as f64),
        size => {
            let to = mib(size)? * MIB;
            let of_class = |bytes: &&i64| **bytes > to / 2 && **bytes <= to;
            Some(sizes.iter().filter(of_class).count() as f64)
        }
    })
}

/// The analysis' category for a part of Table 2.
fn category(part: &str) -> Result<&'static str, MissingFigure> {
    match part {
        "kernel" => Ok("kernel_paper"),
        "file cache" => Ok("live_file_cache"),
        "process" => Ok("process"),
        "available" => Ok("available_paper"),
        _ => Err(NO_SUCH),
    }
}

/// Value for a cell of Table 2.
pub(super) fn usage(figure: &Figure, findings: &Findings) -> CellResult {
    let (part, statistic) = figure.column.split_once(", ").ok_or(NO_SUCH)?;
    let (class, category) = (class(mib(&figure.row)?), category(part)?);
    match statistic {
        "mean" => Ok(mean(findings, &class, category)),
        "deviation" => Ok(of(findings, &class, category).and_then(|u| u.sd_bytes)),
        _ => Err(NO_SUCH),
    }
}

pub(super) fn mean(findings: &Findings, class: &str, category: &str) -> Option<f64> {
    of(findings, class, category).map(|u| u.mean_bytes)
}

fn of<'a>(findings: &'a Findings, class: &str, category: &str) -> Option<&'a MemoryUsage> {
    let mut all = findings.memory_usage.iter();
    all.find(|u| u.size_class == class && u.category == category)
}

/// Value for a cell of Table 3.
pub(super) fn dips(figure: &Figure, findings: &Findings) -> CellResult {
    let at_least = figure.column.trim_start_matches(">=");
    let at_least = at_least.parse().map_err(|_| NO_SUCH)?;
    Ok(hosts_that_dip(findings, mib(&figure.row)?, at_least))
}

fn hosts_that_dip(findings: &Findings, below_mib: i64, at_least: i64) -> Option<f64> {
    let mut all = findings.dip_hosts.iter();
    let found = all.find(|d| {
        (d.size_class.as_str(), d.notion) == ("all", Notion::Paper)
            && d.threshold_bytes == Some(below_mib * MIB)
            && d.minimum_intervals_count == at_least
    });
    found.map(|d| d.hosts_count as f64)
}

/// Hosts with 21 to 30 dips: Table 3 has no column for 20.
pub(super) fn hosts_with_20_to_30_dips(findings: &Findings) -> Option<f64> {
    Some(hosts_that_dip(findings, 6, 21)? - hosts_that_dip(findings, 6, 31)?)
}

/// Kernel memory divided by process memory: the minimum or maximum over the classes of Table 2.
pub(super) fn kernel_over_process(figure: &Figure, findings: &Findings) -> CellResult {
    let ratio = |mib: i64| {
        let of = |category| mean(findings, &class(mib), category);
        Some(of("kernel_paper")? / of("process").filter(|bytes| *bytes > 0.0)?)
    };
    let ratios: Option<Vec<f64>> = HOSTS_MIB.into_iter().map(ratio).collect();
    let ratios = ratios.into_iter().flatten();
    match &*figure.row {
        "least of the classes" => Ok(ratios.reduce(f64::min)),
        "most of the classes" => Ok(ratios.reduce(f64::max)),
        _ => Err(NO_SUCH),
    }
}

/// Mean plus standard deviation of the live file cache, as a share of memory: the maximum over the classes of
/// Table 2.
pub(super) fn live_files(findings: &Findings) -> Option<f64> {
    let share = |mib: i64| {
        let mut all = findings.live_file_cache.iter();
        let of_class = all.find(|l| l.size_class == class(mib));
        of_class.and_then(|l| l.mean_plus_sd_share)
    };
    let shares: Option<Vec<f64>> = HOSTS_MIB.into_iter().map(share).collect();
    shares.into_iter().flatten().reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::{DipHosts, HostSummary};
    use gleaner_traces::published::{PublishedWork, acharya_setia};

    fn used(class: &str, category: &str, mean_bytes: f64, sd_bytes: f64) -> MemoryUsage {
        MemoryUsage {
            size_class: class.to_owned(),
            category: category.to_owned(),
            hosts_count: 1,
            samples_count: 1,
            mean_bytes,
            sd_bytes: Some(sd_bytes),
            min_bytes: 0,
            p5_bytes: 0.0,
            median_bytes: 0.0,
            p95_bytes: 0.0,
            max_bytes: 0,
            mean_share: 0.0,
        }
    }

    fn ours(
        published: &PublishedWork,
        place: (&str, &str, &str),
        observed: &SeedResults,
    ) -> Option<f64> {
        let figure = published.get(place.0, place.1, place.2).unwrap();
        super::super::ours(figure, observed).unwrap()
    }

    #[test]
    fn hosts_by_size() {
        let published = acharya_setia().unwrap();
        let sized = |mib: i64| HostSummary {
            physical_bytes: mib * MIB,
            ..HostSummary::default()
        };
        let mut observed = SeedResults::default();
        observed.b.hosts = [128, 64, 65, 32, 1024].map(sized).to_vec();
        let cell = |column| ours(&published, ("Table 1", "cluster B", column), &observed);
        assert_eq!(cell("32 MB"), Some(1.0));
        assert_eq!(cell("64 MB"), Some(1.0));
        assert_eq!(cell("64-128 MB"), Some(2.0));
        assert_eq!(cell("128-256 MB"), Some(0.0));
        assert_eq!(cell("hosts in all"), Some(5.0));
        assert_eq!(cell("memory, median"), Some(65.0));
        assert_eq!(cell("memory, mean"), Some(1313.0 / 5.0));
        assert_eq!(cell("memory in all"), Some(1313.0));
    }

    #[test]
    fn use_by_class_in_the_papers_parts() {
        let published = acharya_setia().unwrap();
        let mut observed = SeedResults::default();
        let kib = |n: f64| n * 1024.0;
        let pooled = &mut observed.pooled.memory_usage;
        for class in ["up to 32 MiB", "32-64 MiB", "64-128 MiB", "128-256 MiB"] {
            pooled.push(used(class, "kernel", 1.0, 1.0));
            pooled.push(used(class, "kernel_paper", kib(900.0), kib(9.0)));
            pooled.push(used(class, "process", kib(300.0), kib(3.0)));
        }
        pooled.push(used("32-64 MiB", "available", 1.0, 1.0));
        pooled.push(used("32-64 MiB", "available_paper", kib(2048.0), kib(5.0)));
        pooled.last_mut().unwrap().samples_count = 7;
        if let Some(process) = pooled.get_mut(2) {
            process.mean_bytes = kib(450.0);
        }
        let cell = |place| ours(&published, place, &observed);
        assert_eq!(cell(("Table 2", "64 MB", "kernel, mean")), Some(900.0));
        assert_eq!(cell(("Table 2", "64 MB", "kernel, deviation")), Some(9.0));
        assert_eq!(cell(("Table 2", "64 MB", "available, mean")), Some(2048.0));
        assert_eq!(cell(("Table 2", "32 MB", "available, mean")), None);
        let ratio = |row| cell(("Text", row, "kernel over process memory"));
        assert_eq!(ratio("least of the classes"), Some(2.0));
        assert_eq!(ratio("most of the classes"), Some(3.0));
    }

    #[test]
    fn hosts_that_dip_by_the_papers_notion() {
        let published = acharya_setia().unwrap();
        let mut observed = SeedResults::default();
        for (notion, mib, at_least, hosts) in [
            (Notion::Available, 6, 21, 1),
            (Notion::Paper, 4, 21, 2),
            (Notion::Paper, 6, 0, 3),
            (Notion::Paper, 6, 21, 40),
            (Notion::Paper, 6, 31, 30),
        ] {
            observed.pooled.dip_hosts.push(DipHosts {
                size_class: "all".to_owned(),
                notion,
                threshold_bytes: Some(mib * MIB),
                threshold_share: None,
                minimum_intervals_count: at_least,
                hosts_count: hosts,
                known_hosts_count: 52,
            });
        }
        let cell = |place| ours(&published, place, &observed);
        assert_eq!(cell(("Table 3", "6 MB", ">=21")), Some(40.0));
        assert_eq!(cell(("Table 3", "6 MB", "0")), Some(3.0));
        assert_eq!(cell(("Table 3", "8 MB", "0")), None);
        let between = ("Text", "52 hosts", "hosts with 20-30 dips below 6 MB");
        assert_eq!(cell(between), Some(10.0));
    }
}
