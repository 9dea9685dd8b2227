//! Malicious and damaged certificates and requests. They cause errors, but never a panic or a wrong identity.

use crate::deployment::{Deployment, HOST, collector, host, reader};
use gleaner_trust::{KeyAndRequest, Peer, TrustError};
use proptest::prelude::*;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateSigningRequestDer};
use std::sync::LazyLock;

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// A certificate with arbitrary names, as a foreign authority might make it.
fn with_names(common_name: Option<&str>, names: Vec<SanType>) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if let Some(name) = common_name {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    params.subject_alt_names = names;
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().into()
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

#[test]
fn names_are_read_strictly() {
    let peer = |cn: Option<&str>, names| Peer::of(&with_names(cn, names));
    let own = format!("gleaner:host:{HOST}");
    let is = |found: Result<Peer, TrustError>, wanted: Peer| assert_eq!(found.unwrap(), wanted);
    let named = |name: &str| Peer::Named(name.to_owned());
    is(
        peer(Some("x"), vec![dns("y"), uri(&own)]),
        Peer::Host(HOST.to_owned()),
    );
    is(
        peer(None, vec![uri("gleaner:reader:ada")]),
        Peer::Reader("ada".to_owned()),
    );
    is(peer(Some("Pc 7"), vec![]), named("Pc 7"));
    is(
        peer(Some("cn"), vec![dns("PC7.Lab.Example"), dns("second")]),
        named("pc7.lab.example"),
    );
    is(
        peer(Some("cn"), vec![uri("https://gleaner:host:1")]),
        named("cn"),
    );
    for wrong in [
        "gleaner:".to_owned(),
        "gleaner:host:".to_owned(),
        "gleaner:host".to_owned(),
        "gleaner:owner:x".to_owned(),
        "gleaner:admin:".to_owned(),
        "gleaner:client:a b".to_owned(),
        "gleaner:reader:".to_owned(),
        "gleaner:reader:a/b".to_owned(),
        "gleaner:reader:a:b".to_owned(),
        format!("GLEANER:host:{HOST}"),
        format!("gleaner:HOST:{HOST}"),
        format!("gleaner:host:{}", HOST.to_uppercase()),
        format!("gleaner:host:{HOST}0"),
        format!("gleaner:host:{HOST} "),
        format!("gleaner:host://{HOST}"),
        format!("gleaner:host:{}", &HOST[1..]),
    ] {
        let found = peer(Some("cn"), vec![dns("name"), uri(&wrong)]);
        assert!(
            matches!(found, Err(TrustError::Certificate(_))),
            "{wrong}: {found:?}"
        );
    }
    // A certificate with two of Gleaner's URIs is rejected, even if the two are equal.
    for second in [own.as_str(), "gleaner:reader:ada"] {
        assert!(peer(None, vec![uri(&own), uri(second)]).is_err());
    }
    for wrong in ["", " ", "a\nb", "a\u{0}b", " a", &"x".repeat(254)] {
        assert!(peer(Some(wrong), vec![]).is_err(), "{wrong:?}");
    }
    assert!(peer(None, vec![]).is_err());
}

#[test]
fn what_follows_a_certificate_is_not_overlooked() {
    let mut bytes = with_names(Some("x"), vec![]).to_vec();
    bytes.push(0);
    assert!(Peer::of(&bytes.into()).is_err());
}

/// Valid certificates and a valid request, which the tests mutate.
struct Seeds {
    deployment: Deployment,
    certificates: Vec<Vec<u8>>,
    request: Vec<u8>,
}

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let deployment = Deployment::new();
    let issue = |role| {
        der(&deployment
            .authority
            .issue(role, 90)
            .unwrap()
            .certificate_pem)
        .to_vec()
    };
    let mut certificates = vec![
        issue(&collector()),
        issue(&host(HOST)),
        issue(&reader("ada")),
    ];
    certificates.push(der(deployment.authority.certificate_pem()).to_vec());
    certificates.push(with_names(Some("cn"), vec![dns("name"), uri("urn:x")]).to_vec());
    let request = KeyAndRequest::new().unwrap().request_pem;
    let request = CertificateSigningRequestDer::from_pem_slice(request.as_bytes()).unwrap();
    Seeds {
        request: request.to_vec(),
        certificates,
        deployment,
    }
});

/// A mutation: bytes are changed, removed or inserted, or the rest is cut off.
#[derive(Debug, Clone)]
enum Change {
    Set(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    Cut(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        6 => (any::<usize>(), any::<u8>()).prop_map(|(at, to)| Change::Set(at, to)),
        1 => (any::<usize>(), 1..8usize).prop_map(|(at, n)| Change::Remove(at, n)),
        1 => (any::<usize>(), prop::collection::vec(any::<u8>(), 1..8))
            .prop_map(|(at, bytes)| Change::Insert(at, bytes)),
        1 => any::<usize>().prop_map(Change::Cut),
    ];
    prop::collection::vec(change, 1..6)
}

fn spoil(bytes: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for change in changes {
        let length = bytes.len().max(1);
        match change {
            Change::Set(at, to) => {
                if let Some(byte) = bytes.get_mut(at % length) {
                    *byte = *to;
                }
            }
            Change::Remove(at, count) => {
                let at = (at % length).min(bytes.len());
                bytes.drain(at..(at + count).min(bytes.len()));
            }
            Change::Insert(at, more) => {
                let at = (at % length).min(bytes.len());
                bytes.splice(at..at, more.iter().copied());
            }
            Change::Cut(at) => bytes.truncate(at % length),
        }
    }
    bytes
}

fn request_pem(der: &[u8]) -> String {
    let body = base64(der);
    format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n")
}

fn key_of(certificate: &CertificateDer<'_>) -> Vec<u8> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).unwrap();
    parsed.public_key().raw.to_vec()
}

fn key_of_request(der: &[u8]) -> Vec<u8> {
    use x509_parser::prelude::FromDer;
    let (_, parsed) =
        x509_parser::certification_request::X509CertificationRequest::from_der(der).unwrap();
    parsed.certification_request_info.subject_pki.raw.to_vec()
}

/// Encodes bytes in base64 (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quad = |chunk: &[u8]| {
        let bits = (0..3).fold(0, |n, i| n << 8 | u32::from(*chunk.get(i).unwrap_or(&0)));
        let digit = |i: usize| char::from(DIGITS[(bits >> (18 - 6 * i) & 63) as usize]);
        (0..4)
            .map(move |i| if i <= chunk.len() { digit(i) } else { '=' })
            .collect::<String>()
    };
    bytes.chunks(3).map(quad).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn a_spoilt_certificate_never_panics(which in 0..5usize, changes in changes()) {
        let bytes = spoil(&SEEDS.certificates[which], &changes);
        if let Ok(Peer::Host(id)) = Peer::of(&bytes.into()) {
            prop_assert!(id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()));
        }
    }

    #[test]
    fn random_bytes_are_no_certificate(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Peer::of(&bytes.into()).is_err());
    }

    #[test]
    fn a_spoilt_request_certifies_no_other_key(changes in changes()) {
        let seeds = &*SEEDS;
        let bytes = spoil(&seeds.request, &changes);
        prop_assume!(bytes != seeds.request);
        let signed = seeds.deployment.authority.sign_request(&host(HOST), &request_pem(&bytes), 90);
        match signed {
            // A changed request may be accepted if the change is outside its signed part; its key is then the
            // original one.
            Ok(pem) => prop_assert_eq!(key_of(&der(&pem)), key_of_request(&seeds.request)),
            Err(e) => prop_assert!(matches!(e, TrustError::Request(_)), "{}", e),
        }
    }

    #[test]
    fn random_text_is_no_request(text in "\\PC*") {
        let authority = &SEEDS.deployment.authority;
        prop_assert!(authority.sign_request(&host(HOST), &text, 90).is_err());
        let framed = format!("-----BEGIN CERTIFICATE REQUEST-----\n{text}\n-----END CERTIFICATE REQUEST-----\n");
        prop_assert!(authority.sign_request(&host(HOST), &framed, 90).is_err());
    }
}

#[test]
fn the_unspoilt_request_is_signed() {
    let seeds = &*SEEDS;
    let pem = request_pem(&seeds.request);
    seeds
        .deployment
        .authority
        .sign_request(&host(HOST), &pem, 90)
        .unwrap();
}
