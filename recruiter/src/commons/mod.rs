//! Members and epochs of each commons: a read cache that hosts keep together in memory that is idle
//! (docs/commons.md). The recruiter is the master, which knows the members, and the initiator of all epochs;
//! `gleaner_policy::global` has the rules, which the simulator runs too.
//!
//! The state is soft: members announce themselves, and several recruiters may serve one commons. Messages to a
//! member go into the queue of the member's connection.

mod check;
mod epochs;
mod group;
#[cfg(test)]
mod tests;

pub(crate) use epochs::Moment;
pub(crate) use group::MemberMemory;

use crate::registry::HostId;
use axum::extract::ws::Utf8Bytes;
use gleaner_policy::global::NodeId;
use gleaner_schemas::commons::{CommonsView, Hello, SILENCE_MS, Summary, is_name};
use gleaner_schemas::lending::{Refusal, RefusalKind};
use group::Group;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use tokio::sync::mpsc;

/// Maximum number of commonses of one recruiter.
const MOST_COMMONSES: usize = 1024;
/// Maximum number of commonses of one host, so that no host uses up the others' names.
const MOST_OF_HOST: usize = 8;

/// Connection of a member.
#[derive(Clone, Debug)]
pub(crate) struct MemberLink {
    /// Name of the commons.
    pub(crate) name: String,
    /// Host of the member.
    pub(crate) host_id: HostId,
    /// Number of the connection; later ones have higher numbers.
    pub(crate) number: u64,
}

impl MemberLink {
    fn key(&self) -> (&HostId, u64) {
        (&self.host_id, self.number)
    }
}

/// All commonses, by name.
#[derive(Debug)]
pub(crate) struct Commonses {
    by_name: BTreeMap<String, Group>,
    /// Number of this recruiter as an initiator.
    initiator: NodeId,
    random: ChaCha8Rng,
}

impl Default for Commonses {
    fn default() -> Self {
        // The seed need not be secret. It must only differ from the seeds of other recruiters.
        let seed = RandomState::new().hash_one("commons");
        Self::new(seed)
    }
}

impl Commonses {
    fn new(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        Self {
            by_name: BTreeMap::new(),
            initiator: random.next_u64() as NodeId,
            random,
        }
    }

    /// Records a member's state. Returns the queue of messages to the member if the connection is new.
    ///
    /// # Errors
    /// Reason to end the connection.
    pub(crate) fn hello(
        &mut self,
        link: &MemberLink,
        said: &Hello,
        memory: MemberMemory,
        now: Moment,
    ) -> Result<Option<mpsc::Receiver<Utf8Bytes>>, Refusal> {
        check_name(&link.name)?;
        if !self.by_name.contains_key(&link.name) {
            self.check_room(&link.host_id)?;
        }
        let initiator = self.initiator;
        let new = || Group::new(initiator, now.now_ms);
        let group = self.by_name.entry(link.name.clone()).or_insert_with(new);
        let known = group.hello(link.key(), said, memory, now);
        if group.is_empty() {
            self.by_name.remove(&link.name);
        }
        known
    }

    /// Records a member's summary.
    ///
    /// # Errors
    /// Reason to end the connection.
    pub(crate) fn summary(
        &mut self,
        link: &MemberLink,
        said: &Summary,
        memory: MemberMemory,
        now: Moment,
    ) -> Result<(), Refusal> {
        self.group(link)?.summary(link.key(), said, memory, now)
    }

    /// Records that a member reports the end of an epoch before its time.
    ///
    /// # Errors
    /// Reason to end the connection.
    pub(crate) fn ended(
        &mut self,
        link: &MemberLink,
        epoch: u64,
        now: Moment,
    ) -> Result<(), Refusal> {
        self.group(link)?.ended(link.key(), epoch, now)
    }

    /// Removes a member whose connection has ended.
    pub(crate) fn leave(&mut self, link: &MemberLink) {
        if let Some(group) = self.by_name.get_mut(&link.name) {
            group.leave(&link.host_id, link.number);
        }
    }

    /// Removes silent members, and sends the messages that are due.
    pub(crate) fn tick(&mut self, now: Moment) {
        let random = &mut || self.random.next_u64();
        for group in self.by_name.values_mut() {
            group.tick(now, random);
        }
        self.by_name.retain(|_, group| !group.is_empty());
    }

    /// State of every commons, in the order of their names.
    pub(crate) fn views(&self, now_ms: i64) -> Vec<CommonsView> {
        let groups = self.by_name.iter();
        groups
            .map(|(name, group)| group.view(name, now_ms))
            .collect()
    }

    fn group(&mut self, link: &MemberLink) -> Result<&mut Group, Refusal> {
        let group = self.by_name.get_mut(&link.name);
        group.ok_or_else(|| check::malformed("the first message of a member is hello".to_owned()))
    }

    /// Checks that a host may begin another commons.
    fn check_room(&self, host_id: &HostId) -> Result<(), Refusal> {
        let groups = self.by_name.values();
        let of_host = groups.filter(|group| group.has(host_id)).count();
        let (count, most) = match of_host {
            MOST_OF_HOST.. => (of_host, MOST_OF_HOST),
            _ => (self.by_name.len(), MOST_COMMONSES),
        };
        if count < most {
            return Ok(());
        }
        Err(Refusal {
            kind: RefusalKind::Busy,
            detail: format!(
                "there are {count} commonses already, of {most} at most (a host may be in {MOST_OF_HOST}): leave another one first"
            ),
            retry_in_ms: Some(SILENCE_MS),
        })
    }
}

/// Checks the name of a commons.
///
/// # Errors
/// Description of valid names.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    if is_name(name) {
        return Ok(());
    }
    Err(check::malformed(
        "a commons' name is 1 to 64 letters, digits and ._-, not beginning with a dot".to_owned(),
    ))
}
