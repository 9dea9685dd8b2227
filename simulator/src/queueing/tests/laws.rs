//! Laws that hold for every network, and two slow, obvious versions of the solution.

use super::*;
use proptest::prelude::*;

const DISCIPLINES: [Discipline; 3] = [Discipline::Fcfs, Discipline::Fcfs, Discipline::Delay];

fn route(demands_s: &[f64]) -> Vec<Stage> {
    demands_s
        .iter()
        .enumerate()
        .map(|(at, s)| Stage::at(at, *s))
        .collect()
}

fn network(closed: &[(u32, [f64; 3])], open: &[(f64, [f64; 3])]) -> Network {
    let centres = DISCIPLINES.map(|discipline| centre("centre", discipline));
    let closed = closed.iter().map(|(customers, demands_s)| ClosedChain {
        name: "closed".to_owned(),
        customers: *customers,
        route: route(demands_s),
    });
    let open = open.iter().map(|(arrivals_per_s, demands_s)| OpenChain {
        name: "open".to_owned(),
        arrivals_per_s: *arrivals_per_s,
        route: route(demands_s),
    });
    Network::new(centres.into(), closed.collect(), open.collect()).unwrap()
}

/// Sum of the product-form weights of all states with `left` customers of two chains at the centres from `at` on.
fn normalization(demands_s: &[[f64; 3]; 2], left: [u32; 2], at: usize) -> f64 {
    let factorial = |n: u32| (1..=n).map(f64::from).product::<f64>();
    let Some(discipline) = DISCIPLINES.get(at) else {
        return if left == [0, 0] { 1.0 } else { 0.0 };
    };
    let mut sum = 0.0;
    for first in 0..=left[0] {
        for second in 0..=left[1] {
            let orders = match discipline {
                Discipline::Fcfs => factorial(first + second),
                Discipline::Delay => 1.0,
            };
            let weight =
                |chain: usize, n: u32| demands_s[chain][at].powf(f64::from(n)) / factorial(n);
            let rest = [left[0] - first, left[1] - second];
            sum += orders
                * weight(0, first)
                * weight(1, second)
                * normalization(demands_s, rest, at + 1);
        }
    }
    sum
}

fn demands() -> impl Strategy<Value = [f64; 3]> {
    prop::array::uniform3(0.001..1.0_f64)
}

proptest! {
    /// Throughputs are ratios of normalization constants, each summed over all states.
    #[test]
    fn two_chains_are_as_the_sum_over_all_states(first in demands(), second in demands(), n in 1u32..=3, m in 1u32..=3) {
        let solution = exact_solution(&network(&[(n, first), (m, second)], &[])).unwrap();
        let both = [first, second];
        let whole = normalization(&both, [n, m], 0);
        let expected = [normalization(&both, [n - 1, m], 0), normalization(&both, [n, m - 1], 0)];
        for (chain, fewer) in solution.closed.iter().zip(expected) {
            let expected = fewer / whole;
            prop_assert!((chain.throughput_per_s / expected - 1.0).abs() < 1e-9, "{} {}", chain.throughput_per_s, expected);
        }
    }

    /// Bounds of operational analysis, Little's law, and growth with the population, beside an open chain.
    #[test]
    fn a_chain_beside_an_open_one_keeps_the_laws(
        closed in demands(),
        open in prop::array::uniform3(0.0..0.9_f64),
        n in 1u32..=30,
    ) {
        let mixed = |customers| network(&[(customers, closed)], &[(1.0, open)]);
        let solution = exact_solution(&mixed(n)).unwrap();
        let chain = &solution.closed[0];
        let x = chain.throughput_per_s;
        let total_s: f64 = closed.iter().sum();
        prop_assert!(x <= f64::from(n) / total_s * (1.0 + 1e-9), "above the throughput without waiting");
        for at in 0..2 {
            prop_assert!(x <= (1.0 - open[at]) / closed[at] * (1.0 + 1e-9), "above the bottleneck's");
            let utilization = solution.centres[at].utilization;
            prop_assert!(utilization <= 1.0 + 1e-9);
            prop_assert!((utilization - x * closed[at] - open[at]).abs() < 1e-9);
        }
        let customers: f64 = chain.residences_s.iter().map(|s| s * x).sum();
        prop_assert!((customers / f64::from(n) - 1.0).abs() < 1e-9, "customers are lost");
        for (at, centre) in solution.centres.iter().enumerate() {
            let by_chain = [chain, &solution.open[0]].map(|c| c.throughput_per_s * c.residences_s[at]);
            prop_assert!((centre.customers - by_chain[0] - by_chain[1]).abs() < 1e-9, "Little's law");
            prop_assert!(solution.open[0].residences_s[at] >= open[at]);
        }
        let more = exact_solution(&mixed(n + 1)).unwrap();
        prop_assert!(more.closed[0].throughput_per_s >= x * (1.0 - 1e-12), "more customers, less throughput");
    }

    /// Clients with one job each, as a chain for each with its own CPU, are the symmetric recursion's one chain.
    #[test]
    fn one_chain_stands_for_all_clients(clients in 1u32..=4, servers in 1u32..=3, share in 0.0..0.9_f64) {
        let model = paging(clients, servers);
        // The page-outs of a work unit take 0.11 s of a CPU, and as much of the servers together.
        let x = share / 0.11 / (f64::from(clients) / f64::from(servers)).max(1.0);
        let each = exact_solution(&model.network(x).unwrap()).unwrap();
        let all = exact_solution(&model.one_job_network(x).unwrap()).unwrap();
        let sum: f64 = each.closed.iter().map(|c| c.throughput_per_s).sum();
        prop_assert!((all.closed[0].throughput_per_s / sum - 1.0).abs() < 1e-10);
        let network = clients as usize;
        prop_assert!((all.centres[1].utilization - each.centres[network].utilization).abs() < 1e-10);
    }
}

#[test]
fn the_approximation_is_within_a_hundredth_of_exact_solutions() {
    for model in [paging(5, 5), paging(50, 5), fast_paging(40, 40)] {
        let x = model.solve().unwrap().work_units_per_s;
        let approximate = approximate_solution(&model.network(x).unwrap()).unwrap();
        let ours = approximate.closed[0].throughput_per_s / model.page_ins_per_work_unit;
        assert_near(ours, x, 0.01);
    }
    // An exact solution with two jobs per client is possible for few clients.
    let two = RemotePaging {
        jobs_per_client: 2,
        ..paging(3, 2)
    };
    let whole = two.network(0.8).unwrap();
    let (exact, approximate) = (
        exact_solution(&whole).unwrap(),
        approximate_solution(&whole).unwrap(),
    );
    assert_near(
        approximate.closed[2].throughput_per_s,
        exact.closed[2].throughput_per_s,
        0.05,
    );
}
