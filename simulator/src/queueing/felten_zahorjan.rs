//! The queueing model of E. Felten and J. Zahorjan, *Issues in the Implementation of a Remote Memory Paging System*
//! (University of Washington 91-03-09, 1991), section 4.2.
//!
//! Clients, one network and servers are FCFS centres. The jobs of each client are a closed chain: they compute, and wait
//! for page-ins. Page-outs happen in the background; they are an open chain, whose rate follows from the speed at which
//! the jobs work. The demands differ at the same FCFS centre, so the solution is an approximation, as the paper's must
//! be.
//!
//! One cycle of the closed chain is one page-in: computing and CPU time of the page-in, then the network, then a server
//! chosen at random. One job per client never queues at its own CPU, where only page-outs can delay it. The CPU is then
//! a delay centre, all jobs are one chain, and mean value analysis of it is exact. Several jobs per client are
//! approximated.

use super::error::{QueueingError, check};
use super::network::LEAST_ARRIVALS_PER_S;
use super::network::{Centre, ClosedChain, Discipline, Network, OpenChain, Stage};
use super::solution::{ChainMeans, Solution, approximate_solution, exact_solution};
use std::ops::RangeInclusive;

/// Range of the numbers of clients, servers and jobs.
const COUNTS: RangeInclusive<f64> = 1.0..=1000.0;
/// Range of the number of clients if each has several jobs: the approximation keeps a queue length for each client and
/// centre.
const CLIENTS_WITH_JOBS: RangeInclusive<f64> = 1.0..=100.0;
/// Range of page-ins per work unit.
const PAGES: RangeInclusive<f64> = 1e-3..=1e4;
/// Range of page-outs per work unit.
const PAGES_OR_NONE: RangeInclusive<f64> = 0.0..=1e4;
/// Range of a client's speed, in work units per second.
const SPEEDS: RangeInclusive<f64> = 1e-3..=1e4;
/// Range of service times, in seconds.
const TIMES_S: RangeInclusive<f64> = 0.0..=1e3;
/// Highest load of a client's CPU by page-outs. A higher load counts as full.
const MOST_CPU_LOAD: f64 = 1.0 - 1e-9;

/// Difference of the interval's ends, as a share of the throughput, at which the search for it ends.
const FOUND: f64 = 1e-13;

/// Clients that page to servers over a network (Table 1). The default is the paper's: VAX 3500s on a 10 Mbit/s
/// Ethernet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemotePaging {
    /// Page-ins per work unit (r_in). A work unit is one second of computing on a VAX 3500.
    pub page_ins_per_work_unit: f64,
    /// Page-outs per work unit (r_out).
    pub page_outs_per_work_unit: f64,
    /// Jobs that use remote paging, for each client (J).
    pub jobs_per_client: u32,
    /// Number of clients (N_c).
    pub clients: u32,
    /// Number of servers (N_s).
    pub servers: u32,
    /// Work units that a client's CPU computes in a second (α).
    pub client_speed: f64,
    /// Service times of a page-in.
    pub page_in: PageTimes,
    /// Service times of a page-out.
    pub page_out: PageTimes,
}

/// Service times of one page, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageTimes {
    /// Time on the client's CPU.
    pub cpu_s: f64,
    /// Time on the network.
    pub network_s: f64,
    /// Time at the server.
    pub server_s: f64,
}

impl PageTimes {
    /// Table 1 has the same times for a page-in and a page-out.
    const TABLE_1: Self = Self {
        cpu_s: 0.0055,
        network_s: 0.0002,
        server_s: 0.0055,
    };

    /// Time of one page without any waiting.
    #[must_use]
    pub fn total_s(&self) -> f64 {
        self.cpu_s + self.network_s + self.server_s
    }
}

impl Default for RemotePaging {
    fn default() -> Self {
        Self {
            page_ins_per_work_unit: 2.0,
            page_outs_per_work_unit: 20.0,
            jobs_per_client: 1,
            clients: 5,
            servers: 5,
            client_speed: 1.0,
            page_in: PageTimes::TABLE_1,
            page_out: PageTimes::TABLE_1,
        }
    }
}

/// Mean values of the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PagingMeans {
    /// Work units that one client completes in a second.
    pub work_units_per_s: f64,
    /// Time of a work unit on the client's CPU, in seconds, with the page-outs and other jobs that it waits for.
    pub cpu_s: f64,
    /// Time of a work unit's page-ins at the network, waiting and in service, in seconds.
    pub network_s: f64,
    /// Time of a work unit's page-ins at the servers, waiting and in service, in seconds.
    pub servers_s: f64,
    /// Share of time that the network is busy with page-ins and page-outs.
    pub network_utilization: f64,
    /// Share of time that each server is busy.
    pub server_utilization: f64,
}

/// Index of the CPUs in [`RemotePaging::one_job_network`].
const CPU: usize = 0;
/// Index of the network there.
const NETWORK: usize = 1;
/// Index of the first server there; the others follow.
const FIRST_SERVER: usize = 2;

impl RemotePaging {
    /// The same with a CPU that computes `factor` times as fast. Times on CPUs, of clients and servers, are divided by it
    /// (our reading: the paper prints the times for α = 1 only).
    #[must_use]
    pub fn with_cpus_faster_by(self, factor: f64) -> Self {
        let faster = |times: PageTimes| PageTimes {
            cpu_s: times.cpu_s / factor,
            server_s: times.server_s / factor,
            ..times
        };
        Self {
            client_speed: self.client_speed * factor,
            page_in: faster(self.page_in),
            page_out: faster(self.page_out),
            ..self
        }
    }

    /// The same with this service time of a page on the network.
    #[must_use]
    pub fn with_network_s(self, network_s: f64) -> Self {
        let times = |times: PageTimes| PageTimes { network_s, ..times };
        Self {
            page_in: times(self.page_in),
            page_out: times(self.page_out),
            ..self
        }
    }

    /// Solves the model: finds the throughput at which the page-outs that the work makes slow the work down to just
    /// this throughput.
    ///
    /// # Errors
    /// [`QueueingError::Parameter`] names a parameter outside its range.
    pub fn solve(&self) -> Result<PagingMeans, QueueingError> {
        self.check()?;
        let work_units_per_s = fixed_point(|assumed| Ok(self.means_at(assumed)?.work_units_per_s))?;
        Ok(PagingMeans {
            work_units_per_s,
            ..self.means_at(work_units_per_s)?
        })
    }

    /// The whole network, with a CPU for each client, if each client completes `work_units_per_s`. The rates of the
    /// page-outs follow from this throughput. Closed chains are the clients, in order; one cycle is one page-in.
    ///
    /// # Errors
    /// [`QueueingError::Parameter`]; [`QueueingError::Overloaded`]: page-outs of so much work overload a centre.
    pub fn network(&self, work_units_per_s: f64) -> Result<Network, QueueingError> {
        self.check()?;
        let cpus = (1..=self.clients)
            .map(|number| centre(format!("CPU of client {number}"), Discipline::Fcfs));
        let network = self.clients as usize;
        let servers: Vec<usize> = (network + 1..).take(self.servers as usize).collect();
        let client = |cpu: usize| ClosedChain {
            name: format!("client {}", cpu + 1),
            customers: self.jobs_per_client,
            route: vec![
                Stage::at(cpu, self.computing_s() + self.page_in.cpu_s),
                Stage::at(network, self.page_in.network_s),
                Stage {
                    centres: servers.clone(),
                    service_s: self.page_in.server_s,
                },
            ],
        };
        let page_outs_per_s = work_units_per_s * self.page_outs_per_work_unit;
        let page_outs = |cpu: usize| OpenChain {
            name: format!("page-outs of client {}", cpu + 1),
            arrivals_per_s: page_outs_per_s,
            route: vec![
                Stage::at(cpu, self.page_out.cpu_s),
                Stage::at(network, self.page_out.network_s),
                Stage {
                    centres: servers.clone(),
                    service_s: self.page_out.server_s,
                },
            ],
        };
        let open = if page_outs_per_s < LEAST_ARRIVALS_PER_S {
            0..0
        } else {
            0..network
        };
        Network::new(
            cpus.chain(self.shared_centres()).collect(),
            (0..network).map(client).collect(),
            open.map(page_outs).collect(),
        )
    }

    /// The network with the jobs of all clients as one chain, if each client has one job. The page-outs stretch the
    /// service time at the CPU, which is a delay centre.
    pub(super) fn one_job_network(&self, work_units_per_s: f64) -> Result<Network, QueueingError> {
        let page_outs_per_s = work_units_per_s * self.page_outs_per_work_unit;
        let cpu_load = page_outs_per_s * self.page_out.cpu_s;
        if cpu_load > MOST_CPU_LOAD {
            return Err(QueueingError::Overloaded {
                centre: "the CPU of each client".to_owned(),
                utilization: cpu_load,
            });
        }
        let servers = || -> Vec<usize> { (FIRST_SERVER..).take(self.servers as usize).collect() };
        let cpu_s = (self.computing_s() + self.page_in.cpu_s) / (1.0 - cpu_load);
        let jobs = ClosedChain {
            name: "jobs".to_owned(),
            customers: self.clients,
            route: vec![
                Stage::at(CPU, cpu_s),
                Stage::at(NETWORK, self.page_in.network_s),
                Stage {
                    centres: servers(),
                    service_s: self.page_in.server_s,
                },
            ],
        };
        let page_outs = (page_outs_per_s >= LEAST_ARRIVALS_PER_S).then(|| OpenChain {
            name: "page-outs".to_owned(),
            arrivals_per_s: page_outs_per_s * f64::from(self.clients),
            route: vec![
                Stage::at(NETWORK, self.page_out.network_s),
                Stage {
                    centres: servers(),
                    service_s: self.page_out.server_s,
                },
            ],
        });
        let cpu = centre("CPUs".to_owned(), Discipline::Delay);
        let centres = std::iter::once(cpu).chain(self.shared_centres()).collect();
        Network::new(centres, vec![jobs], page_outs.into_iter().collect())
    }

    /// The network's and the servers' centres.
    fn shared_centres(&self) -> impl Iterator<Item = Centre> + use<> {
        let servers =
            (1..=self.servers).map(|number| centre(format!("server {number}"), Discipline::Fcfs));
        std::iter::once(centre("network".to_owned(), Discipline::Fcfs)).chain(servers)
    }

    /// Mean values if the page-outs of each client are those of `assumed` work units per second.
    fn means_at(&self, assumed: f64) -> Result<PagingMeans, QueueingError> {
        let (solution, clients, cpus) = if self.jobs_per_client == 1 {
            let solution = exact_solution(&self.one_job_network(assumed)?)?;
            (solution, f64::from(self.clients), 1)
        } else {
            let solution = approximate_solution(&self.network(assumed)?)?;
            (solution, 1.0, self.clients as usize)
        };
        // One chain of all clients, or a chain for each, of which the first is like the others.
        let Solution {
            closed, centres, ..
        } = &solution;
        let chain = closed.first();
        let page_ins_per_s = chain.map_or(0.0, |chain| chain.throughput_per_s) / clients;
        let per_work_unit_s = |from: usize, until: usize| {
            let residence = |chain: &ChainMeans| {
                let some = chain.residences_s.iter().take(until).skip(from);
                some.sum::<f64>() * self.page_ins_per_work_unit
            };
            chain.map_or(0.0, residence)
        };
        let utilization = |at: usize| centres.get(at).map_or(0.0, |centre| centre.utilization);
        Ok(PagingMeans {
            work_units_per_s: page_ins_per_s / self.page_ins_per_work_unit,
            cpu_s: per_work_unit_s(0, cpus),
            network_s: per_work_unit_s(cpus, cpus + 1),
            servers_s: per_work_unit_s(cpus + 1, usize::MAX),
            network_utilization: utilization(cpus),
            server_utilization: utilization(cpus + 1),
        })
    }

    /// Computing time between two page-ins.
    fn computing_s(&self) -> f64 {
        1.0 / self.client_speed / self.page_ins_per_work_unit
    }

    fn check(&self) -> Result<(), QueueingError> {
        let clients = match self.jobs_per_client {
            0 | 1 => COUNTS,
            _ => CLIENTS_WITH_JOBS,
        };
        check("page_ins_per_work_unit", self.page_ins_per_work_unit, PAGES)?;
        check(
            "page_outs_per_work_unit",
            self.page_outs_per_work_unit,
            PAGES_OR_NONE,
        )?;
        check("jobs_per_client", f64::from(self.jobs_per_client), COUNTS)?;
        check("clients", f64::from(self.clients), clients)?;
        check("servers", f64::from(self.servers), COUNTS)?;
        check("client_speed", self.client_speed, SPEEDS)?;
        for (page, times) in [("page_in", &self.page_in), ("page_out", &self.page_out)] {
            check(&format!("{page}.cpu_s"), times.cpu_s, TIMES_S)?;
            check(&format!("{page}.network_s"), times.network_s, TIMES_S)?;
            check(&format!("{page}.server_s"), times.server_s, TIMES_S)?;
        }
        Ok(())
    }
}

/// A single client that pages to its own disk, for comparison (section 4.2.1). The disk is FCFS, and serves page-outs as
/// an open chain too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskPaging {
    /// The jobs' work; `clients`, `servers` and the times of pages are not used.
    pub work: RemotePaging,
    /// Service time of a page on the disk, in seconds. The paper prints none; section 4.1 gives 2.5 times a page-in of
    /// 13 ms.
    pub disk_s: f64,
    /// Time of a page on the client's CPU, in seconds. The paper prints none.
    pub cpu_s: f64,
}

impl DiskPaging {
    /// Work units that the client completes in a second.
    ///
    /// # Errors
    /// [`QueueingError::Parameter`] names a parameter outside its range.
    pub fn work_units_per_s(&self) -> Result<f64, QueueingError> {
        self.work.check()?;
        check("disk_s", self.disk_s, TIMES_S)?;
        check("cpu_s", self.cpu_s, TIMES_S)?;
        fixed_point(|assumed| {
            let solution = exact_solution(&self.network(assumed)?)?;
            let page_ins_per_s: f64 = solution.closed.iter().map(|c| c.throughput_per_s).sum();
            Ok(page_ins_per_s / self.work.page_ins_per_work_unit)
        })
    }

    fn network(&self, work_units_per_s: f64) -> Result<Network, QueueingError> {
        let route = |cpu_s: f64| vec![Stage::at(0, cpu_s), Stage::at(1, self.disk_s)];
        let jobs = ClosedChain {
            name: "jobs".to_owned(),
            customers: self.work.jobs_per_client,
            route: route(self.work.computing_s() + self.cpu_s),
        };
        let arrivals_per_s = work_units_per_s * self.work.page_outs_per_work_unit;
        let page_outs = (arrivals_per_s >= LEAST_ARRIVALS_PER_S).then(|| OpenChain {
            name: "page-outs".to_owned(),
            arrivals_per_s,
            route: route(self.cpu_s),
        });
        let centres = ["CPU", "disk"].map(|name| centre(name.to_owned(), Discipline::Fcfs));
        Network::new(centres.into(), vec![jobs], page_outs.into_iter().collect())
    }
}

fn centre(name: String, discipline: Discipline) -> Centre {
    Centre { name, discipline }
}

/// The throughput x with `throughput(x)` = x, for a function that falls as x grows, found by bisection. An x that
/// overloads a centre is too large. The result is the lower end of the last interval, which overloads none.
fn fixed_point(
    throughput: impl Fn(f64) -> Result<f64, QueueingError>,
) -> Result<f64, QueueingError> {
    // No page-outs slow the work down here, so the result is an upper bound.
    let (mut low, mut high) = (0.0, throughput(0.0)?);
    while high - low > FOUND * high {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        match throughput(middle) {
            Ok(found) if found >= middle => low = middle,
            Ok(_) | Err(QueueingError::Overloaded { .. }) => high = middle,
            Err(error) => return Err(error),
        }
    }
    Ok(low)
}
