//! Scenarios worked by hand: 16 slabs of physical memory, of which the agent holds back 2 (headroom
//! 1/8).

mod anything;
mod host;

use super::*;
use crate::accounting::Categories;
use crate::idle::Verdict;
use crate::quota::{Limits, Mode};
use gleaner_schemas::lending::{RefusalKind, Request};
use host::{Host, IDLE, SLAB, revoke, settings, shrink};

#[test]
fn an_idle_host_lends_and_takes_all_back() {
    let mut host = Host::new(settings());
    assert_eq!(host.quota(0), (0, 0, 0, QuotaReason::Unknown));
    host.sample(10, 0, IDLE, 0);
    assert_eq!(host.quota(0), (8, 0, 8, QuotaReason::Idle));
    let (actions, outcome) = host.grant("a", 3, 1);
    let Outcome::Granted { lease } = outcome else {
        panic!("{outcome:?}")
    };
    let expected = Lease {
        lease_id: format!("{:032x}", 1),
        generation: 7,
        client: "c".into(),
        key: "a".into(),
        granted_bytes: 3 * SLAB,
        remaining_bytes: 3 * SLAB,
        expires_in_ms: 300,
    };
    assert_eq!(lease, expected);
    let open = Action::Open {
        lease_id: lease.lease_id.clone(),
        client: "c".into(),
        bytes: 3 * SLAB,
    };
    assert_eq!(actions, [open]);
    assert_eq!(host.quota(1), (8, 3, 5, QuotaReason::Idle));
    // The same key gives the same lease, and reserves no more memory. The lease's term continues.
    let again = host.grant("a", 3, 51);
    let lease = Lease {
        expires_in_ms: 250,
        ..lease
    };
    assert_eq!(again, (vec![], Outcome::Granted { lease }));
    let back = host.step(&Event::Returned(Cause::Owner), 60);
    assert_eq!(back, [Action::RevokeAll(Cause::Owner)]);
    assert_eq!(host.quota(60), (0, 0, 0, QuotaReason::InUse));
    assert!(host.lender.leases(60).is_empty());
    assert_eq!(host.lender.next_tick_ms(), None);
    assert_eq!(host.step(&Event::Returned(Cause::AgentLost), 61), []);
}

#[test]
fn an_idle_period_from_before_the_return_says_nothing() {
    let mut host = Host::idle(10);
    host.step(&Event::Returned(Cause::Owner), 400_000);
    host.sample(10, 0, IDLE, 400_001);
    assert_eq!(host.quota(400_001).3, QuotaReason::InUse);
    host.step(&Event::Idle { since_ms: 0 }, 400_002);
    assert_eq!(host.quota(400_002).0, 0);
    host.step(&Event::Idle { since_ms: 400_000 }, 700_000);
    assert_eq!(host.quota(700_000), (8, 0, 8, QuotaReason::Idle));
    // The agent falls silent, then reports again: the owner has been away since the same moment.
    host.step(&Event::Returned(Cause::AgentLost), 700_001);
    assert_eq!(host.quota(700_001).3, QuotaReason::Unknown);
    host.sample(10, 0, Verdict::Idle { since_ms: 400_000 }, 700_002);
    assert_eq!(host.quota(700_002).0, 8);
}

#[test]
fn other_settings_hold_at_once_and_what_is_lent_stays_as_far_as_it_may() {
    let mut host = Host::idle(10);
    host.granted("a", 6, 1);
    let with = |change: fn(&mut Settings)| {
        let mut settings = settings();
        change(&mut settings);
        Event::Settings(settings)
    };
    // Repeating the same event changes nothing.
    assert_eq!(host.step(&with(|_| {}), 10), []);
    assert_eq!(host.quota(10), (8, 6, 2, QuotaReason::Idle));
    // A lower cap is applied step by step.
    let capped = with(|s| s.limits.cap_bytes = Some(3 * SLAB));
    assert_eq!(host.step(&capped, 20), shrink(2, Cause::Quota));
    assert_eq!(host.quota(20), (3, 6, 0, QuotaReason::Idle));
    host.step(&Event::Shrunk(vec![(format!("{:032x}", 1), 2 * SLAB)]), 20);
    assert_eq!(host.step(&Event::Tick, 30), shrink(1, Cause::Quota));
    host.step(&Event::Shrunk(vec![(format!("{:032x}", 1), SLAB)]), 30);
    // The cap is lifted: the quota rises immediately, since caps are not subject to the delay.
    assert_eq!(host.step(&with(|_| {}), 40), []);
    assert_eq!(host.quota(40), (8, 3, 5, QuotaReason::Idle));
    // A larger headroom holds immediately, a smaller one after a delay.
    host.step(&with(|s| s.limits.headroom_share = 0.25), 50);
    assert_eq!(host.quota(50), (6, 3, 3, QuotaReason::Idle));
    host.step(&with(|_| {}), 60);
    assert_eq!(host.quota(159).0, 6);
    assert_eq!(host.quota(160).0, 8);
    // The server grants no new leases; existing ones continue.
    host.step(&with(|s| s.grants_leases = false), 170);
    assert_eq!(host.quota(170), (8, 3, 0, QuotaReason::Idle));
    assert_eq!(host.held(170), [3]);
}

#[test]
fn another_grace_lets_no_time_pass_that_stood_still() {
    let mut host = Host::idle(10);
    host.granted("a", 1, 0); // with a term of 300 ms
    host.step(&Event::Linked(false), 100);
    let grace = |outage_grace_ms| {
        Event::Settings(Settings {
            outage_grace_ms,
            ..settings()
        })
    };
    host.step(&grace(50), 500);
    assert_eq!(host.lender.leases(500)[0].expires_in_ms, 200);
    assert_eq!(host.lender.leases(550)[0].expires_in_ms, 200);
    assert_eq!(host.lender.leases(600)[0].expires_in_ms, 150);
}

#[test]
fn every_verdict_that_is_not_idle_takes_all_back() {
    for (verdict, cause) in [
        (Verdict::Waiting { at_ms: 300_010 }, Cause::Owner),
        (Verdict::Loaded, Cause::Load),
        (Verdict::Unknown, Cause::OwnerUnknown),
    ] {
        let mut host = Host::idle(10);
        host.granted("a", 1, 1);
        assert_eq!(
            host.sample(9, 1, verdict, 10),
            [Action::RevokeAll(cause)],
            "{verdict:?}"
        );
    }
}

#[test]
fn refusals_say_what_why_and_when() {
    let mut host = Host::new(settings());
    let said = |r: Refusal| (r.kind, r.retry_in_ms, r.detail);
    let (kind, retry, detail) = said(host.refused("a", 1, 0));
    assert_eq!((kind, retry), (RefusalKind::InUse, Some(10_000)));
    assert!(detail.contains("cannot be seen"), "{detail}");
    host.sample(10, 0, Verdict::Waiting { at_ms: 299_000 }, 1000);
    let (kind, retry, detail) = said(host.refused("a", 1, 1000));
    assert_eq!((kind, retry), (RefusalKind::InUse, Some(298_000)));
    assert_eq!(
        detail,
        "the owner is using this host, at least for another 4 min 58 s; once idle it would lend 16.0 MiB"
    );
    host.sample(10, 0, Verdict::Waiting { at_ms: 20_000 }, 1000);
    let (_, retry, detail) = said(host.refused("a", 1, 1000));
    assert_eq!(retry, Some(19_000));
    assert!(detail.contains("not been idle for long enough"), "{detail}");
    host.sample(10, 0, IDLE, 2000);
    let (kind, retry, detail) = said(host.refused("a", 9, 2000));
    assert_eq!((kind, retry), (RefusalKind::NoMemory, Some(10_000)));
    assert_eq!(
        detail,
        "16.0 MiB are free of the 16.0 MiB that this host lends, and 18.0 MiB were requested: request less, or retry later"
    );
    host.granted("a", 2, 2000);
    let (kind, retry, detail) = said(host.refused("a", 3, 2000));
    assert_eq!((kind, retry), (RefusalKind::Malformed, None));
    assert!(detail.contains("\"a\" has a lease of 4.0 MiB"), "{detail}");
    for (key, bytes, term_ms) in [("", 1, 1), ("k", 0, 1), ("k", u64::MAX, 1), ("k", 1, 0)] {
        let asked = RequestKind::Grant(GrantRequest {
            client: "c".into(),
            key: key.into(),
            bytes,
            term_ms,
        });
        let (_, outcome) = host.ask(asked, 2000);
        assert!(
            matches!(&outcome, Outcome::Refused(r) if r.kind == RefusalKind::Malformed),
            "{outcome:?}"
        );
    }
    host.step(&Event::Pressure, 2000);
    let (kind, retry, _) = said(host.refused("b", 1, 2010));
    assert_eq!((kind, retry), (RefusalKind::NoMemory, Some(40)));
    host.step(
        &Event::Pause {
            until_ms: Some(5000),
        },
        2010,
    );
    let (kind, retry, _) = said(host.refused("b", 1, 2011));
    assert_eq!((kind, retry), (RefusalKind::Paused, Some(2989)));
    host.step(&Event::Pause { until_ms: None }, 2012);
    let (kind, retry, _) = said(host.refused("b", 1, 2012));
    assert_eq!((kind, retry), (RefusalKind::Paused, None));
    host.step(&Event::Returned(Cause::Ending), 2013);
    assert_eq!(host.refused("b", 1, 2013).kind, RefusalKind::Ending);
    let mut lends_elsewhere = Host::new(Settings {
        grants_leases: false,
        ..settings()
    });
    lends_elsewhere.sample(10, 0, IDLE, 0);
    assert_eq!(lends_elsewhere.quota(0), (8, 0, 0, QuotaReason::Idle));
    assert_eq!(lends_elsewhere.refused("a", 1, 0).retry_in_ms, None);
}

#[test]
fn leases_are_renewed_released_and_run_out() {
    let mut host = Host::idle(10);
    let a = host.granted("a", 1, 0);
    let b = host.granted("b", 1, 0);
    let renew = |client: Option<&str>, lease: &Lease, term_ms| RequestKind::Renew {
        client: client.map(str::to_owned),
        lease_id: lease.lease_id.clone(),
        term_ms,
    };
    let ends = |outcome: Outcome| match outcome {
        Outcome::Renewed { lease } => lease.expires_in_ms,
        other => panic!("{other:?}"),
    };
    // A term counts from now. A renewal never shortens it, and never exceeds the maximum of 1000 ms.
    assert_eq!(ends(host.ask(renew(Some("c"), &a, 300), 100).1), 300);
    assert_eq!(ends(host.ask(renew(Some("c"), &a, 5), 100).1), 300);
    assert_eq!(ends(host.ask(renew(None, &a, 9999), 100).1), 1000);
    let kind = |outcome: Outcome| match outcome {
        Outcome::Refused(refusal) => refusal.kind,
        other => panic!("{other:?}"),
    };
    let (_, outcome) = host.ask(renew(Some("d"), &a, 300), 100);
    assert_eq!(kind(outcome), RefusalKind::NotYours);
    assert_eq!(host.lender.next_tick_ms(), Some(300));
    assert_eq!(host.step(&Event::Tick, 299), []);
    assert_eq!(host.step(&Event::Tick, 300), revoke(&b, Cause::Expired));
    let (_, outcome) = host.ask(renew(Some("c"), &b, 300), 301);
    assert_eq!(kind(outcome), RefusalKind::UnknownLease);
    let release = |client: &str| RequestKind::Release {
        client: Some(client.into()),
        lease_id: a.lease_id.clone(),
    };
    let (actions, outcome) = host.ask(release("d"), 302);
    assert_eq!((actions, kind(outcome)), (vec![], RefusalKind::NotYours));
    let released = Outcome::Released {
        lease_id: a.lease_id.clone(),
    };
    let expected = (revoke(&a, Cause::Released), released.clone());
    assert_eq!(host.ask(release("c"), 303), expected);
    assert_eq!(host.ask(release("c"), 304), (vec![], released));
    assert_eq!(host.quota(304), (8, 0, 8, QuotaReason::Idle));
}

#[test]
fn a_revoked_certificate_ends_its_leases_and_no_other() {
    let mut host = Host::idle(10);
    let [a, b, c] = ["a", "b", "c"].map(|key| host.granted(key, 2, 0));
    let revoked = |leases: &[&Lease]| {
        let ids = leases.iter().map(|lease| lease.lease_id.clone());
        Event::CertificateRevoked(ids.chain(["0".repeat(32)]).collect())
    };
    let both = [revoke(&a, Cause::Revoked), revoke(&c, Cause::Revoked)].concat();
    assert_eq!(host.step(&revoked(&[&a, &c]), 10), both);
    assert_eq!(host.quota(10), (8, 2, 6, QuotaReason::Idle));
    assert_eq!(host.lender.leases(10)[0].lease_id, b.lease_id);
    assert_eq!(host.step(&revoked(&[&a, &c]), 11), []);
    // The revoked lease's key is free again: a new grant with this key creates another lease.
    assert_ne!(host.granted("a", 2, 12).lease_id, a.lease_id);
    // The recruiter learns of the ended lease by an announcement.
    let actions = host.lender.step(&revoked(&[&b]), 13);
    assert_eq!(actions.last(), Some(&Action::Announce));
}

#[test]
fn an_outage_of_the_recruiters_costs_no_lease() {
    let mut host = Host::idle(10);
    let left = |host: &Host, now_ms| host.lender.leases(now_ms)[0].expires_in_ms;
    let lease = host.granted("a", 1, 0);
    host.step(&Event::Linked(false), 200);
    host.step(&Event::Linked(false), 300);
    assert_eq!((left(&host, 200), left(&host, 700)), (100, 100));
    // The grace is at most 500 ms.
    assert_eq!(left(&host, 750), 50);
    assert_eq!(host.lender.next_tick_ms(), Some(800));
    host.step(&Event::Linked(true), 600);
    assert_eq!((left(&host, 600), left(&host, 650)), (100, 50));
    host.step(&Event::Linked(false), 650);
    assert_eq!(host.lender.next_tick_ms(), Some(1200));
    assert_eq!(host.step(&Event::Tick, 1199), []);
    assert_eq!(
        host.step(&Event::Tick, 1200),
        revoke(&lease, Cause::Expired)
    );
}

#[test]
fn a_smaller_quota_is_given_back_step_by_step() {
    let mut host = Host::idle(10);
    let a = host.granted("a", 5, 0);
    let b = host.granted("b", 3, 0);
    // 5 slabs too many are lent: the kernel's current figure shows that the owner's other memory grew.
    assert_eq!(host.available(1, 4, 10), shrink(2, Cause::Quota));
    assert_eq!(host.quota(10), (3, 8, 0, QuotaReason::Idle));
    // No step starts before the last one is done, nor too soon after it.
    assert_eq!(host.step(&Event::Tick, 20), []);
    let reclaimed = |lease: &Lease, slabs: u64| (lease.lease_id.clone(), slabs * SLAB);
    let shrunk = Event::Shrunk(vec![reclaimed(&a, 2)]);
    assert_eq!(host.step(&shrunk, 20), shrink(2, Cause::Quota));
    let shrunk = Event::Shrunk(vec![reclaimed(&a, 1), reclaimed(&b, 1)]);
    assert_eq!(host.step(&shrunk, 21), []);
    assert_eq!(host.lender.next_tick_ms(), Some(30));
    assert_eq!(host.step(&Event::Tick, 30), shrink(1, Cause::Quota));
    assert_eq!(host.step(&Event::Shrunk(vec![reclaimed(&a, 1)]), 31), []);
    assert_eq!(host.held(31), [1, 2]);
    // The first lease has no memory left: it ends.
    assert_eq!(host.available(0, 3, 50), shrink(2, Cause::Quota));
    let shrunk = Event::Shrunk(vec![reclaimed(&a, 1), reclaimed(&b, 1)]);
    assert_eq!(host.step(&shrunk, 51), revoke(&a, Cause::Quota));
    assert_eq!(host.held(51), [1]);
}

#[test]
fn the_quota_falls_at_once_and_rises_late() {
    let mut host = Host::idle(10);
    host.available(6, 0, 10);
    assert_eq!(host.quota(10).0, 4);
    host.available(12, 0, 20);
    assert_eq!(host.quota(119).0, 4);
    // Now the sample's available memory is the bound.
    assert_eq!(host.quota(120).0, 8);
    // The server's own reading is preferred to the agent's sample, which may not include the guests.
    host.granted("a", 4, 130);
    host.available(6, 4, 140);
    host.sample(10, 0, IDLE, 150);
    assert_eq!(host.quota(150).0, 8);
    host.sample(6, 4, IDLE, 10_000);
    assert_eq!(host.quota(10_000).0, 8);
}

#[test]
fn pressure_takes_an_eighth_and_pauses() {
    let mut host = Host::idle(12);
    let a = host.granted("a", 10, 0);
    assert_eq!(host.step(&Event::Pressure, 10), shrink(2, Cause::Pressure));
    assert_eq!(host.quota(10), (8, 10, 0, QuotaReason::Pressure));
    host.step(&Event::Shrunk(vec![(a.lease_id, 2 * SLAB)]), 11);
    assert_eq!(host.step(&Event::Pressure, 30), shrink(2, Cause::Pressure));
    assert_eq!(host.quota(79), (6, 8, 0, QuotaReason::Pressure));
    assert_eq!(host.quota(80), (10, 8, 2, QuotaReason::Idle));
}

#[test]
fn the_owners_word_holds_at_once() {
    let mut host = Host::idle(12);
    let a = host.granted("a", 8, 0);
    let cap = |slabs: u64| Event::Cap(Some(slabs * SLAB));
    assert_eq!(host.step(&cap(3), 1), shrink(5, Cause::Paused));
    host.step(&Event::Shrunk(vec![(a.lease_id.clone(), 5 * SLAB)]), 1);
    assert_eq!(host.quota(1), (3, 3, 0, QuotaReason::Idle));
    host.step(&cap(5), 2);
    assert_eq!(host.quota(2), (5, 3, 2, QuotaReason::Idle));
    host.step(&Event::Cap(None), 3);
    assert_eq!(host.quota(3).0, 10);
    let pause = Event::Pause { until_ms: Some(50) };
    assert_eq!(host.step(&pause, 4), [Action::RevokeAll(Cause::Paused)]);
    assert_eq!(host.quota(4), (0, 0, 0, QuotaReason::Paused));
    assert_eq!(host.lender.next_tick_ms(), Some(50));
    assert_eq!(host.quota(50), (10, 0, 10, QuotaReason::Idle));
    host.step(&Event::Pause { until_ms: None }, 60);
    host.step(&Event::Resume, 61);
    assert_eq!(host.quota(61).0, 10);
}

#[test]
fn mode_spare_keeps_what_a_busy_host_can_spare() {
    let mut host = Host::new(Settings {
        limits: Limits {
            mode: Mode::Spare,
            headroom_share: 0.0,
            ..Limits::default()
        },
        ..settings()
    });
    host.sample(14, 0, IDLE, 0);
    assert_eq!(host.quota(0), (12, 0, 12, QuotaReason::Idle));
    let a = host.granted("a", 7, 0);
    // While the host is in use, half of its 16 slabs is held back: of the 14 available, 6 may be lent.
    let back = host.step(&Event::Returned(Cause::Owner), 1);
    assert_eq!(back, shrink(1, Cause::Owner));
    host.step(&Event::Shrunk(vec![(a.lease_id, SLAB)]), 1);
    assert_eq!(host.quota(1), (6, 6, 0, QuotaReason::Spare));
    // If nothing may be lent of a busy host, all is reclaimed immediately, as with every other reason.
    let back = host.sample(2, 6, Verdict::Waiting { at_ms: 9 }, 2);
    assert_eq!(back, [Action::RevokeAll(Cause::Owner)]);
    for taken in [
        Event::Returned(Cause::AgentLost),
        Event::Returned(Cause::OwnerUnknown),
        Event::Pause { until_ms: None },
    ] {
        let mut host = Host::new(host.lender.settings.clone());
        host.sample(14, 0, Verdict::Loaded, 0);
        host.granted("a", 6, 0);
        let actions = host.step(&taken, 1);
        assert!(
            matches!(actions[..], [Action::RevokeAll(_)]),
            "{taken:?} {actions:?}"
        );
    }
}

#[test]
fn what_is_told_of_a_host() {
    let mut host = Host::idle(10);
    host.sample(12, 0, IDLE, 1000);
    host.granted("a", 1, 1000);
    let told = host.lender.quota(3000);
    let expected = HostQuota {
        quota_bytes: 10 * SLAB,
        lent_bytes: SLAB,
        unleased_bytes: 9 * SLAB,
        idle_quota_bytes: 10 * SLAB,
        physical_bytes: 16 * SLAB,
        headroom_bytes: 2 * SLAB,
        mode: Mode::Gentle,
        reason: QuotaReason::Idle,
        idle_for_ms: Some(3000),
        low_water_bytes: Some(8 * SLAB),
        age_ms: 2000,
        ..HostQuota::default()
    };
    assert_eq!(told, expected);
    host.sample(12, 0, Verdict::Waiting { at_ms: 9000 }, 4000);
    let told = host.lender.quota(5000);
    assert_eq!((told.idle_for_ms, told.idle_in_ms), (None, Some(4000)));
    assert_eq!((told.quota_bytes, told.idle_quota_bytes), (0, 10 * SLAB));
}

#[test]
fn only_news_is_announced() {
    let mut lender = Host::idle(34).lender;
    let mut is_told =
        |event: Event, now_ms| lender.step(&event, now_ms).contains(&Action::Announce);
    let available = |slabs: u64| Event::Available {
        mem_available_bytes: slabs * SLAB,
        resident_bytes: 0,
    };
    assert!(!is_told(Event::Tick, 1));
    // A sixteenth of the announced 32 slabs is 2: only a larger change is announced immediately.
    assert!(!is_told(available(32), 2));
    assert!(is_told(available(31), 3));
    assert!(!is_told(available(30), 4));
    let request = |request_id, asked| Event::Request {
        link: 0,
        request: Request { request_id, asked },
        fresh_id: "f".into(),
    };
    let grant = || {
        RequestKind::Grant(GrantRequest {
            client: "c".into(),
            key: "k".into(),
            bytes: 1,
            term_ms: 100,
        })
    };
    assert!(is_told(request(1, grant()), 5));
    assert!(!is_told(request(2, grant()), 6));
    let renew = RequestKind::Renew {
        client: None,
        lease_id: "f".into(),
        term_ms: 500,
    };
    assert!(is_told(request(3, renew), 7));
    assert!(is_told(Event::Tick, 507));
    assert!(is_told(Event::Returned(Cause::Owner), 508));
    assert!(!is_told(Event::Returned(Cause::Owner), 509));
}
