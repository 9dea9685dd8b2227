//! Tests files of quotas that are outdated, or do not contain this host.

use super::following::{QuotaFile, once, quota};
use super::servers::{Server, unused_address};
use std::fs::File;
use std::time::{Duration, SystemTime};

#[test]
fn a_quota_that_is_not_this_hosts_or_not_todays_sets_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::memcached(&unused_address(), 64);
    let file = QuotaFile::new(folder.path(), &[quota("a", 100), quota("b", 100)]);
    let refused = |more: &[&str], words: &str| {
        let args = [
            "--file",
            file.path(),
            "--memcached",
            &server.address,
            "--quota-timeout",
            "2s",
        ];
        let output = once(&[&args[..], more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(
            output.status.code() == Some(1) && said.contains(words),
            "{said}"
        );
        assert_eq!(server.connect().stats("")["limit_maxbytes"], 64 << 20);
    };
    refused(&[], "name the host");
    refused(&["--host", "c"], "has no host c");

    let hour = Duration::from_secs(3600);
    let opened = File::options().write(true).open(&file.0).unwrap();
    opened.set_modified(SystemTime::now() - hour).unwrap();
    refused(&["--host", "a"], "is its writer running?");
    std::fs::write(&file.0, "{").unwrap();
    refused(&["--host", "a"], "has no quotas");
}
