//! A client among hostile members that a recruiter lists.

use super::*;
use crate::directory::uid;
use crate::global::{GlobalMemory, Posts};
use crate::hold::LeasePool;
use gleaner_policy::global::members::{self, Members};
use gleaner_policy::global::node_of_host;
use gleaner_policy::global::settings::{MemoryPolicy, Settings};
use gleaner_schemas::commons::{CommonsMember, Weights};

/// Generation of each member's memory.
pub(super) const GENERATION: u32 = 5;

/// Members at these addresses, as a recruiter lists them.
pub(super) fn listed(members: &[(&str, SocketAddr)]) -> Vec<CommonsMember> {
    let member = |(host_id, address): &(&str, SocketAddr)| CommonsMember {
        node: node_of_host(host_id),
        host_id: (*host_id).to_owned(),
        generation: GENERATION,
        frames: 0,
        address: address.to_string(),
    };
    members.iter().map(member).collect()
}

/// Blocks whose directory entries this host has, among all three members.
pub(super) fn blocks_of(host_id: &str) -> impl Iterator<Item = (Hash, Vec<u8>)> {
    let member = |host_id: &str| members::Member {
        node: node_of_host(host_id),
        generation: GENERATION,
        frames: 0,
    };
    let members = Members::new([OWN, HOME, THIRD].map(member).to_vec(), 0);
    let wanted = Some(node_of_host(host_id));
    let all = (0_u64..).map(|number| {
        let bytes = number.to_le_bytes().to_vec();
        (Hash::from(blake3::hash(&bytes)), bytes)
    });
    all.filter(move |(hash, _)| members.owner(uid(hash)) == wanted)
}

impl Deployment {
    /// This host with own memory for `blocks` blocks, and with the members of a recruiter, under the policy `gms`.
    pub(super) fn exchange(&self, blocks: u64, listed: &[CommonsMember]) -> Arc<Exchange> {
        self.exchange_under(MemoryPolicy::Gms, blocks, listed)
    }

    fn exchange_under(
        &self,
        policy: MemoryPolicy,
        blocks: u64,
        listed: &[CommonsMember],
    ) -> Arc<Exchange> {
        let homes = usize::from(policy == MemoryPolicy::Hash);
        let settings = Settings {
            policy,
            ..Settings::default()
        };
        let sharing = self.sharing(MembershipSource::Recruiters(Vec::new()));
        let (posts, queues) = Posts::new();
        let memory = Arc::new(GlobalMemory::new(
            (node_of_host(OWN), GENERATION),
            settings,
            blocks * BLOCK_BYTES,
            LeasePool::start().unwrap(),
            posts,
        ));
        let trust = ClientTrust::load(&sharing.client_paths).unwrap();
        let runtime = self.runtime.handle().clone();
        let node = (memory, queues);
        let exchange = Exchange::start(("test", OWN), &sharing, homes, node, trust, runtime);
        let exchange = exchange.unwrap();
        exchange.change_members(listed);
        exchange
    }

    fn recruited(&self, home: SocketAddr, third: SocketAddr) -> Arc<Exchange> {
        let members = [(OWN, own_address()), (HOME, home), (THIRD, third)];
        self.exchange(4, &listed(&members))
    }
}

#[test]
fn under_hash_a_home_lets_one_member_fetch_a_block_until_it_has_landed() {
    let deployment = Deployment::new();
    let mut members = listed(&[OWN, HOME, THIRD].map(|host_id| (host_id, own_address())));
    for member in &mut members {
        member.frames = 100;
    }
    let exchange = deployment.exchange_under(MemoryPolicy::Hash, 4, &members);
    let [first, second] = [HOME, THIRD].map(node_of_host);
    let hashes = || (0_u64..).map(|number| Hash::from(blake3::hash(&number.to_le_bytes())));
    let mut own = hashes().filter(|hash| exchange.memory().is_home(hash));
    let hash = own.next().unwrap();
    assert!(exchange.join_fetch(&hash, first).is_none());
    assert!(exchange.join_fetch(&hash, second).is_some());
    exchange.landed(&hash);
    assert!(exchange.join_fetch(&hash, second).is_none());
    // Elsewhere nobody waits for this host.
    let mut others = hashes().filter(|hash| !exchange.memory().is_home(hash));
    let hash = others.next().unwrap();
    assert!(exchange.join_fetch(&hash, first).is_none());
    assert!(exchange.join_fetch(&hash, second).is_none());
}

#[test]
fn wrong_short_and_endless_answers_cost_a_recruited_member_one_request_each() {
    let deployment = Deployment::new();
    let (hash, _) = blocks_of(HOME).next().unwrap();
    for manner in Manner::wrong_answers() {
        let home = deployment.hostile(HOME, manner);
        let exchange = deployment.recruited(home.address, home.address);
        for _ in 0..3 {
            assert_eq!(find(&*exchange, &hash), None, "{manner:?}");
            exchange.failed(&hash); // the source does not have the block, so the next read asks again
        }
        assert_eq!(home.requests(), 1, "{manner:?}");
        let status = peer(exchange.peers(), HOME);
        assert!(!status.is_asked && !status.is_target, "{manner:?}");
        assert_eq!(
            status.wrong_count + status.failures_count,
            1,
            "{manner:?}: {status:?}"
        );
        assert!(!exchange.memory().has(&hash), "{manner:?}");
    }
}

#[test]
fn redirects_of_a_recruited_member_lead_to_one_other_member_at_most() {
    let deployment = Deployment::new();
    let (hash, _) = blocks_of(HOME).next().unwrap();
    let cases = [
        (Manner::Redirect(HOME), 0),
        (Manner::Redirect(THIRD), 1),
        (Manner::Redirect(OWN), 0),
        (Manner::Redirect("elsewhere.example"), 0),
    ];
    for (manner, of_third) in cases {
        let home = deployment.hostile(HOME, manner);
        let third = deployment.hostile(THIRD, Manner::Redirect(HOME));
        let exchange = deployment.recruited(home.address, third.address);
        assert_eq!(find(&*exchange, &hash), None, "{manner:?}");
        let requests = (home.requests(), third.requests());
        assert_eq!(requests, (1, of_third), "{manner:?}");
    }
}

#[test]
fn a_recruited_member_with_anothers_certificate_is_not_asked() {
    let deployment = Deployment::new();
    let third = deployment.hostile(THIRD, Manner::OtherBytes);
    let exchange = deployment.recruited(third.address, third.address);
    let (hash, _) = blocks_of(HOME).next().unwrap();
    assert_eq!(find(&*exchange, &hash), None);
    assert_eq!(third.requests(), 0);
    let status = peer(exchange.peers(), HOME);
    assert!(!status.is_asked && status.failures_count == 1, "{status:?}");
}

#[test]
fn weights_of_a_past_epoch_and_for_hosts_that_are_no_members_have_no_effect() {
    const STRANGER: u32 = 77;
    let deployment = Deployment::new();
    let nobody = own_address();
    let exchange = deployment.recruited(nobody, nobody);
    let accept = |epoch, targets: &[(u32, u64)]| {
        exchange.accept(&Weights {
            epoch,
            initiator: 1,
            length_ms: 10_000,
            targets: targets.to_vec(),
            ..Weights::default()
        });
        let status = exchange.memory().epoch();
        (status.number, status.targets)
    };
    let home = node_of_host(HOME);
    let accepted = accept(7, &[(home, 10), (STRANGER, u64::MAX)]);
    assert_eq!(accepted, (7, vec![(home, 10)]));
    let late = accept(6, &[(node_of_host(THIRD), 10)]);
    assert_eq!(late, (7, vec![(home, 10)]));
}
