//! A memory server that lies to the clerk: in its greeting, about its export, and in its answers.

use super::{Clerk, NO_HANG, QUICK, up};
use crate::host::is_early;
use crate::hostile::MOST_GROWN_BYTES;
use crate::hostile::fields::{self, Message};
use gleaner_harness::{peak_bytes, wait_for};
use gleaner_paging::nbd::wire::{
    Command, GREETING, REPLY_MAGIC, Request, SIMPLE_REPLY_MAGIC, info, option, reply,
};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Size of the export that the liar reports.
const SIZE: u64 = 64 << 20;
/// Number of well-formed answers between two lies.
const HONEST_ANSWERS: usize = 20;
/// Number of liars at one time. Several save time, since the clerk reconnects to a failing server less and
/// less often.
const LIARS: usize = 24;
const TURN: Duration = Duration::from_millis(50);

fn answer(kind: u32, data: Message) -> Message {
    let length = data
        .iter()
        .map(|(_, field)| field.len() as u32)
        .sum::<u32>();
    let mut message = vec![
        ("reply magic", REPLY_MAGIC.to_be_bytes().to_vec()),
        ("option", option::GO.to_be_bytes().to_vec()),
        ("kind", kind.to_be_bytes().to_vec()),
        ("length", length.to_be_bytes().to_vec()),
    ];
    message.extend(data);
    message
}

/// Every message of a server's handshake, in order. If you add a message to the handshake, add it here.
fn handshake() -> Vec<Message> {
    vec![
        vec![
            ("NBDMAGIC", GREETING[0].to_be_bytes().to_vec()),
            ("IHAVEOPT", GREETING[1].to_be_bytes().to_vec()),
            ("flags", 3_u16.to_be_bytes().to_vec()),
        ],
        answer(
            reply::INFO,
            vec![
                ("fact", info::EXPORT.to_be_bytes().to_vec()),
                ("size", SIZE.to_be_bytes().to_vec()),
                ("export flags", 1_u16.to_be_bytes().to_vec()),
            ],
        ),
        answer(
            reply::INFO,
            vec![
                ("fact", info::NAME.to_be_bytes().to_vec()),
                ("name", b"liar@1".to_vec()),
            ],
        ),
        answer(reply::ACK, Vec::new()),
    ]
}

/// Returns all handshakes that differ from an honest one in a field, or in the order of messages.
fn handshakes() -> Vec<Vec<u8>> {
    let messages = handshake();
    let sent: Vec<Vec<u8>> = messages.iter().map(fields::bytes).collect();
    let mut all = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for (_, mutated) in fields::mutations(message) {
            all.push([sent[..at].concat(), mutated, sent[at + 1..].concat()].concat());
        }
    }
    for order in fields::orders(messages.len()) {
        all.push(order.iter().flat_map(|at| sent[*at].clone()).collect());
    }
    // Two more handshakes: one repeats a property many times; the other refuses with a long text of terminal
    // control codes.
    all.push([sent[0].clone(), sent[1].repeat(10_000)].concat());
    let refusal = answer(reply::ERR_UNKNOWN, vec![("text", b"\x1b[2J\n".repeat(500))]);
    all.push([sent[0].clone(), fields::bytes(&refusal)].concat());
    all
}

/// Starts a server that sends the next of these greetings to each connection and closes it.
fn greets(all: Vec<Vec<u8>>, told: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nbd://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for bytes in all {
            let Ok((mut stream, _)) = listener.accept() else {
                return;
            };
            let _ = stream.write_all(&bytes); // the clerk may close the connection
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.set_read_timeout(Some(NO_HANG));
            let _ = io::copy(&mut stream, &mut io::sink());
            told.fetch_add(1, Ordering::Relaxed);
        }
    });
    url
}

/// Returns a reply to a request; for a read, with the page.
fn reply_to(request: &Request, page: Option<&[u8]>) -> Message {
    let mut message = vec![
        ("reply magic", SIMPLE_REPLY_MAGIC.to_be_bytes().to_vec()),
        ("error", 0_u32.to_be_bytes().to_vec()),
        ("cookie", request.cookie.to_be_bytes().to_vec()),
    ];
    if let Some(page) = page {
        message.push(("data", page.to_vec()));
    }
    message
}

/// A server that alternates: it answers correctly for a while, and then sends one mutated answer.
struct Server {
    url: String,
    /// Number of mutated answers sent.
    told: Arc<AtomicUsize>,
    has_ended: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("nbd://{}", listener.local_addr().unwrap());
        let (told, has_ended) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
        let (telling, ended) = (told.clone(), has_ended.clone());
        std::thread::spawn(move || {
            let mut pages = BTreeMap::new();
            for stream in listener.incoming().flatten() {
                let _ = serve(stream, &mut pages, &telling, &ended); // the clerk closes it
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        Self {
            url,
            told,
            has_ended,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

fn fill(stream: &mut TcpStream, into: &mut [u8], has_ended: &AtomicBool) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        match stream.read(&mut into[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(e) if is_early(&e) && !has_ended.load(Ordering::Relaxed) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn serve(
    mut stream: TcpStream,
    pages: &mut BTreeMap<u64, Vec<u8>>,
    told: &AtomicUsize,
    has_ended: &AtomicBool,
) -> io::Result<()> {
    stream.set_read_timeout(Some(TURN))?;
    stream.set_write_timeout(Some(NO_HANG))?;
    let hello: Vec<u8> = handshake().iter().flat_map(fields::bytes).collect();
    stream.write_all(&hello)?;
    // Reads flags, and an option with its data.
    let mut head = [0; 4 + 16];
    fill(&mut stream, &mut head, has_ended)?;
    let bytes = u32::from_be_bytes([head[16], head[17], head[18], head[19]]);
    fill(&mut stream, &mut vec![0; bytes as usize], has_ended)?;
    let mut answers = 0;
    loop {
        let mut head = [0; Request::BYTES];
        fill(&mut stream, &mut head, has_ended)?;
        let request = Request::decode(&head).ok_or(io::ErrorKind::InvalidData)?;
        let mut page = vec![0; request.bytes as usize];
        let answer = match request.command {
            Command::Write => {
                fill(&mut stream, &mut page, has_ended)?;
                pages.insert(request.offset, page);
                reply_to(&request, None)
            }
            Command::Read => {
                let stored = pages.get(&request.offset).unwrap_or(&page);
                reply_to(&request, Some(stored))
            }
            _ => reply_to(&request, None),
        };
        answers += 1;
        if answers % HONEST_ANSWERS > 0 {
            stream.write_all(&fields::bytes(&answer))?;
            continue;
        }
        let lies = fields::mutations(&answer);
        let number = told.fetch_add(1, Ordering::Relaxed);
        let (_, lie) = &lies[number % lies.len()];
        stream.write_all(lie)?;
    }
}

/// Returns the number of mutations of a reply without a page plus those of a reply with a page.
fn lies_count() -> usize {
    let request = Request {
        flags: 0,
        command: Command::Read,
        cookie: 1,
        offset: 0,
        bytes: 4096,
    };
    [None, Some(&[0; 4096][..])]
        .map(|page| fields::mutations(&reply_to(&request, page)).len())
        .iter()
        .sum()
}

#[test]
fn mutated_greetings_of_a_server_end_its_connection_alone() {
    let handshakes = handshakes();
    let told = Arc::<AtomicUsize>::default();
    let count = handshakes.len();
    println!("{count} greetings");
    let urls = (0..LIARS).map(|number| {
        let own = handshakes.iter().skip(number).step_by(LIARS);
        greets(own.cloned().collect(), told.clone())
    });
    let urls: Vec<String> = urls.collect();
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let mut more = vec!["--disk-folder", &disk];
    more.extend(urls.iter().flat_map(|url| ["--server", url]));
    let mut clerk = Clerk::start_with(1, &more, QUICK);
    wait_for("the honest server", || up(&clerk.status()) >= 1);
    let before_bytes = peak_bytes(clerk.running.id());
    let outcome = clerk.under_load(41, |clerk| {
        wait_for("all greetings", || {
            assert!(clerk.status()["counters"].is_object());
            told.load(Ordering::Relaxed) == count
        });
    });
    assert_eq!(outcome.errors, 0, "{outcome:?}");
    let grown = peak_bytes(clerk.running.id()).saturating_sub(before_bytes);
    assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
    println!("{grown} bytes more, {outcome:?}");
}

#[test]
fn mutated_answers_of_a_server_lose_and_change_no_page() {
    let liar = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().display().to_string();
    let more = ["--disk-folder", &disk, "--server", &liar.url];
    let mut clerk = Clerk::start_with(1, &more, QUICK);
    let before_bytes = peak_bytes(clerk.running.id());
    let wanted = 2 * lies_count();
    let outcome = clerk.under_load(42, |_| {
        wait_for("all lies", || liar.told.load(Ordering::Relaxed) >= wanted);
    });
    let status = clerk.status();
    assert_eq!(outcome.errors, 0, "{outcome:?}, {status}");
    assert_eq!(status["counters"]["lost_pages_count"], 0, "{status}");
    let grown = peak_bytes(clerk.running.id()).saturating_sub(before_bytes);
    assert!(grown < MOST_GROWN_BYTES, "{grown} bytes more");
    println!("{grown} bytes more, {outcome:?}, {}", status["counters"]);
}
