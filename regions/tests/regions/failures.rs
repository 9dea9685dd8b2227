//! Servers that are killed, silent or lying: whatever happens, bytes read are those that were
//! written.

use crate::server::{MIB, Numbers, file, memory_server, open, regions, settings};
use gleaner_harness::Relay;
use gleaner_regions::{OnLoss, Region, RegionError, Regions, Settings};
use rustix::process::Signal;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

const BYTES: usize = 4 << 20;
/// Maximum length of a reply without data: longer ones contain a page.
const LONGEST_WITHOUT_DATA_BYTES: usize = 1024;

/// A region with random writes and reads, whose results are compared with the expected contents.
struct Load {
    region: Region,
    expected: Vec<u8>,
    numbers: Numbers,
}

impl Load {
    fn new(region: Region, seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let expected = numbers.bytes(BYTES);
        region.write(0, &expected).unwrap();
        Self {
            region,
            expected,
            numbers,
        }
    }

    fn step(&mut self) {
        let at = self.numbers.below(BYTES - 1);
        let length = 1 + self.numbers.below((BYTES - at).min(200_000));
        if self.numbers.below(4) == 0 {
            let given = self.numbers.bytes(length.min(10_000));
            self.region.write(at as u64, &given).unwrap();
            self.expected[at..at + given.len()].copy_from_slice(&given);
        }
        let mut found = vec![0; length];
        assert_eq!(self.region.read(at as u64, &mut found).unwrap(), length);
        assert!(found == self.expected[at..at + length], "{length} at {at}");
    }

    #[track_caller]
    fn is_whole(&self) {
        let mut found = vec![0; BYTES];
        assert_eq!(self.region.read(0, &mut found).unwrap(), BYTES);
        assert!(found == self.expected);
    }
}

#[test]
fn a_server_killed_under_load_costs_no_byte_and_all_regions_on_it_are_dropped() {
    for round in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let server = memory_server("127.0.0.1:0");
        let regions = regions(&server.url);
        let loads = ["a", "b"].map(|name| {
            let region = regions
                .open(BYTES as u64, file(path, name, &[]), 0)
                .unwrap();
            Load::new(region, round)
        });
        let idle = regions.open(MIB, file(path, "c", &[]), 0).unwrap();
        let under_load = loads.map(|mut load| {
            thread::spawn(move || {
                while load.region.is_remote() {
                    load.step();
                }
                (0..20).for_each(|_| load.step());
                load.is_whole();
            })
        });
        while regions.figures().from_memory_pages < 500 * round {
            thread::yield_now();
        }
        drop(server);
        for load in under_load {
            load.join().unwrap();
        }
        assert!(!idle.is_remote(), "Dodo drops every region on that node");
        let figures = regions.figures();
        assert_eq!((figures.failed_nodes, figures.wrong_pages), (1, 0));
        assert!(regions.last_failure().is_some());
        assert_eq!(idle.read(0, &mut [1; 10]).unwrap(), 10);
    }
}

#[test]
fn after_a_failure_nobody_is_asked_until_the_refraction_period_is_over() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pages.sock");
    for (refraction, is_asked) in [(Duration::from_secs(3600), false), (Duration::ZERO, true)] {
        let server = memory_server(socket.to_str().unwrap());
        let all = Regions::new(Settings {
            refraction,
            ..settings(&server.url)
        });
        let all = all.unwrap();
        let open_one = || all.open(MIB, file(folder.path(), "data", &[]), 0);
        let region = open_one().unwrap();
        region.write(0, &[1; 100]).unwrap();
        drop(server);
        region.write(0, &[2; 100]).unwrap();
        assert!(!region.is_remote());
        let _ = fs::remove_file(&socket); // a killed server leaves its socket file
        let server = memory_server(socket.to_str().unwrap());
        let before = all.figures().asked_count;
        let began = Instant::now();
        match open_one() {
            Ok(region) => assert!(is_asked && region.is_remote()),
            Err(RegionError::NoMemory { why }) => assert!(!is_asked, "{why}"),
            Err(other) => panic!("{other}"),
        }
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(all.figures().asked_count, before + u64::from(is_asked));
        drop(server);
        let _ = fs::remove_file(&socket);
    }
    // A refused connection begins a refraction period, too: of three attempts, only the first asks the
    // server.
    let nobody = settings(&format!("nbd+unix:///?socket={}", socket.display()));
    let all = Regions::new(nobody).unwrap();
    for _ in 0..3 {
        assert!(all.open(MIB, file(folder.path(), "data", &[]), 0).is_err());
    }
    assert_eq!(all.figures().asked_count, 1);
}

#[test]
fn a_lying_server_costs_reads_from_the_file_and_never_a_wrong_byte() {
    for round in 1..=5 {
        let folder = tempfile::tempdir().unwrap();
        let server = memory_server("127.0.0.1:0");
        let relay = Relay::to(server.address());
        let regions = regions(&format!("nbd://{}", relay.address));
        let region = regions.open(BYTES as u64, file(folder.path(), "data", &[]), 0);
        let mut load = Load::new(region.unwrap(), round);
        (0..20).for_each(|_| load.step());
        load.is_whole();
        assert!(load.region.is_remote() && regions.figures().from_memory_pages >= 1024);
        relay.alter(|bytes| {
            let count = bytes.len();
            if count > LONGEST_WITHOUT_DATA_BYTES {
                bytes[count / 2] ^= 0x10;
            }
        });
        (0..20).for_each(|_| load.step());
        load.is_whole();
        assert!(!load.region.is_remote());
        let figures = regions.figures();
        // If the flipped bit is in the head of a reply, the reply is invalid, and the node fails.
        let is_seen = figures.wrong_pages > 0 || figures.failed_nodes == 1;
        assert!(is_seen, "{figures:?}");
    }
}

#[test]
fn a_server_that_stops_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let server = memory_server("127.0.0.1:0");
    let all = Regions::new(Settings {
        patience: Duration::from_millis(500),
        ..settings(&server.url)
    });
    let all = all.unwrap();
    let region = all.open(BYTES as u64, file(folder.path(), "data", &[]), 0);
    let load = Load::new(region.unwrap(), 3);
    server.running.signal(Signal::STOP);
    let began = Instant::now();
    load.is_whole();
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(!load.region.is_remote());
    server.running.signal(Signal::CONT);
    load.is_whole();
    assert!(all.last_failure().unwrap().contains("connection"));
}

#[test]
fn who_wants_errors_gets_them_and_the_file_has_everything() {
    let folder = tempfile::tempdir().unwrap();
    let server = memory_server("127.0.0.1:0");
    let all = Regions::new(Settings {
        when_gone: OnLoss::Error,
        ..settings(&server.url)
    });
    let data = folder.path().join("data");
    let region = all.unwrap().open(MIB, file(folder.path(), "data", &[]), 0);
    let region = region.unwrap();
    region.write(0, &[1; 100]).unwrap();
    drop(server);
    for n in [2, 3] {
        let gone = region.write(0, &[n; 100]).unwrap_err();
        assert!(matches!(gone, RegionError::Gone), "{gone}");
        assert_eq!(fs::read(&data).unwrap(), [n; 100]);
    }
    let gone = region.read(0, &mut [0; 100]).unwrap_err();
    assert_eq!(gone.errno(), 116); // ESTALE
    drop(open(&data));
}

#[test]
fn who_shares_a_servers_memory_with_a_stranger_reads_its_own_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let server = memory_server("127.0.0.1:0");
    // Each program uses the server as if it were alone, and so at the same offset.
    let (mine, theirs) = (regions(&server.url), regions(&server.url));
    let region = mine.open(BYTES as u64, file(folder.path(), "mine", &[]), 0);
    let mut load = Load::new(region.unwrap(), 1);
    load.is_whole();
    assert_eq!(mine.figures().wrong_pages, 0);
    let region = theirs.open(BYTES as u64, file(folder.path(), "theirs", &[]), 0);
    let other = Load::new(region.unwrap(), 2);
    load.is_whole();
    assert!(mine.figures().wrong_pages > 0 && !load.region.is_remote());
    (0..20).for_each(|_| load.step());
    other.is_whole();
    assert!(other.region.is_remote());
}
