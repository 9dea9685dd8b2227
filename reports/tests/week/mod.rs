//! Invented findings with every list filled: three hosts, two days at 90 s, office hours, a nightly job that
//! causes dips, a laptop that sleeps. The sums agree with the points over time.

#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, dead_code)]

mod cost;
mod counts;
mod lasting;
mod together;

use gleaner_schemas::findings::*;

pub const GIB: f64 = 1_073_741_824.0;
/// Monday, 16 November 2026, 00:00 UTC.
pub const START_MS: i64 = 1_794_787_200_000;
const INTERVAL_MS: i64 = 90_000;
const SAMPLES: i64 = 2 * 86_400_000 / INTERVAL_MS;

struct Machine {
    name: &'static str,
    physical_gib: f64,
    cpus: i64,
    /// Hours in which the host sleeps.
    asleep: &'static [(f64, f64)],
    /// Hours in which the owner works.
    at_work: &'static [(f64, f64)],
    /// Hours in which a job runs, and the share of memory that the job uses.
    job: (f64, f64, f64),
}

const MACHINES: [Machine; 3] = [
    Machine {
        name: "birch",
        physical_gib: 16.0,
        cpus: 8,
        asleep: &[],
        at_work: &[(8.7, 12.1), (13.0, 17.4), (33.2, 36.2), (37.1, 41.8)],
        job: (0.0, 0.0, 0.0),
    },
    Machine {
        name: "cedar",
        physical_gib: 64.0,
        cpus: 32,
        asleep: &[],
        at_work: &[(10.0, 12.5), (14.0, 19.3), (34.5, 38.0), (42.0, 44.5)],
        job: (25.2, 28.9, 0.88),
    },
    Machine {
        name: "dune",
        physical_gib: 8.0,
        cpus: 4,
        asleep: &[(0.0, 7.5), (18.5, 31.6), (45.0, 48.0)],
        at_work: &[(7.5, 11.8), (12.6, 16.0), (31.6, 35.9), (36.8, 41.0)],
        job: (40.0, 40.4, 0.45),
    },
];

/// Findings of the week.
pub fn findings() -> Findings {
    let mut f = Findings {
        findings_version: 1,
        parameters: Parameters {
            region_bytes: [1, 2, 4, 8, 16, 32].map(|g| g << 30).to_vec(),
            dip_threshold_bytes: [1, 2, 4].map(|g| g << 30).to_vec(),
            ..Parameters::default()
        },
        ..Findings::default()
    };
    for (index, machine) in MACHINES.iter().enumerate() {
        let host = format!(
            "{:016x}",
            0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(index as u64 + 1)
        );
        let points = points(machine, &host, index as u64);
        let idle = counts::idle_periods(&points, &host, INTERVAL_MS);
        f.gaps.extend(counts::gaps(&points, &host));
        f.hosts.push(summary(machine, &host, &points));
        f.dips.extend(counts::dips(
            &points,
            &host,
            &f.parameters.dip_threshold_bytes,
        ));
        f.quotas
            .push(counts::quota(&points, &host, machine.physical_gib * GIB));
        f.idle_periods.extend(idle);
        f.memory_over_time.extend(points);
        names(&mut f, &host, machine);
    }
    f.memory_usage = counts::usage(&f);
    f.availability_periods = counts::availability(&f, INTERVAL_MS);
    together::add(&mut f);
    f
}

/// Findings including those on all hosts together: how long memory stays available, and the cost of
/// lending.
#[allow(dead_code, reason = "the tests' own, where the example has none of it")]
pub fn whole() -> Findings {
    let mut f = findings();
    lasting::fill(&mut f);
    cost::fill(&mut f);
    f
}

/// Findings moved to a later time.
#[allow(dead_code, reason = "the tests' own, where the example has none of it")]
pub fn later(findings: &Findings, by_ms: i64) -> Findings {
    let mut document = serde_json::to_value(findings).unwrap();
    put_later(&mut document, by_ms);
    serde_json::from_value(document).unwrap()
}

fn put_later(value: &mut serde_json::Value, by_ms: i64) {
    match value {
        serde_json::Value::Array(list) => list.iter_mut().for_each(|v| put_later(v, by_ms)),
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_i64() {
                    Some(ms) if name.ends_with("time_ms") => *field = (ms + by_ms).into(),
                    _ => put_later(field, by_ms),
                }
            }
        }
        _ => {}
    }
}

fn within(hours: &[(f64, f64)], hour: f64) -> bool {
    hours.iter().any(|(from, to)| (*from..*to).contains(&hour))
}

fn points(machine: &Machine, host: &str, seed: u64) -> Vec<MemoryPoint> {
    let mut points: Vec<MemoryPoint> = Vec::new();
    let mut noise = 0.5;
    let mut state = seed + 7;
    let physical = machine.physical_gib * GIB;
    for i in 0..SAMPLES {
        let hour = i as f64 * 1.5 / 60.0;
        if within(machine.asleep, hour) {
            continue;
        }
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise = 0.94 * noise + 0.06 * (state >> 40) as f64 / (1_u64 << 24) as f64;
        let working = within(machine.at_work, hour);
        let (from, to, size) = machine.job;
        let job = if (from..to).contains(&hour) {
            size * ((hour - from) * 4.0).min(1.0)
        } else {
            0.0
        };
        let busy = if working {
            0.22 + 0.25 * noise
        } else {
            0.03 + 0.02 * noise
        };
        let process = (physical * (busy + job)).min(physical * 0.93).floor();
        let file_cache = (physical * if working { 0.05 + 0.04 * noise } else { 0.008 }).floor();
        let static_kernel = (physical * 0.018).floor();
        let dynamic_kernel = (physical * (0.02 + 0.004 * noise)).floor();
        let reserve = (physical * 0.006).floor();
        let guest = 0.0;
        let available =
            (physical - process - file_cache - static_kernel - dynamic_kernel - reserve).max(0.0);
        let harvestable = (available * 0.88 - physical * 0.15).max(0.0).floor();
        let time_ms = START_MS + i * INTERVAL_MS;
        points.push(MemoryPoint {
            host_id: host.into(),
            time_ms,
            samples_count: 1,
            is_after_gap: points
                .last()
                .is_some_and(|p| time_ms - p.time_ms > INTERVAL_MS),
            is_idle: Some(!working && job == 0.0),
            static_kernel_bytes: Some(static_kernel),
            balloon_bytes: Some(0.0),
            dynamic_kernel_bytes: Some(dynamic_kernel),
            reserve_bytes: Some(reserve),
            process_bytes: Some(process),
            file_cache_bytes: Some(file_cache),
            guest_bytes: Some(guest),
            available_bytes: available,
            min_available_bytes: available as i64,
            min_harvestable_bytes: Some(harvestable as i64),
            harvestable_bytes: Some(harvestable),
        });
    }
    points
}

fn summary(machine: &Machine, host: &str, points: &[MemoryPoint]) -> HostSummary {
    let idle = points.iter().filter(|p| p.is_idle == Some(true)).count();
    let (first, last) = (
        points.first().unwrap().time_ms,
        points.last().unwrap().time_ms,
    );
    HostSummary {
        host_id: host.into(),
        host_name: machine.name.into(),
        size_class: format!("{} GiB", machine.physical_gib),
        physical_bytes: (machine.physical_gib * GIB) as i64,
        cpus_count: Some(machine.cpus),
        // One host lacks this value: in a wide table, its dash is at the far right.
        kernel_release: (machine.name != "dune").then(|| "6.1.0-42-amd64".into()),
        sample_interval_s: Some(90.0),
        samples_count: points.len() as i64,
        from_time_ms: first,
        to_time_ms: last,
        coverage_share: points.len() as f64 / ((last - first) as f64 / INTERVAL_MS as f64 + 1.0),
        idle_share: Some(idle as f64 / points.len() as f64),
        source: None,
    }
}

fn names(f: &mut Findings, host: &str, machine: &Machine) {
    let physical = machine.physical_gib * GIB;
    let host = || host.to_owned();
    for (i, name) in [
        "firefox",
        "rust-analyzer",
        "thunderbird",
        "gnome-shell",
        "cc1plus",
        "Xwayland",
    ]
    .iter()
    .enumerate()
    {
        let mean_bytes = physical * 0.14 / (i + 1) as f64;
        f.top_processes.push(TopProcess {
            host_id: host(),
            name: (*name).into(),
            active_samples_count: 900 - 90 * i as i64,
            mean_bytes,
            max_bytes: (mean_bytes * 1.7) as i64,
            cpu_s: 7_310.0 / (i * i + 1) as f64,
        });
    }
    for i in 0..5_i64 {
        let mean_cached_bytes = physical * 0.02 / (i + 1) as f64;
        f.top_files.push(TopFile {
            host_id: host(),
            file: format!("{:016x}", 0x51ab_cdef_0123_u64.wrapping_mul(i as u64 + 3)),
            samples_count: 800 - 70 * i,
            mean_cached_bytes,
            max_cached_bytes: (mean_cached_bytes * 1.4) as i64,
        });
    }
    f.missing_values.push(MissingValue {
        host_id: host(),
        item: "processes".into(),
        reason: "vanished".into(),
        detail: "No such process (os error 3)".into(),
        samples_count: 41,
    });
    for (source, state) in [("input", "ok"), ("terminal", "ok")] {
        f.activity_sources.push(ActivitySource {
            host_id: host(),
            source: source.into(),
            state: state.into(),
            samples_count: 1_800,
        });
    }
    f.residuals.push(Residual {
        host_id: host(),
        mean_bytes: 11.2 * 1_048_576.0,
        max_abs_bytes: 84 << 20,
        max_abs_share: (84 << 20) as f64 / physical,
    });
    f.agent_cost.push(AgentCost {
        host_id: host(),
        mean_cpu_ms: 21.4,
        max_cpu_ms: 63.9,
        cpu_share: Some(0.000_24),
        max_rss_bytes: 9 << 20,
    });
    f.missing_measures.push(MissingMeasure {
        measure: "guest_memory".into(),
        host_id: host(),
        reason: "no memory daemon ran on it".into(),
    });
}
