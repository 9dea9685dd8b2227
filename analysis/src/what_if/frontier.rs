//! The settings that no other beats.

use gleaner_schemas::findings::WhatIf;

/// Marks the records that lend more than all others of their mode of which no more is taken back.
pub(super) fn mark(records: &mut [WhatIf]) {
    let all: Vec<_> = records
        .iter()
        .map(|r| (r.mode, r.lent_mean_bytes, r.returned_per_host_day_bytes))
        .collect();
    for record in records {
        let (mine, cost) = (record.lent_mean_bytes, record.returned_per_host_day_bytes);
        record.on_frontier = !all.iter().any(|&(mode, lent, other_cost)| {
            let is_as_good = lent >= mine && other_cost <= cost;
            mode == record.mode && is_as_good && (lent > mine || other_cost < cost)
        });
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
            lent_mean_bytes: lent,
            lent_share: 0.0,
            reclaims_per_host_day: 0.0,
            returned_mean_bytes: None,
            returned_per_host_day_bytes: returned,
            context_mean_bytes: None,
            context_p99_bytes: None,
            on_frontier: false,
        }
    }

    #[test]
    fn worked_by_hand() {
        use LendingMode::{Gentle, Paper};
        let mut records = [
            record(Paper, 10.0, 5.0),
            record(Paper, 10.0, 5.0), // as good is not better
            record(Paper, 10.0, 6.0), // costs more
            record(Paper, 9.0, 5.0),  // lends less
            record(Paper, 4.0, 1.0),
            record(Paper, 0.0, 0.0),
            record(Gentle, 1.0, 7.0), // by itself in its mode
        ];
        mark(&mut records);
        let marked = records.map(|r| r.on_frontier);
        assert_eq!(marked, [true, true, false, false, true, true, true]);
        mark(&mut []);
    }
}
