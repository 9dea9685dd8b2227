//! Tests of one-time tokens.

use crate::deployment::{Deployment, HOST, OTHER_HOST, host};
use gleaner_trust::{Authority, KeyAndRequest, TrustError, token};
use std::fs;
use std::sync::Barrier;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn a_token_names_its_authority_and_leaves_no_secret() {
    let deployment = Deployment::new();
    let made = deployment.authority.new_token(DAY, None).unwrap();
    let ours = deployment.authority.fingerprint().unwrap();
    assert_eq!(token::fingerprint(&made).unwrap(), ours);
    assert!(made.chars().all(|c| c.is_ascii_alphanumeric() || c == '.'));
    let secret = made.split('.').next().unwrap();
    for entry in fs::read_dir(deployment.path("pki/tokens")).unwrap() {
        let path = entry.unwrap().path();
        assert!(!path.to_str().unwrap().contains(secret));
        assert!(!fs::read_to_string(path).unwrap().contains(secret));
    }
}

#[test]
fn a_token_is_used_once() {
    let deployment = Deployment::new();
    let now = SystemTime::now();
    let made = deployment.authority.new_token(DAY, None).unwrap();
    deployment.authority.redeem(&made, HOST, now).unwrap();
    for host in [HOST, OTHER_HOST] {
        let again = deployment.authority.redeem(&made, host, now);
        assert!(matches!(again, Err(TrustError::TokenUsed)));
    }
}

#[test]
fn of_sixteen_at_once_one_is_enrolled() {
    let deployment = Deployment::new();
    let folder = deployment.path("pki");
    let made = deployment.authority.new_token(DAY, None).unwrap();
    let barrier = Barrier::new(16);
    let ends: Vec<_> = std::thread::scope(|s| {
        let tries: Vec<_> = (0..16)
            .map(|i| {
                let (folder, barrier, made) = (&folder, &barrier, &made);
                s.spawn(move || {
                    let authority = Authority::open(folder).unwrap();
                    barrier.wait();
                    authority.redeem(made, &format!("{i:032x}"), SystemTime::now())
                })
            })
            .collect();
        tries.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(ends.iter().filter(|e| e.is_ok()).count(), 1);
    let used = |e: &&Result<(), _>| matches!(e, Err(TrustError::TokenUsed));
    assert_eq!(ends.iter().filter(used).count(), 15);
}

#[test]
fn a_token_expires() {
    let deployment = Deployment::new();
    let now = SystemTime::now();
    let made = deployment.authority.new_token(DAY, None).unwrap();
    let late = deployment.authority.redeem(&made, HOST, now + 2 * DAY);
    assert!(matches!(late, Err(TrustError::TokenExpired)));
    deployment.authority.redeem(&made, HOST, now).unwrap(); // accepted after all: the clock was wrong before
    let none = deployment
        .authority
        .new_token(Duration::ZERO, None)
        .unwrap();
    let late = deployment
        .authority
        .redeem(&none, HOST, now + Duration::from_secs(2));
    assert!(matches!(late, Err(TrustError::TokenExpired)));
}

#[test]
fn unknown_tokens_are_told_apart_from_used_ones() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    let now = SystemTime::now();
    let foreign = theirs.authority.new_token(DAY, None).unwrap();
    let never_made = format!("{HOST}.{}", ours.authority.fingerprint().unwrap());
    let cut = &never_made[..50];
    for wrong in ["", ".", "../../authority.key", cut, &foreign, &never_made] {
        let refused = ours.authority.redeem(wrong, HOST, now).unwrap_err();
        assert!(matches!(refused, TrustError::TokenUnknown), "{refused}");
        assert!(refused.is_refusal());
    }
}

#[test]
fn a_token_for_one_host_is_no_other_hosts() {
    let deployment = Deployment::new();
    let authority = &deployment.authority;
    let now = SystemTime::now();
    let made = authority.new_token(DAY, Some(HOST)).unwrap();
    let other = authority.redeem(&made, OTHER_HOST, now);
    assert!(matches!(other, Err(TrustError::TokenOfOtherHost(_))));
    authority.redeem(&made, HOST, now).unwrap();
    assert!(authority.new_token(DAY, Some("h")).is_err());
}

#[test]
fn a_token_for_anybody_does_not_become_a_host_that_exists() {
    let deployment = Deployment::new();
    let authority = &deployment.authority;
    let now = SystemTime::now();
    authority.issue(&host(HOST), 90).unwrap();
    let made = authority.new_token(DAY, None).unwrap();
    let impersonating = authority.redeem(&made, HOST, now);
    assert!(matches!(impersonating, Err(TrustError::HostEnrolled(_))));
    // A token for this host is accepted. A token for any host is accepted only after the old certificate is
    // revoked.
    let own = authority.new_token(DAY, Some(HOST)).unwrap();
    authority.redeem(&own, HOST, now).unwrap();
    authority.revoke(HOST).unwrap();
    authority.redeem(&made, HOST, now).unwrap();
}

#[test]
fn enrolling_checks_the_request_before_it_uses_the_token() {
    let deployment = Deployment::new();
    let authority = &deployment.authority;
    let now = SystemTime::now();
    let made = authority.new_token(DAY, None).unwrap();
    assert!(authority.enroll(&made, HOST, "nonsense", 90, now).is_err());
    assert!(authority.enroll(&made, "h", "nonsense", 90, now).is_err());
    let request = KeyAndRequest::new().unwrap().request_pem;
    let pem = authority.enroll(&made, HOST, &request, 90, now).unwrap();
    // The host did not receive the answer and asks again with the same key: it receives the same certificate.
    // Another key is rejected, since it may be another host's.
    let again = authority.enroll(&made, HOST, &request, 90, now).unwrap();
    assert_eq!(again, pem);
    let other = KeyAndRequest::new().unwrap().request_pem;
    let refused = authority.enroll(&made, HOST, &other, 90, now);
    assert!(matches!(refused, Err(TrustError::TokenUsed)));
    let listed = authority.list().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0].serial,
        gleaner_trust::certificate::serial(&pem).unwrap()
    );
    authority.revoke(HOST).unwrap();
    let refused = authority.enroll(&made, HOST, &request, 90, now);
    assert!(matches!(refused, Err(TrustError::TokenUsed)));
}
