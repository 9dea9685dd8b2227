//! Lending on one host: what may be lent now, who has leased what, and when it is given back.
//!
//! One state machine ([`Lender`]) takes in what is seen and asked ([`Event`]) and says what is to be done ([`Action`]).
//! The memory server does it; the simulator replays it. A lease is granted here and nowhere else.

mod event;

pub use event::{Action, Cause, Event, Settings};

use gleaner_schemas::lending::{HostQuota, Lease};

/// The state of lending on one host.
#[derive(Clone, Debug, Default)]
pub struct Lender {
    settings: Settings,
}

impl Lender {
    /// Nothing lent, nothing known.
    ///
    /// `generation` names the contents of this run of the memory server: another one for each start.
    #[must_use]
    pub fn new(settings: Settings, generation: u64) -> Self {
        let _ = generation;
        Self { settings }
    }

    /// Takes in what has happened at `now_ms`, on a clock that counts sleep as well and never goes back; what is to be
    /// done about it, in order.
    pub fn step(&mut self, event: &Event, now_ms: i64) -> Vec<Action> {
        let _ = (event, now_ms, &self.settings);
        Vec::new()
    }

    /// What may be lent, and why (without outlook and host id).
    #[must_use]
    pub fn quota(&self, now_ms: i64) -> HostQuota {
        let _ = now_ms;
        HostQuota::default()
    }

    /// Every lease, by id.
    #[must_use]
    pub fn leases(&self, now_ms: i64) -> Vec<Lease> {
        let _ = now_ms;
        Vec::new()
    }

    /// When [`Event::Tick`] is due next; `None`: not before something else happens.
    #[must_use]
    pub fn next_tick_ms(&self) -> Option<i64> {
        None
    }
}
