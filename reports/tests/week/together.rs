//! Memory of the invented hosts together, and the times when they were short, computed from their points.

use gleaner_schemas::findings::*;

/// Length of the grid's cells, as in the analysis.
const CELL_MS: i64 = 600_000;
const SHORT_SHARE: f64 = 0.1;

pub fn add(f: &mut Findings) {
    f.cluster_over_time = cluster(f);
    f.cluster_available = [Scope::All, Scope::Idle].map(|s| available(f, s)).to_vec();
    f.contribution_by_rank = ranks(f);
    for host in f.hosts.clone() {
        let points: Vec<MemoryPoint> = f
            .memory_over_time
            .iter()
            .filter(|p| p.host_id == host.host_id)
            .cloned()
            .collect();
        short(f, &host, &points);
    }
    f.dips_by_hour = by_hour(f);
}

fn cluster(f: &Findings) -> Vec<ClusterPoint> {
    let physical = |id: &str| {
        let host = f.hosts.iter().find(|h| h.host_id == id).unwrap();
        host.physical_bytes as f64
    };
    let mut cells: std::collections::BTreeMap<i64, Vec<&MemoryPoint>> = Default::default();
    for point in &f.memory_over_time {
        let cell = point.time_ms - point.time_ms.rem_euclid(CELL_MS);
        cells.entry(cell).or_default().push(point);
    }
    let mut found: Vec<ClusterPoint> = Vec::new();
    for (time_ms, points) in cells {
        let mut sum = ClusterPoint {
            time_ms,
            cells_count: 1,
            is_after_gap: found.last().is_some_and(|p| time_ms - p.time_ms > CELL_MS),
            hosts_idle_count: Some(0.0),
            harvestable_bytes: Some(0.0),
            idle_available_bytes: Some(0.0),
            ..ClusterPoint::default()
        };
        for host in &f.hosts {
            let of_host: Vec<&&MemoryPoint> = points
                .iter()
                .filter(|p| p.host_id == host.host_id)
                .collect();
            let n = of_host.len() as f64;
            if of_host.is_empty() {
                continue;
            }
            let mean = |value: &dyn Fn(&MemoryPoint) -> f64| {
                of_host.iter().map(|p| value(p)).sum::<f64>() / n
            };
            let idle = |p: &MemoryPoint| f64::from(u8::from(p.is_idle == Some(true)));
            sum.hosts_seen_count += 1.0;
            sum.physical_bytes += physical(&host.host_id);
            sum.available_bytes += mean(&|p| p.available_bytes);
            sum.min_available_bytes += of_host.iter().map(|p| p.min_available_bytes).min().unwrap();
            *sum.hosts_idle_count.as_mut().unwrap() += mean(&idle);
            *sum.harvestable_bytes.as_mut().unwrap() += mean(&|p| p.harvestable_bytes.unwrap());
            *sum.idle_available_bytes.as_mut().unwrap() += mean(&|p| idle(p) * p.available_bytes);
        }
        found.push(sum);
    }
    found
}

fn available(f: &Findings, scope: Scope) -> ClusterAvailable {
    let mut bytes: Vec<f64> = f
        .cluster_over_time
        .iter()
        .map(|p| match scope {
            Scope::All => p.available_bytes,
            Scope::Idle => p.idle_available_bytes.unwrap(),
        })
        .collect();
    bytes.sort_by(f64::total_cmp);
    let cells = bytes.len();
    let installed: f64 = f.cluster_over_time.iter().map(|p| p.physical_bytes).sum();
    let sum: f64 = bytes.iter().sum();
    ClusterAvailable {
        scope,
        cells_count: cells as i64,
        mean_bytes: sum / cells as f64,
        sd_bytes: None,
        p1_bytes: bytes[cells / 100] as i64,
        p5_bytes: bytes[cells / 20] as i64,
        median_bytes: bytes[cells / 2] as i64,
        max_bytes: bytes[cells - 1] as i64,
        share_of_physical: sum / installed,
    }
}

fn ranks(f: &Findings) -> Vec<RankContribution> {
    let sum = |host: &HostSummary| {
        let of_host = f
            .memory_over_time
            .iter()
            .filter(|p| p.host_id == host.host_id);
        of_host.map(|p| p.available_bytes).sum::<f64>()
    };
    let mut sums: Vec<f64> = f.hosts.iter().map(sum).collect();
    sums.sort_by(|a, b| b.total_cmp(a));
    let all: f64 = sums.iter().sum();
    let rank = |n: usize| RankContribution {
        scope: Scope::All,
        hosts_count: n as i64,
        hosts_share: n as f64 / sums.len() as f64,
        available_share: sums[..n].iter().sum::<f64>() / all,
    };
    (1..=sums.len()).map(rank).collect()
}

/// Adds dips below a tenth of the memory, the deepest of them, and the programs active in it.
fn short(f: &mut Findings, host: &HostSummary, points: &[MemoryPoint]) {
    let threshold_bytes = (host.physical_bytes as f64 * SHORT_SHARE) as i64;
    let below = |p: &&MemoryPoint| p.min_available_bytes < threshold_bytes;
    let worst = points.iter().min_by_key(|p| p.min_available_bytes).unwrap();
    let intervals_count = points.iter().filter(below).count() as i64;
    f.dips.push(Dip {
        host_id: host.host_id.clone(),
        threshold_bytes,
        threshold_share: Some(SHORT_SHARE),
        intervals_count,
        samples_count: points.len() as i64,
        min_available_bytes: worst.min_available_bytes,
        min_time_ms: worst.time_ms,
    });
    if intervals_count == 0 {
        return;
    }
    let first = points.iter().find(below).unwrap();
    let bytes = |value: Option<f64>| value.map(|b| b as i64);
    f.worst_dips.push(WorstDip {
        host_id: host.host_id.clone(),
        threshold_bytes,
        threshold_share: Some(SHORT_SHARE),
        from_time_ms: first.time_ms,
        to_time_ms: first.time_ms + intervals_count * 90_000,
        duration_s: intervals_count as f64 * 90.0,
        intervals_count,
        min_available_bytes: worst.min_available_bytes,
        min_time_ms: worst.time_ms,
        dynamic_kernel_bytes: bytes(worst.dynamic_kernel_bytes),
        process_bytes: bytes(worst.process_bytes),
        file_cache_bytes: bytes(worst.file_cache_bytes),
        usual_dynamic_kernel_bytes: points[0].dynamic_kernel_bytes,
        usual_process_bytes: points[0].process_bytes,
        usual_file_cache_bytes: points[0].file_cache_bytes,
    });
    for (rank, name) in [(1, "nightly-fit"), (2, "firefox")] {
        f.dip_processes.push(DipProcess {
            host_id: host.host_id.clone(),
            time_ms: worst.time_ms,
            rank,
            name: name.into(),
            bytes: worst.process_bytes.unwrap() as i64 / (3 * rank - 2) / 2,
            mean_bytes: host.physical_bytes as f64 * 0.1,
        });
    }
}

/// Dips by hour of Monday and Tuesday, in UTC.
fn by_hour(f: &Findings) -> Vec<DipsByHour> {
    let hours = (0..48_i64).map(|hour| {
        let from = super::START_MS + hour * 3_600_000;
        let in_hour = |p: &&MemoryPoint| (from..from + 3_600_000).contains(&p.time_ms);
        let is_short = |p: &&MemoryPoint| {
            let host = f.hosts.iter().find(|h| h.host_id == p.host_id).unwrap();
            (p.min_available_bytes as f64) < host.physical_bytes as f64 * SHORT_SHARE
        };
        let points = || f.memory_over_time.iter().filter(in_hour);
        DipsByHour {
            size_class: "all".into(),
            weekday: 1 + hour / 24,
            hour: hour % 24,
            threshold_bytes: None,
            threshold_share: Some(SHORT_SHARE),
            intervals_count: points().filter(is_short).count() as i64,
            samples_count: points().count() as i64,
        }
    });
    hours.collect()
}
