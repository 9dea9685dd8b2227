//! Memory servers that the tests start on loopback addresses.

use super::following::wait_for;
use gleaner_harness::Running;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A memory server started by a test; killed when dropped.
pub(super) struct Server {
    running: Running,
    pub(super) address: String,
}

impl Server {
    /// Starts Debian's `memcached` with an initial limit in MiB.
    pub(super) fn memcached(address: &str, limit_mib: u64) -> Self {
        let (host, port) = address.split_once(':').unwrap();
        let mut command = unpacked("memcached", "memcached");
        command.args([
            "-u",
            "root",
            "-l",
            host,
            "-p",
            port,
            "-m",
            &limit_mib.to_string(),
        ]);
        Self::start(command, address)
    }

    /// Starts Debian's `redis-server` with these further words on its command line.
    pub(super) fn redis(folder: &Path, address: &str, words: &str) -> Self {
        let (host, port) = address.split_once(':').unwrap();
        let mut command = unpacked("redis", "redis-server");
        command.args(["--bind", host, "--port", port, "--save", "", "--dir"]);
        command.arg(folder).args(words.split(' '));
        Self::start(command, address)
    }

    fn start(mut command: Command, address: &str) -> Self {
        let server = Self {
            running: Running::start(command.stdout(Stdio::null())),
            address: address.to_owned(),
        };
        // Waits for an answer, since a server that has just begun to listen may reset its first connections.
        wait_for("the server", || {
            let answer = || -> std::io::Result<()> {
                let mut stream = TcpStream::connect(address)?;
                stream.write_all(b"PING\r\n")?;
                stream.read_exact(&mut [0])
            };
            answer().is_ok()
        });
        server
    }

    pub(super) fn connect(&self) -> TestConnection {
        TestConnection(BufReader::new(TcpStream::connect(&self.address).unwrap()))
    }

    pub(super) fn resident_bytes(&self) -> u64 {
        gleaner_harness::resident_bytes(self.running.id())
    }
}

/// Command that runs a program in target/FOLDER with the libraries that are there.
fn unpacked(folder: &str, program: &str) -> Command {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../target")
        .join(folder);
    let libraries = std::fs::read_dir(folder.join("usr/lib"));
    let libraries: Vec<PathBuf> = libraries
        .expect("the server is missing: tests/setup unpacks it")
        .map(|entry| entry.unwrap().path())
        .collect();
    let mut command = Command::new(folder.join("usr/bin").join(program));
    command.env("LD_LIBRARY_PATH", std::env::join_paths(libraries).unwrap());
    command
}

/// An unused address, as text for the command line of a server.
pub(super) fn unused_address() -> String {
    gleaner_harness::unused_address().to_string()
}

/// A connection to a server whose protocol consists of lines.
pub(super) struct TestConnection(BufReader<TcpStream>);

impl TestConnection {
    pub(super) fn line(&mut self, command: &[u8]) -> String {
        self.0.get_mut().write_all(command).unwrap();
        self.read_line()
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Asks memcached for its statistics.
    pub(super) fn stats(&mut self, which: &str) -> BTreeMap<String, u64> {
        let mut line = self.line(format!("stats {which}\r\n").replace(" \r", "\r").as_bytes());
        let mut figures = BTreeMap::new();
        while line != "END" {
            let words: Vec<&str> = line.split(' ').collect();
            if let Ok(value) = words[2].parse() {
                figures.insert(words[1].to_owned(), value);
            }
            line = self.read_line();
        }
        figures
    }

    /// Sends a command to Redis, and returns the text that Redis answers.
    pub(super) fn bulk(&mut self, command: &str) -> String {
        let length = self.line(format!("{command}\r\n").as_bytes());
        let length: usize = length.strip_prefix('$').expect(&length).parse().unwrap();
        let mut text = vec![0; length + 2];
        self.0.read_exact(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }
}
