//! Tests of streams from file to file: what is written is read back, in every format that can express it.

#![allow(clippy::unwrap_used)]

use gleaner_simulator::Request;
use gleaner_simulator::streams::read::{BlockBytes, Columns, Format, open, open_all};
use gleaner_simulator::streams::{Client, StreamError, StreamRequest, of_program, write};
use proptest::prelude::*;
use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

const NS_PER_S: u64 = 1_000_000_000;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn all(path: &Path, format: &Format) -> Vec<StreamRequest> {
    open(path, format, 0).unwrap().map(Result::unwrap).collect()
}

/// Records of an oracleGeneral file: time, object, size, next.
fn records(bytes: &[u8]) -> Vec<(u32, u64, u32, i64)> {
    let records = bytes.chunks(24).map(|record| {
        (
            u32::from_le_bytes(record[..4].try_into().unwrap()),
            u64::from_le_bytes(record[4..12].try_into().unwrap()),
            u32::from_le_bytes(record[12..16].try_into().unwrap()),
            i64::from_le_bytes(record[16..].try_into().unwrap()),
        )
    });
    records.collect()
}

fn asked(client: u32, at_ns: u64, object: u64, bytes: u32, is_write: bool) -> StreamRequest {
    StreamRequest {
        at_ns,
        client: Client::of(0, client).unwrap(),
        request: Request {
            object,
            bytes,
            is_write,
            think_ns: 0,
        },
    }
}

/// Sets the compute times that a reader computes from the times of the stream.
fn thinking(mut stream: Vec<StreamRequest>) -> Vec<StreamRequest> {
    let mut last: HashMap<Client, u64> = HashMap::new();
    for recorded in &mut stream {
        let before = last.insert(recorded.client, recorded.at_ns);
        recorded.request.think_ns = recorded
            .at_ns
            .saturating_sub(before.unwrap_or(recorded.at_ns));
    }
    stream
}

#[test]
fn libcachesims_own_conversion_of_a_small_trace() {
    // The last number is next_access_vtime as `libcachesim.Util.convert_to_oracleGeneral` (0.3.5) wrote it
    // for the same requests.
    let expected = [
        (1, 7, 100, 3),
        (2, 8, 100, -1),
        (3, 7, 150, 5),
        (4, 9, 40, 6),
        (5, 7, 10, -1),
        (6, 9, 0, -1),
        (7, 10, 300, -1),
        (8, 11, 0, 9),
        (9, 11, 0, -1),
    ];
    let stream = expected.map(|(time_s, object, bytes, _)| {
        asked(0, u64::from(time_s) * NS_PER_S, object, bytes, false)
    });
    let folder = tempdir().unwrap();
    let path = folder.path().join("small.oracleGeneral");
    let written = write::oracle_general(&path, stream.into_iter().map(Ok)).unwrap();
    assert_eq!((written.requests, written.bytes), (9, 9 * 24));
    assert_eq!(records(&fs::read(&path).unwrap()), expected);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn fixtures_of_every_format_tell_the_same() {
    let expected = vec![
        asked(0, 0, 5, 4096, false),
        asked(1, 250_000_000, (1 << 44) + 2, 4096, true),
        asked(0, NS_PER_S, 5, 512, true),
        asked(0, NS_PER_S, 6, 4096, true),
        asked(1, 3 * NS_PER_S, (1 << 44) + 2, 4096, false),
    ];
    let expected = thinking(expected);
    let block = BlockBytes::default();
    assert_eq!(all(&data("small.spc"), &Format::Spc(block)), expected);
    assert_eq!(
        all(&data("small.blocks.csv"), &Format::BlockCsv(block)),
        expected
    );
    assert_eq!(
        all(&data("small.csv"), &Format::Csv(Columns::ours())),
        expected
    );
    let columns =
        "obj-id-col=1,obj-size-col=2,time-col=3,op-col=4,client-col=5,delimiter=|,time-unit=ms";
    let columns = Columns::of(columns).unwrap();
    assert_eq!(all(&data("small.psv"), &Format::Csv(columns)), expected);
}

#[test]
fn several_files_are_several_clients() {
    let folder = tempdir().unwrap();
    let (first, second) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    fs::write(&first, "0,1\n2,2\n").unwrap();
    fs::write(&second, "1,1\n2,3\n").unwrap();
    let format = Format::Csv(Columns::of("time-col=1,obj-id-col=2").unwrap());
    let read: Vec<_> = open_all(&[first, second], &format)
        .unwrap()
        .map(Result::unwrap)
        .map(|read| {
            (
                read.at_ns / NS_PER_S,
                read.client.number(),
                read.request.object,
                read.request.think_ns / NS_PER_S,
            )
        })
        .collect();
    assert_eq!(
        read,
        [(0, 0, 1, 0), (1, 4096, 1, 0), (2, 0, 2, 2), (2, 4096, 3, 1)]
    );
    let many = vec![folder.path().join("a.csv"); 257];
    let error = open_all(&many, &format).err().unwrap().to_string();
    assert_eq!(
        error,
        "257 files are too many; read 256 together, or put several clients into one file"
    );
}

#[test]
fn compressed_files_are_read_and_written_and_torn_ones_are_said() {
    let folder = tempdir().unwrap();
    let stream = || (0..50_000).map(|at| asked(0, at * NS_PER_S, at * at % 1009, 512, false));
    let expected = thinking(stream().collect());
    let path = folder.path().join("a.oracleGeneral.zst");
    let written = write::oracle_general(&path, stream().map(Ok)).unwrap();
    assert!(written.bytes < 50_000 * 24 / 2);
    assert_eq!(all(&path, &Format::OracleGeneral), expected);
    // The file has two zstd frames, as parallel compressors write them, and a name like that of public
    // traces.
    let frame = fs::read(&path).unwrap();
    let twice = folder.path().join("b.oracleGeneral.zst.22");
    fs::write(&twice, [&frame[..], &frame].concat()).unwrap();
    assert_eq!(all(&twice, &Format::OracleGeneral).len(), 100_000);
    let csv = folder.path().join("a.csv.zst");
    write::csv(&csv, stream().map(Ok)).unwrap();
    assert_eq!(all(&csv, &Format::Csv(Columns::ours())), expected);

    let torn = folder.path().join("torn.zst");
    fs::write(&torn, &frame[..frame.len() - 100]).unwrap();
    let read: Vec<_> = open(&torn, &Format::OracleGeneral, 0).unwrap().collect();
    let error = read.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.to_string(), format!("cannot read {}", torn.display()));
    assert!(error.source().is_some());
    assert!(read.iter().rev().skip(1).all(Result::is_ok));
}

#[test]
fn a_failure_leaves_what_was_there() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "before").unwrap();
    let late = asked(0, (1 << 32) * NS_PER_S, 1, 1, false);
    let error = write::oracle_general(&path, [Ok(late)].into_iter()).unwrap_err();
    assert!(
        matches!(&error, StreamError::Unsayable { number: 1, .. }),
        "{error}"
    );
    let torn = || StreamError::Setting {
        found: String::new(),
        advice: String::new(),
    };
    assert!(write::csv(&path, [Ok(late), Err(torn())].into_iter()).is_err());
    assert_eq!(fs::read(&path).unwrap(), b"before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = open(&folder.path().join("none"), &Format::OracleGeneral, 0)
        .err()
        .unwrap();
    assert!(missing.to_string().starts_with("cannot open "), "{missing}");
}

#[test]
fn a_programs_requests_are_written_as_a_recorders() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("program.csv");
    let program = (0..3).map(|object| Request {
        object,
        bytes: 8192,
        is_write: false,
        think_ns: 10_000_000,
    });
    write::csv(&path, of_program(Client::default(), program)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text,
        "time,obj_id,obj_size,op,client\n0.01,0,8192,read,0\n0.02,1,8192,read,0\n0.03,2,8192,read,0\n"
    );
}

fn any_stream() -> impl Strategy<Value = Vec<StreamRequest>> {
    let object = prop_oneof![any::<u64>(), 0u64..20];
    let one = (0u32..4, 0..1u64 << 60, object, any::<u32>(), any::<bool>()).prop_map(
        |(client, at_ns, object, bytes, is_write)| asked(client, at_ns, object, bytes, is_write),
    );
    prop::collection::vec(one, 0..200)
}

proptest! {
    #[test]
    fn csv_keeps_every_word(stream in any_stream()) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.csv");
        write::csv(&path, stream.iter().copied().map(Ok)).unwrap();
        prop_assert_eq!(all(&path, &Format::Csv(Columns::ours())), thinking(stream));
    }

    #[test]
    fn oracle_general_keeps_time_object_and_size_and_finds_the_next(stream in any_stream()) {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.oracleGeneral");
        write::oracle_general(&path, stream.iter().copied().map(Ok)).unwrap();
        let read = records(&fs::read(&path).unwrap());
        prop_assert_eq!(read.len(), stream.len());
        for (place, recorded) in stream.iter().enumerate() {
            let (time_s, object, bytes, next) = read[place];
            prop_assert_eq!((u64::from(time_s), object, bytes), (recorded.at_ns / NS_PER_S, recorded.request.object, recorded.request.bytes));
            let later = (place + 1..stream.len()).find(|later| stream[*later].request.object == object);
            prop_assert_eq!(next, later.map_or(-1, |later| later as i64 + 1));
        }
        prop_assert_eq!(all(&path, &Format::OracleGeneral).len(), stream.len());
    }
}
