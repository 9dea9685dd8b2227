//! Compares curves with a worked example, with the replay of caches at every size, and with memories that are lists.

use super::*;
use crate::Request;
use crate::cache::{Cache, Capacity, replay};
use crate::streams::{StreamError, StreamRequest};
use gleaner_policy::eviction::Policy;
use proptest::prelude::*;

type ReadRequest = Result<StreamRequest, StreamError>;

fn stream(asked: &[(u64, bool)]) -> impl Iterator<Item = ReadRequest> {
    asked.iter().zip(0..).map(|((object, is_write), at_ns)| {
        Ok(StreamRequest {
            at_ns,
            request: Request {
                object: *object,
                bytes: 1,
                is_write: *is_write,
                ..Request::default()
            },
            ..StreamRequest::default()
        })
    })
}

fn counted(asked: &[(u64, bool)], sizes: &[u64]) -> (Vec<(u64, u64)>, u64) {
    let analysed = analyse(stream(asked), |_| sizes.to_vec(), |_| ()).unwrap();
    let faults = analysed.faults.iter();
    let faults = faults.map(|faults| (faults.reuse as u64, faults.write_backs as u64));
    (faults.collect(), analysed.profile.footprint_pages())
}

/// Reuse faults and write-backs of a memory that is a list, the page used last at the end.
fn by_list(asked: &[(u64, bool)], memory_pages: usize) -> (u64, u64) {
    let mut memory: Vec<(u64, bool)> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    let (mut reuse, mut write_backs) = (0, 0);
    for &(page, is_write) in asked {
        let there = memory.iter().position(|(other, _)| *other == page);
        let was_dirty = there.is_some_and(|at| memory.remove(at).1);
        if there.is_none() && !seen.insert(page) {
            reuse += 1;
        }
        memory.push((page, was_dirty || is_write));
        if memory.len() > memory_pages {
            write_backs += u64::from(memory.remove(0).1);
        }
    }
    (reuse, write_backs)
}

/// a(write) b c(write) a d b(write) a c.
const WORKED: [(u64, bool); 8] = [
    (1, true),
    (2, false),
    (3, true),
    (1, false),
    (4, false),
    (2, true),
    (1, false),
    (3, false),
];

#[test]
fn an_example_worked_by_hand() {
    let (faults, footprint) = counted(&WORKED, &[1, 2, 3, 4]);
    assert_eq!(footprint, 4);
    assert_eq!(
        faults.iter().map(|(reuse, _)| *reuse).collect::<Vec<u64>>(),
        [4, 4, 2, 0]
    );
    assert_eq!(
        faults.iter().map(|(_, back)| *back).collect::<Vec<u64>>(),
        [3, 3, 1, 0]
    );
    // With a warm start: the first m pages are in memory.
    let warm: Vec<u64> = faults
        .iter()
        .zip(1..)
        .map(|((reuse, _), m)| reuse + (footprint - m))
        .collect();
    assert_eq!(warm, [7, 6, 3, 0]);
}

proptest! {
    #[test]
    fn faults_are_those_of_replayed_caches_and_of_lists_at_every_size(
        asked in prop::collection::vec((0u64..24, any::<bool>()), 0..500),
    ) {
        let sizes: Vec<u64> = (1..=25).collect();
        let (faults, footprint) = counted(&asked, &sizes);
        let caches: Vec<Cache> = sizes.iter().map(|size| Cache {
            policy: Policy::Lru,
            capacity: Capacity::Objects(*size),
        }).collect();
        let replayed = replay(stream(&asked), &caches).unwrap();
        for ((size, faults), counts) in sizes.iter().zip(&faults).zip(replayed) {
            prop_assert_eq!(faults.0 + footprint, counts.misses, "{} pages", size);
            prop_assert_eq!(*faults, by_list(&asked, *size as usize), "{} pages", size);
        }
    }

    #[test]
    fn faults_never_rise_with_memory(asked in prop::collection::vec((0u64..3000, any::<bool>()), 0..9000)) {
        let (faults, footprint) = counted(&asked, &memory_sizes(1, 3000));
        prop_assert!(faults.windows(2).all(|pair| pair[0].0 >= pair[1].0));
        prop_assert_eq!(faults.last().unwrap().0, 0);
        prop_assert!(footprint <= 3000);
    }

    /// A sample of all pages is exact but for the width of its buckets.
    #[test]
    fn a_sample_of_all_pages_is_exact(asked in prop::collection::vec((0u64..60, any::<bool>()), 0..800)) {
        let sizes: Vec<u64> = (1..=60).collect();
        let exact = analyse(stream(&asked), |_| sizes.clone(), |_| ()).unwrap();
        let sampled = estimate(stream(&asked), 7, |_| sizes.clone(), |_| ()).unwrap();
        prop_assert_eq!(sampled.sampled_share, 1.0);
        for (exact, sampled) in exact.faults.iter().zip(&sampled.faults) {
            prop_assert!((exact.reuse - sampled.reuse).abs() < 1e-6, "{:?} {:?}", exact, sampled);
            prop_assert!((exact.write_backs - sampled.write_backs).abs() < 1e-6, "{:?} {:?}", exact, sampled);
        }
    }
}

/// A stream of 40,000 pages, whose popularity falls with their number: mean absolute error of the miss ratio.
#[test]
fn a_sample_is_near_the_exact_curve() {
    let mut state = 1_u64;
    let mut random = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    let asked: Vec<(u64, bool)> = (0..400_000)
        .map(|_| ((random().powi(3) * 40_000.0) as u64, random() < 0.3))
        .collect();
    let exact = analyse(stream(&asked), |pages| memory_sizes(1, pages), |_| ()).unwrap();
    let sizes = exact.sizes.clone();
    for seed in [1, 2] {
        let sampled = estimate(stream(&asked), seed, |_| sizes.clone(), |_| ()).unwrap();
        assert!(sampled.sampled_share < 0.5, "{}", sampled.sampled_share);
        let errors = exact.faults.iter().zip(&sampled.faults);
        let errors = errors.map(|(exact, sampled)| (exact.reuse - sampled.reuse).abs());
        let error = errors.sum::<f64>() / sizes.len() as f64 / asked.len() as f64;
        assert!(error < 0.02, "{error}");
    }
}

#[test]
fn a_streams_error_is_the_analysis() {
    let torn = StreamError::Setting {
        found: "torn".to_owned(),
        advice: String::new(),
    };
    let error = analyse([Err(torn)].into_iter(), |_| Vec::new(), |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("torn"), "{error}");
}
