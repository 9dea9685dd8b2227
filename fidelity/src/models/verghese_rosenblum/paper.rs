//! Figures that follow from the paper alone: the models' parameters, and the slowdowns of Table 2's misses.

use super::model::Model;
use super::workload::Workload;
use crate::error::Result;
use gleaner_simulator::models::verghese_rosenblum::{
    INSTRUCTIONS_PER_S, LOCAL_MISS_S, stalled_slowdown,
};
use gleaner_traces::published::{Figure, PublishedWork};

/// Our value of a figure, in the figure's unit; `None` if it does not follow from the paper.
pub(super) fn value(figure: &Figure, published: &PublishedWork) -> Result<Option<f64>> {
    let (row, column) = (&*figure.row, &*figure.column);
    match (&*figure.item, column) {
        ("Text 2.1" | "Text 2.2" | "Text 3.0" | "Text 5.0", _) => parameter(row, column),
        ("Figure 3", _) => match column.split_once(", ") {
            Some((model, memory)) => slowdown(published, row, model, memory),
            None => Ok(None),
        },
        ("Text 4.1.3", "misses saved by 4 Mbyte over 1 Mbyte, by Table 2") => {
            Ok(lowest_saving_percent(published))
        }
        ("Text 8.0", "CC-NUMA, small memory, by Table 2") => highest(published, Model::CcNuma),
        ("Text 8.0", "CC-NOW, small memory, by Table 2") => highest(published, Model::CcNow),
        _ => Ok(None),
    }
}

fn parameter(row: &str, column: &str) -> Result<Option<f64>> {
    let Some(model) = Model::named(row) else {
        return Ok(match column {
            "clock" => Some(INSTRUCTIONS_PER_S / 1e6),
            "local miss" => Some((LOCAL_MISS_S * 1e9).round()),
            _ => None,
        });
    };
    let us = |ns: u64| ns as f64 / 1e3;
    let fetch = model.page_fetch()?;
    Ok(match column {
        "time of a page" => fetch.map(|fetch| us(fetch.total_ns())),
        "delay of a page" => fetch.map(|fetch| us(fetch.delay_ns)),
        "page on the link" => fetch.map(|fetch| us(fetch.link_ns)),
        "remote miss" => Some(model.technology()?.latency_us.value),
        _ => None,
    })
}

/// Cache misses of a workload in Table 2, for each instruction.
#[derive(Clone, Copy, Debug)]
struct Misses {
    all: f64,
    remote: f64,
}

impl Misses {
    /// Misses of the cache of 1 MB, with `memory` (`small memory`, `large memory`) local.
    fn of(published: &PublishedWork, workload: &str, memory: &str) -> Option<Self> {
        let paper = |column: &str| Some(published.get("Table 2", workload, column)?.paper);
        let all = paper("misses, 1 Mbyte")? / 1000.0;
        let local_percent = paper(&format!("local misses, {memory}"))?;
        Some(Self {
            all,
            remote: all * (1.0 - local_percent / 100.0),
        })
    }

    fn slowdown(self, remote_miss_s: f64) -> f64 {
        let local_s = 1.0 / INSTRUCTIONS_PER_S + self.all * LOCAL_MISS_S;
        stalled_slowdown(local_s, self.remote, remote_miss_s)
    }

    /// Cycles for each instruction at which the program takes twice as long as with local memory alone.
    fn cycles_for_twice(self, remote_miss_s: f64) -> f64 {
        let longer_s = self.remote * (remote_miss_s - LOCAL_MISS_S);
        (longer_s - self.all * LOCAL_MISS_S) * INSTRUCTIONS_PER_S
    }
}

fn slowdown(
    published: &PublishedWork,
    workload: &str,
    model: &str,
    memory: &str,
) -> Result<Option<f64>> {
    let misses = Misses::of(published, workload, memory);
    let (Some(misses), Some(model)) = (misses, Model::named(model)) else {
        return Ok(None);
    };
    Ok(Some(misses.slowdown(model.remote_miss_s()?)))
}

/// Cycles for each instruction at which a workload takes twice as long on CC-NOW with small memory.
pub(super) fn cycles_for_twice(
    published: &PublishedWork,
    workload: Workload,
) -> Result<Option<f64>> {
    let remote_miss_s = Model::CcNow.remote_miss_s()?;
    let misses = Misses::of(published, workload.row(), "small memory");
    Ok(misses.map(|misses| misses.cycles_for_twice(remote_miss_s)))
}

/// Highest slowdown of the workloads with small memory.
pub(super) fn highest(published: &PublishedWork, model: Model) -> Result<Option<f64>> {
    let mut highest: Option<f64> = None;
    for workload in Workload::PRINTED {
        let found = slowdown(published, workload.row(), model.name(), "small memory")?;
        highest = highest.into_iter().chain(found).reduce(f64::max);
    }
    Ok(highest)
}

/// Misses that a cache of 4 MB saves over one of 1 MB, in %: the lowest of the workloads.
pub(super) fn lowest_saving_percent(published: &PublishedWork) -> Option<f64> {
    let saving = |workload: Workload| {
        let misses = |column| Some(published.get("Table 2", workload.row(), column)?.paper);
        Some((1.0 - misses("misses, 4 Mbyte")? / misses("misses, 1 Mbyte")?) * 100.0)
    };
    Workload::PRINTED
        .into_iter()
        .filter_map(saving)
        .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::{Kind, verghese_rosenblum};

    #[test]
    fn figures_of_the_paper_alone_are_as_worked_by_hand() {
        let published = verghese_rosenblum().unwrap();
        let mut count = 0;
        for figure in &published.figures {
            let is_parameter = figure.kind == Kind::Calibrated && figure.item != "Table 1";
            if !is_parameter && figure.kind != Kind::Derived {
                continue;
            }
            let ours = value(figure, &published).unwrap().unwrap();
            let is_accepted = (figure.low..=figure.high).contains(&ours);
            assert_eq!(is_accepted, figure.possible, "{figure:?}: {ours}");
            count += 1;
        }
        assert_eq!(count, 10 + 24 + 3);
    }

    #[test]
    fn cycles_at_which_the_conclusion_holds() {
        let published = verghese_rosenblum().unwrap();
        for (workload, expected) in [
            (Workload::Vcs, 25.3),
            (Workload::Splash, 33.4),
            (Workload::Simos, 6.4),
            (Workload::Pmake, 1.6),
        ] {
            let found = cycles_for_twice(&published, workload).unwrap().unwrap();
            assert!((found - expected).abs() < 0.06, "{workload:?}: {found}");
        }
        let saving = lowest_saving_percent(&published).unwrap();
        assert!((saving - 35.3).abs() < 0.05, "{saving}");
    }
}
