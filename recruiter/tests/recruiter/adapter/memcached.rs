//! Tests that memcached stays within a host's quota.

use super::following::{MIB, QuotaFile, RunningAdapter, quota, wait_for};
use super::servers::{Server, TestConnection, unused_address};

const VALUE_BYTES: usize = 50_000;

/// Stores `count` values of 50,000 bytes each.
fn fill(talk: &mut TestConnection, count: usize) {
    for n in 0..count {
        let mut command = format!("set k{n} 0 0 {VALUE_BYTES}\r\n").into_bytes();
        command.resize(command.len() + VALUE_BYTES, b'x');
        command.extend(b"\r\n");
        assert_eq!(talk.line(&command), "STORED");
    }
}

#[test]
fn its_limit_follows_the_quota_and_what_is_over_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::memcached(&unused_address(), 64);
    let file = QuotaFile::new(folder.path(), &[quota("a", 160), quota("b", 7)]);
    let following = RunningAdapter::start(&[
        "--file",
        file.path(),
        "--host",
        "a",
        "--memcached",
        &server.address,
        "--quota-includes-use",
        "--minimum",
        "16MiB",
        "--quota-timeout",
        "1h",
    ]);
    let change = following.change();
    assert_eq!(change["previous_limit_bytes"], 64 * MIB);
    assert_eq!(change["limit_bytes"], 160 * MIB);
    assert_eq!(change["host_id"], "a");
    let mut talk = server.connect();
    assert_eq!(talk.stats("")["limit_maxbytes"], 160 * MIB);

    fill(&mut talk, 2800);
    let full = talk.stats("slabs")["total_malloced"];
    assert!(full > 130 * MIB, "{full}");
    assert_eq!(talk.stats("")["curr_items"], 2800);
    let resident_full = server.resident_bytes();

    // The quota falls. The memory must return to the kernel, not only to the server's free lists.
    file.set(&[quota("a", 48)]);
    assert_eq!(following.change()["limit_bytes"], 48 * MIB);
    wait_for("pages to be given back", || {
        talk.stats("slabs")["total_malloced"] <= 49 * MIB
    });
    wait_for("the kernel to have them", || {
        server.resident_bytes() + 80 * MIB < resident_full
    });
    let items = talk.stats("")["curr_items"];
    assert!((200..1100).contains(&items), "{items}");
    assert!(
        talk.line(b"touch k2799 0\r\n") == "TOUCHED",
        "the newest was evicted"
    );

    // The owner has returned.
    file.set(&[quota("a", 0)]);
    let change = following.change();
    assert_eq!(
        (
            change["limit_bytes"].as_u64(),
            change["quota_reason"].as_str()
        ),
        (Some(16 * MIB), Some("in_use"))
    );
    wait_for("pages to be given back", || {
        talk.stats("slabs")["total_malloced"] <= 17 * MIB
    });

    file.set(&[quota("a", 96)]);
    assert_eq!(following.change()["limit_bytes"], 96 * MIB);

    // The restarted server has lost its limit, so the adapter must set it again.
    let address = server.address.clone();
    drop(server);
    following.0.hear("no answer from memcached");
    let server = Server::memcached(&address, 64);
    let change = following.change();
    assert_eq!(change["previous_limit_bytes"], 64 * MIB);
    assert_eq!(change["limit_bytes"], 96 * MIB);

    assert_eq!(following.0.end().0, Some(0));
    assert_eq!(server.connect().stats("")["limit_maxbytes"], 16 * MIB);
}

#[test]
fn what_it_has_already_is_added_where_the_agent_takes_it_for_the_owners() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::memcached(&unused_address(), 64);
    let mut talk = server.connect();
    fill(&mut talk, 600);
    let used = talk.stats("slabs")["total_malloced"];
    assert!(used > 28 * MIB, "{used}");
    let file = QuotaFile::new(folder.path(), &[quota("a", 100)]);
    let following = RunningAdapter::start(&[
        "--file",
        file.path(),
        "--memcached",
        &server.address,
        "--quota-timeout",
        "1h",
        "--share",
        "0.5",
        "--minimum",
        "8MiB",
    ]);
    let limit = (100 * MIB + used) / 2 / MIB * MIB;
    assert_eq!(following.change()["limit_bytes"], limit);

    // memcached fills its limit. The next sample has that much less memory available, and the limit stays.
    fill(&mut talk, 1200);
    let more = talk.stats("slabs")["total_malloced"] - used;
    assert!(more > 20 * MIB, "{more}");
    // A quota was determined some time before its message arrives. So the use before the growth counts at
    // first.
    let expected = limit + 15 * MIB;
    let mut next = quota("a", 0);
    wait_for("its growth to be seen", || {
        let other = next.quota_bytes % 2;
        next.quota_bytes = 130 * MIB - more + 1 - other;
        file.set(&[next.clone()]);
        talk.stats("")["limit_maxbytes"].abs_diff(expected) <= MIB
    });
}

#[test]
fn without_news_it_has_the_minimum() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::memcached(&unused_address(), 64);
    let file = QuotaFile::new(folder.path(), &[quota("a", 100)]);
    let following = RunningAdapter::start(&[
        "--file",
        file.path(),
        "--memcached",
        &server.address,
        "--quota-includes-use",
        "--minimum",
        "20MiB",
        "--quota-timeout",
        "3s",
    ]);
    assert_eq!(following.change()["limit_bytes"], 100 * MIB);
    let change = following.change();
    assert_eq!(
        (
            change["limit_bytes"].as_u64(),
            change["limit_reason"].as_str()
        ),
        (Some(20 * MIB), Some("lost"))
    );
    file.set(&[quota("a", 100)]);
    assert_eq!(following.change()["limit_bytes"], 100 * MIB);
    std::fs::remove_file(&file.0).unwrap();
    following.0.hear("cannot read");
    let change = following.change();
    assert_eq!(
        (
            change["limit_bytes"].as_u64(),
            change["limit_reason"].as_str()
        ),
        (Some(20 * MIB), Some("lost"))
    );
}
