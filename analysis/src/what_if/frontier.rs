//! The settings that no other setting beats.

use gleaner_schemas::findings::WhatIf;

/// Marks the records that lend more than all other records of their mode and scope with the same or
/// lower cost.
pub(super) fn mark(records: &mut [WhatIf]) {
    let is_known = records
        .iter()
        .any(|r| r.memory_context_bytes_per_host_day.is_some());
    let cost = |r: &WhatIf| match r.memory_context_bytes_per_host_day {
        Some(bytes) => bytes,
        // No reclaim occurred, so there is no cost.
        None if is_known => 0.0,
        None => r.reclaimed_bytes_per_host_day,
    };
    let point = |r: &WhatIf| (r.mode, r.scope, r.mean_quota_bytes, cost(r));
    let all: Vec<_> = records.iter().map(point).collect();
    for (record, &(mode, scope, lent, cost)) in records.iter_mut().zip(&all) {
        let beats = |&(_, _, more, less): &(_, _, f64, f64)| {
            more >= lent && less <= cost && (more > lent || less < cost)
        };
        let mut alike = all.iter().filter(|(m, s, ..)| (*m, *s) == (mode, scope));
        record.is_on_frontier = !alike.any(beats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::{LendingMode, Scope};

    fn record(mode: LendingMode, lent: f64, returned: f64) -> WhatIf {
        WhatIf {
            varied: String::new(),
            idle_after_s: 0.0,
            load_limit: None,
            headroom_share: 0.0,
            minimum_idle_s: 0.0,
            scope: Scope::Idle,
            mode,
            hosts_count: 1,
            observed_s: 1.0,
            mean_quota_bytes: lent,
            quota_share: 0.0,
            reclaims_per_host_day: 0.0,
            mean_reclaimed_bytes: None,
            reclaimed_bytes_per_host_day: returned,
            mean_memory_context_bytes: None,
            p99_memory_context_bytes: None,
            memory_context_bytes_per_host_day: None,
            is_on_frontier: false,
        }
    }

    #[test]
    fn worked_by_hand() {
        use LendingMode::{Gentle, Paper};
        let mut records = [
            record(Paper, 10.0, 5.0),
            record(Paper, 10.0, 5.0), // an equal record is not better
            record(Paper, 10.0, 6.0), // costs more
            record(Paper, 9.0, 5.0),  // lends less
            record(Paper, 4.0, 1.0),
            record(Paper, 0.0, 0.0),
            record(Gentle, 1.0, 7.0), // the only record of its mode
        ];
        mark(&mut records);
        let marked = records.map(|r| r.is_on_frontier);
        assert_eq!(marked, [true, true, false, false, true, true, true]);
        mark(&mut []);
    }

    #[test]
    fn what_is_paged_in_again_is_the_cost_where_it_is_known() {
        let with = |lent, context| WhatIf {
            memory_context_bytes_per_host_day: context,
            ..record(LendingMode::Paper, lent, 1.0)
        };
        let mut records = [
            with(10.0, Some(5.0)),
            with(8.0, Some(6.0)),
            with(7.0, Some(0.0)),
            with(6.0, None), // never reclaimed: no cost
            WhatIf {
                scope: Scope::All,
                ..with(20.0, None)
            },
        ];
        mark(&mut records);
        let marked = records.map(|r| r.is_on_frontier);
        assert_eq!(marked, [true, false, true, false, true]);
    }
}
