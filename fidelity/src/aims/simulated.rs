//! Aims of the simulated Tables 5 and 6 and Figures 8 to 10.

use super::Aim;
use crate::gains::gains;
use crate::name::Name;
use crate::record::Record;
use crate::shapes::Shape;

/// Maximum error of a speedup, as a share of the possible gain (ideal speedup − 1).
const SHARE: f64 = 0.15;
/// Maximum factor between a mean memory context and the study's, in either direction.
const FACTOR: f64 = 10.0;
/// Maximum memory context, in KiB, where the study has 0.
const NOTHING_KIB: f64 = 1.0;

/// Aims of the simulated figures.
pub(super) fn aims(records: &[Record], shapes: &[Shape]) -> Vec<Aim> {
    let of = |item: &'static str| -> Vec<&Record> {
        let all = records.iter().filter(|r| r.item == item);
        all.filter(|r| r.ours.is_some()).collect()
    };
    let (speedups, costs) = (of("Table 5"), of("Table 6"));
    let mut aims = Vec::new();
    if !speedups.is_empty() {
        aims.extend([shares(records), programs(&speedups), clusters(&speedups)]);
    }
    if !costs.is_empty() {
        aims.extend([medians(&costs), means(&costs)]);
    }
    for item in ["Figure 8", "Figure 9", "Figure 10"] {
        let said: Vec<&Shape> = shapes.iter().filter(|s| s.item == item).collect();
        if !said.is_empty() {
            aims.push(text(item, &said));
        }
    }
    aims
}

/// An aim with `count` cases, of which `misses` miss it.
fn aim(item: &'static str, what: String, count: usize, misses: Vec<String>) -> Aim {
    Aim {
        item,
        aim: what,
        reached: format!("{} of {count}", count - misses.len()),
        is_met: misses.is_empty(),
        misses,
    }
}

fn shares(records: &[Record]) -> Aim {
    let all = gains(records);
    let off = all
        .iter()
        .filter(|gain| (gain.ours - gain.paper).abs() > SHARE);
    let misses = off.map(|gain| {
        let (ours, paper) = (gain.ours, gain.paper);
        format!(
            "{}, {} ({ours:.2}, not {paper:.2})",
            gain.application,
            gain.cluster.row()
        )
    });
    let misses = misses.collect();
    let what = format!("share of the possible gain within {SHARE}");
    aim("Table 5", what, all.len(), misses)
}

/// Aim for each pair of programs on a cluster: the program that leads in the study leads.
fn programs(speedups: &[&Record]) -> Aim {
    let (mut count, mut misses) = (0, Vec::new());
    for cluster in Name::BOTH {
        let of_cluster: Vec<&&Record> = speedups
            .iter()
            .filter(|r| r.column == cluster.row())
            .collect();
        for (i, one) in of_cluster.iter().enumerate() {
            for other in &of_cluster[i + 1..] {
                count += 1;
                if one.paper.total_cmp(&other.paper) != of(one, other) {
                    misses.push(format!("{} and {}, {}", one.row, other.row, cluster.row()));
                }
            }
        }
    }
    aim(
        "Table 5",
        "pairs of programs in order on each cluster".to_owned(),
        count,
        misses,
    )
}

/// Aim for each program whose speedups in the study differ by cluster: it leads on the same cluster.
fn clusters(speedups: &[&Record]) -> Aim {
    let on = |cluster: Name| speedups.iter().filter(move |r| r.column == cluster.row());
    let pairs = on(Name::A).filter_map(|a| on(Name::B).find(|b| b.row == a.row).map(|b| (a, b)));
    let pairs: Vec<_> = pairs
        .filter(|(a, b)| a.paper.total_cmp(&b.paper).is_ne())
        .collect();
    let is_off = |(a, b): &&(&&Record, &&Record)| a.paper.total_cmp(&b.paper) != of(a, b);
    let misses = pairs
        .iter()
        .filter(is_off)
        .map(|(a, _)| a.row.clone())
        .collect();
    aim(
        "Table 5",
        "programs that differ are ahead on the same cluster".to_owned(),
        pairs.len(),
        misses,
    )
}

fn of(one: &Record, other: &Record) -> std::cmp::Ordering {
    one.ours
        .unwrap_or(f64::NAN)
        .total_cmp(&other.ours.unwrap_or(f64::NAN))
}

fn medians(costs: &[&Record]) -> Aim {
    let all: Vec<_> = costs
        .iter()
        .filter(|r| r.column.ends_with("context, median"))
        .collect();
    let off = all
        .iter()
        .filter(|r| r.ours.is_none_or(|ours| !(r.low..=r.high).contains(&ours)));
    let misses = off.map(|r| missed(r)).collect();
    aim(
        "Table 6",
        "median memory context 0".to_owned(),
        all.len(),
        misses,
    )
}

/// Aim for the mean memory contexts. The upper bound has its own row, and no aim.
fn means(costs: &[&Record]) -> Aim {
    let means = costs.iter().filter(|r| r.column.ends_with("context, mean"));
    let all: Vec<_> = means.filter(|r| r.row != "upper bound").collect();
    let is_near = |r: &Record, ours: f64| match r.paper {
        0.0 => ours < NOTHING_KIB,
        paper => (paper / FACTOR..=paper * FACTOR).contains(&ours),
    };
    let off = all
        .iter()
        .filter(|r| r.ours.is_none_or(|ours| !is_near(r, ours)));
    let misses = off.map(|r| missed(r)).collect();
    let what = format!(
        "mean memory context within a factor of {FACTOR}, below {NOTHING_KIB} KiB where the paper has 0"
    );
    aim("Table 6", what, all.len(), misses)
}

fn missed(r: &Record) -> String {
    let ours = super::super::wording::or_dash(r.ours.map(super::super::number::number));
    format!("{} ({ours} {}, not {})", r.place(), r.unit, r.paper)
}

fn text(item: &'static str, said: &[&Shape]) -> Aim {
    let off = said.iter().filter(|s| s.so < s.seeds);
    let misses = off.map(|s| format!("{}: {} ({} of {} seeds)", s.row, s.paper, s.so, s.seeds));
    let misses = misses.collect();
    aim(
        item,
        "what the text says is so in every seed".to_owned(),
        said.len(),
        misses,
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::records;
    use super::*;
    use gleaner_traces::published::acharya_setia;

    fn shape(item: &'static str, so: usize) -> Shape {
        Shape {
            item,
            row: "dmine".to_owned(),
            quantity: "speedup",
            paper: "a slowdown",
            ours: String::new(),
            range: String::new(),
            so,
            seeds: 3,
        }
    }

    #[test]
    fn the_study_meets_its_own_aims() {
        let shapes = [shape("Figure 8", 3), shape("Figure 9", 3)];
        let found = aims(&records(|f| f.paper), &shapes);
        let reached: Vec<&str> = found.iter().map(|a| a.reached.as_str()).collect();
        // Five programs make ten pairs on each of two clusters. Only four programs count for the cluster
        // order: lu has the same speedup on both clusters.
        assert_eq!(
            reached,
            [
                "10 of 10", "20 of 20", "4 of 4", "10 of 10", "10 of 10", "1 of 1", "1 of 1"
            ]
        );
        assert!(found.iter().all(|a| a.is_met));
    }

    #[test]
    fn misses_are_named_with_both_figures() {
        let found = aims(
            &records(|f| match (&*f.item, &*f.row, &*f.column) {
                // 0.15 of the ideal gain 2.29 is 0.3435: one cell is just outside, one just inside.
                ("Table 5", "dmine", "cluster A") => 2.08 - 0.35,
                ("Table 5", "dmine", "cluster B") => 1.2 + 0.34,
                ("Table 6", "db2", "cluster A, memory context, mean") => 92.0,
                ("Table 6", "hotcold", "cluster A, memory context, mean") => 1.5,
                ("Table 6", "lu", "cluster B, memory context, mean") => 18.0,
                ("Table 6", "lu", "cluster B, memory context, median") => 1.0,
                _ => f.paper,
            }),
            &[shape("Figure 9", 2)],
        );
        assert_eq!(found[0].misses, ["dmine, cluster A (0.32, not 0.47)"]);
        // dmine's 1.73 on A still leads random's 1.72. Its 1.54 on B leads hotcold's 1.32 and random's 1.24,
        // unlike in the study.
        assert_eq!(
            found[1].misses,
            [
                "dmine and hotcold, cluster B",
                "dmine and random, cluster B"
            ]
        );
        assert!(found[2].is_met);
        assert_eq!(
            found[3].misses,
            ["lu: cluster B, memory context, median (1.00 KiB, not 0)"]
        );
        let means = [
            "db2: cluster A, memory context, mean (92.0 KiB, not 929)",
            "hotcold: cluster A, memory context, mean (1.50 KiB, not 0)",
        ];
        assert_eq!(found[4].misses, means);
        assert_eq!(found[5].misses, ["dmine: a slowdown (2 of 3 seeds)"]);
        assert!(!found[5].is_met);
    }

    #[test]
    fn nothing_is_missed_that_was_not_simulated() {
        let figures = acharya_setia().unwrap().figures;
        let none: Vec<Record> = figures.iter().map(|f| Record::new(f, &[], "")).collect();
        assert!(aims(&none, &[]).is_empty());
    }
}
