//! Tests of third-party NBD clients with `gleaner-memoryd standalone`: those of libnbd and qemu, and fio.

use gleaner_harness::{MemoryServer, resident_bytes, succeed, wait_for};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Size of the export.
const SIZE_MIB: u64 = 64;

fn start(listen: &str) -> MemoryServer {
    MemoryServer::start(&format!("{SIZE_MIB}MiB"), listen)
}

#[track_caller]
fn succeeds(program: &str, args: &[&str]) -> String {
    succeed(Command::new(program).args(args))
}

/// Ends a server as a service manager would; returns its last output.
#[track_caller]
fn end(server: MemoryServer) -> String {
    let (code, said) = server.running.end();
    assert_eq!(code, Some(0), "{said:?}");
    said.concat()
}

/// Returns bytes without repetitions near each other, and with a hole of zeroes.
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

fn everywhere(test: impl Fn(&MemoryServer, &Path)) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pages.sock");
    for listen in ["127.0.0.1:0", "[::1]:0", socket.to_str().unwrap()] {
        let server = start(listen);
        test(&server, folder.path());
        let said = end(server);
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
        let nothing = format!("{}/nothing", server.url);
        let ended = Command::new("nbdinfo").arg(nothing).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
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
        // The file has no holes yet; qemu makes some.
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
    let server = start("127.0.0.1:0");
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
    // fio's writes make the server's memory grow.
    wait_for("pages", || resident_bytes(server.running.id()) > 24 << 20);
    end(server);
    assert!(!fio.wait().unwrap().success());
}

#[test]
fn it_serves_this_machine_alone_and_says_what_is_wrong() {
    let memoryd = env!("CARGO_BIN_EXE_gleaner-memoryd");
    let said = |listen: &str| {
        let mut command = Command::new(memoryd);
        command.args(["standalone", "1MiB", "--listen", listen]);
        let ended = command.output().unwrap();
        assert!(!ended.status.success());
        String::from_utf8(ended.stderr).unwrap()
    };
    assert!(said("0.0.0.0:0").contains("open to anybody"));
    assert!(said("localhost").contains("neither HOST:PORT nor a path"));
    let server = start("127.0.0.1:0");
    let taken = server.url.strip_prefix("nbd://").unwrap();
    assert!(said(taken).contains(&format!("listen at {taken}")));
    // The socket file of a killed server is replaced.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pages.sock");
    let first = start(path.to_str().unwrap());
    assert!(said(path.to_str().unwrap()).contains("in use"));
    drop(first);
    assert!(path.exists());
    let second = start(path.to_str().unwrap());
    succeeds("nbdinfo", &["--size", &second.url]);
}
