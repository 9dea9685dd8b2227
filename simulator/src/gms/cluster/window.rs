//! Results of a run: the clients' counted parts, and totals of the time in which all clients count.

use super::{Cluster, Totals};
use crate::event::SECOND;
use crate::gms::outcome::{ClientOutcome, Outcome, Traffic, Window};
use crate::gms::process::{Phase, Process};

/// State at one end of the window in which all clients count.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    at_ns: u64,
    totals: Totals,
    idle_operations: u64,
    idle_kernel_ns: u64,
    bystanders_reads: Vec<u64>,
}

impl Cluster<'_> {
    pub(super) fn count_phase(&mut self, phase: Phase, now_ns: u64) {
        match phase {
            Phase::Begun => {
                self.counting += 1;
                if self.counting == self.scenario.clients && self.ended == 0 {
                    self.window.0 = Some(self.snapshot(now_ns));
                }
            }
            Phase::Ended => {
                self.ended += 1;
                if self.ended == 1 && self.window.0.is_some() {
                    self.window.1 = Some(self.snapshot(now_ns));
                }
            }
        }
    }

    fn snapshot(&self, now_ns: u64) -> Snapshot {
        let idle = self.hosts.get(self.scenario.clients as usize);
        let processes = self.hosts.iter().filter_map(|host| host.process.as_ref());
        let bystanders = processes.filter(|process| process.is_bystander());
        Snapshot {
            at_ns: now_ns,
            totals: self.totals,
            idle_operations: idle.map_or(0, |host| host.operations),
            idle_kernel_ns: idle.map_or(0, |host| host.machine.kernel_ns),
            bystanders_reads: bystanders.map(|process| process.reads.sum()).collect(),
        }
    }

    pub(super) fn outcome(&self, end_ns: u64) -> Outcome {
        let processes = self.hosts.iter().filter_map(|host| host.process.as_ref());
        let clients = processes.filter_map(Process::counted);
        let clients = clients.map(|(program, elapsed_ns, reads)| ClientOutcome {
            program,
            elapsed_ns,
            reads,
        });
        let window = match &self.window {
            (Some(begin), Some(end)) => Some(self.between(begin, end)),
            _ => None,
        };
        let Totals {
            epochs,
            usual_epochs,
            events,
            sent_bytes,
            epoch_bytes,
            page_transfers,
            ..
        } = self.totals;
        // The first weights begin an epoch and end none.
        let ended = epochs.saturating_sub(1);
        Outcome {
            clients: clients.collect(),
            window,
            traffic: Traffic {
                network_bytes: sent_bytes,
                epoch_bytes,
                page_transfers,
            },
            owners: self.owners_outcome(end_ns),
            epochs,
            usual_epochs_share: (ended > 0).then(|| usual_epochs as f64 / ended as f64),
            end_ns,
            events,
        }
    }

    fn between(&self, begin: &Snapshot, end: &Snapshot) -> Window {
        let length_ns = end.at_ns - begin.at_ns;
        let length_s = (length_ns.max(1)) as f64 / SECOND as f64;
        let think_ns = f64::from(self.scenario.bystander_us) * 1_000.0;
        let counts = begin.bystanders_reads.iter().zip(&end.bystanders_reads);
        let slowdowns = counts.map(|(before, after)| {
            let reads = (after - before).max(1);
            length_ns as f64 / (reads as f64 * think_ns)
        });
        let slowdowns: Vec<f64> = slowdowns.collect();
        let has_slowdown = !slowdowns.is_empty() && self.scenario.exchange_ms == 0;
        let idle_kernel_ns = end.idle_kernel_ns - begin.idle_kernel_ns;
        let idle_operations = end.idle_operations - begin.idle_operations;
        Window {
            length_ns,
            network_bytes: end.totals.sent_bytes - begin.totals.sent_bytes,
            epoch_bytes: end.totals.epoch_bytes - begin.totals.epoch_bytes,
            page_transfers: end.totals.page_transfers - begin.totals.page_transfers,
            idle_operations_per_s: idle_operations as f64 / length_s,
            idle_cpu_share: idle_kernel_ns as f64 / length_ns.max(1) as f64,
            bystander_slowdown: has_slowdown
                .then(|| slowdowns.iter().sum::<f64>() / slowdowns.len() as f64),
        }
    }
}
