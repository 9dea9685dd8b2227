//! Matches answers with their requests by connection, kind and generation.
//!
//! Servers and the disk share one table of requests, and a faulty server may put any number into its answer.
//! The number alone is therefore not enough: an answer counts only for a request of that kind that was sent
//! to that very server.

use super::{Action, Device, Distrust, Op, TimedRequest};
use crate::device::servers::LeaseState;

/// Kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    /// An error answers requests of either kind.
    Error,
}

/// Returns the number of a request on the wire: the key in the lower 32 bits, and 31 bits of generation above
/// it. The connection uses the highest bit.
pub(super) fn number(key: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | (key as u64 & u64::from(u32::MAX))
}

impl Device {
    pub(super) fn insert(&mut self, op: Op, server: Option<u8>, sent_us: Option<i64>) -> usize {
        self.generation = (self.generation + 1) & (u32::MAX >> 1);
        self.ops.insert(TimedRequest {
            op,
            server,
            generation: self.generation,
            sent_us,
        })
    }

    /// Enters a request to the disk. Returns its number.
    pub(super) fn insert_for_disk(&mut self, op: Op) -> u64 {
        let key = self.insert(op, None, Some(self.now_us));
        number(key, self.generation)
    }

    /// Removes and returns the request that the disk (`None`) or a server answers.
    ///
    /// An answer that fits no request of its sender completes nothing. A server that sends one is
    /// disconnected and distrusted.
    pub(super) fn answered(&mut self, server: Option<u8>, op: u64, kind: Kind) -> Option<Op> {
        let key = (op & u64::from(u32::MAX)) as usize;
        let is_answer = |timed: &TimedRequest| {
            let is_of_kind = match timed.op {
                Op::Read { .. } => kind != Kind::Write,
                Op::Write { .. } => kind != Kind::Read,
            };
            timed.server == server
                && number(key, timed.generation) == op
                && timed.sent_us.is_some()
                && is_of_kind
        };
        if !self.ops.get(key).is_some_and(is_answer) {
            if let Some(server) = server {
                self.reject_unrequested_answer(server);
            }
            return None;
        }
        let timed = self.ops.try_remove(key)?;
        self.adjust_window(&timed, kind);
        Some(timed.op)
    }

    /// Grows or shrinks the window of the server that answered, and sends waiting requests.
    fn adjust_window(&mut self, timed: &TimedRequest, kind: Kind) {
        let Some(number) = timed.server else {
            return;
        };
        let sent_us = timed.sent_us.unwrap_or(self.now_us);
        let took_us = u64::try_from(self.now_us - sent_us).unwrap_or(0);
        let is_error = kind == Kind::Error;
        self.servers
            .answered(number, took_us, is_error, self.now_us);
        let Some(server) = self.servers.get_mut(number) else {
            return;
        };
        server.heard_us = self.now_us;
        server.answered_sent_us = server.answered_sent_us.max(sent_us);
        server.counters.total_latency_us += took_us;
        server.in_flight = server.in_flight.saturating_sub(1);
        let mut next = Vec::new();
        while server.in_flight < server.window.size()
            && let Some(key) = server.backlog.pop_front()
        {
            server.in_flight += 1;
            next.push(key);
        }
        for key in next {
            self.dispatch(key as usize);
        }
    }

    /// Distrusts a server that answered a request it was never sent, or with the wrong kind of answer.
    fn reject_unrequested_answer(&mut self, number: u8) {
        let Some(server) = self.servers.get(number) else {
            return;
        };
        // The connection is closed already: ignore answers that were received before that.
        if !matches!(server.state, LeaseState::Up | LeaseState::Draining) {
            return;
        }
        let host = server.host.clone();
        self.note(format!(
            "host {host} answered a request that it was not sent: its connection is closed, nothing that it stores is touched"
        ));
        self.distrust(number);
        self.actions
            .push_back(Action::Disconnect(number, Distrust::Unasked));
        self.server_down(number);
    }
}
