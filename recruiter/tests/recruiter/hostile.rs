//! Tests a memory server that lies. Its messages take little of the recruiter's memory, and its neighbours
//! are served meanwhile.

use crate::hosts::{Host, id};
use crate::running::{MIB, QUICK, Recruiter, asked};
use futures_util::{SinkExt, StreamExt};
use gleaner_harness::{mutations, peak_bytes};
use gleaner_schemas::lending::{
    Announcement, Answer, HostMessage, HostQuota, Lease, Outcome, RecruiterMessage, Refusal,
    VERSION,
};
use serde_json::{Value, to_value};
use std::time::Duration;
use tokio_tungstenite::tungstenite::Message;

fn announcement(host: u32) -> Announcement {
    Announcement {
        version: VERSION,
        memoryd_version: "test".into(),
        incarnation: "hostile".into(),
        quota: HostQuota {
            host_id: id(host),
            quota_bytes: 64 * MIB,
            unleased_bytes: 64 * MIB,
            ..HostQuota::default()
        },
        address: Some("127.0.0.1:1".into()),
        ..Announcement::default()
    }
}

/// An answer that grants a lease nobody requested.
fn unasked(request_id: u64, text_bytes: usize) -> HostMessage {
    let lease = Lease {
        lease_id: format!("{request_id:032x}"),
        generation: 1,
        client: "c".repeat(text_bytes),
        key: "k".repeat(text_bytes),
        granted_bytes: MIB,
        remaining_bytes: MIB,
        expires_in_ms: i64::MAX,
    };
    HostMessage::Answer(Box::new(Answer {
        request_id,
        outcome: Outcome::Granted { lease },
        unleased_bytes: 0,
        requests_per_s: 0.0,
    }))
}

/// Sends these messages over a link of host `number`. If the host was disconnected, returns the reason.
fn say(recruiter: &Recruiter, number: u32, messages: &[HostMessage]) -> Option<Refusal> {
    let texts = messages.iter().map(|m| serde_json::to_string(m).unwrap());
    say_texts(recruiter, number, texts)
}

/// Sends texts as [`say`] does; the texts need not be valid messages.
fn say_texts(
    recruiter: &Recruiter,
    number: u32,
    texts: impl IntoIterator<Item = String>,
) -> Option<Refusal> {
    let address = recruiter.url.rsplit('/').next().unwrap().to_owned();
    let url = format!("ws://{address}/v1/hosts/{}/link", id(number));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        for text in texts {
            if socket.send(Message::text(text)).await.is_err() {
                break; // the recruiter has disconnected
            }
        }
        // An honest host stays linked, and the answer to a ping shows that the recruiter has read all texts.
        let _ = socket.send(Message::Ping(Vec::new().into())).await;
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(60), socket.next()).await;
            match heard.unwrap() {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(RecruiterMessage::Refused(refusal)) = serde_json::from_str(&text) {
                        return Some(refusal);
                    }
                }
                Some(Ok(Message::Pong(_))) => return None,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Some(Refusal::default()),
            }
        }
    })
}

#[test]
fn answers_that_nobody_asked_for_change_nothing_and_end_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let honest = Host::new(1, 64 * MIB).link(&recruiter.url);
    recruiter.ready(1);
    let before = peak_bytes(recruiter.id());
    // The host opens 32 links and sends 2 MiB over each. These 64 MiB must not stay in memory.
    for number in 0..32 {
        let said = say(
            &recruiter,
            2,
            &[
                HostMessage::Announcement(Box::new(announcement(2))),
                unasked(1 + number, 1 << 20),
                unasked(100 + number, 1 << 20),
            ],
        );
        let said = said.expect("a host that answers unasked stays linked");
        assert!(said.detail.len() < 400, "{}", said.detail);
    }
    let grown = peak_bytes(recruiter.id()).saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes more");
    let leases = recruiter.get("/v1/leases").body.to_string();
    assert!(
        !leases.contains("ccc"),
        "{}",
        &leases[..leases.len().min(400)]
    );
    // The other host is still asked for leases.
    let lease = recruiter.lease("a", &asked(MIB, "k"));
    assert_eq!(lease.status, 201, "{}", lease.body);
    assert_eq!(honest.leases_count(), 1);
}

#[test]
fn announcements_with_long_texts_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let long = "x".repeat(1 << 20);
    let mut said = announcement(2);
    said.memoryd_version = long;
    let refused = say(&recruiter, 2, &[HostMessage::Announcement(Box::new(said))]);
    let refused = refused.expect("it is refused");
    assert!(
        refused.detail.contains("version of 1048576 bytes"),
        "{}",
        refused.detail
    );
    let good = HostMessage::Announcement(Box::new(announcement(2)));
    assert_eq!(say(&recruiter, 2, &[good]), None);
}

/// Messages of an honest host, in order: an announcement of a lease, and an answer.
fn conversation() -> [Value; 2] {
    let mut said = announcement(2);
    said.leases = vec![Lease {
        lease_id: "1".repeat(32),
        generation: 1,
        client: "c".into(),
        key: "k".into(),
        granted_bytes: 2 * MIB,
        remaining_bytes: 2 * MIB,
        expires_in_ms: 60_000,
    }];
    said.quota.outlook = vec![Default::default()];
    let answer = Answer {
        request_id: 1,
        outcome: Outcome::Refused(Refusal::default()),
        unleased_bytes: 0,
        requests_per_s: 0.0,
    };
    [
        to_value(HostMessage::Announcement(Box::new(said))).unwrap(),
        to_value(HostMessage::Answer(Box::new(answer))).unwrap(),
    ]
}

#[test]
fn mutated_messages_of_a_host_leave_its_neighbours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let honest = Host::new(1, 64 * MIB).link(&recruiter.url);
    recruiter.ready(1);
    let lease = recruiter.lease("a", &asked(MIB, "before"));
    assert_eq!(lease.status, 201, "{}", lease.body);
    let before = peak_bytes(recruiter.id());
    let [announcement, answer] = conversation();
    let unasked = mutations(&answer).into_iter();
    let first = mutations(&announcement).into_iter();
    let first = first.map(|(name, mutated)| (name, vec![mutated]));
    let second = unasked.map(|(name, mutated)| (name, vec![announcement.clone(), mutated]));
    for (name, messages) in first.chain(second) {
        let texts = messages.iter().map(Value::to_string);
        if let Some(refused) = say_texts(&recruiter, 2, texts) {
            assert!(refused.detail.len() < 400, "{name}: {}", refused.detail);
        }
    }
    // The messages are in the wrong order or repeated, or the host disconnects in between.
    let texts = |order: &[&Value]| -> Vec<String> { order.iter().map(|m| m.to_string()).collect() };
    let (a, b) = (&announcement, &answer);
    for order in [&[b, a][..], &[b], &[a, a, a], &[a, b, b], &[]] {
        say_texts(&recruiter, 2, texts(order));
    }
    let grown = peak_bytes(recruiter.id()).saturating_sub(before);
    assert!(grown < 48 << 20, "{grown} bytes more");
    // The last messages of the lying host had a limited length, and the neighbour's lease is unchanged.
    let found = recruiter.get("/v1/hosts").body.to_string();
    assert!(found.len() < 20_000, "{} bytes of hosts", found.len());
    let lease = recruiter.lease("a", &asked(MIB, "after"));
    assert!(matches!(lease.status, 200 | 201), "{}", lease.body);
    assert!(honest.leases_count() >= 1);
}
