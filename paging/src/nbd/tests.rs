//! A client made by the tests talks to the server's side over a pair of sockets.

use super::channel::{Channel, PlainStream};
use super::negotiate::{Outcome, negotiate};
use super::transmit::{ROOM_BYTES, transmit};
use super::wire::*;
use super::*;
use crate::store::{Options, Store};
use gleaner_daemon::shares::Shares;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

const MIB: usize = 1 << 20;
const SIZE: usize = 4 * MIB;
const GENERATION: u64 = 7;

fn leases() -> Leases {
    let options = Options {
        wants_huge: false,
        wants_locked: false,
    };
    let store = Arc::new(Store::new(SIZE as u64, GENERATION, options).unwrap());
    store.open("a", "client", SIZE as u64);
    Leases {
        store,
        default: Some(("a".to_owned(), GENERATION)),
        shares: Arc::new(Shares::whole(256)),
    }
}

/// The client's end. The server's end closes when this closes.
struct Client {
    stream: UnixStream,
    server: JoinHandle<Result<(), String>>,
    cookie: u64,
}

impl Client {
    fn of(leases: Leases) -> Self {
        Self::with_patience(leases, Duration::from_secs(60))
    }

    fn with_patience(leases: Leases, patience: Duration) -> Self {
        let (stream, theirs) = UnixStream::pair().unwrap();
        let server = thread::spawn(move || {
            let channel = Channel::Plain(PlainStream::Unix(theirs));
            let found = negotiate(channel, &leases, &Door::Open, patience);
            match found.map_err(|e| e.to_string())? {
                Outcome::Ended => Ok(()),
                Outcome::Transmit(channel, contents) => {
                    channel.set_patience(None).unwrap();
                    transmit(channel, &contents, &Load::default()).map_err(|e| e.to_string())
                }
            }
        });
        Self {
            stream,
            server,
            cookie: 0,
        }
    }

    /// Starts a connection, and completes the handshake.
    fn going(leases: Leases) -> Self {
        let mut client = Self::of(leases);
        client.greet();
        let answers = client.ask(option::GO, &wanting("", &[info::BLOCK_SIZE]));
        assert_eq!(answers.last().unwrap().0, reply::ACK);
        client
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    fn greet(&mut self) {
        let [a, b] = [self.take::<8>(), self.take::<8>()].map(u64::from_be_bytes);
        assert_eq!([a, b], GREETING);
        assert_eq!(u16::from_be_bytes(self.take()), 3);
        self.stream.write_all(&3_u32.to_be_bytes()).unwrap();
    }

    fn send_option(&mut self, number: u32, data: &[u8]) {
        let mut bytes = OPTION_MAGIC.to_be_bytes().to_vec();
        bytes.extend(number.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Sends an option; returns all replies up to the last one.
    fn ask(&mut self, number: u32, data: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.send_option(number, data);
        let mut answers = Vec::new();
        loop {
            assert_eq!(u64::from_be_bytes(self.take()), REPLY_MAGIC);
            assert_eq!(u32::from_be_bytes(self.take()), number);
            let kind = u32::from_be_bytes(self.take());
            let mut data = vec![0; u32::from_be_bytes(self.take()) as usize];
            self.stream.read_exact(&mut data).unwrap();
            answers.push((kind, data));
            if kind == reply::ACK || kind & (1 << 31) != 0 {
                return answers;
            }
        }
    }

    fn send(&mut self, command: Command, flags: u16, offset: usize, bytes: usize) {
        self.cookie += 1;
        let request = Request {
            flags,
            command,
            cookie: self.cookie,
            offset: offset as u64,
            bytes: bytes as u32,
        };
        self.stream.write_all(&request.encode()).unwrap();
    }

    fn answer(&mut self) -> Result<(), Fault> {
        let reply = SimpleReply::decode(&self.take()).unwrap();
        assert_eq!(reply.cookie, self.cookie);
        match reply.error {
            0 => Ok(()),
            error => Err(Fault::from_number(error)),
        }
    }

    fn read(&mut self, offset: usize, bytes: usize) -> Result<Vec<u8>, Fault> {
        self.send(Command::Read, 0, offset, bytes);
        self.answer()?;
        let mut contents = vec![0; bytes];
        self.stream.read_exact(&mut contents).unwrap();
        Ok(contents)
    }

    fn write(&mut self, offset: usize, contents: &[u8]) -> Result<(), Fault> {
        self.send(Command::Write, flag::FUA, offset, contents.len());
        self.stream.write_all(contents).unwrap();
        self.answer()
    }

    fn command(
        &mut self,
        command: Command,
        flags: u16,
        offset: usize,
        bytes: usize,
    ) -> Result<(), Fault> {
        self.send(command, flags, offset, bytes);
        self.answer()
    }

    fn ended(self) -> Result<(), String> {
        let _ = self.stream.shutdown(Shutdown::Write);
        self.server.join().unwrap()
    }
}

/// Data of `INFO` and `GO`: name of the export, and requested properties.
fn wanting(name: &str, kinds: &[u16]) -> Vec<u8> {
    let mut data = (name.len() as u32).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    data.extend((kinds.len() as u16).to_be_bytes());
    data.extend(kinds.iter().flat_map(|kind| kind.to_be_bytes()));
    data
}

#[test]
fn an_export_is_described_and_opened() {
    let mut client = Client::of(leases());
    client.greet();
    assert_eq!(
        client.ask(option::LIST, &[]),
        [(reply::SERVER, vec![0; 4]), (reply::ACK, vec![])]
    );
    let name = export_name("a", GENERATION);
    let kinds = [info::NAME, info::DESCRIPTION, info::BLOCK_SIZE, 99];
    let answers = client.ask(option::INFO, &wanting(&name, &kinds));
    let facts: Vec<(u16, &[u8])> = answers[..answers.len() - 1]
        .iter()
        .map(|(kind, data)| {
            assert_eq!(*kind, reply::INFO);
            (u16::from_be_bytes([data[0], data[1]]), &data[2..])
        })
        .collect();
    assert_eq!(facts[0].0, info::EXPORT);
    assert_eq!(facts[0].1[..8], (SIZE as u64).to_be_bytes());
    assert_eq!(facts[1], (info::NAME, name.as_bytes()));
    assert_eq!(facts[2].0, info::DESCRIPTION);
    assert_eq!(
        facts[3],
        (
            info::BLOCK_SIZE,
            [1, 4096, MOST_BYTES].map(u32::to_be_bytes).as_flattened()
        )
    );
    assert_eq!(facts.len(), 4);
    assert_eq!(client.ask(option::GO, &wanting(&name, &[])).len(), 2);
    assert_eq!(client.read(0, 8), Ok(vec![0; 8]));
    client.send(Command::Disconnect, 0, 0, 0);
    assert_eq!(client.ended(), Ok(()));
}

#[test]
fn what_is_not_known_or_malformed_is_refused_and_the_talk_goes_on() {
    let mut client = Client::of(leases());
    client.greet();
    let mut refusal = |number: u32, data: &[u8]| client.ask(number, data).remove(0).0;
    assert_eq!(refusal(8, &[]), reply::ERR_UNSUP, "structured replies");
    assert_eq!(refusal(77, b"anything"), reply::ERR_UNSUP);
    assert_eq!(refusal(option::STARTTLS, &[]), reply::ERR_POLICY);
    assert_eq!(refusal(option::LIST, b"x"), reply::ERR_INVALID);
    assert_eq!(refusal(option::GO, &[]), reply::ERR_INVALID);
    assert_eq!(refusal(option::GO, &[0, 0, 0, 9, b'a']), reply::ERR_INVALID);
    assert_eq!(
        refusal(option::GO, &wanting("a", &[3])[..8]),
        reply::ERR_INVALID
    );
    assert_eq!(refusal(option::GO, &vec![0; 9000]), reply::ERR_TOO_BIG);
    for gone in ["nothing", "b@7", "a@8", "a@", "@7", "a@7@7"] {
        assert_eq!(
            refusal(option::GO, &wanting(gone, &[])),
            reply::ERR_UNKNOWN,
            "{gone}"
        );
    }
    assert_eq!(client.ask(option::GO, &wanting("a@7", &[])).len(), 2);
    assert_eq!(client.ended(), Ok(()));
}

#[test]
fn a_client_of_the_old_way_gets_its_export_or_the_end() {
    for (flags, name, zeroes) in [(1_u32, "", 124), (3, "a@7", 0)] {
        let mut client = Client::of(leases());
        let _: [u8; 18] = client.take();
        client.stream.write_all(&flags.to_be_bytes()).unwrap();
        client.send_option(option::EXPORT_NAME, name.as_bytes());
        assert_eq!(u64::from_be_bytes(client.take()), SIZE as u64);
        assert_ne!(
            u16::from_be_bytes(client.take()) & transmission::HAS_FLAGS,
            0
        );
        let mut rest = vec![1; zeroes];
        client.stream.read_exact(&mut rest).unwrap();
        assert!(rest.iter().all(|byte| *byte == 0));
        assert_eq!(client.read(0, 1), Ok(vec![0]));
    }
    let mut client = Client::of(leases());
    client.greet();
    client.send_option(option::EXPORT_NAME, b"a@8");
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    assert!(client.ended().unwrap_err().contains("a@8"));
}

#[test]
fn abort_is_answered() {
    let mut client = Client::of(leases());
    client.greet();
    assert_eq!(client.ask(option::ABORT, &[]), [(reply::ACK, vec![])]);
    assert_eq!(client.ended(), Ok(()));
}

#[test]
fn a_client_that_is_slow_to_say_what_it_wants_is_given_up() {
    let mut client = Client::with_patience(leases(), Duration::from_millis(300));
    client.greet();
    // The client keeps sending single bytes, and so is never silent for the whole timeout.
    while client
        .stream
        .write_all(&OPTION_MAGIC.to_be_bytes()[..1])
        .is_ok()
    {
        thread::sleep(Duration::from_millis(60));
    }
    assert!(client.ended().unwrap_err().contains("timed out"));
}

#[test]
fn a_client_that_has_its_share_of_connections_is_refused_and_no_other_is() {
    let options = Options {
        wants_huge: false,
        wants_locked: false,
    };
    let store = Arc::new(Store::new(SIZE as u64, GENERATION, options).unwrap());
    for (lease_id, client) in [("a", "me"), ("b", "me"), ("c", "you")] {
        store.open(lease_id, client, MIB as u64);
    }
    let shares = Arc::new(Shares::of(4));
    let come = || {
        let mut client = Client::of(Leases {
            store: store.clone(),
            default: None,
            shares: shares.clone(),
        });
        client.greet();
        client
    };
    let last = |client: &mut Client, number, lease_id: &str| {
        let name = export_name(lease_id, GENERATION);
        client.ask(number, &wanting(&name, &[])).pop().unwrap()
    };
    let (mut first, mut second, mut other) = (come(), come(), come());
    // After `INFO` alone, the client's place is free by the time of the answer.
    let mut curious = come();
    for _ in 0..40 {
        assert_eq!(last(&mut curious, option::INFO, "a").0, reply::ACK);
        assert!(shares.take("me").is_some());
    }
    assert_eq!(last(&mut second, option::INFO, "a").0, reply::ACK);
    assert_eq!(last(&mut first, option::GO, "a").0, reply::ACK);
    for (number, lease_id) in [(option::GO, "a"), (option::GO, "b"), (option::INFO, "b")] {
        let (kind, why) = last(&mut second, number, lease_id);
        assert_eq!(kind, reply::ERR_POLICY);
        assert!(String::from_utf8(why).unwrap().contains("1 connections"));
    }
    assert_eq!(last(&mut other, option::GO, "c").0, reply::ACK);
    assert_eq!(other.read(0, 1), Ok(vec![0]));
    // A refusal of the old option EXPORT_NAME can only close the connection.
    let mut old = come();
    old.send_option(option::EXPORT_NAME, export_name("b", GENERATION).as_bytes());
    assert_eq!(old.stream.read(&mut [0]).unwrap(), 0);
    assert!(old.ended().unwrap_err().contains("its share"));
    assert_eq!(first.ended(), Ok(()));
    assert_eq!(last(&mut second, option::GO, "b").0, reply::ACK);
    assert_eq!(second.read(0, 1), Ok(vec![0]));
}

#[test]
fn errors_are_told_and_the_connection_goes_on() {
    let mut client = Client::going(leases());
    assert_eq!(client.read(SIZE - 1, 2), Err(Fault::Invalid));
    assert_eq!(client.write(SIZE - 1, b"ab"), Err(Fault::NoSpace));
    // Offsets near the maximum of a 64-bit number.
    let far = [usize::MAX, usize::MAX - 4095, 1 << 63];
    for offset in far {
        assert_eq!(client.write(offset, &[1; 100_000]), Err(Fault::NoSpace));
    }
    assert_eq!(
        client.command(Command::WriteZeroes, 0, SIZE, 1),
        Err(Fault::NoSpace)
    );
    assert_eq!(
        client.command(Command::Trim, 0, usize::MAX, 1),
        Err(Fault::Invalid)
    );
    assert_eq!(
        client.command(Command::Cache, 0, SIZE - 4096, 4097),
        Err(Fault::Invalid)
    );
    assert_eq!(
        client.command(Command::Unknown(9), 0, 0, 0),
        Err(Fault::Invalid)
    );
    assert_eq!(client.command(Command::Flush, 0, 1, 0), Err(Fault::Invalid));
    assert_eq!(
        client.command(Command::Read, 1 << 9, 0, 1),
        Err(Fault::Invalid)
    );
    assert_eq!(
        client.command(Command::Flush, flag::NO_HOLE, 0, 0),
        Err(Fault::Invalid)
    );
    assert_eq!(client.command(Command::Flush, flag::FUA, 0, 0), Ok(()));
    assert_eq!(client.command(Command::Cache, flag::FUA, 0, 1), Ok(()));
    assert_eq!(client.command(Command::Flush, 0, 0, 0), Ok(()));
    assert_eq!(client.command(Command::Cache, 0, 0, SIZE), Ok(()));
    assert_eq!(client.read(0, 4), Ok(vec![0; 4]));
    assert_eq!(client.ended(), Ok(()));
}

#[test]
fn what_is_no_request_ends_the_connection() {
    let mut client = Client::going(leases());
    client.stream.write_all(&[0x55; Request::BYTES]).unwrap();
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    assert!(client.ended().is_err());
    let mut client = Client::going(leases());
    client.send(Command::Write, 0, 0, MOST_BYTES as usize + 1);
    assert_eq!(client.stream.read(&mut [0]).unwrap(), 0);
    assert!(client.ended().is_err());
}

#[test]
fn a_revoked_lease_says_that_it_is_over_and_never_reads_as_zeroes() {
    let leases = leases();
    let store = leases.store.clone();
    let mut client = Client::going(leases);
    client.write(4096, b"mine").unwrap();
    store.revoke_all();
    assert_eq!(client.read(4096, 4), Err(Fault::Shutdown));
    assert_eq!(client.write(4096, b"more"), Err(Fault::Shutdown));
    assert_eq!(
        client.command(Command::Trim, 0, 0, SIZE),
        Err(Fault::Shutdown)
    );
    assert_eq!(
        client.command(Command::Flush, 0, 0, 0),
        Err(Fault::Shutdown)
    );
    assert_eq!(client.ended(), Ok(()));
}

#[test]
fn requests_larger_than_the_room_are_whole() {
    let mut client = Client::going(leases());
    let contents: Vec<u8> = (0..SIZE).map(|i| (i / 4096 + i) as u8).collect();
    // The contents are larger than the buffer, so the server handles the first bytes while others arrive.
    client.write(0, &contents).unwrap();
    for bytes in [ROOM_BYTES - 16, ROOM_BYTES - 15, ROOM_BYTES, SIZE - 5] {
        assert!(
            client.read(5, bytes).unwrap() == contents[5..5 + bytes],
            "{bytes}"
        );
    }
    assert_eq!(client.ended(), Ok(()));
}

#[test]
fn pages_that_a_client_is_slow_to_take_are_whole() {
    let mut client = Client::going(leases());
    let contents: Vec<u8> = (0..SIZE).map(|i| (i / 4096 + i) as u8).collect();
    client.write(0, &contents).unwrap();
    let (first, bytes) = (client.cookie + 1, 128 << 10);
    let requests = SIZE / bytes;
    for number in 0..requests {
        client.send(Command::Read, 0, number * bytes, bytes);
    }
    // Bytes that the socket does not accept yet must be copied, since this request changes the pages before
    // they are sent.
    client.send(Command::WriteZeroes, 0, 0, SIZE);
    for number in 0..requests {
        client.cookie = first + number as u64;
        client.answer().unwrap();
        let mut found = vec![0; bytes];
        client.stream.read_exact(&mut found).unwrap();
        assert!(found == contents[number * bytes..][..bytes], "{number}");
    }
    client.cookie += 1;
    client.answer().unwrap();
    assert_eq!(client.ended(), Ok(()));
}

/// An operation of a client.
#[derive(Clone, Debug)]
enum Step {
    Read(usize, usize),
    Write(usize, Vec<u8>),
    Zero(usize, usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || {
        (
            0..SIZE,
            prop_oneof![1..64_usize, 4000..9000_usize, 100_000..600_000_usize],
        )
    };
    let within = |(offset, bytes): (usize, usize)| (offset, bytes.min(SIZE - offset));
    prop_oneof![
        place().prop_map(move |at| {
            let (offset, bytes) = within(at);
            Step::Read(offset, bytes)
        }),
        (place(), any::<u8>()).prop_map(move |(at, seed)| {
            let (offset, bytes) = within(at);
            Step::Write(
                offset,
                (0..bytes)
                    .map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed))
                    .collect(),
            )
        }),
        (place(), any::<bool>()).prop_map(move |(at, trim)| {
            let (offset, bytes) = within(at);
            Step::Zero(offset, bytes, trim)
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Many requests are sent without waiting for answers. The answers must come in order, and equal those of
    /// a plain array.
    #[test]
    fn many_requests_under_way_are_answered_as_an_array_would(steps in prop::collection::vec(step(), 1..40)) {
        let mut client = Client::going(leases());
        let mut sender = client.stream.try_clone().unwrap();
        let to_send = steps.clone();
        let sending = thread::spawn(move || {
            for (cookie, step) in to_send.iter().enumerate() {
                let (command, offset, bytes, data) = match step {
                    Step::Read(offset, bytes) => (Command::Read, *offset, *bytes, &[][..]),
                    Step::Write(offset, data) => (Command::Write, *offset, data.len(), &data[..]),
                    Step::Zero(offset, bytes, true) => (Command::Trim, *offset, *bytes, &[][..]),
                    Step::Zero(offset, bytes, false) => (Command::WriteZeroes, *offset, *bytes, &[][..]),
                };
                let request = Request { flags: 0, command, cookie: cookie as u64, offset: offset as u64, bytes: bytes as u32 };
                sender.write_all(&request.encode()).unwrap();
                sender.write_all(data).unwrap();
            }
        });
        let mut model = vec![0; SIZE];
        for (cookie, step) in steps.iter().enumerate() {
            client.cookie = cookie as u64;
            prop_assert_eq!(client.answer(), Ok(()));
            match step {
                Step::Read(offset, bytes) => {
                    let mut found = vec![0; *bytes];
                    client.stream.read_exact(&mut found).unwrap();
                    prop_assert!(found == model[*offset..offset + bytes]);
                }
                Step::Write(offset, data) => model[*offset..offset + data.len()].copy_from_slice(data),
                Step::Zero(offset, bytes, _) => model[*offset..offset + bytes].fill(0),
            }
        }
        sending.join().unwrap();
        prop_assert_eq!(client.ended(), Ok(()));
    }

    /// Whatever bytes arrive, the server ends when the client ends, and does not panic.
    #[test]
    fn no_bytes_of_a_client_do_harm(
        is_greeted in any::<bool>(),
        goes in any::<bool>(),
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        requests in prop::collection::vec((any::<u16>(), 0..12_u16, any::<u64>(), 0..70_000_u32), 0..8),
    ) {
        let mut client = if goes { Client::going(leases()) } else { Client::of(leases()) };
        if is_greeted && !goes {
            client.greet();
        }
        let mut sent = Vec::new();
        for (flags, number, offset, length) in requests {
            if goes {
                sent.extend(REQUEST_MAGIC.to_be_bytes());
                sent.extend(flags.to_be_bytes());
                sent.extend(number.to_be_bytes());
                sent.extend(1_u64.to_be_bytes());
                sent.extend((offset % (2 * SIZE as u64)).to_be_bytes());
                sent.extend(length.to_be_bytes());
            } else {
                sent.extend(OPTION_MAGIC.to_be_bytes());
                sent.extend(u32::from(number).to_be_bytes());
                sent.extend((length % 64).to_be_bytes());
            }
        }
        sent.extend(bytes);
        let mut listener = client.stream.try_clone().unwrap();
        let listening = thread::spawn(move || std::io::copy(&mut listener, &mut std::io::sink()));
        let _ = client.stream.write_all(&sent); // the server may have closed the connection
        let _ = client.stream.shutdown(Shutdown::Write);
        let _ = client.server.join().unwrap();
        drop(client.stream);
        let _ = listening.join().unwrap();
    }

    #[test]
    fn requests_and_replies_are_read_as_they_were_written(
        flags in any::<u16>(), number in any::<u16>(), cookie in any::<u64>(), offset in any::<u64>(), bytes in any::<u32>(),
    ) {
        let mut raw = [0; Request::BYTES];
        raw[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        raw[4..6].copy_from_slice(&flags.to_be_bytes());
        raw[6..8].copy_from_slice(&number.to_be_bytes());
        raw[8..16].copy_from_slice(&cookie.to_be_bytes());
        raw[16..24].copy_from_slice(&offset.to_be_bytes());
        raw[24..].copy_from_slice(&bytes.to_be_bytes());
        let request = Request::decode(&raw).unwrap();
        prop_assert_eq!((request.flags, request.cookie, request.offset, request.bytes), (flags, cookie, offset, bytes));
        prop_assert_eq!(request.encode(), raw);
        let reply = SimpleReply { error: bytes, cookie };
        prop_assert_eq!(SimpleReply::decode(&reply.encode()), Some(reply));
        raw[0] ^= 1;
        prop_assert_eq!(Request::decode(&raw), None);
    }
}
