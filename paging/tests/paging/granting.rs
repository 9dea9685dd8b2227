//! Leases that are requested over the link. The test plays the recruiter, and repeats requests like a
//! recruiter that has received no answer.

use crate::host::{Host, MIB};
use crate::recruiter::{HOST_ID, Recruiter, grant};
use gleaner_harness::wait_for;
use gleaner_schemas::lending::{Outcome, RefusalKind, RequestKind};
use gleaner_schemas::live::OwnerState;

const CAP: u64 = 128 * MIB;
const BYTES: u64 = 8 * MIB;

#[test]
fn asked_twice_by_one_key_it_grants_once() {
    let host = Host::new();
    let (one, other) = (Recruiter::new(), Recruiter::new());
    host.configure(&format!(
        "host_id = \"{HOST_ID}\"\nrecruiters = [\"{}\", \"{}\"]\ncap = \"{CAP}B\"\nrise_after = \"0s\"\npressure_pause = \"0s\"",
        one.url, other.url
    ));
    let daemon = host.daemon_with(&[]);
    let mut agent = host.agent();
    agent.sample();
    agent.owner(OwnerState::Idle, None);
    agent.stays();
    let ids = || -> Vec<String> {
        let leases = daemon.status().leases;
        leases.into_iter().map(|lease| lease.lease_id).collect()
    };

    // The connection ends before the answer arrives.
    let (mut link, mut other_link) = (one.link(), other.link());
    link.announced(|told| told.quota.unleased_bytes == CAP);
    link.send(grant("a", "k", BYTES));
    drop(link);
    wait_for("the lease", || ids().len() == 1);
    let first = ids().remove(0);
    let mut link = one.link();
    for _ in 0..2 {
        assert_eq!(link.lease(grant("a", "k", BYTES)).lease_id, first);
        assert_eq!(other_link.lease(grant("a", "k", BYTES)).lease_id, first);
    }
    // Rounded up to whole slabs, this size equals that of the lease, so the answer is the same lease.
    assert_eq!(link.lease(grant("a", "k", BYTES - 1)).lease_id, first);
    assert_eq!(ids(), std::slice::from_ref(&first));
    assert_eq!(daemon.status().quota.lent_bytes, BYTES);

    // A key belongs to a lease of one size and one client. Another size is refused; another client gets
    // another lease.
    match link.ask(grant("a", "k", 2 * BYTES)) {
        Outcome::Refused(refusal) => assert_eq!(refusal.kind, RefusalKind::Malformed),
        more => panic!("{more:?}"),
    }
    assert_eq!(ids(), std::slice::from_ref(&first));
    let theirs = link.lease(grant("b", "k", BYTES)).lease_id;
    let second = link.lease(grant("a", "l", BYTES)).lease_id;
    assert!(theirs != first && second != first && theirs != second);
    assert_eq!(ids().len(), 3);

    // The memory of a lease that has ended can be granted again.
    let release = RequestKind::Release {
        client: Some("a".to_owned()),
        lease_id: first.clone(),
    };
    let released = Outcome::Released {
        lease_id: first.clone(),
    };
    for _ in 0..2 {
        assert_eq!(link.ask(release.clone()), released);
    }
    let anew = link.lease(grant("a", "k", 2 * BYTES));
    assert!(anew.lease_id != first && anew.granted_bytes == 2 * BYTES);
    assert_eq!(ids().len(), 3);
    let told = other_link.announced(|told| told.leases.iter().any(|l| l.lease_id == anew.lease_id));
    assert_eq!(told.leases.len(), 3);
}
