//! Values worked by hand, or by a second solver that was written apart from this one.

use super::*;

#[test]
fn processes_on_one_cpu_take_the_time_worked_by_hand() {
    // Whole time over CPU time. By hand for two processes of 100 µs: one process alone has a throughput of 1/200 per
    // µs, and 0.5 and 0.4 customers at CPU and link. A second one stays 150 + 112 + 20 = 282 µs.
    let worked = [
        (1, 100.0, 2.000),
        (2, 200.0, 1.137),
        (2, 100.0, 1.410),
        (2, 50.0, 2.093),
        (4, 100.0, 1.151),
    ];
    for (customers, cpu_us, slowdown) in worked {
        let solution = exact_solution(&processes(customers, cpu_us)).unwrap();
        let cycle_us = 1e6 / solution.closed[0].throughput_per_s;
        let ours = cycle_us / cpu_us;
        assert!(
            (ours - slowdown).abs() < 0.0005,
            "{customers} {cpu_us}: {ours}"
        );
    }
    let two = exact_solution(&processes(2, 100.0)).unwrap();
    assert_near(two.closed[0].residences_s[0], 150e-6, 1e-12);
    assert_near(two.closed[0].residences_s[1], 112e-6, 1e-12);
    assert_near(two.centres[2].customers, 2.0 * 20.0 / 282.0, 1e-12);
}

#[test]
fn without_page_outs_two_clients_and_one_server_are_as_worked() {
    let without = |clients| RemotePaging {
        page_outs_per_work_unit: 0.0,
        ..paging(clients, 1)
    };
    let one = exact_solution(&without(1).one_job_network(0.0).unwrap()).unwrap();
    // A cycle is one page-in, and a work unit has two.
    assert_near(one.closed[0].throughput_per_s / 2.0, 0.978_090_8, 1e-7);
    assert_near(one.centres[1].customers, 0.000_391_236, 2e-6);
    assert_near(one.centres[2].customers, 0.010_759, 1e-4);
    let two = without(2).solve().unwrap();
    assert_near(two.network_s, 0.000_400_156, 2e-6);
    assert_near(two.servers_s, 0.011_118_35, 1e-6);
    assert_near(two.work_units_per_s, 0.977_977_4, 1e-7);
}

#[test]
fn configurations_of_the_paper_are_as_a_second_solver_finds_them() {
    let six_digits = |paging: RemotePaging, expected: f64| {
        let ours = paging.solve().unwrap().work_units_per_s;
        assert!(
            (ours - expected).abs() < 6e-7,
            "{ours} is not {expected}: {paging:?}"
        );
    };
    six_digits(paging(1, 1), 0.883_109);
    six_digits(paging(50, 5), 0.778_325);
    six_digits(fast_paging(50, 5), 3.878_808);
    six_digits(exchanged(paging(50, 5)), 0.642_074);
    six_digits(fast_paging(40, 40), 4.386_112);
    let network = fast_paging(40, 40).solve().unwrap().network_utilization;
    assert!((network - 0.772).abs() < 0.0005, "{network}");
    // By hand, with one client and one server, if the network were not stretched by page-outs.
    let by_hand = 1.0 / (1.0 + 22.0 * 0.0055 + 2.0 * 0.0055 + 2.0 * 0.0002);
    assert!((by_hand - 0.883_080_f64).abs() < 6e-7);
    assert_near(
        paging(1, 1).solve().unwrap().work_units_per_s,
        by_hand,
        1e-4,
    );
}

#[test]
fn a_disk_of_32_ms_is_as_worked() {
    let disk = |work: RemotePaging, cpu_s| {
        let disk = DiskPaging {
            work,
            disk_s: 0.0325,
            cpu_s,
        };
        disk.work_units_per_s().unwrap()
    };
    assert_near(disk(paging(1, 1), 0.0), 0.869_888_7, 1e-6);
    assert_near(disk(paging(1, 1), 0.0055), 0.803_217_8, 1e-6);
    assert_near(disk(fast_paging(1, 1), 0.0011), 1.350_515_1, 1e-6);
    // By hand: at 0.87 work units per second, page-outs use the disk for 20 × 0.0325 × 0.87 = 0.5655 of the time.
    let by_hand = 1.0 / (1.0 + 2.0 * 0.0325 / (1.0 - 0.5655));
    assert_near(by_hand, 0.87, 1e-3);
}

#[test]
fn several_jobs_of_a_client_share_its_cpu() {
    let jobs = |jobs_per_client| RemotePaging {
        jobs_per_client,
        ..paging(2, 2)
    };
    let found = [1, 2, 4].map(|count| jobs(count).solve().unwrap().work_units_per_s);
    // The CPU is the bottleneck: it serves a work unit in 1 + 22 × 0.0055 s.
    let bound = 1.0 / (1.0 + 22.0 * 0.0055);
    assert!(
        found[0] < found[1] && found[1] < found[2] && found[2] < bound,
        "{found:?}"
    );
}
