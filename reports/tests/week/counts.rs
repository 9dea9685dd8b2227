//! Sums over the invented points.

use gleaner_schemas::findings::*;

pub fn gaps(points: &[MemoryPoint], host: &str) -> Vec<Gap> {
    let pairs = points.windows(2).filter(|w| w[1].is_after_gap);
    let gap = |w: &[MemoryPoint]| Gap {
        host_id: host.into(),
        from_time_ms: w[0].time_ms,
        to_time_ms: w[1].time_ms,
        duration_s: (w[1].time_ms - w[0].time_ms) as f64 / 1000.0,
        cause: "sleep".into(),
    };
    pairs.map(gap).collect()
}

pub fn dips(points: &[MemoryPoint], host: &str, thresholds: &[i64]) -> Vec<Dip> {
    let least = points.iter().min_by_key(|p| p.min_available_bytes).unwrap();
    let dip = |threshold: &i64| Dip {
        host_id: host.into(),
        threshold_bytes: *threshold,
        threshold_share: None,
        intervals_count: points
            .iter()
            .filter(|p| p.min_available_bytes < *threshold)
            .count() as i64,
        samples_count: points.len() as i64,
        min_available_bytes: least.min_available_bytes,
        min_time_ms: least.time_ms,
    };
    thresholds.iter().map(dip).collect()
}

pub fn quota(points: &[MemoryPoint], host: &str, physical: f64) -> Quota {
    let last = points.last().unwrap();
    let paper_quota_bytes = (last.available_bytes - 0.15 * physical).max(0.0) as i64;
    let idle = last.is_idle == Some(true);
    let harvestable = last.min_harvestable_bytes;
    Quota {
        host_id: host.into(),
        time_ms: last.time_ms,
        quota_bytes: if idle {
            paper_quota_bytes.min(harvestable.unwrap())
        } else {
            0
        },
        paper_quota_bytes,
        harvestable_bytes: harvestable,
        reason: if idle {
            "the host is idle"
        } else {
            "the load is too high"
        }
        .into(),
    }
}

/// Runs of consecutive points for which `holds` is true, as index ranges, and whether a gap or an
/// end of the trace cuts each end.
fn runs(
    points: &[MemoryPoint],
    holds: impl Fn(&MemoryPoint) -> bool,
) -> Vec<(usize, usize, bool, bool)> {
    let mut runs = Vec::new();
    let mut start: Option<usize> = None;
    for i in 0..=points.len() {
        let ends = i == points.len() || points[i].is_after_gap || !holds(&points[i]);
        if let Some(from) = start.filter(|_| ends) {
            let cut_start = from == 0 || points[from].is_after_gap;
            let cut_end = i == points.len() || points[i].is_after_gap;
            runs.push((from, i - 1, cut_start, cut_end));
            start = None;
        }
        if i < points.len() && start.is_none() && holds(&points[i]) {
            start = Some(i);
        }
    }
    runs
}

pub fn idle_periods(points: &[MemoryPoint], host: &str, interval_ms: i64) -> Vec<IdlePeriod> {
    let period = |(from, to, is_start_censored, is_end_censored): (usize, usize, bool, bool)| {
        let (from_time_ms, to_time_ms) = (points[from].time_ms, points[to].time_ms + interval_ms);
        IdlePeriod {
            host_id: host.into(),
            from_time_ms,
            to_time_ms,
            duration_s: (to_time_ms - from_time_ms) as f64 / 1000.0,
            is_start_censored,
            is_end_censored,
        }
    };
    runs(points, |p| p.is_idle == Some(true))
        .into_iter()
        .map(period)
        .collect()
}

pub fn availability(f: &Findings, interval_ms: i64) -> Vec<AvailabilityPeriods> {
    let mut found = Vec::new();
    for region in &f.parameters.region_bytes {
        for scope in [Scope::All, Scope::Idle] {
            let holds = |p: &MemoryPoint| {
                p.min_available_bytes >= *region && (scope == Scope::All || p.is_idle == Some(true))
            };
            let (mut lengths, mut censored_count, mut held) = (Vec::new(), 0, 0);
            for host in &f.hosts {
                let of_host: Vec<MemoryPoint> = f
                    .memory_over_time
                    .iter()
                    .filter(|p| p.host_id == host.host_id)
                    .cloned()
                    .collect();
                held += of_host.iter().filter(|p| holds(p)).count();
                for (from, to, cut_start, cut_end) in runs(&of_host, holds) {
                    let length_s = ((to - from + 1) as i64 * interval_ms) as f64 / 1000.0;
                    if length_s >= f.parameters.minimum_period_s {
                        lengths.push(length_s);
                        censored_count += i64::from(cut_start || cut_end);
                    }
                }
            }
            lengths.sort_by(f64::total_cmp);
            let n = lengths.len();
            let mean_s = (n > 0).then(|| lengths.iter().sum::<f64>() / n as f64);
            found.push(AvailabilityPeriods {
                size_class: "all".into(),
                scope,
                region_bytes: *region,
                periods_count: n as i64,
                censored_count,
                mean_s,
                median_s: lengths.get(n / 2).copied(),
                longest_s: lengths.last().copied(),
                // Not a Kaplan-Meier estimate, only a value between the mean and the maximum.
                restricted_mean_s: mean_s
                    .map(|m| (m + censored_count as f64 / n as f64 * (lengths[n - 1] - m)).round()),
                available_time_share: Some(held as f64 / f.memory_over_time.len() as f64),
                ..AvailabilityPeriods::default()
            });
        }
    }
    found
}

pub fn usage(f: &Findings) -> Vec<MemoryUsage> {
    let mut classes: Vec<String> = f.hosts.iter().map(|h| h.size_class.clone()).collect();
    classes.insert(0, "all".into());
    let mut rows = Vec::new();
    for class in classes {
        let hosts: Vec<&HostSummary> = f
            .hosts
            .iter()
            .filter(|h| class == "all" || h.size_class == class)
            .collect();
        for category in [
            "physical",
            "static_kernel",
            "dynamic_kernel",
            "reserve",
            "process",
            "file_cache",
            "available",
            "harvestable",
        ] {
            let mut values = Vec::new();
            let mut shares = 0.0;
            for host in &hosts {
                for p in f
                    .memory_over_time
                    .iter()
                    .filter(|p| p.host_id == host.host_id)
                {
                    let value = match category {
                        "physical" => host.physical_bytes as f64,
                        "static_kernel" => p.static_kernel_bytes.unwrap(),
                        "dynamic_kernel" => p.dynamic_kernel_bytes.unwrap(),
                        "reserve" => p.reserve_bytes.unwrap(),
                        "process" => p.process_bytes.unwrap(),
                        "file_cache" => p.file_cache_bytes.unwrap(),
                        "available" => p.available_bytes,
                        _ => p.harvestable_bytes.unwrap(),
                    };
                    values.push(value);
                    shares += value / host.physical_bytes as f64;
                }
            }
            values.sort_by(f64::total_cmp);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            rows.push(MemoryUsage {
                size_class: class.clone(),
                category: category.into(),
                hosts_count: hosts.len() as i64,
                samples_count: values.len() as i64,
                mean_bytes: mean,
                sd_bytes: Some((squares / (n - 1.0)).sqrt()),
                min_bytes: values[0] as i64,
                p5_bytes: values[(values.len() - 1) / 20],
                median_bytes: values[values.len() / 2],
                p95_bytes: values[(values.len() - 1) * 19 / 20],
                max_bytes: values[values.len() - 1] as i64,
                mean_share: shares / n,
            });
        }
    }
    rows
}
