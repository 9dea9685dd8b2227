//! Tests of the certificates that an authority makes, of its register, and of revocations.

use crate::deployment::{Deployment, HOST, OTHER_HOST, collector, host, reader};
use gleaner_trust::certificate::{self, dates, renewal_due};
use gleaner_trust::{Authority, KeyAndRequest, Peer, Role, State, TrustError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

#[test]
fn keys_are_their_owners_alone() {
    let deployment = Deployment::new();
    let mode = |name: &str| {
        let path = deployment.path("pki").join(name);
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o700);
    assert_eq!(mode("authority.key"), 0o600);
    assert_eq!(mode("issued"), 0o700);
    assert_eq!(mode("tokens"), 0o700);
    let left = fs::read_dir(deployment.path("pki")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 6, "{left:?}"); // three files, two folders, the lock; no temporary file
}

#[test]
fn folders_above_the_authoritys_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let pki = folder.path().join("etc/gleaner/pki");
    Authority::init(&pki, "test", 3650).unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&pki) & 0o777, 0o700);
    // The folder above has the mode of any new folder: the collector's user must be able to pass through it
    // to its own folder.
    let plain = folder.path().join("plain");
    fs::create_dir(&plain).unwrap();
    assert_eq!(mode(pki.parent().unwrap()), mode(&plain));
    // If a file is in the way of the folder, the error names that file.
    let in_the_way = folder.path().join("file");
    fs::write(&in_the_way, "").unwrap();
    let refused = Authority::init(&in_the_way, "test", 3650).err().unwrap();
    assert!(matches!(refused, TrustError::Io { .. }), "{refused}");
}

#[test]
fn what_root_writes_is_the_collectors_to_read() {
    let deployment = Deployment::new();
    let pki = deployment.path("pki");
    let nobody = Some(65_534);
    fs::remove_dir_all(&pki).unwrap();
    fs::create_dir(&pki).unwrap();
    std::os::unix::fs::chown(&pki, nobody, nobody).unwrap();
    let authority = Authority::init(&pki, "test", 3650).unwrap();
    authority.new_token(DAY, None).unwrap();
    authority.issue(&host(HOST), 90).unwrap();
    authority.revoke(HOST).unwrap();
    let owner = |path: std::path::PathBuf| {
        let found = fs::metadata(&path).unwrap();
        (found.uid(), found.gid())
    };
    for folder in ["", "issued", "tokens"] {
        let mut made = fs::read_dir(pki.join(folder)).unwrap().peekable();
        assert!(made.peek().is_some());
        for entry in made {
            assert_eq!(owner(entry.unwrap().path()), (65_534, 65_534));
        }
    }
}

#[test]
fn root_follows_no_link_in_the_authoritys_folder() {
    let deployment = Deployment::new();
    let pki = deployment.path("pki");
    let nobody = Some(65_534);
    let (file, folder) = (deployment.path("roots-file"), deployment.path("roots"));
    fs::write(&file, "root's").unwrap();
    fs::create_dir(&folder).unwrap();
    let owner = |path: &std::path::Path| fs::metadata(path).unwrap().uid();
    let before = owner(&file);

    std::os::unix::fs::chown(&pki, nobody, nobody).unwrap();
    let authority = Authority::open(&pki).unwrap();
    let lock = pki.join("authority.lock");
    for plant in [std::os::unix::fs::symlink, fs::hard_link] {
        fs::remove_file(&lock).unwrap();
        plant(&file, &lock).unwrap();
        let refused = authority.issue(&host(HOST), 90).err().unwrap();
        assert!(refused.to_string().contains("authority.lock"), "{refused}");
        assert_eq!(owner(&file), before);
    }
    for planted in ["issued", "tokens"] {
        let pki = deployment.path(&format!("pki-{planted}"));
        fs::create_dir(&pki).unwrap();
        std::os::unix::fs::chown(&pki, nobody, nobody).unwrap();
        std::os::unix::fs::symlink(&folder, pki.join(planted)).unwrap();
        let refused = Authority::init(&pki, "test", 3650).err().unwrap();
        assert!(refused.to_string().contains(planted), "{refused}");
        assert_eq!(owner(&folder), before);
    }
}

#[test]
fn a_second_authority_does_not_replace_the_first() {
    let deployment = Deployment::new();
    let again = Authority::init(&deployment.path("pki"), "test", 3650);
    assert!(matches!(again, Err(TrustError::AuthorityExists(_))));
    let missing = Authority::open(&deployment.path("elsewhere"));
    assert!(matches!(missing, Err(TrustError::NoAuthority(_))));
    let opened = Authority::open(&deployment.path("pki")).unwrap();
    assert_eq!(
        opened.certificate_pem(),
        deployment.authority.certificate_pem()
    );
}

#[test]
fn of_many_made_at_once_in_one_folder_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pki");
    let made: Vec<_> = std::thread::scope(|s| {
        let tries: Vec<_> = (0..8)
            .map(|_| s.spawn(|| Authority::init(&path, "test", 3650)))
            .collect();
        tries.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let good: Vec<_> = made.iter().flatten().collect();
    assert_eq!(good.len(), 1);
    let opened = Authority::open(&path).unwrap();
    assert_eq!(good[0].certificate_pem(), opened.certificate_pem());
}

#[test]
fn made_half_it_is_made_again() {
    let deployment = Deployment::new();
    let pki = deployment.path("pki");
    let key = fs::read_to_string(pki.join("authority.key")).unwrap();
    fs::remove_file(pki.join("authority.crt")).unwrap();
    fs::remove_file(pki.join("revoked.crl")).unwrap();
    let again = Authority::init(&pki, "test", 3650).unwrap();
    again.issue(&host(HOST), 90).unwrap();
    assert_eq!(fs::read_to_string(pki.join("authority.key")).unwrap(), key);
}

#[test]
fn anothers_key_is_not_opened() {
    let (ours, theirs) = (Deployment::new(), Deployment::new());
    fs::copy(
        theirs.path("pki/authority.key"),
        ours.path("pki/authority.key"),
    )
    .unwrap();
    let mixed = Authority::open(&ours.path("pki"));
    assert!(matches!(mixed, Err(TrustError::Mismatch { .. })));
}

#[test]
fn dates_and_renewal() {
    let deployment = Deployment::new();
    let now = SystemTime::now();
    let issued = deployment.authority.issue(&host(HOST), 90).unwrap();
    let dates = dates(&issued.certificate_pem).unwrap();
    assert!(dates.from < now && dates.until > now + 89 * DAY);
    let due = |days: u32| renewal_due(&issued.certificate_pem, now + days * DAY).unwrap();
    assert!(!due(0) && !due(58) && due(61) && due(200));
    // No certificate is valid for longer than the authority's own.
    let issued = deployment.authority.issue(&host(HOST), u32::MAX).unwrap();
    let until = certificate::dates(&issued.certificate_pem).unwrap().until;
    assert_eq!(until, deployment.authority.dates().until);
}

#[test]
fn a_request_brings_its_key_and_no_more() {
    let deployment = Deployment::new();
    // The request asks to be an authority, to be another host, and for a server's DNS name. None of this is
    // granted.
    let key = rcgen::KeyPair::generate().unwrap();
    let mut asked = rcgen::CertificateParams::new(vec!["collector.example".to_owned()]).unwrap();
    asked.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    asked.key_usages = vec![rcgen::KeyUsagePurpose::KeyCertSign];
    let uri = format!("gleaner:host:{OTHER_HOST}").try_into().unwrap();
    asked.subject_alt_names.push(rcgen::SanType::URI(uri));
    let request = asked.serialize_request(&key).unwrap().pem().unwrap();
    let pem = deployment.authority.sign_request(&host(HOST), &request, 90);
    let certificate = der(&pem.unwrap());
    assert_eq!(Peer::of(&certificate).unwrap(), Peer::Host(HOST.to_owned()));
    let (_, parsed) = x509_parser::parse_x509_certificate(&certificate).unwrap();
    assert!(!parsed.is_ca());
    let names = parsed.subject_alternative_name().unwrap().unwrap();
    // Two names: the host's id, by which clients find its memory server, and the URI, by which our servers
    // identify the host.
    assert_eq!(names.value.general_names.len(), 2);
    let usage = parsed.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.client_auth && usage.server_auth && !usage.any);
    use rcgen::PublicKeyData;
    assert_eq!(parsed.public_key().raw, key.subject_public_key_info());
}

#[test]
fn malformed_requests_are_refused() {
    let deployment = Deployment::new();
    let good = KeyAndRequest::new().unwrap().request_pem;
    let sign = |request: &str| deployment.authority.sign_request(&host(HOST), request, 90);
    sign(&good).unwrap();
    let certificate = deployment.authority.certificate_pem().to_owned();
    let padded = "\n".repeat(20_000) + &good;
    let rsa = include_str!("rsa.csr");
    for (wrong, reason) in [
        ("", "PEM"),
        ("-----BEGIN CERTIFICATE REQUEST-----\n", "PEM"),
        (certificate.as_str(), "PEM"),
        (padded.as_str(), "16 KiB"),
        (rsa, "Ed25519"),
    ] {
        let refused = sign(wrong).unwrap_err();
        assert!(matches!(refused, TrustError::Request(_)), "{refused}");
        assert!(refused.to_string().contains(reason), "{refused}");
    }
}

#[test]
fn names_that_are_none_are_refused() {
    let deployment = Deployment::new();
    let server = |name: &str| Role::Collector {
        names: vec![name.to_owned()],
    };
    for wrong in [
        host(""),
        host("../../0123456789abcdef0123456789"),
        host(&HOST.to_uppercase()),
        reader(""),
        reader("../x"),
        reader("a b"),
        reader("a:b"),
        reader("ä"),
        reader(&"x".repeat(65)),
        Role::Client {
            name: "a:b".to_owned(),
        },
        Role::Admin {
            name: String::new(),
        },
        Role::Recruiter { names: Vec::new() },
        server(""),
        server("-"),
        server("a b"),
        server("https://collector.example"),
        Role::Collector { names: Vec::new() },
    ] {
        let refused = deployment.authority.issue(&wrong, 90).err();
        assert!(
            matches!(refused, Some(TrustError::Name { .. })),
            "{wrong:?}: {refused:?}"
        );
    }
    assert_eq!(deployment.authority.list().unwrap(), []);
}

#[test]
fn all_that_was_issued_is_listed() {
    let deployment = Deployment::new();
    let name = || "ada".to_owned();
    let names = vec!["recruiter.example".to_owned(), "10.0.0.6".to_owned()];
    let roles = [
        collector(),
        Role::Recruiter { names },
        host(HOST),
        host(HOST),
        reader("ada"),
        Role::Client { name: name() },
        Role::Admin { name: name() },
    ];
    for role in &roles {
        deployment.authority.issue(role, 90).unwrap();
    }
    let now = SystemTime::now();
    let listed = deployment.authority.list().unwrap();
    assert_eq!(listed.len(), roles.len());
    for role in &roles {
        assert!(listed.iter().any(|r| r.role == *role), "{listed:?}");
    }
    assert!(listed.iter().all(|r| r.state(now) == State::Valid));
    assert!(
        listed
            .iter()
            .all(|r| r.state(now + 91 * DAY) == State::Expired)
    );
    assert!(listed.iter().all(|r| r.serial.len() == 32));
}

#[test]
fn revoked_by_serial_host_reader_or_file() {
    let deployment = Deployment::new();
    let authority = &deployment.authority;
    for role in [host(HOST), host(HOST), host(OTHER_HOST), reader("ada")] {
        authority.issue(&role, 90).unwrap();
    }
    let issued = authority.issue(&collector(), 90).unwrap();
    deployment.write("collector", &issued);
    let revoke = |which: &str| authority.revoke(which).unwrap().len();
    assert_eq!(revoke(HOST), 2);
    assert_eq!(revoke(HOST), 0); // no certificate is newly revoked
    assert_eq!(revoke("ada"), 1);
    let file = deployment.path("collector.crt");
    assert_eq!(revoke(file.to_str().unwrap()), 1);
    let listed = authority.list().unwrap();
    let left = |r: &&gleaner_trust::Record| r.revoked.is_none();
    let left: Vec<_> = listed.iter().filter(left).collect();
    assert_eq!(left.len(), 1);
    // `revoke` also takes a serial number as OpenSSL prints it: upper case, with colons.
    let serial = left[0].serial.to_uppercase();
    let pairs: Vec<_> = serial.as_bytes().chunks(2).collect();
    assert_eq!(revoke(&String::from_utf8(pairs.join(&b':')).unwrap()), 1);
    for wrong in ["", "00", "collector.example"] {
        let refused = authority.revoke(wrong);
        assert!(matches!(refused, Err(TrustError::NotIssued(_))), "{wrong}");
    }
}

#[test]
fn revocations_at_once_are_all_kept() {
    let deployment = Deployment::new();
    let folder = deployment.path("pki");
    let ids: Vec<String> = (0..16).map(|i| format!("{i:032x}")).collect();
    std::thread::scope(|s| {
        for id in &ids {
            s.spawn(|| {
                // Each thread opens the authority anew, as a separate process would.
                let authority = Authority::open(&folder).unwrap();
                authority.issue(&host(id), 90).unwrap();
                assert_eq!(authority.revoke(id).unwrap().len(), 1);
            });
        }
    });
    let listed = deployment.authority.list().unwrap();
    assert_eq!(listed.len(), 16);
    assert!(listed.iter().all(|r| r.revoked.is_some()));
}

#[test]
fn a_host_renews_until_it_is_revoked() {
    let deployment = Deployment::new();
    let authority = &deployment.authority;
    let now = SystemTime::now();
    let request = KeyAndRequest::new().unwrap().request_pem;
    let first = der(&authority.issue(&host(HOST), 90).unwrap().certificate_pem);
    let renewed = authority.renew(&first, &request, 90, now).unwrap();
    assert_eq!(
        Peer::of(&der(&renewed)).unwrap(),
        Peer::Host(HOST.to_owned())
    );
    let late = authority.renew(&first, &request, 90, now + 91 * DAY);
    assert!(matches!(late, Err(TrustError::Expired)));
    authority.revoke(HOST).unwrap();
    for revoked in [first, der(&renewed)] {
        let refused = authority.renew(&revoked, &request, 90, now);
        assert!(matches!(refused, Err(TrustError::Revoked(_))));
    }
    let collector = authority.issue(&collector(), 90).unwrap();
    let refused = authority.renew(&der(&collector.certificate_pem), &request, 90, now);
    assert!(matches!(refused, Err(TrustError::NotRenewable)));
}

/// The service that reads a key must still be able to read it after the yearly renewal, although the
/// renewal's command names no group.
#[test]
fn a_renewed_key_stays_readable_to_its_group() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::init(
        &folder.path().join("pki"),
        "test",
        gleaner_trust::AUTHORITY_DAYS,
    )
    .unwrap();
    let (certificate, key) = (folder.path().join("r.crt"), folder.path().join("r.key"));
    let role = Role::Recruiter {
        names: vec!["localhost".to_owned()],
    };
    let issue = |group| {
        authority
            .issue(&role, 1)
            .unwrap()
            .write_for(&certificate, &key, group)
            .unwrap()
    };
    let who_reads = || {
        let there = std::fs::metadata(&key).unwrap();
        (there.gid(), there.permissions().mode() & 0o777)
    };
    issue(None);
    let (own, alone) = who_reads();
    assert_eq!(alone, 0o600);
    // Root can give a file to any group, other users only to a group of their own.
    let group = if rustix::process::geteuid().is_root() {
        own + 54_321
    } else {
        own
    };
    issue(Some(group));
    assert_eq!(who_reads(), (group, 0o640));
    let first = std::fs::read(&key).unwrap();
    issue(None);
    assert_ne!(std::fs::read(&key).unwrap(), first);
    assert_eq!(who_reads(), (group, 0o640));
}
