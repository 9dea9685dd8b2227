//! Other people's NBD clients against `gleaner-memoryd serve`: libnbd's, qemu's, and fio.

use crate::host::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

/// Of the export.
const SIZE_MIB: u64 = 64;

/// A server, ended with the value.
struct Server {
    child: Child,
    url: String,
    said: Option<ChildStderr>,
}

impl Server {
    fn start(listen: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_gleaner-memoryd"))
            .args([
                "serve",
                "--standalone",
                &format!("{SIZE_MIB}MiB"),
                "--listen",
                listen,
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut url)
            .unwrap();
        let said = child.stderr.take();
        Self {
            child,
            url: url.trim().to_owned(),
            said,
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it as a service manager would; what it had to say.
    fn end(mut self) -> String {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success());
        let mut said = String::new();
        self.said.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(program: &str, args: &[&str]) -> Output {
    let ended = Command::new(program).args(args).output();
    ended.unwrap_or_else(|e| panic!("{program}: {e}; `make setup` installs it"))
}

#[track_caller]
fn succeeds(program: &str, args: &[&str]) -> String {
    let ended = run(program, args);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{program} {args:?}: {said}");
    String::from_utf8(ended.stdout).unwrap()
}

/// Bytes that repeat nowhere near, with a hole in them.
fn contents() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes: Vec<u8> = (0..SIZE_MIB << 20)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect();
    bytes[10 << 20..20 << 20].fill(0);
    bytes
}

fn everywhere(test: impl Fn(&Server, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pages.sock");
    for listen in ["127.0.0.1:0", "[::1]:0", socket.to_str().unwrap()] {
        let server = Server::start(listen);
        test(&server, folder.path());
        let said = server.end();
        assert!(said.contains(" 0 of them with an error"), "{said}");
        assert!(!socket.exists());
    }
}

#[test]
fn libnbd_sees_what_the_export_is() {
    everywhere(|server, _| {
        let told: serde_json::Value =
            serde_json::from_str(&succeeds("nbdinfo", &["--json", &server.url])).unwrap();
        assert_eq!(told["protocol"], "newstyle-fixed");
        assert_eq!(told["TLS"], false);
        let export = &told["exports"][0];
        assert_eq!(export["export-size"], SIZE_MIB << 20);
        assert_eq!(export["block_size_preferred"], 4096);
        for can in [
            "can_flush",
            "can_fua",
            "can_trim",
            "can_zero",
            "can_fast_zero",
            "can_cache",
            "can_multi_conn",
        ] {
            assert_eq!(export[can], true, "{can}");
        }
        assert_eq!(export["is_read_only"], false);
        let listed: serde_json::Value =
            serde_json::from_str(&succeeds("nbdinfo", &["--json", "--list", &server.url])).unwrap();
        assert_eq!(listed["exports"].as_array().unwrap().len(), 1);
        let said = String::from_utf8(run("nbdinfo", &[&format!("{}/nothing", server.url)]).stderr)
            .unwrap();
        assert!(
            server.url.starts_with("nbd+unix") || said.contains("No such file"),
            "{said}"
        );
    });
}

#[test]
fn what_nbdcopy_and_qemu_write_they_read_again() {
    everywhere(|server, folder| {
        let (given, copied, converted) = (
            folder.join("given"),
            folder.join("copied"),
            folder.join("converted"),
        );
        let contents = contents();
        fs::write(&given, &contents).unwrap();
        succeeds("nbdcopy", &[given.to_str().unwrap(), &server.url]);
        succeeds(
            "nbdcopy",
            &["--connections=4", &server.url, copied.to_str().unwrap()],
        );
        assert!(fs::read(&copied).unwrap() == contents, "nbdcopy");
        // Here it has no holes yet; qemu makes some.
        succeeds(
            "qemu-img",
            &[
                "convert",
                "-n",
                "-f",
                "raw",
                "-O",
                "raw",
                given.to_str().unwrap(),
                &server.url,
            ],
        );
        succeeds(
            "qemu-img",
            &[
                "convert",
                "-f",
                "raw",
                "-O",
                "raw",
                &server.url,
                converted.to_str().unwrap(),
            ],
        );
        assert!(
            fs::read(&converted).unwrap() == contents,
            "qemu-img convert"
        );
        succeeds(
            "qemu-img",
            &[
                "compare",
                "-f",
                "raw",
                "-F",
                "raw",
                given.to_str().unwrap(),
                &server.url,
            ],
        );
        succeeds(
            "qemu-io",
            &[
                "-f",
                "raw",
                "-c",
                "write -P 7 1M 3M",
                "-c",
                "discard 2M 1M",
                "-c",
                "flush",
                "-c",
                "read -P 7 1M 1M",
                "-c",
                "read -P 0 2M 1M",
                "-c",
                "write -z 1M 512",
                "-c",
                "read -P 0 1M 512",
                "-c",
                "read -P 7 1049088 512",
                &server.url,
            ],
        );
    });
}

#[test]
fn fio_finds_what_it_wrote_with_many_requests_under_way() {
    everywhere(|server, folder| {
        let url = format!("--uri={}", server.url);
        let state = format!("--aux-path={}", folder.display());
        for (sizes, depth) in [("4k-4k", "64"), ("512-256k", "16")] {
            succeeds(
                "fio",
                &[
                    "--name=verified",
                    "--ioengine=nbd",
                    &url,
                    &state,
                    "--rw=randwrite",
                    &format!("--bsrange={sizes}"),
                    "--bs_unaligned=0",
                    "--size=64m",
                    &format!("--iodepth={depth}"),
                    "--verify=crc32c",
                    "--verify_fatal=1",
                    "--randseed=7",
                ],
            );
        }
    });
}

#[test]
fn clients_fail_at_once_when_the_server_ends() {
    let server = Server::start("127.0.0.1:0");
    let url = format!("--uri={}", server.url);
    let args = [
        "--name=endless",
        "--ioengine=nbd",
        &url,
        "--rw=randrw",
        "--bs=4k",
        "--size=64m",
        "--iodepth=8",
        "--time_based",
        "--runtime=600",
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut fio = Command::new("fio")
        .args(args)
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It writes: the server's memory grows by that.
    let status = format!("/proc/{}/status", server.child.id());
    wait_for("pages", || {
        let status = fs::read_to_string(&status).unwrap();
        let rss = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = rss.trim().strip_suffix(" kB")?.trim().parse().unwrap();
        (kib > 24 << 10).then_some(())
    });
    server.end();
    assert!(!fio.wait().unwrap().success());
}

#[test]
fn it_serves_this_machine_alone_and_says_what_is_wrong() {
    let memoryd = env!("CARGO_BIN_EXE_gleaner-memoryd");
    let said = |listen: &str| {
        let ended = run(
            memoryd,
            &["serve", "--standalone", "1MiB", "--listen", listen],
        );
        assert!(!ended.status.success());
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(said("0.0.0.0:0").contains("open to anybody"));
    assert!(said("localhost").contains("neither HOST:PORT nor a path"));
    let server = Server::start("127.0.0.1:0");
    let taken = server.url.strip_prefix("nbd://").unwrap();
    assert!(said(taken).contains(&format!("listen at {taken}")));
    // What a killed server left at a path is no hindrance.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.sock");
    let first = Server::start(path.to_str().unwrap());
    assert!(said(path.to_str().unwrap()).contains("in use"));
    first.signal(Signal::KILL);
    drop(first);
    assert!(path.exists());
    let second = Server::start(path.to_str().unwrap());
    succeeds("nbdinfo", &["--size", &second.url]);
}
