//! Actions of a node's policy, carried out with the paper's costs.

use super::{Cluster, Host, Scheduled};
use crate::gms::check::Violation;
use crate::gms::costs::Costs;
use crate::gms::error::GmsError;
use crate::gms::machine::occupy_links;
use gleaner_policy::global::message::{Action, Event, Message, Origin};
use gleaner_policy::global::prefetch::PrefetchStage;
use gleaner_policy::global::{NodeId, Uid};

impl Cluster<'_> {
    /// Carries out the actions of one step, in order. Returns true for a local hit, which takes no time.
    pub(super) fn carry_out(
        &mut self,
        id: NodeId,
        event: &Event,
        now_ns: u64,
        actions: &[Action],
    ) -> Result<bool, GmsError> {
        if let [
            Action::Ready {
                uid,
                origin: Origin::Local,
            },
        ] = actions
        {
            self.answer(id, *uid, Origin::Local, now_ns)?;
            return Ok(true);
        }
        let costs = self.costs;
        let begin_ns = self.hosts[id as usize].machine.begin_ns(now_ns);
        let mut end_ns = begin_ns + costs.handling_ns(event, actions, self.scenario.policy);
        let (mut puts, mut is_ready) = (0, false);
        for action in actions {
            match action {
                Action::Send { to, message } => {
                    puts += usize::from(matches!(message, Message::PutPage { .. }));
                    end_ns += costs.sending_ns(message);
                    self.send(id, *to, message, end_ns);
                }
                Action::Load { uid } => {
                    let host = &mut self.hosts[id as usize];
                    let place = host
                        .process
                        .as_ref()
                        .and_then(|process| process.place(*uid));
                    let loaded_ns = read_or_write(host, &costs, *uid, place.unwrap_or(0), end_ns);
                    self.queue.put(
                        loaded_ns,
                        Scheduled::Loaded {
                            node: id,
                            uid: *uid,
                        },
                    );
                }
                Action::Ready { uid, origin } => {
                    is_ready = true;
                    self.answer(id, *uid, *origin, now_ns)?;
                    let frame_ns = if puts > 0 { costs.frame_ns } else { 0 };
                    self.queue.put(end_ns + frame_ns, Scheduled::Resume(id));
                }
                Action::Drop { uid } => {
                    let host = &mut self.hosts[id as usize];
                    // Most programs never write: an empty map still hashes the key.
                    if !host.dirty.is_empty()
                        && let Some(place) = host.dirty.remove(uid)
                    {
                        read_or_write(host, &costs, *uid, place, end_ns);
                    }
                }
                Action::Store { .. } => {}
            }
        }
        self.check_puts(id, event, puts, is_ready, now_ns)?;
        self.check_weights(id, actions, now_ns)?;
        let serving_ns = costs.serving_ns(event, actions);
        let host = &mut self.hosts[id as usize];
        host.operations += u64::from(serves(event, actions));
        if end_ns + serving_ns > begin_ns {
            host.machine.occupy(begin_ns, end_ns + serving_ns);
        }
        Ok(false)
    }

    /// The wait of a node's process is over.
    fn answer(
        &mut self,
        id: NodeId,
        uid: Uid,
        origin: Origin,
        now_ns: u64,
    ) -> Result<(), GmsError> {
        let host = &mut self.hosts[id as usize];
        let answered = host
            .process
            .as_mut()
            .map(|process| process.answer(uid, origin));
        match answered {
            Some(Ok(None)) => Ok(()),
            Some(Ok(Some(place))) => {
                host.dirty.insert(uid, place);
                Ok(())
            }
            Some(Err(())) | None => Err(GmsError::Violation(Violation::Unexpected {
                node: id,
                at_ns: now_ns,
            })),
        }
    }

    /// Puts a message on the network when the sender's work for it ends.
    fn send(&mut self, from: NodeId, to: NodeId, message: &Message, ready_ns: u64) {
        let bytes = bytes(message, self.scenario.frame_bytes);
        self.totals.sent_bytes += bytes;
        if is_of_epochs(message) {
            self.totals.epoch_bytes += bytes;
            let host = &mut self.hosts[from as usize];
            let global_pages = host.node.pages().global_count();
            let local_pages = host.node.pages().len() - global_pages;
            host.machine.kernel_ns += self.costs.epoch_ns(message, local_pages, global_pages);
        }
        let mut begin_ns = ready_ns;
        if message.has_data() {
            self.totals.page_transfers += 1;
            let ends = self.hosts.get_disjoint_mut([from as usize, to as usize]);
            if let Ok([sender, receiver]) = ends {
                let machines = (&mut sender.machine, &mut receiver.machine);
                begin_ns = occupy_links(machines.0, machines.1, ready_ns, self.costs.link_ns);
            }
        }
        let receiver = &self.hosts[to as usize].node;
        receiver.prefetch_message(message, PrefetchStage::Index);
        let arrival = Scheduled::Arrival {
            from,
            to,
            message: message.clone(),
        };
        self.queue
            .put(begin_ns + self.costs.network_ns(message), arrival);
    }
}

/// Bytes of a message on the network.
pub(super) fn bytes(message: &Message, frame_bytes: u32) -> u64 {
    let data_bytes = if message.has_data() { frame_bytes } else { 0 };
    message.bytes() + u64::from(data_bytes)
}

const fn is_of_epochs(message: &Message) -> bool {
    matches!(
        message,
        Message::ReportPlease { .. }
            | Message::Summary { .. }
            | Message::Weights(_)
            | Message::Ended { .. }
    )
}

/// Returns true if a node serves a page to another node, or takes one from it.
fn serves(event: &Event, actions: &[Action]) -> bool {
    let is_page = |action: &Action| {
        matches!(
            action,
            Action::Send {
                message: Message::Page { .. },
                ..
            }
        )
    };
    let is_put = matches!(
        event,
        Event::Message {
            message: Message::PutPage { .. },
            ..
        }
    );
    is_put || actions.iter().any(is_page)
}

/// Time at which a page's disk or server has read or written it. Shared pages are of files.
fn read_or_write(host: &mut Host, costs: &Costs, uid: Uid, place: u64, now_ns: u64) -> u64 {
    let is_file = uid.user().is_none();
    let time_ns = |is_sequential| costs.source_ns(is_file, is_sequential);
    host.machine.disk(now_ns, place, time_ns)
}
