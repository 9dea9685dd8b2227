//! Models of Verghese and Rosenblum: networks of workstations (NOW) that fetch pages, and machines (NUMA) that read
//! cache lines where they are.
//!
//! At the begin, the pages touched first are local. A reference to a page for the first time hits if it is one of
//! these; nothing is evicted before a further page comes, so the faults of the start are exactly the other pages.

use super::program::ProgramCurve;
use crate::queueing::{
    Centre, ClosedChain, Discipline, Network, QueueingError, Stage, exact_solution,
};

/// Instructions per second of the papers' machine: 300 MHz, one in each cycle (assumed: the paper prints no rate).
const INSTRUCTIONS_PER_S: f64 = 300e6;
/// Time of a miss of the second-level cache that local memory serves, in seconds.
const LOCAL_MISS_S: f64 = 300e-9;

/// Page faults with this local memory, in pages: faults of the warm start, and reuse faults.
#[must_use]
pub fn faults(program: ProgramCurve<'_>, local_pages: f64) -> f64 {
    let others = program.0.footprint_pages as f64 - local_pages;
    program.reuse_faults(local_pages) + others.max(0.0)
}

/// Duration of the program on the papers' machine with local memory alone (LOCAL), in seconds. The curve must be of
/// cache misses, and have its instructions; otherwise `None`.
#[must_use]
pub fn local_s(program: ProgramCurve<'_>) -> Option<f64> {
    let curve = program.0;
    curve.misses_of_bytes?;
    let misses = program.references_to_first(curve.footprint_pages as f64);
    Some(curve.instructions_count? as f64 / INSTRUCTIONS_PER_S + misses * LOCAL_MISS_S)
}

/// Slowdown where a page is local for ever if it is one of those touched first (the NUMA models), and a miss to
/// another page takes `remote_miss_s`. `None` as for [`local_s`].
#[must_use]
pub fn numa_slowdown(
    program: ProgramCurve<'_>,
    local_pages: f64,
    remote_miss_s: f64,
) -> Option<f64> {
    let local_s = local_s(program)?;
    let all = program.references_to_first(program.0.footprint_pages as f64);
    let remote = (all - program.references_to_first(local_pages)).max(0.0);
    Some(1.0 + remote * (remote_miss_s - LOCAL_MISS_S) / local_s)
}

/// Estimated duration of processes on one CPU, as a multiple of their CPU time: CPU and link serve one process at a
/// time, in the order of arrival, and a page has a delay besides. All times in seconds.
///
/// # Errors
/// A time outside the ranges of the queueing model.
pub fn shared_cpu_slowdown(
    processes: u32,
    cpu_between_faults_s: f64,
    link_s: f64,
    delay_s: f64,
) -> Result<f64, QueueingError> {
    let centre = |name: &str, discipline| Centre {
        name: name.to_owned(),
        discipline,
    };
    let centres = vec![
        centre("CPU", Discipline::Fcfs),
        centre("link", Discipline::Fcfs),
        centre("delay", Discipline::Delay),
    ];
    let times = [cpu_between_faults_s, link_s, delay_s]
        .into_iter()
        .enumerate();
    let chain = ClosedChain {
        name: "processes".to_owned(),
        customers: processes,
        route: times
            .map(|(at, service_s)| Stage::at(at, service_s))
            .collect(),
    };
    let solution = exact_solution(&Network::new(centres, vec![chain], Vec::new())?)?;
    let faults_per_s = solution
        .closed
        .first()
        .map_or(0.0, |chain| chain.throughput_per_s);
    Ok(1.0 / (faults_per_s * cpu_between_faults_s))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::{Curve, FaultPoint, FirstTouch};

    #[test]
    fn processes_on_one_cpu() {
        // CPU time between faults / 80 / 20 µs; two processes of 100 µs were worked by hand: X = 1/200, queues of 0.5
        // and 0.4, then 150 + 112 + 20 = 282 µs for two.
        for (processes, cpu_us, expected) in [
            (1, 100.0, 2.0),
            (2, 200.0, 1.137),
            (2, 100.0, 1.410),
            (2, 50.0, 2.093),
            (4, 100.0, 1.151),
        ] {
            let found = shared_cpu_slowdown(processes, cpu_us * 1e-6, 80e-6, 20e-6).unwrap();
            assert!(
                (found - expected).abs() < 6e-4,
                "{processes}, {cpu_us}: {found}, not {expected}"
            );
        }
    }

    #[test]
    fn a_warm_start_holds_the_first_pages() {
        let point = |memory_pages, reuse_count| FaultPoint {
            memory_pages,
            reuse_count,
            write_backs_count: 0,
        };
        let curve = Curve {
            footprint_pages: 4,
            faults: vec![point(1, 4), point(2, 4), point(3, 2), point(4, 0)],
            ..Curve::default()
        };
        let faults = [1.0, 2.0, 3.0, 4.0].map(|m| faults(ProgramCurve(&curve), m));
        assert_eq!(faults, [7.0, 6.0, 3.0, 0.0]);
    }

    #[test]
    fn numa_costs_its_remote_misses() {
        let curve = Curve {
            footprint_pages: 2,
            instructions_count: Some(300_000_000),
            misses_of_bytes: Some(1 << 20),
            first_touch: vec![
                FirstTouch {
                    pages: 1,
                    references_count: 1_000_000,
                },
                FirstTouch {
                    pages: 2,
                    references_count: 3_000_000,
                },
            ],
            ..Curve::default()
        };
        let program = ProgramCurve(&curve);
        assert_eq!(local_s(program), Some(1.9)); // 1 s, and 3,000,000 × 300 ns
        let slowdown = numa_slowdown(program, 1.0, 1.2e-6).unwrap();
        assert!(
            (slowdown - (1.0 + 2.0 * 0.9 / 1.9)).abs() < 1e-12,
            "{slowdown}"
        );
        assert_eq!(numa_slowdown(program, 2.0, 1.2e-6), Some(1.0));
        let of_references = Curve {
            misses_of_bytes: None,
            ..curve
        };
        assert_eq!(local_s(ProgramCurve(&of_references)), None);
    }
}
