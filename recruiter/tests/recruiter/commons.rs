//! Tests of commonses over real connections: links of members, the status, and members that lie.

use crate::hosts::{Host, id};
use crate::running::{GIB, QUICK, Recruiter, get, program, wait_for};
use futures_util::{SinkExt, StreamExt};
use gleaner_harness::mutations;
use gleaner_schemas::commons::{
    BLOCK_BYTES, CommonsMessage, Hello, MemberMessage, MembersChange, Summary, VERSION, Weights,
};
use serde_json::{Value, json, to_value};
use std::process::Command;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Timeout of a message; long, since machines that run tests are busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn hello(host: u32) -> MemberMessage {
    MemberMessage::Hello(Hello {
        version: VERSION,
        generation: 1,
        address: format!("192.0.2.{host}:7445"),
        frames: 10,
        ..Hello::default()
    })
}

fn summary(epoch: u64, free_frames: u32) -> MemberMessage {
    MemberMessage::Summary(Summary {
        epoch,
        classes: vec![0; 70],
        free_frames,
        ..Summary::default()
    })
}

/// A member's side of the link.
struct Member {
    runtime: Runtime,
    socket: WebSocketStream<TcpStream>,
}

impl Member {
    fn link(recruiter: &Recruiter, name: &str, host: u32) -> Result<Self, Box<Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let address = recruiter.url.rsplit('/').next().unwrap().to_owned();
        let url = format!("ws://{address}/v1/commons/{name}/link?host_id={}", id(host));
        let linked = runtime.block_on(async {
            let stream = TcpStream::connect(&address).await.unwrap();
            tokio_tungstenite::client_async(url, stream).await
        });
        let (socket, _) = linked.map_err(Box::new)?;
        Ok(Self { runtime, socket })
    }

    fn joined(recruiter: &Recruiter, name: &str, host: u32) -> Self {
        let mut member = Self::link(recruiter, name, host).unwrap();
        member.say(&hello(host));
        member
    }

    fn say(&mut self, message: &MemberMessage) {
        self.say_text(serde_json::to_string(message).unwrap());
    }

    /// Sends a text. The recruiter may have disconnected.
    fn say_text(&mut self, text: String) {
        let _ = self.runtime.block_on(self.socket.send(Message::text(text)));
    }

    /// Next message of the recruiter; `None`: the recruiter has disconnected.
    fn hear(&mut self) -> Option<CommonsMessage> {
        loop {
            let next = async { tokio::time::timeout(PATIENCE, self.socket.next()).await };
            match self.runtime.block_on(next).expect("no message") {
                Some(Ok(Message::Text(text))) => return Some(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                Some(Ok(_)) => {}
            }
        }
    }

    /// Waits for a message of one kind; answers requests for summaries meanwhile.
    fn hear_until<T>(
        &mut self,
        free_frames: u32,
        is_it: impl Fn(&CommonsMessage) -> Option<T>,
    ) -> T {
        loop {
            let message = self.hear().expect("the recruiter has disconnected");
            if let CommonsMessage::ReportPlease(request) = message {
                self.say(&summary(request.epoch, free_frames));
            }
            if let Some(wanted) = is_it(&message) {
                return wanted;
            }
        }
    }

    fn weights(&mut self, free_frames: u32) -> Weights {
        self.hear_until(free_frames, |message| match message {
            CommonsMessage::Weights(weights) => Some(weights.clone()),
            _ => None,
        })
    }

    fn change(&mut self) -> MembersChange {
        self.hear_until(0, |message| match message {
            CommonsMessage::Members(change) => Some(change.clone()),
            _ => None,
        })
    }

    /// Reason of the recruiter for ending the link; empty if the link just ended.
    fn refusal(&mut self) -> String {
        while let Some(message) = self.hear() {
            if let CommonsMessage::Refused(refusal) = message {
                return refusal.detail;
            }
        }
        String::new()
    }
}

#[test]
fn members_learn_of_each_other_and_get_weights_within_their_hosts_memory() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let _host = Host::new(1, GIB).link(&recruiter.url);
    recruiter.ready(1);
    let mut first = Member::joined(&recruiter, "tools", 1);
    let whole = first.change();
    assert!(whole.is_complete);
    assert_eq!(whole.present[0].host_id, id(1));
    // Host 2 has no memory server, so its claims count for nothing.
    let mut second = Member::joined(&recruiter, "tools", 2);
    assert_eq!(second.change().present.len(), 2);
    assert_eq!(first.change().present[0].host_id, id(2));
    let of_first = first.weights(u32::MAX);
    assert!(of_first.own_weight <= GIB / BLOCK_BYTES);
    wait_for("weights of both", || {
        let weights = first.weights(u32::MAX);
        let own = second.weights(u32::MAX).own_weight;
        assert_eq!(own, 0);
        weights.own_weight > 0 && weights.quota_bytes == Some(GIB)
    });

    let views = recruiter.get("/v1/commons").body;
    let view = &views["commonses"][0];
    assert_eq!(view["name"], "tools");
    assert_eq!(view["members"][0]["weight_limit"], GIB / BLOCK_BYTES);
    assert_eq!(view["members"][1]["weight_limit"], 0);
    let metrics = recruiter.get("/metrics").body.to_string();
    assert!(
        metrics.contains("gleaner_recruiter_commons_members{commons=\\\"tools\\\"} 2"),
        "{metrics}"
    );
    let output = Command::new(program())
        .args(["status", "--url", &recruiter.url])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Commons tools: 2 members"), "{text}");

    drop(second);
    let gone = first.hear_until(0, |message| match message {
        CommonsMessage::Members(change) if !change.gone.is_empty() => Some(change.clone()),
        _ => None,
    });
    assert_eq!(gone.gone.len(), 1);
}

#[test]
fn a_member_that_lies_is_disconnected_with_the_reason_and_the_others_stay() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let mut honest = Member::joined(&recruiter, "tools", 1);
    honest.weights(10);
    let long = json!({"type": "summary", "epoch": 1, "classes": vec![0; 1_000_000],
        "free_frames": 0, "replaced": 0, "received": 0, "stale": 0});
    let many = json!({"type": "summary", "epoch": 1, "classes": vec![0; 70],
        "free_frames": 1_u64 << 63, "replaced": 0, "received": 0, "stale": 0});
    for (texts, reason) in [
        (vec![to_value(hello(2)).unwrap(), long], "link broke"),
        (vec![to_value(hello(2)).unwrap(), many], "cannot be read"),
        (vec![to_value(summary(1, 1)).unwrap()], "hello"),
        (
            vec![
                to_value(hello(2)).unwrap(),
                to_value(summary(1, 1)).unwrap(),
            ],
            "epoch 1",
        ),
        (vec![json!({"type": 7})], "cannot be read"),
    ] {
        let mut liar = Member::link(&recruiter, "tools", 2).unwrap();
        for text in texts {
            liar.say_text(text.to_string());
        }
        let said = liar.refusal();
        // A connection with unread bytes may be reset before the reason arrives.
        let is_reset = reason == "link broke" && said.is_empty();
        assert!(said.contains(reason) || is_reset, "{reason}: {said}");
        assert!(said.len() < 400, "{said}");
    }
    honest.weights(10);
}

#[test]
fn mutated_messages_of_a_member_leave_the_others_alone() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let mut honest = Member::joined(&recruiter, "tools", 1);
    honest.weights(10);
    let first = to_value(hello(2)).unwrap();
    let of_hello = mutations(&first)
        .into_iter()
        .map(|(name, text)| (name, vec![text]));
    let said = to_value(summary(1, 1)).unwrap();
    let of_summary = mutations(&said).into_iter();
    let of_summary = of_summary.map(|(name, text)| (name, vec![first.clone(), text]));
    for (name, texts) in of_hello.chain(of_summary) {
        let mut liar = Member::link(&recruiter, "tools", 2).unwrap();
        texts
            .iter()
            .map(Value::to_string)
            .for_each(|text| liar.say_text(text));
        drop(liar);
        let health = recruiter.get("/healthz").status;
        assert_eq!(health, 200, "{name}");
    }
    let epoch = honest.weights(10).epoch;
    assert!(honest.weights(10).epoch > epoch);
    assert_eq!(
        recruiter.get("/v1/commons").body["commonses"][0]["members"][0]["host_id"],
        id(1)
    );
}

#[test]
fn a_wrong_name_or_host_is_refused_before_the_link_begins() {
    let folder = tempfile::tempdir().unwrap();
    let recruiter = Recruiter::start(folder.path(), QUICK);
    let status = |name: &str| match Member::link(&recruiter, name, 1) {
        Ok(_) => 101,
        Err(error) => match *error {
            Error::Http(answer) => answer.status().as_u16(),
            other => panic!("{other}"),
        },
    };
    assert_eq!(status("tools"), 101);
    assert_eq!(status(".hidden"), 400);
    assert_eq!(status("a%2Fb"), 400);
    assert_eq!(status(&"x".repeat(65)), 400);
    let plain = crate::running::agent();
    let at = |query: &str| {
        get(
            &plain,
            &format!("{}/v1/commons/tools/link{query}", recruiter.url),
        )
    };
    assert_eq!(at("").status, 400);
    assert_eq!(at("?host_id=7").status, 400);
    assert_eq!(at(&format!("?host_id={}", id(1))).status, 426);
}
