//! Compares the registry with its expected contents, after random steps and in single cases.

use super::*;
use gleaner_schemas::lending::{Lease, LeaseRequest, Outlook, SLAB_BYTES, VERSION};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MIB: u64 = 1 << 20;

fn settings() -> Settings {
    Settings {
        announce_every_ms: 10_000,
        client_bytes: None,
        client_leases: None,
        reserve_share: 0.0,
        confidence: 0.8,
    }
}

/// A registry whose first announcement interval has passed.
fn registry() -> Registry {
    Registry::new(settings(), -10_000)
}

fn id(host: u8) -> HostId {
    format!("{host:032x}").into()
}

fn lease(number: u8, client: &str, key: &str, bytes: u64) -> Lease {
    Lease {
        lease_id: format!("{number:032x}"),
        client: client.into(),
        key: key.into(),
        granted_bytes: bytes,
        remaining_bytes: bytes,
        expires_in_ms: 60_000,
        generation: 1,
    }
}

fn said(host: u8, quota_bytes: u64, leases: &[Lease]) -> Announcement {
    let lent_bytes = leases.iter().map(|l| l.remaining_bytes).sum();
    Announcement {
        version: VERSION,
        incarnation: "one".into(),
        quota: HostQuota {
            host_id: id(host).to_string(),
            quota_bytes,
            lent_bytes,
            unleased_bytes: quota_bytes.saturating_sub(lent_bytes),
            ..HostQuota::default()
        },
        leases: leases.to_vec(),
        accepts_revocation_lists: true,
        address: Some("192.0.2.1:10809".into()),
        ..Announcement::default()
    }
}

fn request(key: &str, bytes: u64, copies: u32) -> LeaseRequest {
    LeaseRequest {
        copies,
        ..LeaseRequest::new(bytes, key.into())
    }
}

fn kind(result: Result<Plan, Refusal>) -> RefusalKind {
    result.unwrap_err().kind
}

#[test]
fn a_late_connection_of_a_host_does_not_count() {
    let mut registry = registry();
    registry
        .announced(&id(1), 2, said(1, 64 * MIB, &[]), 0)
        .unwrap();
    let late = registry.announced(&id(1), 1, said(1, MIB, &[]), 1);
    assert_eq!(late.unwrap_err().kind, RefusalKind::Busy);
    registry.disconnected(&id(1), 1); // the end of an old connection changes nothing
    let answer = Answer {
        request_id: 1,
        outcome: Outcome::Granted {
            lease: lease(1, "a", "k", MIB),
        },
        unleased_bytes: 0,
        requests_per_s: 0.0,
    };
    registry.answered(&id(1), 1, &answer, 2);
    assert_eq!(
        (registry.leases_count(), registry.totals().unleased_bytes),
        (0, 64 * u128::from(MIB))
    );
    registry.disconnected(&id(1), 2);
    assert_eq!(registry.totals(), Totals::default());
    assert_eq!(registry.quotas()[0].quota.unleased_bytes, 0);
    // The registry uses only the latest connection.
    registry.announced(&id(1), 3, said(1, MIB, &[]), 3).unwrap();
    assert_eq!(registry.totals().quota_bytes, u128::from(MIB));
}

#[test]
fn announcements_that_are_not_the_hosts_own_are_refused() {
    let mut registry = registry();
    let other = registry
        .announced(&id(1), 1, said(2, MIB, &[]), 0)
        .unwrap_err();
    assert!(other.detail.contains(&*id(2)), "{other:?}");
    let version = Announcement {
        version: 9,
        ..said(1, MIB, &[])
    };
    let newer = registry.announced(&id(1), 1, version, 0).unwrap_err();
    assert!(newer.detail.contains('9'), "{newer:?}");
    let twice = [lease(1, "a", "k", MIB), lease(1, "b", "l", MIB)];
    assert!(
        registry
            .announced(&id(1), 1, said(1, MIB, &twice), 0)
            .is_err()
    );
    assert!(registry.quotas().is_empty());
}

#[test]
fn a_lease_id_of_another_host_is_not_taken_over() {
    let mut registry = registry();
    let of_first = [lease(1, "a", "k", 2 * MIB)];
    registry
        .announced(&id(1), 1, said(1, 8 * MIB, &of_first), 0)
        .unwrap();
    registry
        .announced(&id(2), 2, said(2, 8 * MIB, &of_first), 0)
        .unwrap();
    assert_eq!(registry.host_of(&of_first[0].lease_id), Some(&id(1)));
    registry
        .announced(&id(2), 2, said(2, 8 * MIB, &[]), 1)
        .unwrap();
    assert_eq!(registry.host_of(&of_first[0].lease_id), Some(&id(1)));
}

#[test]
fn leases_of_a_host_that_is_gone_are_out_of_sight_until_it_is_back_or_they_run_out() {
    let mut registry = registry();
    let both = [lease(1, "a", "k", MIB), lease(2, "a", "l", MIB)];
    let seen = |registry: &Registry, now_ms| {
        both.each_ref()
            .map(|lease| registry.may_exist_on_removed_host(&lease.lease_id, now_ms))
    };
    registry
        .announced(&id(1), 1, said(1, 64 * MIB, &both), 0)
        .unwrap();
    assert_eq!(seen(&registry, 0), [false; 2]);
    assert_eq!(registry.sweep(30_000), [id(1)]);
    assert_eq!(seen(&registry, 30_000), [true; 2]);
    // The host reconnects with the first lease only. So the second has ended, even if the host is removed
    // again.
    registry
        .announced(&id(1), 2, said(1, 64 * MIB, &both[..1]), 31_000)
        .unwrap();
    assert_eq!(seen(&registry, 31_000), [false; 2]);
    assert_eq!(registry.sweep(61_000), [id(1)]);
    assert_eq!(seen(&registry, 61_000), [true, false]);
    // The first lease had a term of a minute. It may outlive its term, since the host cannot know that it was
    // removed here.
    assert_eq!(seen(&registry, 91_000), [true, false]);
    assert_eq!(seen(&registry, 91_000 + OUTAGE_GRACE_MS), [false; 2]);
}

#[test]
fn a_key_finds_its_leases_and_holds_its_place() {
    let mut registry = registry();
    for host in 1..=3 {
        registry
            .announced(&id(host), host.into(), said(host, 64 * MIB, &[]), 0)
            .unwrap();
    }
    let two = request("k", 3 * MIB, 2);
    let plan = registry.plan("a", &two, 0).unwrap();
    assert_eq!((plan.missing, plan.candidates.len()), (2, 3));
    assert_eq!(kind(registry.plan("a", &two, 0)), RefusalKind::Busy);
    registry.finished("a", "k");
    let granted = [lease(1, "a", "k", 4 * MIB)];
    registry
        .announced(&id(1), 1, said(1, 64 * MIB, &granted), 0)
        .unwrap();
    let plan = registry.plan("a", &two, 0).unwrap();
    assert_eq!((plan.found.len(), plan.missing), (1, 1));
    let hosts: Vec<_> = plan.candidates.iter().map(|c| c.host_id.clone()).collect();
    assert_eq!(hosts, [id(2), id(3)]);
    registry.finished("a", "k");
    assert_eq!(
        kind(registry.plan("a", &request("k", 9 * MIB, 2), 0)),
        RefusalKind::Malformed
    );
    let plan = registry.plan("a", &request("k", 3 * MIB, 1), 0).unwrap();
    assert_eq!(
        (plan.found.len(), plan.missing, plan.superfluous.len()),
        (1, 0, 0)
    );
}

#[test]
fn bytes_that_are_spoken_for_are_not_offered_again() {
    let mut registry = registry();
    registry
        .announced(&id(1), 1, said(1, 8 * MIB, &[]), 0)
        .unwrap();
    registry.reserve_bytes(&id(1), 6 * MIB);
    assert_eq!(
        kind(registry.plan("a", &request("k", 4 * MIB, 1), 0)),
        RefusalKind::NoMemory
    );
    registry.release_reservation(&id(1), 6 * MIB);
    assert_eq!(
        registry
            .plan("a", &request("k", 4 * MIB, 1), 0)
            .unwrap()
            .candidates
            .len(),
        1
    );
}

#[test]
fn requests_under_way_count_for_limits() {
    let settings = Settings {
        client_bytes: Some(8 * MIB),
        reserve_share: 0.5,
        ..settings()
    };
    let mut registry = Registry::new(settings, -10_000);
    registry
        .announced(&id(1), 1, said(1, 32 * MIB, &[]), 0)
        .unwrap();
    registry.plan("a", &request("1", 6 * MIB, 1), 0).unwrap();
    assert_eq!(
        kind(registry.plan("a", &request("2", 4 * MIB, 1), 0)),
        RefusalKind::ClientLimit
    );
    registry.plan("b", &request("1", 8 * MIB, 1), 0).unwrap();
    assert_eq!(
        kind(registry.plan("c", &request("1", 8 * MIB, 1), 0)),
        RefusalKind::Reserve
    );
    registry.finished("a", "1");
    registry.plan("c", &request("1", 8 * MIB, 1), 0).unwrap();
}

#[test]
fn a_least_time_wants_what_is_sure_enough() {
    let mut registry = registry();
    registry
        .announced(&id(1), 1, said(1, 64 * MIB, &[]), 0)
        .unwrap();
    registry
        .announced(&id(2), 2, said(2, 64 * MIB, &[]), 0)
        .unwrap();
    let expected = |duration_ms, confidence, mib| Outlook {
        duration_ms,
        confidence,
        bytes: mib * MIB,
    };
    let mut sure = said(1, 64 * MIB, &[]);
    sure.quota.outlook = vec![expected(3_600_000, 0.9, 16), expected(7_200_000, 0.5, 16)];
    registry.announced(&id(1), 1, sure, 0).unwrap();
    let lasting = |minimum_duration_ms, mib: u64| LeaseRequest {
        minimum_duration_ms: Some(minimum_duration_ms),
        ..request("k", mib * MIB, 1)
    };
    let plan = registry.plan("a", &lasting(3_600_000, 16), 0).unwrap();
    assert_eq!(plan.candidates.len(), 1);
    assert_eq!(plan.candidates[0].stays, Some(0.9));
    registry.finished("a", "k");
    for (minimum_duration_ms, mib) in [(7_200_000, 16), (3_600_000, 18), (9_000_000, 2)] {
        let refusal = registry
            .plan("a", &lasting(minimum_duration_ms, mib), 0)
            .unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::TooLong, "{refusal:?}");
    }
    let refusal = registry.plan("a", &lasting(7_200_000, 16), 0).unwrap_err();
    assert!(refusal.detail.contains("3600 s"), "{refusal:?}");
}

#[test]
fn a_host_that_serves_no_pages_gets_no_lease() {
    let mut registry = registry();
    let silent = Announcement {
        address: None,
        ..said(1, 64 * MIB, &[])
    };
    registry.announced(&id(1), 1, silent, 0).unwrap();
    let refusal = registry.plan("a", &request("k", MIB, 1), 0).unwrap_err();
    assert!(refusal.detail.contains("none serves pages"), "{refusal:?}");
    registry
        .announced(&id(2), 2, said(2, 64 * MIB, &[]), 0)
        .unwrap();
    let plan = registry.plan("a", &request("k", MIB, 1), 0).unwrap();
    let hosts: Vec<_> = plan.candidates.iter().map(|c| c.host_id.clone()).collect();
    assert_eq!(hosts, [id(2)]);
}

#[test]
fn a_host_that_the_client_cannot_reach_is_left_out_for_that_client() {
    let mut registry = registry();
    for host in [1, 2] {
        let announced = said(host, 64 * MIB, &[]);
        registry
            .announced(&id(host), u64::from(host), announced, 0)
            .unwrap();
    }
    let avoiding = |hosts: &[u8]| LeaseRequest {
        avoided_host_ids: hosts.iter().map(|&host| id(host).to_string()).collect(),
        ..request("k", MIB, 1)
    };
    let plan = registry.plan("a", &avoiding(&[1]), 0).unwrap();
    let hosts: Vec<_> = plan.candidates.iter().map(|c| c.host_id.clone()).collect();
    assert_eq!(hosts, [id(2)]);
    registry.finished("a", "k");
    let refusal = registry.plan("a", &avoiding(&[1, 2]), 0).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::NoMemory);
    assert!(refusal.detail.contains("2 left out"), "{refusal:?}");
    // Other clients can still use these hosts: no client can mark a host as bad for others.
    let plan = registry.plan("b", &request("k", MIB, 1), 0).unwrap();
    assert_eq!(plan.candidates.len(), 2);
}

#[test]
fn forecasts_tell_how_long_a_quota_stays() {
    use gleaner_schemas::findings::{ForecastCell, Scope};
    use gleaner_schemas::lending::QuotaReason;
    let cell = |ahead_s, probability| ForecastCell {
        scope: Scope::Idle,
        region_bytes: Some(64 << 20),
        region_share: None,
        age_bin: None,
        margin_bin: None,
        low_bin: None,
        ahead_s,
        probability,
        instants_count: 100,
    };
    let table = Table::new(&[cell(3600, 0.95), cell(14_400, 0.6)], &[], &[]);
    let mut registry = registry();
    registry.foresee(Some(LoadedForecasts {
        table: Arc::new(table),
        hour_of_week: 0,
    }));
    let mut idle = said(1, 64 * MIB, &[]);
    idle.quota.reason = QuotaReason::Idle;
    idle.quota.idle_for_ms = Some(600_000);
    registry.announced(&id(1), 1, idle, 0).unwrap();
    let outlook = &registry.quotas()[0].quota.outlook;
    let hour = outlook
        .iter()
        .find(|o| o.duration_ms == 3_600_000 && o.confidence == 0.9);
    assert_eq!(hour.unwrap().bytes, 64 * MIB, "{outlook:?}");
    let lasting = |minimum_duration_ms| LeaseRequest {
        minimum_duration_ms: Some(minimum_duration_ms),
        ..request("k", 16 * MIB, 1)
    };
    let plan = registry.plan("a", &lasting(3_600_000), 0).unwrap();
    assert_eq!(plan.candidates[0].stays, Some(0.95));
    registry.finished("a", "k");
    let refusal = registry.plan("a", &lasting(14_400_000), 0).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::TooLong);
    assert!(refusal.detail.contains("3600 s"), "{refusal:?}");
}

#[derive(Clone, Debug)]
enum Step {
    Announce {
        host: u8,
        link: u64,
        quota_mib: u64,
        leases: Vec<(u8, u8, u8)>,
    },
    Disconnect {
        host: u8,
        link: u64,
    },
    Answer {
        host: u8,
        link: u64,
        number: u8,
        is_granted: bool,
    },
    Pass(i64),
}

fn step() -> impl Strategy<Value = Step> {
    let leases = prop::collection::btree_map(0..6_u8, (0..2_u8, 0..2_u8), 0..4);
    let leases = leases.prop_map(|m| m.into_iter().map(|(n, (c, k))| (n, c, k)).collect());
    prop_oneof![
        4 => (0..3_u8, 0..6_u64, 0..64_u64, leases).prop_map(|(host, link, quota_mib, leases)| {
            Step::Announce { host, link, quota_mib, leases }
        }),
        1 => (0..3_u8, 0..6_u64).prop_map(|(host, link)| Step::Disconnect { host, link }),
        2 => (0..3_u8, 0..6_u64, 0..6_u8, any::<bool>()).prop_map(|(host, link, number, is_granted)| {
            Step::Answer { host, link, number, is_granted }
        }),
        1 => (0..40_000_i64).prop_map(Step::Pass),
    ]
}

proptest! {
    /// Whatever hosts announce, and in whatever order, the sums are those of the hosts. Every lease belongs
    /// to its host, and no lease remains without one.
    #[test]
    fn what_is_summed_and_indexed_is_what_hosts_said(steps in prop::collection::vec(step(), 0..60)) {
        let mut registry = registry();
        let mut now_ms = 0;
        for step in steps {
            match step {
                Step::Announce { host, link, quota_mib, leases } => {
                    let leases: Vec<_> = leases
                        .into_iter()
                        .map(|(n, c, k)| lease(n, &format!("client {c}"), &format!("key {k}"), SLAB_BYTES * u64::from(1 + n)))
                        .collect();
                    let _ = registry.announced(&id(host), link, said(host, quota_mib * MIB, &leases), now_ms);
                }
                Step::Disconnect { host, link } => registry.disconnected(&id(host), link),
                Step::Answer { host, link, number, is_granted } => {
                    let lease = lease(number, "client 0", "key 0", SLAB_BYTES);
                    let outcome = if is_granted {
                        Outcome::Granted { lease }
                    } else {
                        Outcome::Released { lease_id: lease.lease_id }
                    };
                    let answer = Answer { request_id: 0, outcome, unleased_bytes: 7, requests_per_s: 1.0 };
                    registry.answered(&id(host), link, &answer, now_ms);
                }
                Step::Pass(ms) => {
                    now_ms += ms;
                    registry.sweep(now_ms);
                }
            }
            check_whole(&registry, now_ms)?;
        }
        registry.sweep(now_ms + 30_000);
        prop_assert_eq!(registry.leases_count(), 0);
        prop_assert_eq!(registry.totals(), Totals::default());
        prop_assert!(registry.leases_after(None, None, now_ms).is_empty());
    }
}

fn check_whole(registry: &Registry, now_ms: i64) -> Result<(), TestCaseError> {
    let linked = || registry.hosts.values().filter(|host| host.link.is_some());
    let sum = |of: fn(&HostQuota) -> u64| linked().map(|h| u128::from(of(&h.quota))).sum::<u128>();
    let totals = Totals {
        quota_bytes: sum(|q| q.quota_bytes),
        lent_bytes: sum(|q| q.lent_bytes),
        unleased_bytes: sum(|q| q.unleased_bytes),
    };
    prop_assert_eq!(registry.totals(), totals);
    let views = registry.leases_after(None, None, now_ms);
    prop_assert_eq!(views.len(), registry.leases_count());
    let mut held: BTreeMap<String, u128> = BTreeMap::new();
    for view in &views {
        let host = &registry.hosts[&HostId::from(&*view.host_id)];
        prop_assert!(host.leases.contains_key(&view.lease.lease_id));
        *held.entry(view.lease.client.clone()).or_default() += u128::from(view.lease.granted_bytes);
    }
    for client in ["client 0", "client 1"] {
        let expected = held.get(client).copied().unwrap_or_default();
        prop_assert_eq!(registry.leases.holding(client).granted_bytes, expected);
    }
    Ok(())
}
