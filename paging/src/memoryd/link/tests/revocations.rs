//! Revocation lists: received from any recruiter, verified, stored, and applied to recruiters.

use super::certificates::certificates;
use super::*;
use gleaner_schemas::lending::Revocations;
use gleaner_trust::{Authority, Role, ServerPaths, ServerTrust};

/// A recruiter that uses TLS; its certificate is at the path `certificate`.
struct Secret {
    acceptor: tokio_rustls::TlsAcceptor,
    listener: TcpListener,
    url: String,
    certificate: std::path::PathBuf,
}

impl Secret {
    async fn start(folder: &Path, name: &str, authority: &Authority) -> Self {
        let file = |end: &str| folder.join(format!("{name}.{end}"));
        let names = vec!["127.0.0.1".to_owned()];
        let issued = authority.issue(&Role::Recruiter { names }, 30).unwrap();
        issued.write(&file("crt"), &file("key")).unwrap();
        let trust = ServerTrust::load(&ServerPaths {
            certificate: file("crt"),
            key: file("key"),
            authority: authority.certificate_path(),
            revocation_list: None,
        });
        let (listener, url) = listen().await;
        Self {
            acceptor: trust.unwrap().config().into(),
            listener,
            url: url.replace("http://", "https://"),
            certificate: file("crt"),
        }
    }

    async fn accept(
        &self,
    ) -> std::io::Result<WebSocketStream<tokio_rustls::server::TlsStream<TcpStream>>> {
        let accepted = tokio::time::timeout(PATIENCE, self.listener.accept()).await;
        let (stream, _) = accepted.expect("nobody came").unwrap();
        let stream = self.acceptor.accept(stream).await?;
        accept_async(stream).await.map_err(std::io::Error::other)
    }
}

#[tokio::test]
async fn lists_hold_whoever_brings_them_and_a_revoked_recruiter_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let (_, client, authority) = certificates(folder.path());
    let good = Secret::start(folder.path(), "good", &authority).await;
    let bad = Secret::start(folder.path(), "bad", &authority).await;
    let settings = Settings {
        certificates: client,
        ..settings(&[&good.url, &bad.url], Duration::from_secs(30))
    };
    let state = folder.path().join("state");
    let mut kept = None;
    let core = Core::start_with(&settings, |links| {
        let entrance = entrance(&settings, &state, links);
        kept = Some(entrance.clone());
        entrance
    });
    let kept = kept.unwrap();
    let (mut one, two) = (good.accept().await.unwrap(), bad.accept().await.unwrap());
    let mut send = async |pem: String| {
        let text =
            serde_json::to_string(&RecruiterMessage::Revocations(Revocations { pem })).unwrap();
        one.send(Message::Text(text.into())).await.unwrap();
        // A rejected message does not end the link: later messages are handled in order.
        let asked = RequestKind::Release {
            client: None,
            lease_id: "k".to_owned(),
        };
        let request = RecruiterMessage::Request(Request {
            request_id: 1,
            asked,
        });
        let text = serde_json::to_string(&request).unwrap();
        one.send(Message::Text(text.into())).await.unwrap();
        assert_eq!(core.request(), (0, 1));
    };
    let older = std::fs::read_to_string(authority.revoked_path()).unwrap();
    let forged = Authority::init(&folder.path().join("forger"), "test", 30).unwrap();
    let forged = std::fs::read_to_string(forged.revoked_path()).unwrap();
    for wrong in [
        String::new(),
        forged,
        older.repeat(1 + (1 << 20) / older.len()),
    ] {
        send(wrong).await;
        assert!(kept.lists().is_empty());
    }
    let revoked = authority.revoke(bad.certificate.to_str().unwrap());
    assert_eq!(revoked.unwrap().len(), 1);
    let list = std::fs::read_to_string(authority.revoked_path()).unwrap();
    let text =
        serde_json::to_string(&RecruiterMessage::Revocations(Revocations { pem: list })).unwrap();
    one.send(Message::Text(text.into())).await.unwrap();
    let begin = Instant::now();
    loop {
        match core.told() {
            CoreMessage::Linked { link, is_up } if (link, is_up) == (1, false) => break,
            told => assert!(begin.elapsed() < PATIENCE, "{told:?}"),
        }
    }
    drop(two);
    assert!(bad.accept().await.is_err(), "it is not linked with again");
    // The other link stays up, and an older list changes nothing.
    ask(&mut one, 7).await;
    assert_eq!(core.request(), (0, 7));
    let held = kept.lists();
    assert_eq!(held.len(), 1);
    kept.receive(&older).unwrap();
    assert_eq!(kept.lists(), held);
    // Lists survive a restart, and are verified again.
    let (links, _ends) = Links::new(&[]).unwrap();
    let again = entrance(&settings, &state, &links);
    assert_eq!(again.lists(), held);
    assert!(matches!(
        links.take_message(),
        Some(CoreMessage::Revocations { held: Some(held), .. }) if held.certificates_count == 1
    ));
    core.end();
}
