//! Divides a stream among its clients. The stream is read once, and laid out for each region size.

use super::{Client, ReplayedClient, StoredObjects, StreamError, StreamRequest};
use crate::Request;
use std::collections::{BTreeMap, BTreeSet};

/// Requests of each client; each takes 24 bytes of memory.
#[derive(Clone, Debug)]
pub struct ClientRequests {
    /// Time of the stream's first request.
    first_ns: u64,
    /// Time of the first request of each client, with all requests of this client.
    clients: BTreeMap<Client, (u64, Vec<Request>)>,
}

impl ClientRequests {
    /// Reads a stream to its end. If `only` is given, the requests of clients outside `only` are skipped;
    /// just the numbers of these clients are kept.
    ///
    /// # Errors
    /// The errors of the stream itself.
    pub fn read(
        stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
        only: Option<&BTreeSet<u32>>,
    ) -> Result<Self, StreamError> {
        let mut clients: BTreeMap<Client, (u64, Vec<Request>)> = BTreeMap::new();
        let mut first_ns = u64::MAX;
        for recorded in stream {
            let StreamRequest {
                at_ns,
                client,
                request,
            } = recorded?;
            first_ns = first_ns.min(at_ns);
            let (_, requests) = clients.entry(client).or_insert((at_ns, Vec::new()));
            if only.is_none_or(|only| only.contains(&client.number())) {
                requests.push(request);
            }
        }
        Ok(Self { first_ns, clients })
    }

    /// Numbers of the clients, in order.
    pub fn clients(&self) -> impl Iterator<Item = u32> + '_ {
        self.clients.keys().map(|client| client.number())
    }

    /// Makes a program of a client's requests; `None` if the client does not exist. Regions have
    /// `region_bytes`, or the size of the largest object if that is larger.
    ///
    /// # Errors
    /// The client has more data than can be numbered (2³² blocks, or objects), or requests that cannot be
    /// simulated.
    pub fn replayed(
        &self,
        client: u32,
        stored: StoredObjects,
        region_bytes: u64,
    ) -> Result<Option<ReplayedClient>, StreamError> {
        let found = self.clients.iter().find(|(c, _)| c.number() == client);
        let Some((client, (at_ns, requests))) = found else {
            return Ok(None);
        };
        let begin_ns = self.begin_ns(*at_ns);
        ReplayedClient::new(*client, begin_ns, requests.clone(), stored, region_bytes).map(Some)
    }

    /// Makes programs of all clients, which the simulator can run.
    pub(super) fn into_replayed(
        mut self,
        stored: StoredObjects,
        region_bytes: u64,
    ) -> Result<Vec<ReplayedClient>, StreamError> {
        let clients = std::mem::take(&mut self.clients).into_iter();
        let replayed = clients.map(|(client, (at_ns, requests))| {
            let begin_ns = self.begin_ns(at_ns);
            ReplayedClient::new(client, begin_ns, requests, stored, region_bytes)
        });
        replayed.collect()
    }

    /// Begin of a client whose first request is at `at_ns`, since the stream's first request.
    const fn begin_ns(&self, at_ns: u64) -> u64 {
        at_ns - self.first_ns
    }
}

/// Divides a stream into programs, one for each client, in the order of the clients' numbers. All requests
/// are held in memory, 24 bytes each. Regions have `region_bytes`, or the size of the largest object if that
/// is larger.
///
/// # Errors
/// The errors of the stream itself; or a client has more data than can be numbered (2³² blocks, or objects).
pub fn replayed(
    stream: impl Iterator<Item = Result<StreamRequest, StreamError>>,
    stored: StoredObjects,
    region_bytes: u64,
) -> Result<Vec<ReplayedClient>, StreamError> {
    ClientRequests::read(stream, None)?.into_replayed(stored, region_bytes)
}
