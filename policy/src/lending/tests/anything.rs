//! Random events, in any order.

use super::*;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![6 => 0..2000i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![6 => (0..20u64).prop_map(|slabs| slabs * SLAB), 1 => any::<u64>(), 1 => Just(u64::MAX)]
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        4 => number().prop_map(|since_ms| Verdict::Idle { since_ms }),
        1 => number().prop_map(|at_ms| Verdict::Waiting { at_ms }),
        1 => Just(Verdict::Loaded),
        1 => Just(Verdict::Unknown),
    ]
}

fn sample() -> impl Strategy<Value = Event> {
    let sizes = (size(), size(), size(), prop::option::weighted(0.9, size()));
    (sizes, -1.0..2.0f64, verdict()).prop_map(
        |((physical_bytes, available_bytes, guest_bytes, mem_available_bytes), share, verdict)| {
            Event::Sample {
                categories: Categories {
                    physical_bytes,
                    available_bytes,
                    guest_bytes,
                    ..Categories::default()
                },
                mem_available_bytes,
                headroom_share: share,
                verdict,
            }
        },
    )
}

fn request() -> impl Strategy<Value = Event> {
    let who = (0..2u8, 0..3u8, 0..4u8, any::<bool>());
    (who, size(), number(), 0..3u8).prop_map(
        |((client, key, id, is_admin), bytes, term_ms, what)| {
            let client = client.to_string();
            let lease_id = format!("{id:032x}");
            let asked = match what {
                0 => RequestKind::Grant(GrantRequest {
                    client,
                    key: key.to_string(),
                    bytes,
                    term_ms,
                }),
                1 => RequestKind::Renew {
                    client: (!is_admin).then_some(client),
                    lease_id,
                    term_ms,
                },
                _ => RequestKind::Release {
                    client: (!is_admin).then_some(client),
                    lease_id,
                },
            };
            Event::Request {
                link: 0,
                request: Request {
                    request_id: 0,
                    asked,
                },
                fresh_id: format!("{id:032x}"),
            }
        },
    )
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![Just(Mode::Gentle), Just(Mode::Paper), Just(Mode::Spare)]
}

fn other_settings() -> impl Strategy<Value = Settings> {
    let limits = (mode(), 0.0..=1.0f64, prop::option::of(size()));
    (limits, number(), number(), any::<bool>(), 0..4usize).prop_map(
        |(
            (mode, headroom_share, cap_bytes),
            rise_after_ms,
            outage_grace_ms,
            grants_leases,
            most,
        )| {
            let limits = Limits {
                mode,
                headroom_share,
                cap_bytes,
                ..Limits::default()
            };
            Settings {
                limits,
                rise_after_ms,
                outage_grace_ms,
                grants_leases,
                most_leases_count: most,
                ..settings()
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => sample(),
        8 => request(),
        2 => (size(), size()).prop_map(|(mem_available_bytes, resident_bytes)| Event::Available {
            mem_available_bytes,
            resident_bytes,
        }),
        1 => Just(Event::Returned(Cause::Owner)),
        1 => Just(Event::Returned(Cause::AgentLost)),
        1 => number().prop_map(|since_ms| Event::Idle { since_ms }),
        1 => Just(Event::Pressure),
        1 => prop::option::of(number()).prop_map(|until_ms| Event::Pause { until_ms }),
        1 => Just(Event::Resume),
        1 => prop::option::of(size()).prop_map(Event::Cap),
        1 => any::<bool>().prop_map(Event::Linked),
        2 => prop::collection::vec(0..4u8, 0..3)
            .prop_map(|ids| Event::CertificateRevoked(ids.iter().map(|id| format!("{id:032x}")).collect())),
        1 => other_settings().prop_map(Event::Settings),
        2 => (0..4u8, size()).prop_map(|(id, bytes)| Event::Shrunk(vec![(format!("{id:032x}"), bytes)])),
        2 => Just(Event::Tick),
    ]
}

proptest! {
    /// The lender never panics. It lends only whole slabs, grants within the quota, and gives every refusal a
    /// text.
    #[test]
    fn nothing_upsets_it(
        mode in mode(),
        events in prop::collection::vec((event(), number()), 1..60),
    ) {
        let limits = Limits { mode, ..Limits::default() };
        let mut lender = Lender::new(Settings { limits, ..settings() }, 1);
        for (event, at_ms) in events {
            let before = lender.leases(lender.now_ms);
            let actions = lender.step(&event, at_ms);
            let now_ms = lender.now_ms;
            let quota = lender.quota(now_ms);
            let leases = lender.leases(now_ms);
            prop_assert_eq!(quota.quota_bytes % SLAB, 0);
            prop_assert!(quota.unleased_bytes <= quota.quota_bytes);
            prop_assert_eq!(quota.lent_bytes, leases.iter().map(|l| l.remaining_bytes).sum::<u64>());
            prop_assert!(leases.iter().all(|l| (0..=1000).contains(&l.expires_in_ms)));
            for action in &actions {
                match action {
                    Action::Open { bytes, .. } => {
                        prop_assert!(bytes % SLAB == 0 && quota.lent_bytes <= quota.quota_bytes);
                    }
                    Action::Shrink { bytes, .. } => prop_assert!(*bytes > 0 && bytes % SLAB == 0),
                    Action::RevokeAll(_) => prop_assert!(leases.is_empty() && actions[0] == *action),
                    Action::Answer { outcome: Outcome::Refused(refusal), .. } => {
                        prop_assert!(refusal.detail.len() > 20, "{refusal:?}");
                    }
                    _ => {}
                }
            }
            if let Event::CertificateRevoked(revoked) = &event {
                prop_assert!(leases.iter().all(|l| !revoked.contains(&l.lease_id)));
                // Other leases continue, except those that expire now or are shrunk.
                let is_over = |id: &String| actions.iter().any(|action| match action {
                    Action::RevokeAll(_) => true,
                    Action::Revoke { lease_id, .. } => lease_id == id,
                    _ => false,
                });
                for lease in before.iter().filter(|l| !revoked.contains(&l.lease_id)) {
                    let is_there = leases.iter().any(|l| {
                        l.lease_id == lease.lease_id && l.remaining_bytes == lease.remaining_bytes
                    });
                    prop_assert!(is_there != is_over(&lease.lease_id));
                }
            }
            let lends = matches!(quota.reason, QuotaReason::Idle | QuotaReason::Spare | QuotaReason::Pressure);
            prop_assert!(lends || leases.is_empty(), "{:?}", quota.reason);
        }
    }
}
