//! A region behaves like its file, only faster.

use crate::server::{MIB, Numbers, file, memory_server, open, regions};
use gleaner_regions::RegionError;
use std::fs::{self, File};
use std::os::fd::OwnedFd;

#[test]
fn what_is_written_is_read_again_from_memory_and_is_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = memory_server("127.0.0.1:0");
    let regions = regions(&server.url);
    let mut numbers = Numbers(1);
    // The region neither begins nor ends at a page's border, and the file ends before the region.
    let (bytes, offset) = (5 * MIB as usize + 77, 4097);
    let mut expected = numbers.bytes(3 * MIB as usize);
    let file = file(folder.path(), "data", &expected);
    let region = regions.open(bytes as u64, file, offset).unwrap();
    expected.drain(..offset as usize);
    expected.resize(bytes, 0);
    let mut found = vec![0; bytes];
    for _ in 0..400 {
        let at = numbers.below(bytes);
        let length = match numbers.below(3) {
            0 => numbers.below(100),
            1 => numbers.below(20_000),
            _ => numbers.below(3 * MIB as usize),
        };
        let length = length.min(bytes - at);
        if numbers.below(2) == 0 {
            let given = numbers.bytes(length.min(100_000));
            region.write(at as u64, &given).unwrap();
            expected[at..at + given.len()].copy_from_slice(&given);
        } else {
            let into = &mut found[..length];
            assert_eq!(region.read(at as u64, into).unwrap(), length);
            assert!(into == &expected[at..at + length], "{length} at {at}");
        }
    }
    assert_eq!(region.read(0, &mut found).unwrap(), bytes);
    assert!(found == expected);
    let before = regions.figures();
    assert_eq!(region.read(0, &mut found).unwrap(), bytes);
    assert!(found == expected);
    let after = regions.figures();
    let pages = (bytes as u64).div_ceil(4096);
    assert_eq!(after.from_memory_pages, before.from_memory_pages + pages);
    assert_eq!(after.from_file_pages, before.from_file_pages);
    assert_eq!((after.failed_nodes, after.wrong_pages), (0, 0));
    let stored = fs::read(folder.path().join("data")).unwrap();
    assert!(stored[offset as usize..] == expected[..stored.len() - offset as usize]);
}

#[test]
fn small_regions_share_one_lease_and_what_is_closed_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    drop(file(folder.path(), "data", &vec![7; 8 * MIB as usize]));
    let server = memory_server("127.0.0.1:0");
    let regions = regions(&server.url);
    for round in 0..3_u8 {
        let open_one = |n: u64| regions.open(8 * MIB - 100, open(&path), n).unwrap();
        let all: Vec<_> = (0..8).map(open_one).collect();
        assert_eq!(regions.figures().asked_count, 1);
        for (region, n) in all.iter().zip(0_u8..) {
            region.write(0, &[round * 8 + n; 4096]).unwrap();
        }
        // The regions overlap in the file, but not in remote memory: each reads what it has written itself.
        let mut found = vec![0; 4096];
        for (region, n) in all.iter().zip(0_u8..) {
            region.read(0, &mut found).unwrap();
            assert!(found.iter().all(|&b| b == round * 8 + n), "{n}");
        }
        if round == 2 {
            let refused = regions.open(MIB, open(&path), 0).err().unwrap();
            assert!(matches!(refused, RegionError::NoMemory { .. }), "{refused}");
            assert_eq!(refused.errno(), 12); // ENOMEM
        }
    }
}

#[test]
fn what_cannot_be_a_region_is_told_and_ends_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let server = memory_server(folder.path().join("pages.sock").to_str().unwrap());
    let regions = regions(&server.url);
    let data = folder.path().join("data");
    drop(file(folder.path(), "data", &[1; 10_000]));
    let appending = File::options().read(true).append(true).open(&data).unwrap();
    let writing = File::options().write(true).open(&data).unwrap();
    let pipe: OwnedFd = std::io::pipe().unwrap().0.into();
    for (bytes, file, offset) in [
        (0, open(&data), 0),
        (1, open(&data), u64::MAX),
        (u64::MAX, open(&data), 0),
        (1, appending, 0),
        (1, writing, 0),
        (1, pipe.into(), 0),
    ] {
        let refused = regions.open(bytes, file, offset).err().unwrap();
        assert!(matches!(refused, RegionError::Unfit { .. }), "{refused}");
    }
    let region = regions.open(5000, open(&data), 1000).unwrap();
    let mut into = [0; 100];
    assert_eq!(region.read(4950, &mut into).unwrap(), 50);
    assert_eq!(region.read(5000, &mut into).unwrap(), 0);
    assert_eq!(region.read(u64::MAX, &mut into).unwrap(), 0);
    for at in [4901, 5000, u64::MAX] {
        let refused = region.write(at, &into).unwrap_err();
        assert!(matches!(refused, RegionError::Beyond { .. }), "{refused}");
    }
    region.write(4900, &[9; 100]).unwrap();
    region.write(5000, &[]).unwrap();
    assert_eq!(fs::metadata(&data).unwrap().len(), 10_000);
    // A region of a read-only descriptor can be read, but not written.
    let reading = File::open(&data).unwrap();
    let region = regions.open(5000, reading, 0).unwrap();
    assert_eq!(region.read(0, &mut into).unwrap(), 100);
    let refused = region.write(0, &into).unwrap_err();
    assert_eq!(refused.errno(), 9, "{refused}"); // EBADF
    assert!(region.is_remote());
}
