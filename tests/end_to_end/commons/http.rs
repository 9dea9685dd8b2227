//! An HTTP server as the source.

use super::mounted::assert_equal;
use super::server::{Manner, Server};
use super::stage::{BLOCK, LARGE, Stage, commons};
use gleaner_harness::Random;
use std::fs;
use std::thread;

#[test]
fn the_mount_equals_the_folder_and_each_block_is_one_request() {
    let stage = Stage::new(&mut Random::new());
    let server = Server::start(stage.input(), Manner::Proper);
    let mounted = stage.mount_from("http", &server.url(), &["--kernel-cache", "false"]);
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let wanted = fs::read(stage.input().join(LARGE)).unwrap();
                assert!(fs::read(mounted.point.join(LARGE)).unwrap() == wanted);
            });
        }
    });
    assert_eq!(server.requests(&format!("/{LARGE}")), 40);
    assert_equal(&mounted.point, &stage.input());
    assert_eq!(server.requests("/%C3%BCn%C3%AF%20100%25%23%3F"), 1);
    let verified = commons()
        .arg("verify")
        .arg(stage.catalog())
        .args(["--source", &server.url()])
        .output();
    let verified = verified.unwrap();
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
}

#[test]
fn a_server_that_misbehaves_causes_errors_and_never_wrong_bytes() {
    let stage = Stage::new(&mut Random::new());
    let server = Server::start(stage.input(), Manner::Proper);
    let wanted = fs::read(stage.input().join(LARGE)).unwrap();
    for (manner, words) in [
        (Manner::NoRanges, "with whole files"),
        (Manner::Truncated, ""),
        (Manner::OtherRange, "to a request for"),
        (Manner::Endless, "more than 65536 bytes"),
        (Manner::Redirect, "http://elsewhere.example/"),
        (Manner::Broken, "500"),
    ] {
        server.behave(manner);
        let name = format!("{manner:?}");
        // Without local memory, no block is answered from an earlier read.
        let mounted = stage.mount_from(
            &name,
            &server.url(),
            &["--kernel-cache", "false", "--local", "0B"],
        );
        let file = fs::File::open(mounted.point.join(LARGE)).unwrap();
        let mut bytes = vec![0; BLOCK];
        // The first block is the same in the range that `OtherRange` sends.
        let read = std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 5 * BLOCK as u64);
        assert_eq!(
            read.map_err(|e| e.raw_os_error()),
            Err(Some(5)),
            "{manner:?}"
        );
        mounted.running().hear(words);
        server.behave(Manner::Proper);
        assert!(
            fs::read(mounted.point.join(LARGE)).unwrap() == wanted,
            "{manner:?}"
        );
    }
    server.behave(Manner::Broken);
    let verified = commons()
        .arg("verify")
        .arg(stage.catalog())
        .args(["--source", &server.url()])
        .output();
    assert_eq!(verified.unwrap().status.code(), Some(3));
}

#[test]
fn a_slow_file_fails_in_time_and_holds_up_no_other() {
    let stage = Stage::new(&mut Random::new());
    let server = Server::start(stage.input(), Manner::Stalls);
    let options = ["--kernel-cache", "false", "--source-timeout", "3s"];
    let mounted = stage.mount_from("slow", &server.url(), &options);
    thread::scope(|scope| {
        let stalled: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| fs::read(mounted.point.join(LARGE)).map_err(|e| e.raw_os_error()))
            })
            .collect();
        // Meanwhile, all other files are read.
        for entry in fs::read_dir(stage.input().join("many")).unwrap() {
            let entry = entry.unwrap();
            let found = fs::read(mounted.point.join("many").join(entry.file_name())).unwrap();
            assert_eq!(found, fs::read(entry.path()).unwrap());
        }
        for stalled in stalled {
            assert_eq!(stalled.join().unwrap(), Err(Some(5)));
        }
    });
    mounted.running().hear("did not answer in time");
    server.behave(Manner::Proper);
    assert!(
        fs::read(mounted.point.join(LARGE)).unwrap()
            == fs::read(stage.input().join(LARGE)).unwrap()
    );
    mounted.running().hear("the source works again");
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let stage = Stage::new(&mut Random::new());
    let url = format!("http://{}", gleaner_harness::unused_address());
    let mounted = stage.mount_from("nobody", &url, &[]);
    assert!(fs::read(mounted.point.join("one")).is_err());
    mounted.running().hear("one: the source does not work");
    let done = commons()
        .args(["verify", "x", "--source", "ftp://x"])
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2));
}
