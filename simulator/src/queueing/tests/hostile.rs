//! Parameters that no network can have are refused by their names.

use super::*;
use proptest::prelude::*;

fn refusal(model: RemotePaging) -> String {
    model.solve().unwrap_err().to_string()
}

#[test]
fn each_parameter_of_the_paper_is_refused_by_its_name() {
    let table_1 = RemotePaging::default();
    let negative = PageTimes {
        server_s: -0.1,
        ..table_1.page_in
    };
    let refused = [
        (
            "clients is 1000000000",
            RemotePaging {
                clients: 1_000_000_000,
                ..table_1
            },
        ),
        (
            "clients is 0",
            RemotePaging {
                clients: 0,
                ..table_1
            },
        ),
        (
            "clients is 101",
            RemotePaging {
                clients: 101,
                jobs_per_client: 2,
                ..table_1
            },
        ),
        (
            "servers is 0",
            RemotePaging {
                servers: 0,
                ..table_1
            },
        ),
        (
            "jobs_per_client is 0",
            RemotePaging {
                jobs_per_client: 0,
                ..table_1
            },
        ),
        (
            "client_speed is 0",
            RemotePaging {
                client_speed: 0.0,
                ..table_1
            },
        ),
        (
            "client_speed is NaN",
            RemotePaging {
                client_speed: f64::NAN,
                ..table_1
            },
        ),
        (
            "page_ins_per_work_unit is inf",
            RemotePaging {
                page_ins_per_work_unit: f64::INFINITY,
                ..table_1
            },
        ),
        (
            "page_outs_per_work_unit is -1",
            RemotePaging {
                page_outs_per_work_unit: -1.0,
                ..table_1
            },
        ),
        (
            "page_in.server_s is -0.1",
            RemotePaging {
                page_in: negative,
                ..table_1
            },
        ),
        (
            "page_out.server_s is -0.1",
            RemotePaging {
                page_out: negative,
                ..table_1
            },
        ),
    ];
    for (named, model) in refused {
        let said = refusal(model);
        assert!(said.starts_with(named), "{said}");
        assert!(said.contains("it must be from"), "{said}");
    }
    let disk = DiskPaging {
        work: table_1,
        disk_s: f64::NAN,
        cpu_s: 0.0,
    };
    assert!(
        disk.work_units_per_s()
            .unwrap_err()
            .to_string()
            .starts_with("disk_s is NaN")
    );
}

#[test]
fn each_part_of_a_network_is_refused_by_its_name() {
    let closed = |customers, service_s| ClosedChain {
        name: "jobs".to_owned(),
        customers,
        route: vec![Stage::at(0, service_s)],
    };
    let open = |arrivals_per_s, service_s| OpenChain {
        name: "writes".to_owned(),
        arrivals_per_s,
        route: vec![Stage::at(0, service_s)],
    };
    let refusal = |closed: Vec<ClosedChain>, open: Vec<OpenChain>| {
        let centres = vec![centre("disk", Discipline::Fcfs)];
        Network::new(centres, closed, open).unwrap_err().to_string()
    };
    assert!(refusal(Vec::new(), Vec::new()).starts_with("number of chains is 0"));
    let many = refusal(vec![closed(1_000_000_000, 1.0)], Vec::new());
    assert_eq!(
        many,
        "customers of jobs is 1000000000; it must be from 1 to 1000000"
    );
    assert!(refusal(vec![closed(0, 1.0)], Vec::new()).starts_with("customers of jobs is 0"));
    assert!(
        refusal(vec![closed(1, f64::NAN)], Vec::new())
            .starts_with("service_s of stage 1 of jobs is NaN")
    );
    assert!(refusal(vec![closed(1, 0.0)], Vec::new()).starts_with("sum of service_s of jobs is 0"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(
            refusal(Vec::new(), vec![open(rate, 0.1)]).starts_with("arrivals_per_s of writes is")
        );
    }
    assert_eq!(
        refusal(Vec::new(), vec![open(30.0, 0.1)]),
        "open chains use disk for 3 of the time, which must be below 1; lower their rates"
    );
    let elsewhere = ClosedChain {
        route: vec![Stage::at(1, 1.0)],
        ..closed(1, 1.0)
    };
    assert!(
        refusal(vec![elsewhere], Vec::new())
            .starts_with("index of a centre of stage 1 of jobs is 1")
    );
    let nowhere = Stage {
        centres: Vec::new(),
        service_s: 1.0,
    };
    let nowhere = ClosedChain {
        route: vec![nowhere],
        ..closed(1, 1.0)
    };
    assert!(
        refusal(vec![nowhere], Vec::new()).starts_with("number of centres of stage 1 of jobs is 0")
    );
    let routeless = ClosedChain {
        route: Vec::new(),
        ..closed(1, 1.0)
    };
    assert!(refusal(vec![routeless], Vec::new()).starts_with("number of stages of jobs is 0"));
}

#[test]
fn page_outs_that_overload_a_centre_name_it() {
    let said = paging(1, 1).network(100.0).unwrap_err();
    assert!(
        matches!(&said, QueueingError::Overloaded { centre, .. } if centre == "CPU of client 1"),
        "{said}"
    );
    let said = paging(50, 5).network(1.0).unwrap_err();
    assert!(
        matches!(&said, QueueingError::Overloaded { centre, .. } if centre == "server 1"),
        "{said}"
    );
}

#[test]
fn populations_too_large_for_an_exact_solution_name_their_chain() {
    let chain = |name: &str| ClosedChain {
        name: name.to_owned(),
        customers: 10_000,
        route: vec![Stage::at(0, 1.0)],
    };
    let centres = vec![centre("disk", Discipline::Fcfs)];
    let chains = vec![chain("readers"), chain("writers")];
    let network = Network::new(centres, chains, Vec::new()).unwrap();
    let said = exact_solution(&network).unwrap_err().to_string();
    assert!(
        said.ends_with("lower the customers of writers, or approximate"),
        "{said}"
    );
    let approximate = approximate_solution(&network).unwrap();
    let sum: f64 = approximate.closed.iter().map(|c| c.throughput_per_s).sum();
    assert_near(sum, 1.0, 1e-3);
}

#[test]
fn simulations_without_an_end_are_refused() {
    let network = processes(1, 100.0);
    for cycles in [0, 10_000_000_000] {
        let said = simulate(&network, 1, cycles).unwrap_err().to_string();
        assert!(said.starts_with("cycles is"), "{said}");
    }
    let slow = processes(1, 1e20);
    let said = simulate(&slow, 1, 1_000).unwrap_err();
    assert_eq!(said, QueueingError::TooLong { years: 200 });
}

proptest! {
    /// Any numbers are refused by name, or have a finite solution.
    #[test]
    fn any_parameters_are_refused_or_solved(
        parameters in prop::array::uniform9(prop_oneof![1 => prop::num::f64::ANY, 8 => 0.0..1000.0_f64, 8 => 0.0..0.1_f64]),
        clients in 0u32..5,
        servers in 0u32..4,
        jobs_per_client in 0u32..3,
    ) {
        let [page_ins_per_work_unit, page_outs_per_work_unit, client_speed, a, b, c, d, e, f] = parameters;
        let model = RemotePaging {
            page_ins_per_work_unit,
            page_outs_per_work_unit,
            jobs_per_client,
            clients,
            servers,
            client_speed,
            page_in: PageTimes { cpu_s: a, network_s: b, server_s: c },
            page_out: PageTimes { cpu_s: d, network_s: e, server_s: f },
        };
        match model.solve() {
            Ok(means) => {
                prop_assert!(means.work_units_per_s.is_finite() && means.work_units_per_s > 0.0, "{:?}", means);
                prop_assert!(means.network_utilization <= 1.0 + 1e-6 && means.server_utilization <= 1.0 + 1e-6);
            }
            Err(QueueingError::Parameter { .. }) => (),
            Err(error) => prop_assert!(false, "{}", error),
        }
    }
}
