//! Leases and regions, used through their libraries, with real recruiters and memory servers.

use super::client::{CLIENT, LEASE_BYTES};
use super::cluster::{Cluster, Recruiter};
use super::partition;
use crate::delivery::network::within;
use crate::delivery::partitions::pki;
use crate::delivery::running::wait_for;
use gleaner_paging::borrow::{self, BorrowError, Recruiters};
use gleaner_regions::{Region, RegionError, Regions, Settings};
use gleaner_schemas::lending::{LeaseRequest, LeaseView, Placement, RefusalKind};
use gleaner_trust::{ClientPaths, ClientTrust};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Size of a region. A lease of 16 MiB has room for only one.
const REGION_BYTES: u64 = 12 * MIB;
/// Term of leases, longer than any test.
const TERM_MS: i64 = 600_000;
const PATIENCE: Duration = Duration::from_secs(30);

fn urls(recruiters: &[Recruiter]) -> Vec<String> {
    let addresses = recruiters.iter().map(|recruiter| recruiter.address());
    addresses
        .map(|a| format!("http://{}", a.unwrap()))
        .collect()
}

fn recruiters(urls: Vec<String>) -> Recruiters {
    let settings = borrow::Settings {
        urls,
        trust: None,
        client: Some(CLIENT.to_owned()),
        patience: PATIENCE,
    };
    Recruiters::new(settings).unwrap()
}

fn request(key: &str, copies: u32) -> LeaseRequest {
    LeaseRequest {
        copies,
        term_ms: TERM_MS,
        placement: Some(Placement::Random),
        ..LeaseRequest::new(LEASE_BYTES, key.to_owned())
    }
}

/// Repeats the request until the hosts have announced memory and the leases are granted.
fn granted(recruiters: &Recruiters, request: &LeaseRequest) -> Vec<LeaseView> {
    let mut leases = Vec::new();
    wait_for("a lease", || match recruiters.lease(request) {
        Ok(granted) => {
            leases = granted;
            true
        }
        Err(_) => false,
    });
    leases
}

#[track_caller]
fn is_refused<T>(result: Result<T, BorrowError>, kind: RefusalKind) {
    match result.err() {
        Some(BorrowError::Refused { refusal, .. }) => assert_eq!(refusal.kind, kind, "{refusal:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_borrower_leases_renews_and_gives_back_by_whichever_recruiter_answers() {
    let mut cluster = Cluster::start(2, 2);
    let all = recruiters(urls(&cluster.recruiters));
    let leases = granted(&all, &request("a", 2));
    assert_ne!(leases[0].host_id, leases[1].host_id);
    for view in &leases {
        let lease = &view.lease;
        let host = cluster.hosts.iter().find(|host| host.id == view.host_id);
        let there = &host.unwrap().lending().leases[0];
        assert_eq!(there.lease_id, lease.lease_id);
        assert_eq!(there.generation, lease.generation);
        assert_eq!((there.client.as_str(), there.key.as_str()), (CLIENT, "a"));
        assert!(view.address.is_some() && lease.granted_bytes == LEASE_BYTES);
    }
    cluster.agrees();

    // One recruiter is killed. The other recruiter knows all leases.
    cluster.recruiters[0].kill();
    let again = all.lease(&request("a", 2)).unwrap();
    let ids = |leases: &[LeaseView]| {
        let mut ids: Vec<_> = leases
            .iter()
            .map(|view| view.lease.lease_id.clone())
            .collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(ids(&again), ids(&leases));
    assert_eq!(ids(&all.leases().unwrap()), ids(&leases));
    let renewed = all.renew(&leases[0].lease.lease_id, 2 * TERM_MS).unwrap();
    assert!(renewed.lease.expires_in_ms > TERM_MS, "{renewed:?}");
    is_refused(all.lease(&request("b", 3)), RefusalKind::NoMemory);
    let unknown = "0".repeat(32);
    is_refused(all.renew(&unknown, 1000), RefusalKind::UnknownLease);

    for view in &leases {
        all.release(&view.lease.lease_id).unwrap();
        all.release(&view.lease.lease_id).unwrap();
    }
    for host in &cluster.hosts {
        assert!(host.lending().leases.is_empty());
    }
    cluster.recruiters[1].kill();
    let failed = all.leases().unwrap_err();
    assert!(
        matches!(failed, BorrowError::Unreachable { .. }),
        "{failed}"
    );
}

/// Asserts that the whole region contains the byte that was written everywhere.
#[track_caller]
fn is_whole(region: &Region, byte: u8) {
    let mut found = vec![0; REGION_BYTES as usize];
    assert_eq!(region.read(0, &mut found).unwrap(), found.len());
    assert!(found.iter().all(|&b| b == byte));
}

#[test]
fn regions_outlive_their_owners_return_and_go_back_when_they_are_closed() {
    let cluster = Cluster::start(2, 1);
    let urls = urls(&cluster.recruiters);
    let other = recruiters(urls.clone());
    for view in granted(&other, &request("is there any", 2)) {
        other.release(&view.lease.lease_id).unwrap();
    }
    let all = Regions::new(Settings {
        recruiters: urls,
        client: Some(CLIENT.to_owned()),
        patience: PATIENCE,
        renew_every: Duration::from_secs(1),
        ..Settings::default()
    });
    let all = all.unwrap();
    let open = || all.open(REGION_BYTES, tempfile::tempfile().unwrap(), 0);
    let mut regions: Vec<(u8, Region)> = Vec::new();
    let leased = |n: usize| cluster.hosts[n].lending().leases;
    // Open regions until both hosts have leases.
    while leased(0).is_empty() || leased(1).is_empty() {
        let byte = regions.len() as u8 + 1;
        let region = open().unwrap();
        region.write(0, &vec![byte; REGION_BYTES as usize]).unwrap();
        regions.push((byte, region));
    }
    assert_eq!(all.figures().asked_count, regions.len() as u64);
    let of_regions = &leased(0)[0];
    assert_eq!(of_regions.granted_bytes, 16 * MIB);

    // The leases are renewed: their remaining term rises again and again.
    let began = Instant::now();
    let mut before = i64::MAX;
    let mut renewals = 0;
    wait_for("renewals", || {
        let left = leased(0)[0].expires_in_ms;
        renewals += u32::from(left > before);
        before = left;
        renewals >= 4
    });
    assert!(began.elapsed() > Duration::from_secs(2), "one a second");

    cluster.hosts[0].agent.owner_returns();
    wait_for("the owner's memory", || leased(0).is_empty());
    for (byte, region) in &regions {
        is_whole(region, *byte);
    }
    let (here, gone): (Vec<_>, Vec<_>) = regions.iter().partition(|(_, region)| region.is_remote());
    assert_eq!(here.len(), leased(1).len());
    assert!(!here.is_empty() && !gone.is_empty());
    let figures = all.figures();
    assert!(figures.from_memory_pages > 0 && figures.wrong_pages == 0);
    assert_eq!(figures.failed_nodes, gone.len() as u64);
    // The recruiters have no memory for the region. After that, they are not asked again for a minute.
    let refused = open().err().unwrap();
    assert!(matches!(refused, RegionError::NoMemory { .. }), "{refused}");
    assert_eq!(all.figures().asked_count, figures.asked_count);

    // All regions but one are closed. Their leases are empty and are released.
    let (_, last) = regions.swap_remove(regions.iter().position(|(_, r)| r.is_remote()).unwrap());
    regions.clear();
    last.write(0, b"still there").unwrap();
    assert!(last.is_remote());
    wait_for("leases of closed regions", || leased(1).len() == 1);
    drop(last);
    all.end();
    assert!(leased(1).is_empty());
}

#[test]
fn by_tls_a_region_lies_on_the_host_that_the_recruiter_named_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pki(folder, &["init", "--name", "collector.example"]);
    let recruiter = partition::Recruiter::start(folder);
    let host = partition::Host::start(folder, 0, &recruiter.namespace);
    drop(recruiter.grant("is there any", TERM_MS));
    let paths = ClientPaths {
        certificate: folder.join("client.crt"),
        key: folder.join("client.key"),
        authority: folder.join("pki/authority.crt"),
    };
    let trust = ClientTrust::load(&paths).unwrap();
    let inside = recruiter.namespace.path();
    let open = |trust| {
        within(&inside, || {
            let all = Regions::new(Settings {
                recruiters: vec![partition::url()],
                trust,
                patience: PATIENCE,
                ..Settings::default()
            })?;
            let region = all.open(REGION_BYTES, tempfile::tempfile().unwrap(), 0)?;
            Ok::<_, RegionError>((all, region))
        })
    };
    let (all, region) = open(Some(trust)).unwrap();
    region.write(0, &vec![7; REGION_BYTES as usize]).unwrap();
    is_whole(&region, 7);
    assert_eq!(all.figures().from_memory_pages, REGION_BYTES / 4096);
    assert!(region.is_remote() && host.lending().resident_bytes >= REGION_BYTES);
    host.agent.owner_returns();
    wait_for("the owner's memory", || host.lending().leases.is_empty());
    is_whole(&region, 7);
    assert!(!region.is_remote());
    // Without certificates, no region is opened: nothing is sent unencrypted.
    assert!(matches!(open(None), Err(RegionError::Recruiters(_))));
}
