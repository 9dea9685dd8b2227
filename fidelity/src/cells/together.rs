//! Memory of a cluster's hosts together, from the study's Figures 6 and 7, and the frequency of owners' returns.
//!
//! Computed from `notions`, since these figures use the paper's notion of available, while the cluster's
//! findings count memory available at the moment. The hosts are always on and all have the same number of
//! samples, so that a sum over hosts is a mean over samples times the number of hosts.

use super::{CellResult, NO_SUCH, named};
use crate::clusters::SeedResults;
use crate::name::Name;
use gleaner_schemas::findings::{Findings, Notion, Scope};
use gleaner_traces::published::Figure;

const MIB: i64 = 1 << 20;

/// Sum over samples of the paper's available bytes in a class, and the number of samples.
fn sum(findings: &Findings, class: &str, scope: Scope) -> Option<(f64, f64)> {
    let mut all = findings.notions.iter();
    let found =
        all.find(|n| (n.size_class.as_str(), n.scope, n.notion) == (class, scope, Notion::Paper))?;
    let samples = found.samples_count as f64;
    Some((found.mean_bytes * samples, samples))
}

/// Available memory on all hosts, or only on those idle at the moment: mean over time.
fn total(findings: &Findings, scope: Scope) -> Option<f64> {
    let (bytes, _) = sum(findings, "all", scope)?;
    let (_, samples) = sum(findings, "all", Scope::All)?;
    Some(bytes / samples * findings.hosts.len() as f64)
}

/// Value for a cell of Figure 6.
pub(super) fn available(figure: &Figure, observed: &SeedResults) -> CellResult {
    let findings = observed.of(named(figure)?);
    let (what, hosts) = figure.column.split_once(", ").ok_or(NO_SUCH)?;
    let total = total(findings, scope(hosts).ok_or(NO_SUCH)?);
    match what {
        "available" => Ok(total),
        "share of installed" => {
            let installed: i64 = findings.hosts.iter().map(|h| h.physical_bytes).sum();
            Ok(total
                .filter(|_| installed > 0)
                .map(|total| total / installed as f64))
        }
        _ => Err(NO_SUCH),
    }
}

fn scope(hosts: &str) -> Option<Scope> {
    match hosts {
        "all hosts" => Some(Scope::All),
        "idle hosts" => Some(Scope::Idle),
        _ => None,
    }
}

/// Value for Figure 7: share of available memory that is on hosts with more than 128 MiB, which are the
/// paper's hosts of 256 MB and more.
pub(super) fn share_of_large_hosts(figure: &Figure, observed: &SeedResults) -> CellResult {
    let findings = observed.of(named(figure)?);
    let scope = figure.column.rsplit(", ").next().and_then(scope);
    let scope = scope.ok_or(NO_SUCH)?;
    let mut large: Vec<&str> = findings
        .hosts
        .iter()
        .filter(|host| host.physical_bytes > 128 * MIB)
        .map(|host| host.size_class.as_str())
        .collect();
    large.sort_unstable();
    large.dedup();
    let all = sum(findings, "all", scope).filter(|all| all.0 > 0.0);
    let large = large.iter().filter_map(|class| sum(findings, class, scope));
    let large: f64 = large.map(|class| class.0).sum();
    Ok(all.map(|all| large / all.0))
}

/// Number of idle periods of five minutes and more that the owner or the load ended, per host and day.
pub(super) fn reclaims_per_day(name: Name, observed: &SeedResults) -> Option<f64> {
    let mut all = observed.of(name).reclaims.iter();
    let pooled = all.find(|r| r.host_id.is_none() && r.size_class == "all");
    pooled.map(|r| r.reclaims_per_day)
}

#[cfg(test)]
mod tests {
    use super::super::ours;
    use super::*;
    use gleaner_schemas::findings::{HostSummary, NotionSizes, Reclaims};
    use gleaner_traces::published::acharya_setia;

    #[test]
    fn totals_and_shares() {
        let published = acharya_setia().unwrap();
        let host = |class: &str, mib: i64| HostSummary {
            size_class: class.to_owned(),
            physical_bytes: mib * MIB,
            ..HostSummary::default()
        };
        let sizes = |class: &str, scope, notion, samples_count, mib: f64| NotionSizes {
            size_class: class.to_owned(),
            scope,
            notion,
            samples_count,
            mean_bytes: mib * MIB as f64,
            mean_share: 0.0,
            median_bytes: 0.0,
            p5_bytes: 0.0,
            mean_quota_bytes: None,
            mean_memory_context_bytes: None,
            p99_memory_context_bytes: None,
        };
        // One host of 300 MiB with 200 available, and two of 100 with 50 each; a third of the large host's
        // samples are idle.
        let (small, large, paper) = ("64-128 MiB", "256-512 MiB", Notion::Paper);
        let mut observed = SeedResults::default();
        observed.a.hosts = vec![host(small, 100), host(large, 300), host(small, 100)];
        observed.a.notions = vec![
            sizes("all", Scope::All, Notion::Available, 90, 1.0),
            sizes("all", Scope::All, paper, 90, 100.0),
            sizes(large, Scope::All, paper, 30, 200.0),
            sizes(small, Scope::All, paper, 60, 50.0),
            sizes("all", Scope::Idle, paper, 10, 210.0),
            sizes(large, Scope::Idle, paper, 10, 210.0),
        ];
        let record = |host: Option<&str>, reclaims_per_day| Reclaims {
            host_id: host.map(str::to_owned),
            size_class: "all".to_owned(),
            hosts_count: 1,
            reclaims_count: 1,
            observed_days: 1.0,
            reclaims_per_day,
        };
        observed.a.reclaims = vec![record(Some("x"), 9.0), record(None, 4.0)];
        let cell = |item: &str, column: &str| {
            let figure = published.get(item, "cluster A", column).unwrap();
            ours(figure, &observed).unwrap().unwrap()
        };
        assert_eq!(cell("Figure 6", "available, all hosts"), 300.0);
        assert!((cell("Figure 6", "available, idle hosts") - 70.0).abs() < 1e-9);
        assert!((cell("Figure 6", "share of installed, all hosts") - 60.0).abs() < 1e-9);
        let share = |hosts| {
            let column = format!("share from hosts of 256 MB and more, {hosts}");
            cell("Figure 7", &column)
        };
        assert!((share("all hosts") - 200.0 / 3.0).abs() < 1e-9);
        assert_eq!(share("idle hosts"), 100.0);
        assert_eq!(cell("Text", "reclaims per host and day"), 4.0);
    }
}
