//! Scenarios A, B and J, and weights by classes against a plain sort of all ages.

use crate::global::age::{INFINITE_MS, Summary, class_begin_ms, class_of};
use crate::global::weights::{
    Division, EpochPlan, TargetTable, draw, old_frames, replacement_rate,
};
use proptest::prelude::*;

/// Summary of a node with free frames and pages, given by the least age of their class in ms.
fn summary(free_frames: u32, pages: &[(u64, u32)]) -> Summary {
    let mut summary = Summary {
        free_frames,
        ..Summary::default()
    };
    for (age_ms, count) in pages {
        summary.classes[class_of(*age_ms)] += count;
    }
    summary
}

/// Nodes A, B and C of scenarios A and B.
fn cluster() -> [Summary; 3] {
    [
        summary(50, &[(64_000, 100)]),
        summary(0, &[(64_000, 40), (32_000, 60)]),
        summary(0, &[(1_000, 200)]),
    ]
}

#[test]
fn scenario_a_shares_the_last_class() {
    let division = Division::new(&cluster(), 120);
    assert_eq!(division.weights, [100, 20, 0]);
    assert_eq!(division.min_age_ms, 72_000);
    assert_eq!(division.largest(1), [0]);
    let targets: Vec<(u32, u64)> = (0..).zip(division.weights.iter().copied()).collect();
    let draws = [0, 1 << 63, u64::MAX];
    assert_eq!(
        draws.map(|random| draw(&targets, 2, random)),
        [Some(0), Some(0), Some(1)]
    );
    assert_eq!(draws.map(|random| draw(&targets, 0, random)), [Some(1); 3]);
    assert_eq!(draws.map(|random| draw(&targets, 1, random)), [Some(0); 3]);
    assert_eq!(draw(&[(0, 100), (1, 0)], 0, 7), None);
}

#[test]
fn scenario_b_divides_other_numbers_of_replacements() {
    let cases = [
        (40, [40, 0, 0], INFINITE_MS),
        (50, [50, 0, 0], INFINITE_MS),
        (51, [51, 0, 0], 79_885),
        (190, [150, 40, 0], 64_000),
        (200, [150, 50, 0], 38_666),
        (250, [150, 100, 0], 32_000),
        (251, [0, 0, 0], 0),
    ];
    assert_eq!(old_frames(&cluster()), 250);
    for (replacements, weights, min_age_ms) in cases {
        let division = Division::new(&cluster(), replacements);
        assert_eq!(division.weights, weights, "M = {replacements}");
        assert_eq!(division.min_age_ms, min_age_ms, "M = {replacements}");
    }
}

#[test]
fn scenario_j_plans_epochs() {
    let rate = replacement_rate(300_000, 4_000, 8_000);
    assert_eq!(rate, 400_000);
    let plan = |rate, old| {
        let plan = EpochPlan::new(rate, old, 100_000);
        (plan.length_ms, plan.replacements)
    };
    assert_eq!(plan(rate, 12_000), (7_500, 3_750));
    assert_eq!(plan(rate, 3_000), (5_000, 2_500));
    assert_eq!(plan(0, 3_000), (10_000, 64));
    // 2,000 old frames are fewer than the plan's replacements.
    let (_, replacements) = plan(rate, 2_000);
    let few = [summary(0, &[(20_000, 2_000), (1_000, 98_000)])];
    let division = Division::new(&few, replacements);
    assert_eq!((division.weights, division.min_age_ms), (vec![0], 0));
}

proptest! {
    #[test]
    fn weights_by_classes_are_those_of_a_sort(
        nodes in prop::collection::vec((0..20u32, prop::collection::vec(0..600_000u64, 0..80)), 1..8),
        replacements in 1..200u64,
    ) {
        let summaries: Vec<Summary> = nodes
            .iter()
            .map(|(free, ages)| {
                let pages: Vec<_> = ages.iter().map(|age_ms| (*age_ms, 1)).collect();
                summary(*free, &pages)
            })
            .collect();
        let division = Division::new(&summaries, replacements);
        // The oldest frames of all nodes, free ones first.
        let mut sorted: Vec<(u64, usize)> = Vec::new();
        for (i, (free, ages)) in nodes.iter().enumerate() {
            sorted.extend((0..*free).map(|_| (INFINITE_MS, i)));
            sorted.extend(ages.iter().map(|age_ms| (*age_ms, i)));
        }
        sorted.sort_unstable_by(|a, b| b.cmp(a));
        let old = sorted.iter().filter(|(age_ms, _)| *age_ms >= 20_000).count() as u64;
        if old < replacements {
            prop_assert!(division.weights.iter().all(|weight| *weight == 0));
            prop_assert_eq!(division.min_age_ms, 0);
            return Ok(());
        }
        prop_assert_eq!(division.weights.iter().sum::<u64>(), replacements);
        let (youngest_ms, _) = sorted[replacements as usize - 1];
        if youngest_ms == INFINITE_MS {
            prop_assert_eq!(division.min_age_ms, INFINITE_MS);
        } else {
            let class = class_of(youngest_ms);
            let ends = class_begin_ms(class)..class_begin_ms(class + 1);
            prop_assert!(ends.contains(&division.min_age_ms), "{} in {ends:?}", division.min_age_ms);
        }
        // Each weight is between the node's frames above the class of the youngest, and those with it.
        for (i, weight) in division.weights.iter().copied().enumerate() {
            let frames = |older: &dyn Fn(u64) -> bool| {
                sorted.iter().filter(|(age_ms, node)| *node == i && older(*age_ms)).count() as u64
            };
            let rank = |age_ms: u64| if age_ms == INFINITE_MS { usize::MAX } else { class_of(age_ms) };
            let above = frames(&|age_ms| rank(age_ms) > rank(youngest_ms));
            let within = frames(&|age_ms| rank(age_ms) >= rank(youngest_ms));
            prop_assert!((above..=within).contains(&weight), "{above} <= {weight} <= {within}");
        }
    }
}

/// Deterministic numbers for draws.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(1);
        crate::global::uid::mix(state)
    }
}

#[test]
fn draws_are_in_proportion_to_weights() {
    let targets = [(1, 10), (2, 30), (3, 60)];
    let mut random = numbers(1);
    let mut counts = [0_u32; 4];
    for _ in 0..100_000 {
        counts[draw(&targets, 0, random()).unwrap() as usize] += 1;
    }
    for (node, weight) in targets {
        let share = weight as f64 / 100.0;
        // Four standard deviations of a binomial variable.
        let margin = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
        let count = f64::from(counts[node as usize]);
        assert!(
            (count - 100_000.0 * share).abs() < margin,
            "{node}: {count}"
        );
    }
}

#[test]
fn samples_of_a_large_cluster_are_by_weight() {
    let weight = |node: u32| u64::from(node % 4);
    let table = TargetTable::new((0..1_000).map(|node| (node, weight(node))));
    let mut random = numbers(2);
    let mut by_weight = [0_u64; 4];
    for node in 0..1_000 {
        let targets = table.targets_of(node, &mut random);
        assert!(targets.iter().all(|(target, _)| *target != node));
        assert!((63..=64).contains(&targets.iter().map(|(_, count)| count).sum::<u64>()));
        for (target, count) in targets {
            by_weight[target as usize % 4] += count;
        }
    }
    let all: u64 = by_weight.iter().sum();
    for (weight, count) in by_weight.iter().enumerate() {
        let share = *count as f64 / all as f64;
        assert!(
            (share - weight as f64 / 6.0).abs() < 0.01,
            "{weight}: {share}"
        );
    }
    let small = TargetTable::new((0..10).map(|node| (node, weight(node))));
    assert_eq!(
        small.targets_of(1, &mut random),
        [(2, 2), (3, 3), (5, 1), (6, 2), (7, 3), (9, 1)]
    );
}
