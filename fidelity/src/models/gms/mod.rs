//! Our values of the figures of Feeley et al., *Implementing Global Memory Management in a Workstation Cluster* (1995).

mod experiments;
mod figures;

use super::reading::Reading;
use crate::error::Result;
use experiments::{Experiment, Observations};
use figures::ms;
use gleaner_simulator::gms::{Costs, EpochCost, GetPageCost};
use gleaner_traces::published::Figure;
use std::collections::BTreeSet;

/// Bytes of 35 MB in each direction, which change places in Figure 8.
const MOVED_BYTES: f64 = 35.0 * 1_048_576.0;
/// Bytes of a page.
const PAGE_BYTES: f64 = 8192.0;
/// Bits per second of the paper's network.
const NETWORK_BITS_PER_S: f64 = 155e6;

/// Values of each figure over the seeds. A figure that no simulation needs has one value; a figure that we do not
/// model has none.
pub(super) fn values(figures: &[&Figure], first_seed: u64, seeds: u64) -> Result<Vec<Vec<f64>>> {
    let wanted = figures
        .iter()
        .flat_map(|f| experiments::experiments(&f.item));
    let wanted: BTreeSet<Experiment> = wanted.collect();
    let wanted: Vec<Experiment> = wanted.into_iter().collect();
    let nothing = Observations::default();
    let value = |figure: &&Figure| figures::ours(figure, &nothing).into_iter().collect();
    let mut values: Vec<Vec<f64>> = figures.iter().map(value).collect();
    if wanted.is_empty() {
        return Ok(values);
    }
    let bar = gleaner_terminal::bar("fidelity", wanted.len() as u64 * seeds);
    for done in 0..seeds {
        let seed = first_seed.wrapping_add(done);
        bar.set_message(format!("seed {seed}, {} of {seeds}", done + 1));
        let observed = Observations::new(&wanted, seed, &bar)?;
        for (figure, values) in figures.iter().zip(&mut values) {
            if !experiments::experiments(&figure.item).is_empty() {
                values.extend(figures::ours(figure, &observed));
            }
        }
    }
    bar.finish_and_clear();
    // A value without simulation is the same in every seed.
    for (figure, values) in figures.iter().zip(&mut values) {
        if figures::ours(figure, &nothing).is_some() {
            values.truncate(1);
        }
    }
    Ok(values)
}

/// Both readings of each contradiction in the paper.
pub(super) fn readings() -> Vec<Reading> {
    const HIT: &str = "shared hit, us (Table 1)";
    const MOVE: &str = "change of 35 MB each way, s (section 5.4: one each second)";
    const FRAME: &str = "time until a put's frame is free, us (section 5.1)";
    const MISS: &str =
        "overhead without idle memory, % of an NFS access of 4.8 ms (sections 5.1, 5.3)";
    const FASTER: &str =
        "times as fast as a sequential access of the disk (section 3.1: two to ten)";
    const SUMMARY: &str = "summary of a node of 64 MB, us (Table 5)";
    const SERVING: &str = "CPU of an operation, us (Figure 13)";
    let reading = |quantity, reading: &str, value| Reading {
        quantity,
        reading: reading.to_owned(),
        value,
    };
    let us = |time_ns: u64| ms(time_ns) * 1e3;
    let costs = Costs::default();
    let bare_s = MOVED_BYTES * 8.0 / NETWORK_BITS_PER_S;
    let access_s = MOVED_BYTES / PAGE_BYTES * ms(costs.private_access_ns()) / 1e3;
    let share = |time_ns: u64| ms(time_ns) / ms(costs.nfs_sequential_ns) * 100.0;
    let times = |time_ns: u64| ms(costs.disk_sequential_ns) / ms(time_ns);
    let served_ns = (GetPageCost::PRIVATE.target_ns + costs.put_target_private_ns) / 2;
    vec![
        reading(HIT, "sum of its rows", us(GetPageCost::SHARED.total_ns())),
        reading(HIT, "printed total", 1558.0),
        reading(MOVE, "at the network's bare rate", bare_s),
        reading(MOVE, "at the time of an access", access_s),
        reading(FRAME, "printed", us(costs.frame_ns)),
        reading(
            FRAME,
            "a page of 8 KiB at 155 Mb/s",
            PAGE_BYTES * 8e6 / NETWORK_BITS_PER_S,
        ),
        reading(
            MISS,
            "private miss",
            share(Costs::private_miss().iter().sum()),
        ),
        reading(MISS, "shared miss", share(costs.shared_miss().iter().sum())),
        reading(
            FASTER,
            "a getpage alone",
            times(GetPageCost::PRIVATE.total_ns()),
        ),
        reading(
            FASTER,
            "with its put (Table 3)",
            times(costs.private_access_ns()),
        ),
        reading(SUMMARY, "printed", us(EpochCost::of(0).initiator_ns)),
        reading(
            SUMMARY,
            "8,192 local and 2,000 global pages",
            us(8_192 * costs.summary_local_page_ns + 2_000 * costs.summary_global_page_ns),
        ),
        reading(SERVING, "printed", us(costs.operation_ns())),
        reading(
            SERVING,
            "mean of both targets (Tables 1 and 2)",
            us(served_ns),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::feeley;

    #[test]
    fn each_contradiction_has_two_readings() {
        let readings = readings();
        assert_eq!(readings.len() % 2, 0);
        for pair in readings.chunks(2) {
            assert_eq!(pair[0].quantity, pair[1].quantity);
            assert_ne!(pair[0].value, pair[1].value, "{pair:?}");
        }
    }

    #[test]
    fn figures_without_chance_have_one_value() {
        let published = feeley().unwrap();
        let tables = published.figures.iter().filter(|f| f.item == "Table 1");
        let tables: Vec<&Figure> = tables.collect();
        let values = values(&tables, 1, 3).unwrap();
        assert_eq!(values.len(), 20);
        assert!(values.iter().all(|of| of.len() == 1));
    }
}
