//! A lying client of a memory server's port for pages, and of the clerk's device. It sends every message of a
//! conversation with mutated fields, out of order, omitted and repeated.

use super::fields::{self, Message};
use super::stage::Stage;
use crate::host::MIB;
use gleaner_harness::PATIENCE;
use gleaner_paging::nbd::export_name;
use gleaner_paging::nbd::wire::{
    Command, GREETING, OPTION_MAGIC, REQUEST_MAGIC, Request, flag, info, option,
};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

const PAGE: usize = 4096;
/// Offset in the liar's requests; a mutation may change it.
const OFFSET: u64 = 32 * PAGE as u64;

/// A server of pages, as its clients reach it.
#[derive(Clone)]
pub(crate) enum Victim {
    Tcp(String),
    Unix(PathBuf),
}

/// A connection to the server.
pub(crate) trait Stream: Read + Write + Send {
    fn ends_writing(&self);
}

impl Stream for TcpStream {
    fn ends_writing(&self) {
        let _ = self.shutdown(Shutdown::Write); // the server may have closed the connection
    }
}

impl Stream for UnixStream {
    fn ends_writing(&self) {
        let _ = self.shutdown(Shutdown::Write);
    }
}

impl Victim {
    pub(crate) fn unix(path: &Path) -> Self {
        Self::Unix(path.to_owned())
    }

    pub(crate) fn connect(&self) -> Box<dyn Stream> {
        match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                Box::new(stream)
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path).unwrap();
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                Box::new(stream)
            }
        }
    }

    /// Sends `bytes` and closes the sending half. Whatever the bytes are, the server must end the connection.
    #[track_caller]
    pub(crate) fn hears(&self, name: &str, bytes: &[u8]) {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes); // the server may close the connection
        stream.ends_writing();
        let mut scrap = vec![0; 64 << 10];
        loop {
            match stream.read(&mut scrap) {
                Ok(0) => return,
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    let is_over =
                        matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
                    assert!(is_over, "{name}: neither an answer nor the end: {e}");
                    return;
                }
            }
        }
    }

    /// Connects and completes the handshake. The server's answers are read, so that transmission begins.
    pub(crate) fn going(&self, export: &str) -> Box<dyn Stream> {
        let mut stream = self.connect();
        let hello = [flags(), go(export, &[])].map(|message| fields::bytes(&message));
        stream.write_all(&hello.concat()).unwrap();
        // Length of the answers: greeting; one property, with size and flags; end of the replies.
        stream.read_exact(&mut [0; 18 + 20 + 12 + 20]).unwrap();
        stream
    }
}

fn flags() -> Message {
    vec![("client flags", 3_u32.to_be_bytes().to_vec())]
}

fn an_option(number: u32, data: Message) -> Message {
    let length = data
        .iter()
        .map(|(_, field)| field.len() as u32)
        .sum::<u32>();
    let mut message = vec![
        ("option magic", OPTION_MAGIC.to_be_bytes().to_vec()),
        ("option", number.to_be_bytes().to_vec()),
        ("option length", length.to_be_bytes().to_vec()),
    ];
    message.extend(data);
    message
}

fn asking(number: u32, export: &str, kinds: &[u16]) -> Message {
    an_option(
        number,
        vec![
            ("name length", (export.len() as u32).to_be_bytes().to_vec()),
            ("name", export.as_bytes().to_vec()),
            (
                "number of kinds",
                (kinds.len() as u16).to_be_bytes().to_vec(),
            ),
            (
                "kinds",
                kinds.iter().flat_map(|kind| kind.to_be_bytes()).collect(),
            ),
        ],
    )
}

fn go(export: &str, kinds: &[u16]) -> Message {
    asking(option::GO, export, kinds)
}

fn request(command: u16, flags: u16, bytes: u32, data: Vec<u8>) -> Message {
    vec![
        ("request magic", REQUEST_MAGIC.to_be_bytes().to_vec()),
        ("flags", flags.to_be_bytes().to_vec()),
        ("command", command.to_be_bytes().to_vec()),
        ("cookie", 7_u64.to_be_bytes().to_vec()),
        ("offset", OFFSET.to_be_bytes().to_vec()),
        ("length", bytes.to_be_bytes().to_vec()),
        ("data", data),
    ]
}

/// Every message that a client may send, in order. If you add a message to the protocol, add it here.
fn conversation(export: &str) -> Vec<Message> {
    let page = PAGE as u32;
    let plain = |command| request(command, 0, page, Vec::new());
    let mut flush = request(3, 0, 0, Vec::new());
    flush[4].1 = vec![0; 8];
    vec![
        flags(),
        an_option(option::LIST, Vec::new()),
        an_option(option::STARTTLS, Vec::new()),
        asking(option::INFO, export, &[info::NAME, info::BLOCK_SIZE]),
        go(export, &[info::DESCRIPTION]),
        plain(0),
        request(1, flag::FUA, page, vec![0x5a; PAGE]),
        flush,
        plain(4),
        plain(5),
        plain(6),
        request(2, 0, 0, Vec::new()),
    ]
}

/// Returns all conversations that differ from an honest one in a field, or in the order of messages.
pub(crate) fn attacks(export: &str) -> Vec<(String, Vec<u8>)> {
    let messages = conversation(export);
    let sent: Vec<Vec<u8>> = messages.iter().map(fields::bytes).collect();
    let mut attacks = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (name, mutated) in fields::mutations(message) {
            let parts = [sent[..at].concat(), mutated, sent[at + 1..].concat()];
            attacks.push((format!("{at}: {name}"), parts.concat()));
        }
    }
    for order in fields::orders(messages.len()) {
        let parts: Vec<u8> = order.iter().flat_map(|at| sent[*at].clone()).collect();
        attacks.push((format!("{order:?}"), parts));
    }
    // Conversations with the old option for exports, and one that consists of a server's greetings.
    let by_name = an_option(
        option::EXPORT_NAME,
        vec![("name", export.as_bytes().to_vec())],
    );
    for (name, mutated) in fields::mutations(&by_name) {
        let parts = [sent[0].clone(), mutated, sent[5..].concat()];
        attacks.push((format!("by name: {name}"), parts.concat()));
    }
    let greeting: Vec<u8> = GREETING
        .iter()
        .flat_map(|word| word.to_be_bytes())
        .collect();
    attacks.push(("a server's greeting".to_owned(), greeting.repeat(1000)));
    // A conversation of many options, each of which requests as many properties as fit.
    let curious = fields::bytes(&asking(option::INFO, export, &[info::DESCRIPTION; 2000]));
    attacks.push((
        "curious".to_owned(),
        [sent[0].clone(), curious.repeat(100)].concat(),
    ));
    attacks
}

/// Returns `count` equal requests to send at once; nobody reads their answers.
pub(crate) fn greedy(command: Command, bytes: u32, count: usize) -> Vec<u8> {
    let request = Request {
        flags: 0,
        command,
        cookie: 1,
        offset: 0,
        bytes,
    };
    request.encode().repeat(count)
}

/// Runs all attacks, four conversations at one time. Calls `meanwhile` until all have ended.
pub(crate) fn while_attacked(
    victim: &Victim,
    attacks: &[(String, Vec<u8>)],
    mut meanwhile: impl FnMut(),
) {
    println!("{} conversations", attacks.len());
    std::thread::scope(|scope| {
        let attacking: Vec<_> = (0..4)
            .map(|number| {
                let own = attacks.iter().skip(number).step_by(4);
                scope.spawn(move || own.for_each(|(name, bytes)| victim.hears(name, bytes)))
            })
            .collect();
        while attacking.iter().any(|attack| !attack.is_finished()) {
            meanwhile();
        }
        attacking
            .into_iter()
            .for_each(|attack| attack.join().unwrap());
    });
}

#[test]
fn mutated_messages_of_a_client_are_answered_or_end_its_connection_alone() {
    let mut stage = Stage::start(&[]);
    let lease = stage.honest.lease("liar", "k", 8 * MIB);
    let export = export_name(&lease.lease_id, lease.generation);
    let victim = Victim::Tcp(stage.honest.heard().latest.address.unwrap());
    let attacks = attacks(&export);
    while_attacked(&victim, &attacks, || stage.is_served());
    stage.stands();
}

#[test]
fn answers_that_a_client_does_not_take_take_no_memory() {
    let mut stage = Stage::start(&[]);
    let lease = stage.honest.lease("liar", "k", 32 * MIB);
    let export = export_name(&lease.lease_id, lease.generation);
    let victim = Victim::Tcp(stage.honest.heard().latest.address.unwrap());
    let mut held = Vec::new();
    for command in [
        Command::Read,
        Command::Cache,
        Command::Trim,
        Command::WriteZeroes,
    ] {
        for _ in 0..4 {
            let mut stream = victim.going(&export);
            stream.write_all(&greedy(command, 32 << 20, 2000)).unwrap();
            held.push(stream);
        }
    }
    // This write announces more bytes than are sent.
    let mut stream = victim.going(&export);
    stream
        .write_all(&greedy(Command::Write, 32 << 20, 1))
        .unwrap();
    held.push(stream);
    for _ in 0..20 {
        stage.is_served();
    }
    drop(held);
    stage.stands();
}
