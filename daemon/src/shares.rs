//! Each client's share of a server's connections, so that one client cannot take them all.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of connections by client.
#[derive(Debug)]
pub struct Shares {
    most: u64,
    held: Mutex<BTreeMap<String, u64>>,
}

impl Shares {
    /// Gives each client a quarter of a server's connections, and at least one.
    #[must_use]
    pub fn of(places: u64) -> Self {
        Self::whole(places.div_ceil(4))
    }

    /// Allows each client all connections of the server; for a single client.
    #[must_use]
    pub fn whole(places: u64) -> Self {
        Self {
            most: places.max(1),
            held: Mutex::default(),
        }
    }

    /// Maximum number of one client's connections.
    #[must_use]
    pub fn connections_limit(&self) -> u64 {
        self.most
    }

    /// Takes one connection for this client until the result is dropped; `None` if the client has used up its
    /// share.
    #[must_use]
    pub fn take(self: &Arc<Self>, client: &str) -> Option<Place> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(client.to_owned()).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Place {
            shares: self.clone(),
            client: client.to_owned(),
        })
    }
}

/// A connection of a client, counted until this value is dropped.
#[derive(Debug)]
pub struct Place {
    shares: Arc<Shares>,
    client: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self
            .shares
            .held
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = held.entry(std::mem::take(&mut self.client)) {
            *count.get_mut() -= 1;
            // Clients without connections are forgotten.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_share_and_no_more_and_the_others_have_theirs() {
        let shares = Arc::new(Shares::of(8));
        let first = shares.take("a").unwrap();
        let second = shares.take("a").unwrap();
        assert!(shares.take("a").is_none());
        let other = shares.take("b").unwrap();
        drop(first);
        let third = shares.take("a").unwrap();
        assert!(shares.take("a").is_none());
        drop((second, third, other));
        assert!(shares.held.lock().unwrap().is_empty());
    }

    #[test]
    fn a_share_is_a_quarter_and_never_nothing() {
        let shares = [0, 1, 5, 256].map(|places| Shares::of(places).connections_limit());
        assert_eq!(shares, [1, 1, 2, 64]);
    }
}
