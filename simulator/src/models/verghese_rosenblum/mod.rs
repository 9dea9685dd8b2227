//! Models of Verghese and Rosenblum: networks of workstations (NOW) that fetch pages, and machines (NUMA) that read
//! cache lines where they are.
//!
//! At the begin, the pages touched first are local. A reference to a page for the first time hits if it is one of
//! these; nothing is evicted before a further page comes, so the faults of the start are exactly the other pages.
//!
//! - One process: [`now_slowdown`] and [`numa_slowdown`], from its curve
//! - Several processes on one CPU: [`SharedMemory`] has their pages in one memory, [`share_cpu`] simulates their turns,
//!   [`shared_cpu_slowdown`] estimates the same by mean values

mod shared_cpu;
mod shared_memory;

pub use shared_cpu::{
    Burst, BurstEnd, CpuUse, PageFetch, SharedCpuLoad, share_cpu, shared_cpu_slowdown,
};
pub use shared_memory::{ProcessSource, SharedMemory};

use super::program::ProgramCurve;
use super::technology::{Granularity, Queueing, Technology};
use crate::references::PAGE_BYTES;

/// Instructions per second of the papers' machine: 300 MHz, one in each cycle (assumed: the paper prints no rate).
pub const INSTRUCTIONS_PER_S: f64 = 300e6;
/// Time of a miss of the second-level cache that local memory serves, in seconds.
pub const LOCAL_MISS_S: f64 = 300e-9;

/// Times of a page by this technology, without waiting; `None` for a technology of cache lines.
#[must_use]
pub fn page_fetch(technology: &Technology) -> Option<PageFetch> {
    if technology.granularity == Granularity::Line {
        return None;
    }
    let rate = technology.link_mbit_per_s;
    let transmission_us = rate.map_or(0.0, |rate| rate.us(PAGE_BYTES));
    let software_us = technology.software_us.map_or(0.0, |time| time.value);
    let delay_us = software_us + technology.latency_us.value;
    let ns = |us: f64| (us * 1e3).round() as u64;
    Some(match technology.queueing {
        Queueing::Link => PageFetch {
            delay_ns: ns(delay_us),
            link_ns: ns(transmission_us),
        },
        Queueing::None => PageFetch {
            delay_ns: ns(delay_us + transmission_us),
            link_ns: 0,
        },
    })
}

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
    Some(stalled_slowdown(local_s, remote, remote_miss_s))
}

/// Slowdown of one process that fetches pages, each in `page_s`, and has its CPU and link for itself. `None` as for
/// [`local_s`].
#[must_use]
pub fn now_slowdown(program: ProgramCurve<'_>, local_pages: f64, page_s: f64) -> Option<f64> {
    Some(1.0 + faults(program, local_pages) * page_s / local_s(program)?)
}

/// Slowdown if `remote_misses` of the misses of `local_s` (LOCAL) take `remote_miss_s` each: the processor stalls, and
/// nothing overlaps.
#[must_use]
pub fn stalled_slowdown(local_s: f64, remote_misses: f64, remote_miss_s: f64) -> f64 {
    1.0 + remote_misses * (remote_miss_s - LOCAL_MISS_S) / local_s
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::curve::{Curve, FaultPoint, FirstTouch};
    use proptest::prelude::*;

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

    #[test]
    fn a_process_takes_twice_as_long_at_the_printed_rates() {
        // Faults per second of CPU at which NOW, SUBPAGE, MYRNOW and ATMNOW double the time.
        for (name, expected) in [
            ("now", 1000.0),
            ("subpage", 2000.0),
            ("myrnow", 10_000.0),
            ("atmnow", 4545.0),
        ] {
            let text = Technology::shipped_text(name).unwrap();
            let fetch = page_fetch(&Technology::parse(name, text).unwrap()).unwrap();
            let rate = 1e9 / fetch.total_ns() as f64;
            assert!((rate - expected).abs() < 0.5, "{name}: {rate}");
            let is_queue = ["myrnow", "atmnow"].contains(&name);
            assert_eq!(fetch.link_ns > 0, is_queue, "{name}");
        }
        let text = Technology::shipped_text("cc-now").unwrap();
        assert_eq!(
            page_fetch(&Technology::parse("cc-now", text).unwrap()),
            None
        );
    }

    /// A curve of misses with these faults, evenly over its memory sizes, and these references to its pages.
    fn curve_of(reuses: &[u64], touches: &[u64]) -> Curve {
        let mut faults: Vec<u64> = reuses.to_vec();
        faults.sort_unstable_by(|a, b| b.cmp(a));
        let points = faults.iter().zip(1..);
        let mut sum = 0;
        let mut first = |(references, pages): (&u64, u64)| {
            sum += references;
            FirstTouch {
                pages,
                references_count: sum,
            }
        };
        Curve {
            footprint_pages: touches.len() as u64,
            instructions_count: Some(1_000_000),
            misses_of_bytes: Some(1 << 20),
            faults: points
                .map(|(reuse_count, memory_pages)| FaultPoint {
                    memory_pages,
                    reuse_count: *reuse_count,
                    write_backs_count: 0,
                })
                .collect(),
            first_touch: touches.iter().zip(1..).map(&mut first).collect(),
            ..Curve::default()
        }
    }

    proptest! {
        #[test]
        fn more_memory_never_slows_and_latency_never_speeds(
            reuses in prop::collection::vec(0u64..10_000, 1..40), touches in prop::collection::vec(1u64..1000, 1..40),
            page_s in 1e-6f64..1e-2, line_s in 3e-7f64..1e-5,
        ) {
            let curve = curve_of(&reuses, &touches);
            let program = ProgramCurve(&curve);
            let (mut by_page, mut by_line) = (f64::INFINITY, f64::INFINITY);
            for quarters in 1..=4 * touches.len() {
                let pages = quarters as f64 / 4.0;
                let page = now_slowdown(program, pages, page_s).unwrap();
                let line = numa_slowdown(program, pages, line_s).unwrap();
                prop_assert!(1.0 <= page && page <= by_page && 1.0 <= line && line <= by_line);
                prop_assert!(now_slowdown(program, pages, 2.0 * page_s).unwrap() >= page);
                prop_assert!(numa_slowdown(program, pages, 2.0 * line_s).unwrap() >= line);
                (by_page, by_line) = (page, line);
            }
            prop_assert_eq!((by_page, by_line), (1.0, 1.0));
        }
    }
}
