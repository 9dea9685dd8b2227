//! Our values of the figures of Verghese and Rosenblum, *Remote Memory Access in Workstation Clusters* (1997): what
//! follows from the paper alone, and figures of our workloads.

mod model;
mod observation;
mod paper;
mod shape;
mod workload;

use super::reading::Reading;
use crate::error::Result;
use gleaner_traces::published::{Figure, PublishedWork};
use model::Model;
pub(super) use observation::WorkloadObservations;
pub(super) use shape::{needs_recordings, shared_use};
use workload::Workload;

/// Our value of a figure, in the figure's unit; `None` if there is none. Figures of workloads need `observed`.
pub(super) fn ours(
    figure: &Figure,
    published: &PublishedWork,
    observed: Option<&WorkloadObservations>,
) -> Result<Option<f64>> {
    if needs_recordings(figure) {
        return Ok(observed.and_then(|observed| shape::value(figure, observed)));
    }
    paper::value(figure, published)
}

/// Both readings of each contradiction in the paper.
pub(super) fn readings(published: &PublishedWork) -> Result<Vec<Reading>> {
    const CC_NOW: &str = "slowdown of CC-NOW with small memory, highest of six workloads";
    const CC_NUMA: &str = "slowdown of CC-NUMA with small memory, highest of six workloads";
    const CYCLES: [(Workload, &str); 4] = [
        (
            Workload::Vcs,
            "cycles per instruction of VCS if CC-NOW doubles its time",
        ),
        (
            Workload::Splash,
            "cycles per instruction of SPLASH if CC-NOW doubles its time",
        ),
        (
            Workload::Simos,
            "cycles per instruction of SIMOS if CC-NOW doubles its time",
        ),
        (
            Workload::Pmake,
            "cycles per instruction of PMAKE if CC-NOW doubles its time",
        ),
    ];
    const SAVED: &str = "misses saved by 4 Mbyte of cache over 1 Mbyte, lowest of six workloads, %";
    const HIDDEN: &str = "latency of remote pages hidden, PMAKE and SPLASH, %";
    const STEEP: &str = "slowdown of SIMOS on MYRNOW";
    const MYRNOW: &str = "page on MYRNOW's link, us";
    const ATMNOW: &str = "page on ATMNOW's link, us";
    const SUBPAGE: &str = "page of SUBPAGE, us";
    const BY_TABLE_2: &str = "Table 2 and the latencies, at one instruction a cycle";
    let mut readings = Vec::new();
    let mut contradiction = |quantity, of: [(&str, Option<f64>); 2]| {
        for (reading, value) in of {
            let reading = reading.to_owned();
            readings.extend(value.map(|value| Reading {
                quantity,
                reading,
                value,
            }));
        }
    };
    let printed = |item, row, column| Some(published.get(item, row, column)?.paper);
    contradiction(
        CC_NOW,
        [
            ("within two times (section 8.0)", Some(2.0)),
            (BY_TABLE_2, paper::highest(published, Model::CcNow)?),
        ],
    );
    contradiction(
        CC_NUMA,
        [
            (
                "comparable to the all-local-memory case (section 8.0)",
                Some(1.0),
            ),
            (BY_TABLE_2, paper::highest(published, Model::CcNuma)?),
        ],
    );
    for (workload, quantity) in CYCLES {
        contradiction(
            quantity,
            [
                ("an R4000-like processor (section 3.0)", Some(1.0)),
                (
                    "so that CC-NOW is within two times (section 8.0)",
                    paper::cycles_for_twice(published, workload)?,
                ),
            ],
        );
    }
    contradiction(
        SAVED,
        [
            ("50 % or more for all (section 4.1.3)", Some(50.0)),
            ("Table 2", paper::lowest_saving_percent(published)),
        ],
    );
    contradiction(
        HIDDEN,
        [
            ("cannot be hidden (section 8.0)", Some(0.0)),
            ("much, taken for half (section 5.0)", Some(50.0)),
        ],
    );
    contradiction(
        STEEP,
        [
            (
                "as VCS, whose bar overflows Figure 7; figures end at four (section 4.1.1)",
                Some(4.0),
            ),
            ("acceptable, and VCS is not (section 5.0)", Some(2.0)),
        ],
    );
    contradiction(
        MYRNOW,
        [
            ("printed", printed("Text 5.0", "MYRNOW", "page on the link")),
            ("4096 B at the printed 400 Mbit/s", Some(page_us(400.0))),
        ],
    );
    contradiction(
        ATMNOW,
        [
            ("printed", printed("Text 5.0", "ATMNOW", "page on the link")),
            ("4096 B at the printed 160 Mbit/s", Some(page_us(160.0))),
        ],
    );
    contradiction(
        SUBPAGE,
        [
            (
                "the whole page (section 2.1)",
                printed("Text 2.1", "SUBPAGE", "time of a page"),
            ),
            (
                "the first Kbyte; the whole page takes about this (section 3.0)",
                Some(1000.0),
            ),
        ],
    );
    Ok(readings)
}

/// Time of a page of 4096 bytes at this rate, in microseconds.
fn page_us(mbit_per_s: f64) -> f64 {
    4096.0 * 8.0 / mbit_per_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::{Kind, verghese_rosenblum};

    #[test]
    fn each_contradiction_has_two_readings() {
        let readings = readings(&verghese_rosenblum().unwrap()).unwrap();
        assert_eq!(readings.len(), 2 * 12);
        for pair in readings.chunks(2) {
            assert_eq!(pair[0].quantity, pair[1].quantity);
            assert_ne!(pair[0].value, pair[1].value, "{pair:?}");
        }
        let value = |at: usize| (readings[at].value * 100.0).round() / 100.0;
        assert_eq!((value(1), value(3)), (7.2, 3.07));
        assert_eq!((value(19), value(21)), (81.92, 204.8));
    }

    #[test]
    fn without_recordings_only_the_papers_own_figures_have_values() {
        let published = verghese_rosenblum().unwrap();
        for figure in &published.figures {
            let ours = ours(figure, &published, None).unwrap();
            let is_of_paper = match figure.kind {
                Kind::Calibrated => figure.item != "Table 1",
                kind => kind == Kind::Derived,
            };
            assert_eq!(ours.is_some(), is_of_paper, "{figure:?}");
        }
    }
}
