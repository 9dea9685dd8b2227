//! Figures of the paper that no trace can have at the same time, and which of them our traces have.

use super::name::Name;
use super::record::Record;

const MINUTES_A_DAY: f64 = 1440.0;

/// A quantity computed from some of the paper's figures, and from ours, for each cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Contradiction {
    pub(super) quantity: &'static str,
    pub(super) by: &'static str,
    /// Values of cluster A, then of B; absent if not computed.
    pub(super) clusters: [Option<f64>; 2],
}

/// Numbers of reclaims and of idle periods, computed from each of the figures that imply them.
pub(super) fn contradictions(records: &[Record]) -> Vec<Contradiction> {
    let find = |item: &str, row: &str, column: &str| {
        let mut all = records.iter();
        all.find(|r| (&*r.item, &*r.row, &*r.column) == (item, row, column))
    };
    let both = |of: &dyn Fn(&str) -> Option<f64>| Name::BOTH.map(|name| of(name.row()));
    let total =
        |cluster: &str, hosts: &str| find("Figure 6", cluster, &format!("available, {hosts}"));
    let paper = |r: &Record| Some(r.paper);
    let ours = |r: &Record| r.ours;
    let idle_share = |cluster: &str, of: &dyn Fn(&Record) -> Option<f64>| {
        Some(of(total(cluster, "idle hosts")?)? / of(total(cluster, "all hosts")?)?)
    };
    let reclaims = |cluster: &str| find("Text", cluster, "reclaims per host and day");
    let busy_min = || Some(find("Text", "both clusters", "busy period, mean")?.paper);
    let idle_min = || Some(find("Table 4", "all, idle", "4 MB")?.paper);
    let share = |cluster: &str| idle_share(cluster, &paper);
    // Idle and busy periods alternate, so their numbers are equal.
    let by_busy = |cluster: &str| Some((1.0 - share(cluster)?) * MINUTES_A_DAY / busy_min()?);
    let by_idle = |cluster: &str| Some(share(cluster)? * MINUTES_A_DAY / idle_min()?);
    let printed = |cluster: &str| reclaims(cluster).map(|r| r.paper);
    let row = |quantity, by, of: &dyn Fn(&str) -> Option<f64>| Contradiction {
        quantity,
        by,
        clusters: both(of),
    };
    const SHARE: &str = "share of memory available that is on idle hosts, %";
    const RECLAIMS: &str = "reclaims per host and day";
    const LENGTH: &str = "mean idle period, min";
    [
        row(SHARE, "the paper's Figure 6", &|c| Some(share(c)? * 100.0)),
        row(SHARE, "ours", &|c| Some(idle_share(c, &ours)? * 100.0)),
        row(RECLAIMS, "the paper's text and Table 6", &printed),
        row(RECLAIMS, "its Figure 6 and mean busy period", &by_busy),
        row(
            RECLAIMS,
            "its Figure 6 and Table 4 (all hosts, idle, 4 MB)",
            &by_idle,
        ),
        row(RECLAIMS, "ours", &|c| reclaims(c)?.ours),
        row(
            LENGTH,
            "the paper's Table 4 (all hosts, idle, 4 MB)",
            &|_| idle_min(),
        ),
        row(LENGTH, "its Figure 6 and Table 6", &|c| {
            Some(share(c)? * MINUTES_A_DAY / printed(c)?)
        }),
        row(LENGTH, "ours, by share and reclaims", &|c| {
            Some(idle_share(c, &ours)? * MINUTES_A_DAY / reclaims(c)?.ours?)
        }),
    ]
    .into_iter()
    .filter(|c| c.clusters.iter().any(Option::is_some))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::acharya_setia;

    #[test]
    fn the_papers_own_figures_do_not_agree() {
        let figures = acharya_setia().unwrap().figures;
        let none: Vec<Record> = figures.iter().map(|f| Record::new(f, &[], "")).collect();
        let found = contradictions(&none);
        assert!(
            found.iter().all(|c| !c.by.starts_with("ours")),
            "nothing was observed"
        );
        let reclaims = found.iter().filter(|c| c.quantity.starts_with("reclaims"));
        let of_a: Vec<f64> = reclaims.map(|c| c.clusters[0].unwrap().round()).collect();
        assert_eq!(of_a, [4.0, 13.0, 23.0]);
        let hours = found
            .last()
            .unwrap()
            .clusters
            .map(|minutes| minutes.unwrap() / 60.0);
        assert!(
            hours.iter().all(|hours| (4.5..5.5).contains(hours)),
            "{hours:?}"
        );
    }

    #[test]
    fn ours_is_worked_out_likewise() {
        let figures = acharya_setia().unwrap().figures;
        let twice: Vec<Record> = figures
            .iter()
            .map(|f| Record::new(f, &[f.paper * 2.0], ""))
            .collect();
        let found = contradictions(&twice);
        let ours: Vec<_> = found.iter().filter(|c| c.by.starts_with("ours")).collect();
        let paper: Vec<_> = found
            .iter()
            .filter(|c| c.by.starts_with("the paper's"))
            .collect();
        assert_eq!(
            ours[0].clusters, paper[0].clusters,
            "a share of twice as much"
        );
        assert_eq!(
            ours[1].clusters,
            paper[1].clusters.map(|n| n.map(|n| n * 2.0))
        );
        assert!(contradictions(&[]).is_empty());
    }
}
