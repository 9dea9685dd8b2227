//! Execution of a program's processes.
//!
//! Each process computes, makes a request, and waits for its answer. The process with the earliest time
//! always runs next. A program has few processes, so no queue is needed.

use super::check::Violation;
use super::client::Workstation;
use super::cluster::{Cluster, NEVER};
use super::outcome::{Counts, Run};
use super::process::{Process, Stage, Step};
use crate::Request;

/// A run of a program.
pub(super) struct ProgramRun<I> {
    processes: Vec<Process>,
    requests: I,
    /// Time of the last answer so far.
    pub(super) end_ns: u64,
}

impl<I: Iterator<Item = Request>> ProgramRun<I> {
    /// Makes a run whose processes take their first requests at `begin_ns`.
    pub(super) fn new(
        mut requests: I,
        processes: u32,
        begin_ns: u64,
        client: &mut Workstation,
    ) -> Self {
        let mut processes = vec![Process::IDLE; processes.max(1) as usize];
        for process in &mut processes {
            take(process, begin_ns, &mut requests, &mut client.counts);
        }
        Self {
            processes,
            requests,
            end_ns: begin_ns,
        }
    }

    /// Index of the process with the earliest next step.
    #[inline]
    pub(super) fn next(&self) -> usize {
        let mut next = 0;
        for i in 1..self.processes.len() {
            if self.processes[i].at_ns < self.processes[next].at_ns {
                next = i;
            }
        }
        next
    }

    /// Time of the process' next step; [`NEVER`] if it has no work.
    #[inline]
    pub(super) fn at_ns(&self, process: usize) -> u64 {
        self.processes[process].at_ns
    }

    /// Executes the process' next step, at the step's time.
    #[inline]
    pub(super) fn execute_step(
        &mut self,
        next: usize,
        client: &mut Workstation,
        cluster: &mut Option<Cluster<'_>>,
    ) -> Result<(), Violation> {
        let process = &mut self.processes[next];
        let (stage, region, now_ns) = (process.stage, process.region, process.at_ns);
        match client.step(cluster, process, now_ns)? {
            Step::Answered(at_ns) => {
                self.end_ns = self.end_ns.max(at_ns);
                take(process, at_ns, &mut self.requests, &mut client.counts);
                if stage == Stage::Store {
                    wake(&mut self.processes, region, at_ns);
                }
            }
            Step::Next(stage, at_ns) => (process.stage, process.at_ns) = (stage, at_ns),
            Step::Park => (process.stage, process.at_ns) = (Stage::Parked, NEVER),
        }
        Ok(())
    }

    /// Number of processes whose request is not answered yet.
    pub(super) fn waiting(&self) -> u64 {
        let waits = |p: &&Process| p.at_ns != NEVER || p.is_parked();
        self.processes.iter().filter(waits).count() as u64
    }
}

/// A single client and its cluster.
pub(super) struct Engine<'a> {
    pub(super) client: Workstation,
    /// Cluster; `None` without remote memory.
    pub(super) cluster: Option<Cluster<'a>>,
}

impl Engine<'_> {
    /// Runs the program once with this number of processes; `None` if the run has not ended by `until_ns`.
    pub(super) fn run(
        &mut self,
        number: u64,
        requests: impl Iterator<Item = Request>,
        processes: u32,
        begin_ns: u64,
        until_ns: u64,
    ) -> Result<Option<Run>, Violation> {
        let Self { client, cluster } = self;
        let before = client.counts;
        let mut running = ProgramRun::new(requests, processes, begin_ns, client);
        loop {
            let next = running.next();
            if running.at_ns(next) > until_ns {
                break;
            }
            running.execute_step(next, client, cluster)?;
        }
        let (waiting, end_ns) = (running.waiting(), running.end_ns);
        client.check(number, &before, waiting)?;
        cluster.as_ref().map_or(Ok(()), Cluster::check)?;
        let run = Run { begin_ns, end_ns };
        Ok((waiting == 0 && end_ns <= until_ns).then_some(run))
    }
}

/// Takes the program's next request at `now_ns`; the process makes the request after its compute time.
#[inline]
fn take(
    process: &mut Process,
    now_ns: u64,
    requests: &mut impl Iterator<Item = Request>,
    counts: &mut Counts,
) {
    process.stage = Stage::Ask;
    process.storing = None;
    match requests.next() {
        Some(request) => {
            counts.requests_count += 1;
            process.at_ns = now_ns + request.think_ns;
            process.request = request;
        }
        None => process.at_ns = NEVER,
    }
}

/// Makes the processes that wait for the region request it again.
fn wake(all: &mut [Process], region: u32, at_ns: u64) {
    let parked = all.iter_mut().filter(|p| p.stage == Stage::Parked);
    for process in parked.filter(|p| p.region == region) {
        (process.stage, process.at_ns) = (Stage::Ask, at_ns);
    }
}
