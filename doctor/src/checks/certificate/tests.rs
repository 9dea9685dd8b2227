use super::*;

fn host() -> Files {
    Files::Host(ClientPaths {
        certificate: "/s/host.pem".into(),
        key: "/s/host.pem".into(),
        authority: "/s/authority.crt".into(),
    })
}

fn server() -> Files {
    Files::Server(ServerPaths {
        certificate: "/p/c.crt".into(),
        key: "/p/c.key".into(),
        authority: "/p/a.crt".into(),
        revocation_list: None,
    })
}

#[test]
fn certificates_are_judged_by_their_dates_and_readers() {
    let now = SystemTime::UNIX_EPOCH + DAY * 20_000;
    let dates = |from: u32, until: u32| {
        Some(Dates {
            from: now - DAY * from,
            until: now + DAY * until,
        })
    };
    let ended = Some(Dates {
        from: now - DAY * 90,
        until: now - DAY,
    });
    let node = Node {
        uid: 0,
        gid: 0,
        mode: 0o600,
        is_folder: false,
    };
    let good = CertificateFacts {
        dates: dates(10, 80),
        authority: dates(10, 3000),
        key_mode: Some(0o600),
        ..CertificateFacts::default()
    };
    for (files, found, messages) in [
        (host(), good.clone(), vec![]),
        (
            host(),
            CertificateFacts {
                dates: dates(70, 20),
                ..good.clone()
            },
            vec![Message::CertificateEnds],
        ),
        (
            server(),
            CertificateFacts {
                dates: dates(300, 65),
                ..good.clone()
            },
            vec![],
        ),
        (
            server(),
            CertificateFacts {
                dates: dates(340, 25),
                ..good.clone()
            },
            vec![Message::CertificateEnds],
        ),
        (
            host(),
            CertificateFacts {
                dates: ended,
                ..good.clone()
            },
            vec![Message::CertificateExpired],
        ),
        (
            host(),
            CertificateFacts {
                dates: Some(Dates {
                    from: now + DAY,
                    until: now + DAY * 2,
                }),
                ..good.clone()
            },
            vec![Message::CertificateEarly],
        ),
        (
            host(),
            CertificateFacts {
                dates: None,
                ..good.clone()
            },
            vec![Message::CertificateWrong],
        ),
        (
            host(),
            CertificateFacts {
                trouble: Some("x".to_owned()),
                ..good.clone()
            },
            vec![Message::CertificateWrong],
        ),
        (
            host(),
            CertificateFacts {
                missing: Some("/x".into()),
                ..good.clone()
            },
            vec![Message::CertificateMissing],
        ),
        (
            host(),
            CertificateFacts {
                unseen: Some("/x".into()),
                ..good.clone()
            },
            vec![Message::CertificateUnseen],
        ),
        (
            host(),
            CertificateFacts {
                closed: Some(("/x".into(), node)),
                ..good.clone()
            },
            vec![Message::CertificateUnread],
        ),
        (
            host(),
            CertificateFacts {
                key_mode: Some(0o644),
                ..good.clone()
            },
            vec![Message::KeyOpen],
        ),
        (
            host(),
            CertificateFacts {
                key_mode: Some(0o640),
                ..good.clone()
            },
            vec![],
        ),
        (
            host(),
            CertificateFacts {
                authority: dates(3000, 100),
                ..good.clone()
            },
            vec![Message::AuthorityEnds],
        ),
        (
            host(),
            CertificateFacts {
                authority: ended,
                ..good.clone()
            },
            vec![Message::AuthorityExpired],
        ),
        (
            server(),
            CertificateFacts {
                revoked: Some((now - DAY, Some(now + DAY))),
                ..good.clone()
            },
            vec![],
        ),
        (
            server(),
            CertificateFacts {
                revoked: Some((now - DAY * 9, Some(now - DAY))),
                ..good.clone()
            },
            vec![Message::RevocationsOld],
        ),
    ] {
        let user = User {
            name: "gleaner".to_owned(),
            ..User::default()
        };
        let findings = judge(&found, &files, &user, Some("renew"), now);
        let said: Vec<_> = findings.iter().filter_map(|f| f.message).collect();
        assert_eq!(said, messages, "{found:?}");
    }
}

#[test]
fn the_authoritys_key_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let set = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap()
    };
    assert_eq!(judge_authority_folder(&folder.path().join("none")), None);
    let key = folder.path().join("authority.key");
    std::fs::write(&key, "").unwrap();
    for (folder_mode, key_mode, remedy) in [
        (0o700, 0o600, None),
        (0o700, 0o640, Some("authority.key")),
        (0o711, 0o600, None),
        (0o777, 0o600, Some("0755")),
    ] {
        set(folder.path(), folder_mode);
        set(&key, key_mode);
        let finding = judge_authority_folder(folder.path());
        assert_eq!(finding.is_some(), remedy.is_some());
        assert!(remedy.is_none_or(|remedy| finding.unwrap().remedy.unwrap().contains(remedy)));
    }
}
