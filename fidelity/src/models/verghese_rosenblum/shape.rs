//! Figures of our workloads: the printed tables' figures of theirs, and the numbers by which statements are judged.

use super::model::Model;
use super::observation::{HALF, PERCENTS, WorkloadObservations};
use super::workload::Workload;
use gleaner_traces::published::Figure;

/// Largest slowdown that the paper accepts: more than twice LOCAL is unacceptable (section 8.0).
const ACCEPTABLE: f64 = 2.0;
/// Memory of the printed shares of local misses, in % of the footprint: the paper prints none.
const LARGE: u32 = 90;
/// The printed order of NOW's performance (section 4.1), the best first.
const GROUPS: [&[Workload]; 3] = [
    &[Workload::Pmake],
    &[Workload::Splash, Workload::Delay],
    &[Workload::Vcs, Workload::Simos, Workload::Db],
];
const SOFTWARE: [Model; 2] = [Model::Now, Model::Subpage];

/// Value of a figure of our workloads, in the figure's unit; `None` if there is none.
pub(super) fn value(figure: &Figure, observed: &WorkloadObservations) -> Option<f64> {
    let column = &*figure.column;
    match &*figure.item {
        "Table 1" | "Table 2" => printed(figure, observed),
        "Figure 3" => match column {
            "lowest slowdown of NOW and SUBPAGE" => lowest(Workload::PRINTED.map(|workload| {
                lowest(SOFTWARE.map(|model| observed.slowdown(workload, HALF, model)))
            })),
            "highest ratio of SUBPAGE to NOW" => highest(Workload::PRINTED.map(|workload| {
                highest(PERCENTS.map(|percent| {
                    ratio(observed, workload, percent, Model::Subpage, &[Model::Now])
                }))
            })),
            "highest ratio of CC-NUMA to the best other model" => {
                let others = Model::ALL.map(|model| (model != Model::CcNuma).then_some(model));
                let others: Vec<Model> = others.into_iter().flatten().collect();
                highest(
                    Workload::PRINTED
                        .map(|workload| ratio(observed, workload, HALF, Model::CcNuma, &others)),
                )
            }
            _ => None,
        },
        "Text 4.1" => pairs_in_order(observed),
        "Text 4.1.3" => match column {
            "highest ratio of CC-NOW to the better of NOW and SUBPAGE" => {
                highest(PERCENTS.map(|percent| {
                    ratio(observed, Workload::Splash, percent, Model::CcNow, &SOFTWARE)
                }))
            }
            "misses saved by 4 Mbyte over 1 Mbyte, by our workloads" => {
                lowest(Workload::PRINTED.map(|workload| saving_percent(observed, workload)))
            }
            _ => None,
        },
        "Figure 4" => observed.workloads.get(&Workload::Vcs)?.knee_percent,
        "Figure 5" => on_fast_networks(&figure.row, observed),
        "Figure 6" => {
            let slowdown = |workload| observed.slowdown(workload, HALF, Model::MyrNow);
            Some(slowdown(Workload::OneVcs)? / slowdown(Workload::Vcs)?)
        }
        _ => None,
    }
}

/// Returns true if the figure needs recordings of our workloads.
pub(crate) fn needs_recordings(figure: &Figure) -> bool {
    match &*figure.item {
        "Table 1" | "Text 4.1" | "Figure 4" | "Figure 5" | "Figure 6" => true,
        "Table 2" => figure.column != "misses, 512 Kbyte",
        "Figure 3" => !figure.column.contains(", "),
        "Text 4.1.3" => !figure.column.ends_with("by Table 2"),
        _ => false,
    }
}

/// Use of CPU and link by the workloads of several processes in a figure of MYRNOW's slowdowns; `None` for other figures.
pub(crate) fn shared_use(figure: &Figure, observed: &WorkloadObservations) -> Option<String> {
    if !figure.column.ends_with("slowdown of MYRNOW") {
        return None;
    }
    let of = |workload: Workload| {
        let shared = observed.workloads.get(&workload)?.shared_use?;
        let estimated = shared.estimated_slowdown;
        let estimated = estimated.map(|slowdown| format!(", by mean values {slowdown:.2}"));
        Some(format!(
            "{}: CPU busy {:.0} %, idle {:.0} %, link used {:.0} %, slowdown {:.2}{}",
            workload.row(),
            shared.busy_percent,
            100.0 - shared.busy_percent,
            shared.link_percent,
            shared.slowdown,
            estimated.unwrap_or_default(),
        ))
    };
    let in_row = |workload: &Workload| figure.row.split(", ").any(|name| name == workload.row());
    let workloads = Workload::PRINTED.into_iter().filter(in_row);
    let notes: Vec<String> = workloads.filter_map(of).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

fn printed(figure: &Figure, observed: &WorkloadObservations) -> Option<f64> {
    let mut workloads = Workload::PRINTED.into_iter();
    let workload = workloads.find(|workload| workload.row() == figure.row)?;
    let of = observed.workloads.get(&workload)?;
    let local_percent = |memory: u32| Some(of.local_shares.get(&memory)? * 100.0);
    match &*figure.column {
        "memory used" => Some(of.footprint_mib),
        "misses, 1 Mbyte" => Some(of.misses_per_1000),
        "misses, 4 Mbyte" => Some(of.larger_misses_per_1000),
        "local misses, small memory" => local_percent(HALF),
        "local misses, large memory" => local_percent(LARGE),
        _ => None,
    }
}

fn saving_percent(observed: &WorkloadObservations, workload: Workload) -> Option<f64> {
    let of = observed.workloads.get(&workload)?;
    Some((1.0 - of.larger_misses_per_1000 / of.misses_per_1000) * 100.0)
}

/// Lowest of values, if all are there.
fn lowest(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.into_iter().collect();
    values?.into_iter().reduce(f64::min)
}

/// Highest of values, if all are there.
fn highest(values: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    let values: Option<Vec<f64>> = values.into_iter().collect();
    values?.into_iter().reduce(f64::max)
}

/// Slowdown of a model over the least slowdown of others.
fn ratio(
    observed: &WorkloadObservations,
    workload: Workload,
    percent: u32,
    model: Model,
    others: &[Model],
) -> Option<f64> {
    let slowdown = |model| observed.slowdown(workload, percent, model);
    let best = lowest(others.iter().map(|other| slowdown(*other)))?;
    Some(slowdown(model)? / best)
}

/// Pairs of workloads in neighbouring groups of the printed order that NOW slows down in this order.
fn pairs_in_order(observed: &WorkloadObservations) -> Option<f64> {
    let slowdown = |workload: &Workload| observed.slowdown(*workload, HALF, Model::Now);
    let mut pairs = 0;
    for (at, better) in GROUPS.iter().enumerate() {
        for first in *better {
            let worse = GROUPS.get(at + 1).copied().unwrap_or_default();
            for second in worse {
                pairs += u32::from(slowdown(first)? < slowdown(second)?);
            }
        }
    }
    Some(f64::from(pairs))
}

fn on_fast_networks(row: &str, observed: &WorkloadObservations) -> Option<f64> {
    let slowdown = |workload, model| observed.slowdown(workload, HALF, model);
    let of_myrnow = |workload| slowdown(workload, Model::MyrNow);
    let over_cc_now = |workload| ratio(observed, workload, HALF, Model::MyrNow, &[Model::CcNow]);
    match row {
        "PMAKE, SPLASH, DELAY, SIMOS" => {
            let workloads = [
                Workload::Pmake,
                Workload::Splash,
                Workload::Delay,
                Workload::Simos,
            ];
            highest(workloads.map(of_myrnow))
        }
        "VCS, DB" => lowest([Workload::Vcs, Workload::Db].map(of_myrnow)),
        "PMAKE, SPLASH" => highest([Workload::Pmake, Workload::Splash].map(over_cc_now)),
        "DELAY, SIMOS" => lowest([Workload::Delay, Workload::Simos].map(over_cc_now)),
        "ATMNOW" => {
            let over_myrnow = Workload::PRINTED
                .into_iter()
                .filter(|w| *w != Workload::Vcs);
            let over_myrnow =
                lowest(over_myrnow.map(|workload| {
                    ratio(observed, workload, HALF, Model::AtmNow, &[Model::MyrNow])
                }))?;
            let [pmake, delay] = [Workload::Pmake, Workload::Delay]
                .map(|workload| slowdown(workload, Model::AtmNow));
            let statements = [
                over_myrnow > 1.0,
                pmake? <= ACCEPTABLE,
                delay? <= ACCEPTABLE,
            ];
            let holding = statements.into_iter().filter(|holds| *holds);
            Some(holding.count() as f64)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::observation::{SharedUse, WorkloadFigures};
    use super::*;
    use gleaner_traces::published::{Kind, verghese_rosenblum};

    /// Workloads whose slowdowns are as the paper describes them.
    fn as_printed() -> WorkloadObservations {
        let mut observed = WorkloadObservations::default();
        for (workload, [now, subpage, myrnow, atmnow, cc_numa, cc_now]) in [
            (Workload::Pmake, [2.6, 2.2, 1.2, 1.4, 1.1, 1.4]),
            (Workload::Splash, [3.0, 2.4, 1.5, 2.5, 1.4, 4.0]),
            (Workload::Delay, [3.1, 2.5, 1.6, 1.9, 1.1, 1.5]),
            (Workload::Vcs, [9.0, 7.0, 3.5, 5.0, 1.7, 3.0]),
            (Workload::OneVcs, [9.0, 7.0, 3.6, 5.0, 1.7, 3.0]),
            (Workload::Simos, [6.0, 5.0, 1.9, 3.0, 1.3, 1.8]),
            (Workload::Db, [8.0, 6.0, 2.9, 4.0, 1.2, 1.9]),
        ] {
            let mut of = WorkloadFigures {
                footprint_mib: 50.0,
                misses_per_1000: 10.0,
                larger_misses_per_1000: 4.0,
                knee_percent: Some(80.0),
                ..WorkloadFigures::default()
            };
            let models = Model::ALL.into_iter();
            let slowdowns = [now, subpage, myrnow, atmnow, cc_numa, cc_now];
            for (model, slowdown) in models.zip(slowdowns) {
                for percent in PERCENTS {
                    of.slowdowns.insert((percent, model), slowdown);
                }
            }
            of.local_shares.extend([(HALF, 0.6), (LARGE, 0.9)]);
            observed.workloads.insert(workload, of);
        }
        observed
    }

    fn shapes() -> Vec<Figure> {
        let mut figures = verghese_rosenblum().unwrap().figures;
        figures.retain(|figure| figure.kind == Kind::Shape && needs_recordings(figure));
        figures
    }

    #[test]
    fn shapes_hold_of_workloads_as_the_paper_describes_them() {
        let observed = as_printed();
        for figure in shapes() {
            let ours = value(&figure, &observed).unwrap();
            let accepted = figure.low..=figure.high;
            assert!(
                accepted.contains(&ours),
                "{}: {}: {ours}",
                figure.row,
                figure.column
            );
        }
        assert_eq!(shapes().len(), 12);
    }

    #[test]
    fn each_shape_fails_of_other_workloads() {
        // The software models are quick, lines are slow, and one VCS is unlike two.
        let mut observed = as_printed();
        for (workload, of) in &mut observed.workloads {
            of.knee_percent = Some(55.0);
            for ((_, model), slowdown) in &mut of.slowdowns {
                let is_splash = *workload == Workload::Splash;
                *slowdown = match model {
                    Model::Now => 1.1,
                    Model::Subpage => 1.2,
                    Model::MyrNow if *workload == Workload::OneVcs => 9.0,
                    Model::MyrNow if [Workload::Vcs, Workload::Db].contains(workload) => 1.5,
                    Model::MyrNow if *workload == Workload::Delay => 2.5,
                    Model::MyrNow => 2.4,
                    Model::AtmNow => 2.2,
                    Model::CcNuma => 3.0,
                    Model::CcNow if is_splash => 1.05,
                    Model::CcNow if *workload == Workload::Pmake => 1.5,
                    Model::CcNow => 5.0,
                };
            }
        }
        for figure in shapes() {
            let ours = value(&figure, &observed).unwrap();
            let accepted = figure.low..=figure.high;
            assert!(
                !accepted.contains(&ours),
                "{}: {}: {ours}",
                figure.row,
                figure.column
            );
        }
    }

    #[test]
    fn the_use_of_cpu_and_link_stands_beside_the_slowdowns_of_myrnow() {
        let mut observed = as_printed();
        if let Some(vcs) = observed.workloads.get_mut(&Workload::Vcs) {
            vcs.shared_use = Some(SharedUse {
                busy_percent: 28.6,
                link_percent: 50.0,
                slowdown: 3.5,
                estimated_slowdown: Some(3.6),
            });
        }
        let notes = shapes()
            .into_iter()
            .filter_map(|f| shared_use(&f, &observed));
        let notes: Vec<String> = notes.collect();
        let expected =
            "VCS: CPU busy 29 %, idle 71 %, link used 50 %, slowdown 3.50, by mean values 3.60";
        assert_eq!(notes, [expected]);
    }

    #[test]
    fn every_figure_of_our_workloads_needs_them() {
        let observed = as_printed();
        let nothing = WorkloadObservations::default();
        for figure in verghese_rosenblum().unwrap().figures {
            assert_eq!(
                value(&figure, &observed).is_some(),
                needs_recordings(&figure),
                "{figure:?}"
            );
            assert_eq!(value(&figure, &nothing), None);
        }
    }
}
