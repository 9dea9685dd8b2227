//! The solutions beside simulations of the same networks. The seeds are fixed: the same build gives the same figures.

use super::*;

/// Largest relative difference of throughputs in networks of product form, where only chance is left.
const EXACT: f64 = 0.03;
/// The same where demands differ at FCFS centres, so that the solution is an approximation.
const APPROXIMATE: f64 = 0.04;

#[test]
fn processes_on_one_cpu_are_simulated_as_they_are_solved() {
    for (customers, cpu_us) in [(1, 100.0), (2, 200.0), (2, 100.0), (2, 50.0), (4, 100.0)] {
        let network = processes(customers, cpu_us);
        let solution = exact_solution(&network).unwrap();
        let observed = simulate(&network, 1, 60_000).unwrap();
        assert_near(
            observed.closed_per_s[0],
            solution.closed[0].throughput_per_s,
            EXACT,
        );
        let present: f64 = observed.centres.iter().map(|c| c.customers).sum();
        assert_near(present, f64::from(customers), 1e-9);
        for (observed, solved) in observed.centres.iter().zip(&solution.centres) {
            assert_near(observed.utilization, solved.utilization, 0.05);
            assert_near(observed.customers, solved.customers, 0.05);
        }
    }
}

#[test]
fn an_open_chain_beside_a_closed_one_is_simulated_as_it_is_solved() {
    let centres = vec![
        centre("disk", Discipline::Fcfs),
        centre("thinking", Discipline::Delay),
    ];
    let jobs = ClosedChain {
        name: "jobs".to_owned(),
        customers: 3,
        route: vec![Stage::at(0, 0.01), Stage::at(1, 0.03)],
    };
    let writes = OpenChain {
        name: "writes".to_owned(),
        arrivals_per_s: 30.0,
        route: vec![Stage::at(0, 0.01)],
    };
    let network = Network::new(centres, vec![jobs], vec![writes.clone()]).unwrap();
    let solution = exact_solution(&network).unwrap();
    let observed = simulate(&network, 1, 60_000).unwrap();
    assert_near(
        observed.closed_per_s[0],
        solution.closed[0].throughput_per_s,
        EXACT,
    );
    assert_near(observed.open_per_s[0], 30.0, EXACT);
    assert_near(
        observed.centres[0].customers,
        solution.centres[0].customers,
        0.06,
    );
    // Alone, the writes are an M/M/1 queue of utilization 0.3: 0.3 / 0.7 customers.
    let alone = vec![centre("disk", Discipline::Fcfs)];
    let alone = Network::new(alone, Vec::new(), vec![writes]).unwrap();
    let observed = simulate(&alone, 1, 60_000).unwrap();
    assert_near(
        exact_solution(&alone).unwrap().centres[0].customers,
        0.3 / 0.7,
        1e-12,
    );
    assert_near(observed.centres[0].customers, 0.3 / 0.7, 0.05);
}

#[test]
fn configurations_of_the_paper_are_simulated_as_they_are_solved() {
    let points = [
        (paging(5, 5), 30_000),
        (paging(50, 5), 40_000),
        (fast_paging(50, 5), 60_000),
        (fast_paging(40, 40), 40_000),
        (exchanged(paging(5, 5)), 40_000),
    ];
    for (model, cycles) in points {
        let x = model.solve().unwrap().work_units_per_s;
        let observed = simulate(&model.network(x).unwrap(), 1, cycles).unwrap();
        let page_ins_per_s: f64 = observed.closed_per_s.iter().sum();
        let of_a_client = page_ins_per_s / f64::from(model.clients);
        assert_near(of_a_client / model.page_ins_per_work_unit, x, APPROXIMATE);
    }
}

#[test]
fn a_seed_decides_everything() {
    let network = processes(2, 100.0);
    let observed = [7, 7, 8].map(|seed| simulate(&network, seed, 1_000).unwrap());
    assert_eq!(observed[0], observed[1]);
    assert_ne!(observed[0], observed[2]);
}
