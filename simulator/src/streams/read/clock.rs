//! Computes the time between each client's requests.

use crate::Request;
use crate::streams::{Client, StreamRequest};
use std::collections::HashMap;

/// Time of each client's last request.
#[derive(Debug, Default)]
pub(super) struct Clock {
    last_ns: HashMap<Client, u64>,
    /// The client of the newest request, with its time. It is checked first, since most streams have one
    /// client.
    newest: Option<(Client, u64)>,
}

impl Clock {
    /// Makes the client's request at `at_ns`. Its `think_ns` is computed; the value in `request` is ignored.
    #[inline]
    pub(super) fn request_at(
        &mut self,
        client: Client,
        at_ns: u64,
        request: Request,
    ) -> StreamRequest {
        let before_ns = match self.newest {
            Some((newest, ns)) if newest == client => Some(ns),
            _ => self.last_of(client),
        };
        self.newest = Some((client, at_ns));
        let think_ns = at_ns.saturating_sub(before_ns.unwrap_or(at_ns));
        StreamRequest {
            at_ns,
            client,
            request: Request {
                think_ns,
                ..request
            },
        }
    }

    /// Returns the time of the client's last request, and stores the time of the newest client. Most streams
    /// never call this function. If it were inlined, its caller would be too large to be inlined.
    #[inline(never)]
    fn last_of(&mut self, client: Client) -> Option<u64> {
        if let Some((newest, ns)) = self.newest {
            self.last_ns.insert(newest, ns);
        }
        self.last_ns.get(&client).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_waits_since_its_own_request() {
        let mut clock = Clock::default();
        let client = |within| Client::of(0, within).unwrap();
        let asked = [(0, 5), (0, 7), (1, 8), (0, 10), (1, 8), (0, 9), (0, 12)];
        let thinks: Vec<u64> = asked
            .into_iter()
            .map(|(within, at_ns)| {
                let recorded = clock.request_at(client(within), at_ns, Request::default());
                recorded.request.think_ns
            })
            .collect();
        // The sixth request goes back in time, so its compute time is 0.
        assert_eq!(thinks, [0, 2, 0, 3, 0, 0, 3]);
    }
}
