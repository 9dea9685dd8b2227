//! Several concurrent clients on one cluster, each with its own workstation, program and descriptors. They
//! share the hosts, the quotas and the manager.

use super::client::{Geometry, Workstation};
use super::cluster::{Cluster, NEVER};
use super::outcome::{ClientOutcome, Counts, SharedOutcome};
use super::owners::PageIn;
use super::running::ProgramRun;
use super::scenario::{Network, Recruitment, Remote, Scenario};
use super::simulate::{SimulationError, check, engine, processes, workstation};
use crate::applications::Program;
use crate::event::Queue;
use crate::hosts::Timeline;

/// Client among several that share the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Borrower<P> {
    /// Name of the client in the outcome and for placement policies.
    pub name: String,
    /// Id of the host on which the client works; this host lends nothing until the program has ended. Absent:
    /// the client works on none of the hosts.
    pub host_id: Option<String>,
    /// Begin of the program, since the simulation's begin.
    pub begin_ns: u64,
    /// Program that the client runs, once.
    pub program: P,
}

/// State of a running client.
struct Client<I> {
    workstation: Workstation,
    running: ProgramRun<I>,
    host: Option<usize>,
    end_ns: Option<u64>,
}

impl<I: Iterator<Item = crate::Request>> Client<I> {
    /// Time of the client's next event; after the last request, the end of its run.
    fn next_ns(&self) -> u64 {
        match self.running.at_ns(self.running.next()) {
            NEVER => self.running.end_ns,
            at_ns => at_ns,
        }
    }
}

/// Simulates `clients` on `hosts` until all have ended, or the scenario's time is over. Each client runs its
/// program once with its own random numbers: the first client as run 0, the second as run 1, and so on. Each
/// client has the scenario's workstation and its own network to the hosts. The scenario's application, pause
/// and reference runs are ignored.
///
/// When a client's program has ended, its regions are deleted, and its host may lend again.
///
/// # Errors
/// [`SimulationError`], also if a client's host is not in `hosts`.
pub fn simulate_clients<P: Program>(
    scenario: &Scenario,
    clients: &[Borrower<P>],
    hosts: &[Timeline],
) -> Result<SharedOutcome, SimulationError> {
    check(scenario)?;
    let mut geometries = Vec::new();
    let mut regions = 0_u32;
    for client in clients {
        let geometry = Geometry::new(client.program.layout(), scenario.remote.region_bytes);
        geometries.push(geometry.after(regions));
        regions = regions.saturating_add(geometry.regions());
    }
    if regions == u32::MAX {
        return Err(SimulationError::Setting {
            key: "clients",
            value: clients.len().to_string(),
            wanted: "data of fewer than 2^32 regions in all: make remote.region_bytes larger",
        });
    }
    let sizes = clients.iter().zip(&geometries);
    let sizes = sizes.map(|(client, geometry)| (client.name.clone(), geometry.region_bytes()));
    let (recruitment, remote) = (&scenario.recruitment, &scenario.remote);
    let cluster = Cluster::shared(hosts, recruitment, remote, sizes, scenario.seed);
    let mut cluster = Some(cluster);
    let mut all = Vec::new();
    let mut queue = Queue::default();
    for (number, (client, geometry)) in clients.iter().zip(&geometries).enumerate() {
        let host = place(client, hosts)?;
        if let (Some(at), Some(cluster)) = (host, &mut cluster) {
            cluster.borrows(at, true, 0)?;
        }
        let (program, seed) = (&client.program, scenario.seed.wrapping_add(number as u64));
        let mut workstation = workstation(scenario, program, *geometry, &scenario.network, seed);
        let requests = program.run(scenario.seed, number as u64);
        let processes = processes(scenario, program);
        let running = ProgramRun::new(requests, processes, client.begin_ns, &mut workstation);
        let client = Client {
            workstation,
            running,
            host,
            end_ns: None,
        };
        queue.put(client.next_ns(), number);
        all.push(client);
    }
    while let Some((now_ns, number)) = queue.pop_until(scenario.length_ns) {
        let client = &mut all[number];
        let next = client.running.next();
        if client.running.at_ns(next) != NEVER {
            client
                .running
                .execute_step(next, &mut client.workstation, &mut cluster)?;
            queue.put(client.next_ns(), number);
            continue;
        }
        client.end_ns = Some(now_ns);
        let host = client.host;
        let works_there = |c: &Client<P::Stream>| c.host == host && c.end_ns.is_none();
        let is_still_borrowing = all.iter().any(works_there);
        if let Some(cluster) = &mut cluster {
            cluster.advance(now_ns)?;
            cluster.delete(number, now_ns)?;
            if let (Some(at), false) = (host, is_still_borrowing) {
                cluster.borrows(at, false, now_ns)?;
            }
            cluster.check()?;
        }
    }
    let mut told = Vec::new();
    // The ideal's only host has room for every region of any program.
    let infinite = [Timeline::always_idle("infinite", u64::MAX / 4)];
    for (number, (client, of)) in all.iter().zip(clients).enumerate() {
        let waiting = client.running.waiting();
        let counts = client.workstation.counts;
        client
            .workstation
            .check(number as u64, &Counts::default(), waiting)?;
        let baseline_ns = alone(scenario, of, number as u64, None)?;
        let ideal_ns = alone(scenario, of, number as u64, Some(&infinite))?;
        let ns = client.end_ns.map(|end_ns| end_ns - of.begin_ns);
        let speedup = ns.filter(|ns| *ns > 0);
        told.push(ClientOutcome {
            name: of.name.clone(),
            host_id: of.host_id.clone(),
            begin_ns: of.begin_ns,
            end_ns: client.end_ns,
            baseline_ns,
            ideal_ns,
            speedup: speedup.map(|ns| baseline_ns as f64 / ns as f64),
            counts,
        });
    }
    let (regions, owners) = match cluster {
        Some(mut cluster) => {
            cluster.advance(scenario.length_ns)?;
            cluster.check()?;
            cluster.finish(scenario.length_ns, PageIn::of(scenario))
        }
        None => Default::default(),
    };
    Ok(SharedOutcome {
        scenario: scenario.clone(),
        counts: told.iter().map(|client| client.counts).sum(),
        clients: told,
        regions,
        owners,
    })
}

/// Index in `hosts` of the host on which the client works; `None` if it works on none.
fn place<P>(client: &Borrower<P>, hosts: &[Timeline]) -> Result<Option<usize>, SimulationError> {
    let Some(id) = &client.host_id else {
        return Ok(None);
    };
    let place = hosts.iter().position(|host| host.host_id == *id);
    place.map(Some).ok_or_else(|| SimulationError::Setting {
        key: "clients.host_id",
        value: id.clone(),
        wanted: "the id of a host of the dataset, or nothing",
    })
}

/// Time of the client's run without other clients: either without remote memory, or with the memory of
/// `hosts` over a network that takes no time.
fn alone<P: Program>(
    scenario: &Scenario,
    client: &Borrower<P>,
    number: u64,
    hosts: Option<&[Timeline]>,
) -> Result<u64, SimulationError> {
    let program = &client.program;
    let geometry = Geometry::new(program.layout(), scenario.remote.region_bytes);
    let cluster = hosts.map(|hosts| {
        let (recruitment, remote) = (Recruitment::default(), Remote::default());
        let regions = geometry.region_bytes();
        Cluster::new(hosts, &recruitment, &remote, regions, scenario.seed)
    });
    let mut alone = engine(scenario, program, geometry, cluster, &Network::INFINITE);
    let requests = program.run(scenario.seed, number);
    let processes = processes(scenario, program);
    let run = alone.run(number, requests, processes, 0, u64::MAX / 4)?;
    Ok(run.map_or(0, |run| run.ns()))
}
