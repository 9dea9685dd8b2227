//! Lengths of availability periods and of owners' presences, from the study's Table 4 and its text.

use super::{CellResult, HOSTS_MIB, NO_SUCH, class, mib};
use crate::clusters::SeedResults;
use gleaner_schemas::findings::{Findings, Notion, OwnerState, Scope};
use gleaner_traces::published::Figure;

const MIB: i64 = 1 << 20;

/// Value for a cell of Table 4: the plain mean of the observed lengths of periods. Of a period that is cut,
/// the observed part counts.
pub(super) fn mean(figure: &Figure, findings: &Findings) -> CellResult {
    let (hosts, scope) = figure.row.split_once(", ").ok_or(NO_SUCH)?;
    let class = match hosts {
        "all" => "all".to_owned(),
        size => class(mib(size)?),
    };
    let scope = scope_named(scope).ok_or(NO_SUCH)?;
    Ok(mean_s(findings, &class, scope, mib(&figure.column)?))
}

fn scope_named(name: &str) -> Option<Scope> {
    match name {
        "all" => Some(Scope::All),
        "idle" => Some(Scope::Idle),
        _ => None,
    }
}

fn mean_s(findings: &Findings, class: &str, scope: Scope, region_mib: i64) -> Option<f64> {
    let mut all = findings.availability_periods.iter();
    let found = all.find(|p| {
        (p.size_class.as_str(), p.scope, p.notion) == (class, scope, Notion::Paper)
            && p.region_bytes == region_mib * MIB
    });
    found.and_then(|p| p.mean_s)
}

/// Minimum, over Table 4's classes of 64 MB and more, of the mean period length for 1/`part` of the hosts'
/// memory.
pub(super) fn least(figure: &Figure, part: i64, observed: &SeedResults) -> CellResult {
    let scope = figure.column.rsplit(", ").next().and_then(scope_named);
    let scope = scope.ok_or(NO_SUCH)?;
    let sizes = HOSTS_MIB.into_iter().filter(|mib| *mib >= 64);
    let means = sizes.map(|mib| mean_s(&observed.pooled, &class(mib), scope, mib / part));
    let means: Option<Vec<f64>> = means.collect();
    Ok(means.into_iter().flatten().reduce(f64::min))
}

/// Mean length of the busy periods that were seen from start to end.
pub(super) fn mean_busy(findings: &Findings) -> Option<f64> {
    let mut all = findings.owner_period_lengths.iter();
    let busy = all.find(|l| l.size_class == "all" && l.state == OwnerState::Busy);
    busy.and_then(|l| l.mean_s)
}

#[cfg(test)]
mod tests {
    use super::super::ours;
    use super::*;
    use gleaner_schemas::findings::{AvailabilityPeriods, OwnerPeriodLengths};
    use gleaner_traces::published::acharya_setia;

    #[test]
    fn means_by_class_scope_and_size() {
        let published = acharya_setia().unwrap();
        let mut observed = SeedResults::default();
        let period = |class: &str, scope, region_mib: i64, minutes: f64| AvailabilityPeriods {
            size_class: class.to_owned(),
            scope,
            notion: Notion::Paper,
            region_bytes: region_mib * MIB,
            mean_s: Some(minutes * 60.0),
            restricted_mean_s: Some(1.0),
            ..AvailabilityPeriods::default()
        };
        observed.pooled.availability_periods = vec![
            AvailabilityPeriods {
                notion: Notion::Available,
                ..period("all", Scope::All, 4, 1.0)
            },
            period("all", Scope::All, 4, 2.0),
            period("all", Scope::Idle, 4, 3.0),
            period("up to 32 MiB", Scope::All, 16, 4.0),
            period("32-64 MiB", Scope::Idle, 32, 7.0),
            period("64-128 MiB", Scope::Idle, 64, 5.0),
            period("128-256 MiB", Scope::Idle, 128, 6.0),
        ];
        let cell = |item, row, column| {
            let figure = published.get(item, row, column).unwrap();
            ours(figure, &observed).unwrap()
        };
        assert_eq!(cell("Table 4", "all, all", "4 MB"), Some(2.0));
        assert_eq!(cell("Table 4", "all, idle", "4 MB"), Some(3.0));
        assert_eq!(cell("Table 4", "32 MB, all", "16 MB"), Some(4.0));
        assert_eq!(cell("Table 4", "32 MB, all", "8 MB"), None);
        let least = |column| cell("Text", "hosts of 64 MB and more", column);
        assert_eq!(least("half of memory, idle"), Some(5.0));
        assert_eq!(least("half of memory, all"), None);
        assert_eq!(least("quarter of memory, idle"), None);
    }

    #[test]
    fn busy_periods_are_those_of_all_hosts() {
        let lengths = |class: &str, state, minutes: f64| OwnerPeriodLengths {
            size_class: class.to_owned(),
            state,
            periods_count: 1,
            censored_count: 0,
            mean_s: Some(minutes * 60.0),
            median_s: None,
            p90_s: None,
            p99_s: None,
            max_s: None,
            restricted_mean_s: None,
        };
        let findings = Findings {
            owner_period_lengths: vec![
                lengths("32-64 MiB", OwnerState::Busy, 1.0),
                lengths("all", OwnerState::Idle, 2.0),
                lengths("all", OwnerState::Busy, 3.0),
            ],
            ..Findings::default()
        };
        assert_eq!(mean_busy(&findings), Some(180.0));
    }
}
