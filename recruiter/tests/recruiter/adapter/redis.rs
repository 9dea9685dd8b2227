//! Tests that Redis stays within a host's quota.

use super::following::{MIB, QuotaFile, RunningAdapter, once, quota, wait_for};
use super::servers::{Server, unused_address};

fn figure(info: &str, name: &str) -> u64 {
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn its_limit_follows_the_quota_and_keys_are_evicted() {
    let folder = tempfile::tempdir().unwrap();
    let words = "--requirepass secret --maxmemory-policy allkeys-lru";
    let server = Server::redis(folder.path(), &unused_address(), words);
    let password = folder.path().join("password");
    std::fs::write(&password, "secret\n").unwrap();
    let file = QuotaFile::new(folder.path(), &[quota("a", 160)]);
    let following = RunningAdapter::start(&[
        "--file",
        file.path(),
        "--redis",
        &server.address,
        "--password-file",
        password.to_str().unwrap(),
        "--quota-includes-use",
        "--minimum",
        "16MiB",
        "--quota-timeout",
        "1h",
    ]);
    let change = following.change();
    assert_eq!(
        (
            change["previous_limit_bytes"].as_u64(),
            change["limit_bytes"].as_u64()
        ),
        (Some(0), Some(160 * MIB))
    );

    let mut talk = server.connect();
    assert_eq!(talk.line(b"AUTH secret\r\n"), "+OK");
    assert_eq!(
        talk.line(b"DEBUG POPULATE 2400 key 50000\r\n")
            .chars()
            .next(),
        Some('-'),
        "not allowed by default"
    );
    for n in 0..2400 {
        let command = format!("SETRANGE k{n} 49999 x\r\n");
        assert_eq!(talk.line(command.as_bytes()), ":50000");
    }
    assert!(figure(&talk.bulk("INFO memory"), "used_memory") > 110 * MIB);
    let resident_full = server.resident_bytes();

    file.set(&[quota("a", 48)]);
    assert_eq!(following.change()["limit_bytes"], 48 * MIB);
    wait_for("keys to be evicted", || {
        figure(&talk.bulk("INFO memory"), "used_memory") <= 48 * MIB
    });
    assert!(figure(&talk.bulk("INFO stats"), "evicted_keys") > 1000);
    wait_for("the kernel to have the memory", || {
        server.resident_bytes() + 50 * MIB < resident_full
    });

    assert_eq!(following.0.end().0, Some(0));
    assert_eq!(figure(&talk.bulk("INFO memory"), "maxmemory"), 16 * MIB);
}

#[test]
fn what_it_cannot_do_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::redis(folder.path(), &unused_address(), "--requirepass secret");
    let file = QuotaFile::new(folder.path(), &[quota("a", 100)]);
    let args = ["--file", file.path(), "--redis", &server.address];
    let refused = once(&args);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(
        said.contains("Redis") && said.contains("uthentication required"),
        "{said}"
    );

    let password = folder.path().join("password");
    std::fs::write(&password, "secret").unwrap();
    let done = once(
        &[
            &args[..],
            &[
                "--password-file",
                password.to_str().unwrap(),
                "--quota-includes-use",
            ],
        ]
        .concat(),
    );
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(
        done.status.success() && said.contains("evicts nothing"),
        "{said}"
    );
    let told = String::from_utf8(done.stdout).unwrap();
    assert!(told.contains("no limit → 100.0 MiB"), "{told}");
}
