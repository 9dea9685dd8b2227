//! Invented costs of lending: three hosts' returns over two days, the memory that they would page in again,
//! other limits.

use super::{GIB, START_MS};
use gleaner_schemas::findings::*;

const MODES: [LendingMode; 2] = [LendingMode::Paper, LendingMode::Gentle];

pub fn fill(f: &mut Findings) {
    let hosts: Vec<Option<HostSummary>> = f.hosts.iter().cloned().map(Some).collect();
    for host in hosts.into_iter().chain([None]) {
        reclaims(f, host.as_ref());
    }
    for hour in 0..48 {
        by_hour(f, 1 + hour / 24, hour % 24);
    }
    for mode in MODES {
        f.what_if.extend(settings(mode));
    }
    f.worst_returns = vec![WorstReturn {
        time_ms: START_MS + 9 * 3_600_000,
        hosts_count: 2,
        idle_hosts_before_count: 3,
        reclaimed_bytes: (23.0 * GIB) as i64,
        share_of_quota: Some(0.4),
    }];
    f.owner_cost = [CostWindow::Return, CostWindow::Busy]
        .map(owner_cost)
        .to_vec();
}

fn reclaims(f: &mut Findings, host: Option<&HostSummary>) {
    let hosts_count = if host.is_some() { 1 } else { 3 };
    let size_class = host.map_or("all", |h| h.size_class.as_str());
    f.reclaims.push(Reclaims {
        host_id: host.map(|h| h.host_id.clone()),
        size_class: size_class.into(),
        hosts_count,
        reclaims_count: 7 * hosts_count,
        observed_days: 2.0 * hosts_count as f64,
        reclaims_per_day: 3.5,
    });
    let physical = host.map_or(30.0 * GIB, |h| h.physical_bytes as f64);
    for (mode, share) in MODES.into_iter().zip([0.7, 0.5]) {
        f.memory_context.push(MemoryContext {
            host_id: host.map(|h| h.host_id.clone()),
            size_class: size_class.into(),
            mode,
            mean_quota_bytes: Some(share * physical),
            returns_count: 7 * hosts_count,
            mean_footprint_bytes: 0.2 * physical,
            mean_bytes: 0.01 * share * physical,
            median_bytes: 0.0,
            p90_bytes: 0.02 * share * physical,
            p99_bytes: 0.2 * share * physical,
            max_bytes: (0.2 * physical) as i64,
            mean_upper_bound_bytes: 0.15 * physical,
            share_of_returns_with_any: 0.12,
        });
    }
}

fn by_hour(f: &mut Findings, weekday: i64, hour: i64) {
    let at_work = (8..18).contains(&hour);
    let returns = if at_work { 1 + hour % 3 } else { 0 };
    f.reclaims_by_hour.push(ReclaimsByHour {
        size_class: "all".into(),
        weekday,
        hour,
        returns_count: returns,
        idle_hours_s: 7_200.0,
        // At three at night, no host was idle long enough for a rate.
        per_idle_hour: (hour != 3).then_some(returns as f64 / 2.0),
    });
    f.returns_by_hour.push(ReturnsByHour {
        weekday,
        hour,
        cells_count: 6,
        mean_returns_per_cell: returns as f64 / 6.0,
        max_returns_per_cell: returns.min(2),
        share_of_idle_hosts: Some(returns as f64 / 18.0),
        mean_reclaimed_bytes: returns as f64 * GIB,
        max_reclaimed_bytes: (12.0 * GIB) as i64,
    });
}

fn settings(mode: LendingMode) -> Vec<WhatIf> {
    let gentle = if mode == LendingMode::Gentle {
        0.8
    } else {
        1.0
    };
    let setting =
        |varied: &str, idle_after_s: f64, headroom_share: f64, lent: f64, mib: f64| WhatIf {
            varied: varied.into(),
            idle_after_s,
            load_limit: Some(0.3),
            headroom_share,
            minimum_idle_s: 0.0,
            scope: Scope::Idle,
            mode,
            hosts_count: 3,
            observed_s: 518_400.0,
            mean_quota_bytes: gentle * lent * 30.0 * GIB,
            quota_share: gentle * lent,
            reclaims_per_host_day: 1050.0 / idle_after_s,
            mean_reclaimed_bytes: Some(4.0 * GIB),
            reclaimed_bytes_per_host_day: 14.0 * GIB,
            mean_memory_context_bytes: Some(mib * 1_048_576.0 / 3.5),
            p99_memory_context_bytes: Some(mib * 1_048_576.0),
            memory_context_bytes_per_host_day: Some(gentle * mib * 1_048_576.0),
            is_on_frontier: varied != "none",
        };
    vec![
        setting("none", 300.0, 0.15, 0.42, 60.0),
        setting("headroom_share", 300.0, 0.05, 0.5, 130.0),
        setting("idle_after_s,headroom_share", 600.0, 0.1, 0.44, 40.0),
        setting("headroom_share", 300.0, 0.25, 0.31, 12.0),
    ]
}

fn owner_cost(window: CostWindow) -> OwnerCost {
    let some = |mean: f64| {
        Some(if window == CostWindow::Return {
            mean
        } else {
            mean / 2.0
        })
    };
    OwnerCost {
        size_class: "all".into(),
        window,
        had_guests: false,
        windows_count: 19,
        mean_window_s: 270.0,
        mean_guest_bytes: 0.0,
        mean_memory_context_bytes: Some(0.0),
        mean_psi_memory_some_us: some(2_400.0),
        median_psi_memory_some_us: some(0.0),
        p99_psi_memory_some_us: some(61_000.0),
        mean_psi_memory_full_us: some(900.0),
        median_psi_memory_full_us: some(0.0),
        p99_psi_memory_full_us: some(20_000.0),
        mean_refault_file_count: some(140.0),
        median_refault_file_count: some(3.0),
        p99_refault_file_count: some(2_000.0),
        mean_refault_anon_count: some(4.0),
        median_refault_anon_count: some(0.0),
        p99_refault_anon_count: some(60.0),
        mean_swap_in_count: some(5.0),
        median_swap_in_count: some(0.0),
        p99_swap_in_count: some(70.0),
        mean_major_fault_count: some(111.0),
        median_major_fault_count: some(38.0),
        p99_major_fault_count: some(700.0),
    }
}
