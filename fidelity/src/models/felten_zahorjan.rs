//! Our values of Felten and Zahorjan's figures, from their queueing model.

use super::reading::Reading;
use crate::error::Result;
use gleaner_simulator::queueing::{DiskPaging, PagingMeans, QueueingError, RemotePaging};
use gleaner_traces::published::{Figure, PublishedWork};

/// Speed of a DECstation 5000 over a VAX 3500's ("about five times", section 4.2.2).
const DECSTATION_OVER_VAX: f64 = 5.0;
/// Rate of the fast network over Ethernet's: 100 over 10 Mbit/s.
const FAST_OVER_ETHERNET: f64 = 10.0;
/// Clients of the curves, 1 to this number. The text speaks of 50.
const CURVE_CLIENTS: u32 = 60;
/// Servers of Figure 2.
const FIVE_SERVERS: u32 = 5;
/// Loss of throughput below which servers support their clients, in %.
const SUPPORTED_LOSS_PERCENT: f64 = 25.0;
/// Most clients that are tried for that loss; the model takes no more.
const MOST_CLIENTS: u32 = 1000;
/// Service time of a page on the disk: 2.5 times a page-in of 13 ms (section 4.1), in seconds.
const DISK_S: f64 = 0.0325;
/// Time of a VAX page of 512 B at 10 Mbit/s, in seconds.
const VAX_PAGE_ON_ETHERNET_S: f64 = 512.0 * 8.0 / 10e6;

type Solved<T> = std::result::Result<T, QueueingError>;

/// VAX 3500s on Ethernet: Table 1.
fn vax() -> RemotePaging {
    RemotePaging::default()
}

/// DECstations 5000 on Ethernet. All CPU and server times are divided by five: our reading.
fn decstation() -> RemotePaging {
    vax().with_cpus_faster_by(DECSTATION_OVER_VAX)
}

fn on_fast_network(paging: RemotePaging) -> RemotePaging {
    paging.with_network_s(paging.page_in.network_s / FAST_OVER_ETHERNET)
}

/// The same with page-ins and page-outs exchanged.
fn exchanged(paging: RemotePaging) -> RemotePaging {
    RemotePaging {
        page_ins_per_work_unit: paging.page_outs_per_work_unit,
        page_outs_per_work_unit: paging.page_ins_per_work_unit,
        ..paging
    }
}

/// The same with as many page-ins as page-outs, and the same sum of both.
fn balanced(paging: RemotePaging) -> RemotePaging {
    let half = f64::midpoint(
        paging.page_ins_per_work_unit,
        paging.page_outs_per_work_unit,
    );
    RemotePaging {
        page_ins_per_work_unit: half,
        page_outs_per_work_unit: half,
        ..paging
    }
}

/// Solves the model for this number of clients and servers.
fn solved(paging: RemotePaging, clients: u32, servers: u32) -> Solved<PagingMeans> {
    let paging = RemotePaging {
        clients,
        servers,
        ..paging
    };
    paging.solve()
}

/// Work units that each client completes in a second.
fn throughput(paging: RemotePaging, clients: u32, servers: u32) -> Solved<f64> {
    Ok(solved(paging, clients, servers)?.work_units_per_s)
}

/// Throughput of one client that pages to its own disk, if paging takes no CPU time.
fn disk_throughput(work: RemotePaging) -> Solved<f64> {
    let disk = DiskPaging {
        work,
        disk_s: DISK_S,
        cpu_s: 0.0,
    };
    disk.work_units_per_s()
}

/// Throughput that each of `clients` lacks of one client's, at five servers, in %.
fn lost_percent(paging: RemotePaging, clients: u32) -> Solved<f64> {
    let alone = throughput(paging, 1, FIVE_SERVERS)?;
    Ok((1.0 - throughput(paging, clients, FIVE_SERVERS)? / alone) * 100.0)
}

/// Most clients that lose less than a quarter at five servers.
fn supported_clients(paging: RemotePaging) -> Solved<f64> {
    let mut clients = 1;
    while clients < MOST_CLIENTS && lost_percent(paging, clients + 1)? < SUPPORTED_LOSS_PERCENT {
        clients += 1;
    }
    Ok(f64::from(clients))
}

/// Throughput that balanced paging gains over `paging`, with one client and five servers, in %.
fn gained_by_balance_percent(paging: RemotePaging) -> Solved<f64> {
    let unbalanced = throughput(paging, 1, FIVE_SERVERS)?;
    Ok((throughput(balanced(paging), 1, FIVE_SERVERS)? / unbalanced - 1.0) * 100.0)
}

/// Clients and servers of the points of Figures 2 and 3.
fn points() -> impl Iterator<Item = (u32, u32)> {
    let clients = || 1..=CURVE_CLIENTS;
    let five_servers = clients().map(|n| (n, FIVE_SERVERS));
    five_servers.chain(clients().map(|n| (n, n)))
}

/// Largest difference of the fast network's curve from Ethernet's, in % of Ethernet's.
fn difference_percent(points: impl Iterator<Item = (u32, u32)>) -> Solved<f64> {
    let mut largest = 0.0_f64;
    for (clients, servers) in points {
        let ethernet = throughput(vax(), clients, servers)?;
        let fast = throughput(on_fast_network(vax()), clients, servers)?;
        largest = largest.max((fast / ethernet - 1.0).abs() * 100.0);
    }
    Ok(largest)
}

/// Highest network use of the architectures but DECstations on Ethernet, in %.
fn highest_network_use_percent() -> Solved<f64> {
    let mut highest = 0.0_f64;
    for (clients, servers) in points() {
        for paging in [vax(), on_fast_network(vax()), on_fast_network(decstation())] {
            highest = highest.max(solved(paging, clients, servers)?.network_utilization * 100.0);
        }
    }
    Ok(highest)
}

/// Lowest throughput in Figures 2 and 3 over the disk's.
fn lowest_over_disk(paging: RemotePaging) -> Solved<f64> {
    let mut lowest = f64::INFINITY;
    for (clients, servers) in points() {
        lowest = lowest.min(throughput(paging, clients, servers)?);
    }
    Ok(lowest / disk_throughput(paging)?)
}

/// Advantage over the disk with five clients and five servers.
fn over_disk(paging: RemotePaging) -> Solved<f64> {
    Ok(throughput(paging, FIVE_SERVERS, FIVE_SERVERS)? / disk_throughput(paging)?)
}

/// Servers' share of the time that 50 clients add to a work unit at network and servers, in %.
fn servers_share_of_added_time_percent() -> Solved<f64> {
    let (one, many) = (
        solved(vax(), 1, FIVE_SERVERS)?,
        solved(vax(), 50, FIVE_SERVERS)?,
    );
    let (network_s, servers_s) = (
        many.network_s - one.network_s,
        many.servers_s - one.servers_s,
    );
    Ok(servers_s / (network_s + servers_s) * 100.0)
}

/// Our value of a figure, in the figure's unit; `None` if the model has no such value.
pub(super) fn ours(figure: &Figure) -> Result<Option<f64>> {
    let (row, column) = (&*figure.row, &*figure.column);
    Ok(match &*figure.item {
        "Table 1" => parameter(row),
        "Text 4.1" => latency(column),
        "Text 4.2.1" => workload(column)?,
        "Text 4.2.2" => result(row, column)?,
        "Figure 2" => Some(difference_percent(
            (1..=CURVE_CLIENTS).map(|n| (n, FIVE_SERVERS)),
        )?),
        "Figure 3" => Some(difference_percent((1..=CURVE_CLIENTS).map(|n| (n, n)))?),
        _ => None,
    })
}

fn parameter(row: &str) -> Option<f64> {
    let table_1 = vax();
    let (page_in, page_out) = (table_1.page_in, table_1.page_out);
    Some(match row {
        "r_in" => table_1.page_ins_per_work_unit,
        "r_out" => table_1.page_outs_per_work_unit,
        "J" => f64::from(table_1.jobs_per_client),
        "N_c" => f64::from(table_1.clients),
        "N_s" => f64::from(table_1.servers),
        "alpha" => table_1.client_speed,
        "t_CPU, out" => page_out.cpu_s * 1e3,
        "t_net, out" => page_out.network_s * 1e6,
        "t_serv, out" => page_out.server_s * 1e3,
        "t_CPU, in" => page_in.cpu_s * 1e3,
        "t_net, in" => page_in.network_s * 1e6,
        "t_serv, in" => page_in.server_s * 1e3,
        _ => return None,
    })
}

fn latency(column: &str) -> Option<f64> {
    let page_in = vax().page_in;
    Some(match column {
        "time, measured" => page_in.total_s() * 1e3,
        "times as fast as by disk" => DISK_S / page_in.total_s(),
        "share of the remote procedure call" => {
            (page_in.network_s + page_in.server_s) / page_in.total_s() * 100.0
        }
        _ => return None,
    })
}

fn workload(column: &str) -> Solved<Option<f64>> {
    Ok(Some(match column {
        "page-outs over page-ins" => vax().page_outs_per_work_unit / vax().page_ins_per_work_unit,
        "throughput gained over 2 and 20, as printed" => gained_by_balance_percent(vax())?,
        "throughput gained over 20 and 2, exchanged" => {
            gained_by_balance_percent(exchanged(vax()))?
        }
        _ => return Ok(None),
    }))
}

fn result(row: &str, column: &str) -> Solved<Option<f64>> {
    let lost = |paging| lost_percent(paging, 50);
    let use_percent = |clients| -> Solved<f64> {
        Ok(solved(decstation(), clients, clients)?.network_utilization * 100.0)
    };
    Ok(Some(match (row, column) {
        (_, "throughput lost, VAX 3500, Ethernet") => lost(vax())?,
        (_, "throughput lost, VAX 3500, fast network") => lost(on_fast_network(vax()))?,
        (_, "throughput lost, DECstation 5000, Ethernet") => lost(decstation())?,
        (_, "throughput lost, DECstation 5000, fast network") => {
            lost(on_fast_network(decstation()))?
        }
        (_, "throughput lost, VAX 3500, Ethernet, exchanged") => lost(exchanged(vax()))?,
        (_, "throughput lost, DECstation 5000, Ethernet, computing alone faster") => {
            lost(computing_alone_faster())?
        }
        (_, "clients that lose less than 25 %, as printed") => supported_clients(vax())?,
        (_, "clients that lose less than 25 %, exchanged") => supported_clients(exchanged(vax()))?,
        (_, "servers' share of the added time at network and servers") => {
            servers_share_of_added_time_percent()?
        }
        (_, "network use, highest") => highest_network_use_percent()?,
        ("DECstation 5000 on Ethernet, 50 clients and servers", "network use") => use_percent(50)?,
        ("DECstation 5000 on Ethernet, 40 clients and servers", "network use") => use_percent(40)?,
        ("DECstation 5000 on Ethernet, 40 clients and servers", "throughput lost") => {
            let lost = 1.0 - throughput(decstation(), 40, 40)? / throughput(decstation(), 1, 1)?;
            lost * 100.0
        }
        ("DECstation 5000, Ethernet", "throughput over the disk's, lowest") => {
            lowest_over_disk(decstation())?
        }
        ("DECstation 5000, fast network", "throughput over the disk's, lowest") => {
            lowest_over_disk(on_fast_network(decstation()))?
        }
        ("DECstation 5000 against VAX 3500, Ethernet", _) => {
            over_disk(decstation())? / over_disk(vax())?
        }
        ("fast network against Ethernet, DECstation 5000", _) => {
            over_disk(on_fast_network(decstation()))? / over_disk(decstation())?
        }
        _ => return Ok(None),
    }))
}

/// DECstations 5000 of which computing alone is faster: a rejected reading.
fn computing_alone_faster() -> RemotePaging {
    RemotePaging {
        client_speed: vax().client_speed * DECSTATION_OVER_VAX,
        ..vax()
    }
}

/// Both readings of each contradiction.
pub(super) fn readings(published: &PublishedWork) -> Result<Vec<Reading>> {
    const PAGE_IN: &str = "page-in, ms";
    const BALANCE: &str = "throughput gained by 11 page-ins and 11 page-outs, %";
    const LOST: &str = "throughput lost by 50 clients at five servers, VAX 3500, %";
    const OVER_DISK: &str = "throughput over the disk's, VAX 3500";
    const FASTER: &str = "throughput lost by 50 clients at five servers, DECstation 5000, %";
    const USE: &str = "network use of 40 DECstations 5000 and servers on Ethernet, %";
    const PRINTED: &str = "r_in 2, r_out 20 (Table 1)";
    const EXCHANGED: &str = "r_in 20, r_out 2 (fits the text)";
    let reading = |quantity, reading: &str, value| Reading {
        quantity,
        reading: reading.to_owned(),
        value,
    };
    let page_in = vax().page_in;
    let long_pages = decstation().with_network_s(VAX_PAGE_ON_ETHERNET_S);
    let use_percent =
        |paging| -> Solved<f64> { Ok(solved(paging, 40, 40)?.network_utilization * 100.0) };
    let mut readings = vec![reading(
        PAGE_IN,
        "sum of CPU, network and server in Table 1",
        page_in.total_s() * 1e3,
    )];
    if let Some(measured) = published.get("Text 4.1", "page-in", "time, measured") {
        readings.push(reading(PAGE_IN, "measured (section 4.1)", measured.paper));
    }
    readings.extend([
        reading(BALANCE, PRINTED, gained_by_balance_percent(vax())?),
        reading(
            BALANCE,
            EXCHANGED,
            gained_by_balance_percent(exchanged(vax()))?,
        ),
        reading(LOST, PRINTED, lost_percent(vax(), 50)?),
        reading(LOST, EXCHANGED, lost_percent(exchanged(vax()), 50)?),
        reading(OVER_DISK, PRINTED, over_disk(vax())?),
        reading(OVER_DISK, EXCHANGED, over_disk(exchanged(vax()))?),
        reading(
            FASTER,
            "all CPU and server times / 5",
            lost_percent(decstation(), 50)?,
        ),
        reading(
            FASTER,
            "computing alone / 5",
            lost_percent(computing_alone_faster(), 50)?,
        ),
        reading(
            USE,
            "200 us a page (Table 1; 250 B at 10 Mbit/s)",
            use_percent(decstation())?,
        ),
        reading(
            USE,
            "410 us a page (a VAX page of 512 B)",
            use_percent(long_pages)?,
        ),
    ]);
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_traces::published::felten_zahorjan;

    fn value(item: &str, row: &str, column: &str) -> f64 {
        let published = felten_zahorjan().unwrap();
        ours(published.get(item, row, column).unwrap())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn every_figure_has_a_value() {
        for figure in felten_zahorjan().unwrap().figures {
            let ours = ours(&figure).unwrap();
            assert!(ours.is_some_and(f64::is_finite), "{figure:?}");
        }
    }

    #[test]
    fn the_model_has_the_parameters_that_are_published() {
        for figure in felten_zahorjan().unwrap().figures {
            if figure.item == "Table 1" {
                let ours = ours(&figure).unwrap().unwrap();
                assert!((ours / figure.paper - 1.0).abs() < 1e-12, "{figure:?}");
            }
        }
    }

    #[test]
    fn the_disk_follows_from_published_figures() {
        let published = felten_zahorjan().unwrap();
        let paper = |column| published.get("Text 4.1", "page-in", column).unwrap().paper;
        let disk_ms = paper("time, measured") * paper("times as fast as by disk");
        assert!((DISK_S * 1e3 / disk_ms - 1.0).abs() < 1e-12);
    }

    #[test]
    fn statements_are_as_a_second_solver_finds_them() {
        let found = |row, column, expected: f64, within: f64| {
            let ours = value("Text 4.2.2", row, column);
            assert!((ours - expected).abs() < within, "{row}: {column}: {ours}");
        };
        let fifty = "50 clients, five servers";
        found(fifty, "throughput lost, VAX 3500, Ethernet", 11.9, 0.05);
        found(
            fifty,
            "throughput lost, DECstation 5000, Ethernet",
            12.1,
            0.05,
        );
        found(
            fifty,
            "throughput lost, VAX 3500, Ethernet, exchanged",
            20.8,
            0.05,
        );
        let rejected = "throughput lost, DECstation 5000, Ethernet, computing alone faster";
        found(fifty, rejected, 73.0, 0.1);
        // A quarter is lost at 61 and at 56 clients.
        found(
            "five servers",
            "clients that lose less than 25 %, as printed",
            60.0,
            0.1,
        );
        found(
            "five servers",
            "clients that lose less than 25 %, exchanged",
            55.0,
            0.1,
        );
        found(
            "all but DECstation 5000 on Ethernet",
            "network use, highest",
            23.3,
            0.05,
        );
        found(
            "DECstation 5000 on Ethernet, 40 clients and servers",
            "network use",
            77.2,
            0.05,
        );
        found(
            "DECstation 5000 on Ethernet, 50 clients and servers",
            "network use",
            94.6,
            0.05,
        );
        let balance = |column| value("Text 4.2.1", "11 page-ins and 11 page-outs", column);
        assert!((balance("throughput gained over 2 and 20, as printed") + 4.2).abs() < 0.05);
        assert!((balance("throughput gained over 20 and 2, exchanged") - 4.5).abs() < 0.05);
    }

    #[test]
    fn each_contradiction_has_two_readings() {
        let published = felten_zahorjan().unwrap();
        let readings = readings(&published).unwrap();
        assert_eq!(readings.len(), 12);
        for pair in readings.chunks(2) {
            assert_eq!(pair[0].quantity, pair[1].quantity);
            assert!(
                (pair[0].value / pair[1].value - 1.0).abs() > 0.05,
                "{pair:?}"
            );
        }
        assert!((readings[0].value - 11.2).abs() < 1e-9 && readings[1].value == 13.0);
    }
}
