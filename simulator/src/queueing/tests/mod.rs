//! Tests against worked values, against obvious versions of the same mean values, and against simulation.

mod hostile;
mod laws;
mod simulated;
mod values;

use super::*;

fn centre(name: &str, discipline: Discipline) -> Centre {
    Centre {
        name: name.to_owned(),
        discipline,
    }
}

/// Processes on one CPU whose pages come over one link, of 80 µs a page, and a latency of 20 µs.
fn processes(customers: u32, cpu_us: f64) -> Network {
    let centres = vec![
        centre("CPU", Discipline::Fcfs),
        centre("link", Discipline::Fcfs),
        centre("latency", Discipline::Delay),
    ];
    let route = vec![
        Stage::at(0, cpu_us * 1e-6),
        Stage::at(1, 80e-6),
        Stage::at(2, 20e-6),
    ];
    let processes = ClosedChain {
        name: "processes".to_owned(),
        customers,
        route,
    };
    Network::new(centres, vec![processes], Vec::new()).unwrap()
}

/// The paper's configurations that are solved and simulated: clients and servers.
fn paging(clients: u32, servers: u32) -> RemotePaging {
    RemotePaging {
        clients,
        servers,
        ..RemotePaging::default()
    }
}

/// DECstations 5000, five times as fast.
fn fast_paging(clients: u32, servers: u32) -> RemotePaging {
    paging(clients, servers).with_cpus_faster_by(5.0)
}

/// Page-ins and page-outs per work unit exchanged.
fn exchanged(paging: RemotePaging) -> RemotePaging {
    RemotePaging {
        page_ins_per_work_unit: paging.page_outs_per_work_unit,
        page_outs_per_work_unit: paging.page_ins_per_work_unit,
        ..paging
    }
}

#[track_caller]
fn assert_near(ours: f64, expected: f64, relative: f64) {
    let error = (ours / expected - 1.0).abs();
    assert!(error <= relative, "{ours} is not {expected}");
}
