//! The running device's servers: connecting, losing and leaving them.

use super::{DEMAND, ServerSlot, Turn};
use crate::device::frames::PAGE;
use crate::device::run::server::Connection;
use crate::device::run::{Demand, LeaseNews};
use crate::device::servers::LeaseState;
use crate::nbd::client::{ConnectError, Export, Wire};
use std::io;
use std::time::{Duration, Instant};

/// Time limit for a lease's first connection, after which the lease is returned.
const TO_CONNECT: Duration = Duration::from_secs(15);

impl Turn {
    pub(super) fn key_of(&self, lease: &str) -> Option<u32> {
        let is_it = |held: &ServerSlot| held.source.lease.as_deref() == Some(lease);
        self.servers
            .iter()
            .find(|(_, held)| is_it(held))
            .map(|(key, _)| *key)
    }

    pub(super) fn leave(&mut self, lease: &str) {
        let Some(key) = self.key_of(lease) else {
            return;
        };
        match self.servers.get(&key).and_then(|held| held.number) {
            Some(number) => self.device.drain(number),
            None => {
                self.servers.remove(&key);
                let _ = self.told.send(LeaseNews::Released(lease.to_owned()));
            }
        }
    }

    /// Drops a server whose contents are lost.
    pub(super) fn drop_server(&mut self, key: u32) {
        if let Some(held) = self.servers.remove(&key)
            && let Some(number) = held.number
        {
            self.device.server_gone(number);
        }
    }

    pub(super) fn connected(&mut self, key: u32, made: Result<(Wire, Export), ConnectError>) {
        let now_us = self.now_us();
        let Some(held) = self.servers.get_mut(&key) else {
            return;
        };
        let made = made.and_then(|(wire, export)| Ok((Connection::new(wire)?, export)));
        let (connection, export) = match made {
            Ok(made) => made,
            Err(ConnectError::Refused(why)) if held.source.lease.is_some() => {
                let lease = held.source.lease.clone().unwrap_or_default();
                let line = format!("lease {lease} at host {} is over: {why}", held.source.host);
                self.note(&line);
                self.drop_server(key);
                let _ = self.told.send(LeaseNews::Over(lease));
                return;
            }
            Err(e) => {
                held.attempts.failed(now_us);
                let line = format!("server {}: {e}; trying again", held.source.host);
                return self.note(&line);
            }
        };
        held.attempts.succeeded();
        // The server has restarted, and its former contents are lost.
        if held.name != export.name
            && let Some(number) = held.number.take()
        {
            self.device.server_gone(number);
        }
        held.name.clone_from(&export.name);
        let slots = u32::try_from(export.bytes / PAGE as u64).unwrap_or(u32::MAX);
        if held.number.is_none() {
            held.number = self.device.add_server(&held.source.host, slots);
        }
        let Some(number) = held.number else {
            let line = format!("server {}: there are too many already", held.source.host);
            self.servers.remove(&key);
            return self.note(&line);
        };
        held.connection = Some(connection);
        self.device.server_up(number);
    }

    pub(super) fn check_servers(&mut self) {
        let now_us = self.now_us();
        for (key, held) in &mut self.servers {
            if held.connection.is_none() {
                held.attempts
                    .begin(*key, &held.source, &self.handle, now_us);
            }
        }
        if self.demanded.is_none_or(|last| last.elapsed() >= DEMAND) {
            self.demanded = Some(Instant::now());
            self.return_unreachable_leases();
            let _ = self.told.send(LeaseNews::Demand(self.demand()));
        }
    }

    /// Returns leases on hosts that this host cannot reach, although the recruiter can.
    fn return_unreachable_leases(&mut self) {
        let is_hopeless = |held: &ServerSlot| {
            held.number.is_none()
                && held.source.lease.is_some()
                && held.since.elapsed() > TO_CONNECT
        };
        let keys = self.servers.iter().filter(|(_, held)| is_hopeless(held));
        for key in keys.map(|(key, _)| *key).collect::<Vec<_>>() {
            let lease = self.servers.remove(&key).and_then(|held| held.source.lease);
            let _ = lease.map(|lease| self.told.send(LeaseNews::Unreachable(lease)));
        }
    }

    pub(super) fn demand(&self) -> Demand {
        let mut demand = Demand {
            stored: u64::from(self.device.stored_pages()),
            ..Demand::default()
        };
        let is_new = |held: &&ServerSlot| held.number.is_none() && held.source.lease.is_some();
        demand.connecting = self.servers.values().filter(is_new).count() as u64;
        for server in self.device.servers() {
            if server.state == LeaseState::Up {
                demand.slots += u64::from(server.used + server.free);
                demand.free += u64::from(server.free);
            }
        }
        demand
    }

    pub(super) fn disconnected(&mut self, key: u32, why: &io::Error) {
        let Some(held) = self.servers.get_mut(&key) else {
            return;
        };
        held.connection = None;
        held.is_sending = false;
        let line = format!("server {}: {why}; connecting again", held.source.host);
        if let Some(number) = held.number {
            self.device.server_down(number);
        }
        self.note(&line);
        self.check_servers();
    }

    pub(super) fn lease_slot(&mut self, number: u8) -> Option<(u32, &mut ServerSlot)> {
        self.servers
            .iter_mut()
            .find(|(_, held)| held.number == Some(number))
            .map(|(key, held)| (*key, held))
    }

    pub(super) fn connection(&mut self, number: u8) -> Option<&mut Connection> {
        self.lease_slot(number)?.1.connection.as_mut()
    }

    pub(super) fn release(&mut self, number: u8) {
        let (now_us, refraction_us) = (self.now_us(), self.refraction_us);
        let Some((key, held)) = self.lease_slot(number) else {
            return;
        };
        let Some(lease) = held.source.lease.clone() else {
            // A server that the user named is tried again after the refraction period.
            (held.number, held.connection) = (None, None);
            held.attempts.delay_reconnect(now_us, refraction_us);
            return;
        };
        self.servers.remove(&key);
        let _ = self.told.send(LeaseNews::Released(lease));
    }
}
