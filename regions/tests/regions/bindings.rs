//! The library as used by C and Python programs: built, linked with pkg-config's flags, and run while their
//! server is killed.

use crate::server::memory_server;
use gleaner_harness::{Running, program, succeed};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn built() -> PathBuf {
    program("deps").unwrap().join("libgleaner_regions.so")
}

/// Installs the built library under `prefix` with the crate's `install` script.
fn install(prefix: &Path) {
    let mut install = Command::new(own("install"));
    succeed(install.arg("--library").arg(built()).arg(prefix));
}

/// Starts a program, waits until it is ready, kills its server, and checks that the program continues. The
/// server listens at a Unix socket: writing to a closed one causes SIGPIPE.
#[track_caller]
fn outlives_its_server(command: &mut Command, folder: &Path) {
    let socket = folder.join("pages.sock");
    let server = memory_server(socket.to_str().unwrap());
    let command = command.env("GLEANER_REGIONS_SERVERS", &server.url);
    let mut running = Running::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    assert_eq!(running.printed(), "ready");
    drop(server);
    running.input().unwrap().write_all(b"go\n").unwrap();
    assert_eq!(running.printed(), "done");
    assert_eq!(running.ended().0, Some(0));
}

#[test]
fn a_program_in_c_is_built_with_pkg_config_and_outlives_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    install(path);
    let flags = succeed(
        Command::new("pkg-config")
            .args(["--cflags", "--libs", "gleaner-regions"])
            .env("PKG_CONFIG_PATH", path.join("lib/pkgconfig")),
    );
    let program = path.join("program");
    let mut gcc = Command::new("gcc");
    gcc.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-o",
    ]);
    gcc.arg(&program).arg(own("tests/c/regions.c"));
    succeed(gcc.args(flags.split_whitespace()).arg("-lpthread"));
    let mut command = Command::new(&program);
    command
        .arg(path.join("data"))
        .env("LD_LIBRARY_PATH", path.join("lib"));
    outlives_its_server(&mut command, path);
}

#[test]
fn a_program_in_python_outlives_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let lib = folder.path().join("lib");
    install(folder.path());
    let mut command = Command::new("python3");
    command
        .arg(own("tests/python/regions.py"))
        .arg(folder.path().join("data"))
        .env("PYTHONPATH", lib.join("gleaner/python"))
        .env("LD_LIBRARY_PATH", lib);
    outlives_its_server(&mut command, folder.path());
}

/// The header and the library declare the same names.
#[test]
fn header_and_library_have_the_same_names() {
    let header = fs::read_to_string(own("include/gleaner_regions.h")).unwrap();
    let symbols = succeed(
        Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(built()),
    );
    let ours = |text: &str, from: usize| -> String {
        let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        text[from..].chars().take_while(is_name).collect()
    };
    let mut declared: Vec<String> = header
        .match_indices("gleaner_m")
        .map(|(at, _)| ours(&header, at))
        .filter(|name| header.contains(&format!("{name}(")))
        .collect();
    let mut exported: Vec<String> = symbols
        .lines()
        .filter(|line| line.starts_with("gleaner_"))
        .map(|line| ours(line, 0))
        .collect();
    for names in [&mut declared, &mut exported] {
        names.sort_unstable();
        names.dedup();
    }
    assert_eq!(declared, exported);
}
