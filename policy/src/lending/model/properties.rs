//! Properties that must always hold, and states that must be reachable, without which the
//! properties would prove little.

use super::client::{Client, client_name};
use super::ghost::{DOUBLE_GRANT, LEAK, MISDIRECTED, RUNS_OUT, SPARED};
use super::{Case, State, number};
use stateright::Property;

pub(super) fn all() -> Vec<Property<Case>> {
    vec![
        Property::<Case>::always("no lease is granted twice", |_, s| {
            !s.ghost.broken.contains(DOUBLE_GRANT)
        }),
        Property::<Case>::always("no memory leaks", |_, s| !s.ghost.broken.contains(LEAK)),
        Property::<Case>::always("leases last as long as granted", |_, s| {
            !s.ghost.broken.contains(RUNS_OUT)
        }),
        Property::<Case>::always("a revocation ends that client's leases alone", |_, s| {
            !s.ghost.broken.contains(SPARED)
        }),
        Property::<Case>::always("answers go to who asked", |_, s| {
            !s.ghost.broken.contains(MISDIRECTED)
        }),
        Property::<Case>::always("nothing is served after its lease has ended", |_, s| {
            let mut clients = s.clients.iter().enumerate();
            clients.all(|(i, client)| !s.is_served(client) || s.is_leased(i, client))
        }),
        Property::<Case>::always("nothing stays while the owner is there", |_, s| {
            s.is_idle || s.store.is_empty()
        }),
        Property::<Case>::sometimes(
            "a client is refused that believes in an old lease",
            |_, s| {
                let mut clients = s.clients.iter();
                clients.any(|client| client.lease.is_some() && !s.is_served(client))
            },
        ),
    ]
}

impl State {
    /// Result of the store's check when a client requests its pages.
    pub(super) fn is_served(&self, client: &Client) -> bool {
        client.lease.as_ref().is_some_and(|(lease_id, generation)| {
            *generation == self.generation && self.store.contains_key(&number(lease_id))
        })
    }

    fn is_leased(&self, client: usize, of: &Client) -> bool {
        let leases = self.lender.leases(self.now_ms);
        let theirs = leases.iter().filter(|l| l.client == client_name(client));
        let believed = of.lease.as_ref();
        theirs
            .into_iter()
            .any(|l| believed == Some(&(l.lease_id.clone(), l.generation)))
    }
}
