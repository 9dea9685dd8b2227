//! Conservation laws of the running cluster.

use super::{Cluster, TICK_NS, Totals};
use crate::event::SECOND;
use crate::gms::check::Violation;
use gleaner_policy::global::directory::MOST_HOLDERS;
use gleaner_policy::global::message::{Action, Event, Message};
use gleaner_policy::global::pages::Kind;
use gleaner_policy::global::settings::MemoryPolicy;
use gleaner_policy::global::{NodeId, Uid};
use std::ops::RangeInclusive;

/// Shortest and longest epoch that counts as usual: 5 to 10 s (section 3.2), and the time to begin the next one.
const USUAL_EPOCHS_NS: RangeInclusive<u64> = 5 * SECOND..=10 * SECOND + 3 * TICK_NS;

impl Cluster<'_> {
    /// A put page causes at most one transfer: the put itself. Under `n-chance` the page may be forwarded.
    pub(super) fn check_puts(
        &self,
        id: NodeId,
        event: &Event,
        puts: usize,
        is_ready: bool,
        now_ns: u64,
    ) -> Result<(), Violation> {
        let is_put = matches!(
            event,
            Event::Message {
                message: Message::PutPage { .. },
                ..
            }
        );
        // A put page for which a program waits is an answer, which may evict another page.
        let may_put = !is_put || is_ready || self.scenario.policy == MemoryPolicy::NChance;
        if puts <= usize::from(may_put) {
            return Ok(());
        }
        Err(Violation::Puts {
            node: id,
            puts,
            at_ns: now_ns,
        })
    }

    /// Counts an epoch whose weights the node sends, and checks their sum.
    pub(super) fn check_weights(
        &mut self,
        id: NodeId,
        actions: &[Action],
        now_ns: u64,
    ) -> Result<(), Violation> {
        let sent = actions.iter().filter_map(|action| match action {
            Action::Send {
                message: Message::Weights(weights),
                ..
            } => Some(weights.own_weight),
            _ => None,
        });
        let (count, sent) = sent.fold((0, 0_u64), |(count, sum), weight| (count + 1, sum + weight));
        if count == 0 {
            return Ok(());
        }
        let totals = &mut self.totals;
        let length_ns = now_ns.saturating_sub(totals.last_epoch_ns);
        let has_ended = totals.epochs > 0;
        let is_usual = has_ended && USUAL_EPOCHS_NS.contains(&length_ns);
        totals.usual_epochs += u64::from(is_usual);
        totals.epochs += 1;
        totals.last_epoch_ns = now_ns;
        let weights = &self.hosts[id as usize].node.epoch().weights;
        let sum = sent + weights.own_weight;
        let frames = self.most_frames;
        if sum <= frames {
            return Ok(());
        }
        Err(Violation::Weights {
            epoch: weights.epoch,
            sum,
            frames,
        })
    }

    /// Checks the laws that hold after all messages have arrived.
    pub(super) fn check(&self) -> Result<(), Violation> {
        let Totals {
            sent_bytes,
            received_bytes,
            ..
        } = self.totals;
        if sent_bytes != received_bytes {
            return Err(Violation::Bytes {
                sent_bytes,
                received_bytes,
            });
        }
        for (node, host) in (0..).zip(&self.hosts) {
            let Some(process) = &host.process else {
                continue;
            };
            let (reads, answered) = (process.asked, process.reads.sum());
            if reads != answered {
                return Err(Violation::Reads {
                    node,
                    reads,
                    answered,
                });
            }
        }
        match self.scenario.policy {
            MemoryPolicy::Gms | MemoryPolicy::Exact | MemoryPolicy::NChance => {
                self.check_directory()
            }
            MemoryPolicy::Hash | MemoryPolicy::None => Ok(()),
        }
    }

    /// Every page is in the directory, and at most one of its copies is global. Pages with more holders than the
    /// directory remembers are left out.
    fn check_directory(&self) -> Result<(), Violation> {
        for (node, host) in (0..).zip(&self.hosts) {
            for page in host.node.pages().iter() {
                let owner = self.members.owner(page.uid).unwrap_or(node);
                let Some(owner) = self.hosts.get(owner as usize) else {
                    continue;
                };
                let holders = || owner.node.directory().holders(page.uid);
                if holders().count() >= MOST_HOLDERS {
                    continue;
                }
                if !holders().any(|holder| holder.node == node) {
                    return Err(Violation::Unknown { node });
                }
                // A second copy is in the directory, too, or its node is unknown.
                let is_second = |other: NodeId| other != node && self.holds_global(other, page.uid);
                if page.kind == Kind::Global
                    && let Some(second) = holders().find(|holder| is_second(holder.node))
                {
                    return Err(Violation::GlobalCopies {
                        first: node,
                        second: second.node,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns true if the node holds the page for others.
    fn holds_global(&self, node: NodeId, uid: Uid) -> bool {
        let host = self.hosts.get(node as usize);
        let page = host.and_then(|host| host.node.pages().get(uid));
        page.is_some_and(|page| page.kind == Kind::Global)
    }
}
