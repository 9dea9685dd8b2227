//! Controls memcached, by its text protocol (`doc/protocol.txt`).
//!
//! `cache_memlimit` alone frees nothing while all pages are full. `slabs reassign CLASS 0` evicts the items
//! of one page of a class, and frees this page.

use super::{Failure, PATIENCE, State};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
/// Limits that memcached accepts. It refuses smaller ones (`MEMLIMIT_TOO_SMALL`) and larger ones
/// (`MEMLIMIT_ADJUST_FAILED`).
const LIMITS_MIB: std::ops::RangeInclusive<u64> = 8..=1_000_000_000;
/// Maximum time for freeing pages before the quota is checked again.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Pause while memcached empties a page, which takes about half a millisecond.
const BUSY: Duration = Duration::from_micros(500);
const LONGEST_LINE_BYTES: u64 = 4096;

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

pub(in super::super) struct Memcached {
    address: String,
    connection: Option<BufReader<Box<dyn Stream>>>,
}

/// Nearest limit that memcached accepts, in whole MiB.
pub(super) fn nearest(bytes: u64) -> u64 {
    (bytes / MIB).clamp(*LIMITS_MIB.start(), *LIMITS_MIB.end()) * MIB
}

impl Memcached {
    pub(super) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            connection: None,
        }
    }

    pub(super) fn name(&self) -> String {
        format!("memcached at {}", self.address)
    }

    pub(super) fn state(&mut self) -> Result<State, Failure> {
        let general = self.figures("stats")?;
        Ok(State {
            used_bytes: self.held_bytes()?,
            limit_bytes: self.figure(&general, "limit_maxbytes")?,
        })
    }

    pub(super) fn set_limit(&mut self, bytes: u64) -> Result<(), Failure> {
        let answer = self.ask(&format!("cache_memlimit {}", bytes / MIB))?;
        if answer == "OK" {
            return Ok(());
        }
        Err(self.failure(format!("cache_memlimit: {answer}")))
    }

    pub(super) fn shrink_to_limit(&mut self) -> Result<(), Failure> {
        let limit_bytes = self.state()?.limit_bytes;
        let begin = Instant::now();
        while begin.elapsed() < AT_ONCE {
            let slabs = self.figures("stats slabs")?;
            if self.figure(&slabs, "total_malloced")? <= limit_bytes {
                return Ok(());
            }
            // memcached never frees the last page of a class.
            let pages = slabs.iter().filter_map(|(name, pages)| {
                let class = name.strip_suffix(":total_pages")?;
                let pages: u64 = pages.parse().ok()?;
                (pages > 1).then_some((pages, class))
            });
            let Some((_, class)) = pages.max() else {
                return Ok(());
            };
            let answer = self.ask(&format!("slabs reassign {class} 0"))?;
            if answer.starts_with("BUSY") {
                std::thread::sleep(BUSY);
            } else if answer != "OK" {
                return Err(self.failure(format!("slabs reassign: {answer}")));
            }
        }
        Ok(())
    }

    fn held_bytes(&mut self) -> Result<u64, Failure> {
        let slabs = self.figures("stats slabs")?;
        self.figure(&slabs, "total_malloced")
    }

    fn figure(&self, figures: &[(String, String)], name: &str) -> Result<u64, Failure> {
        let found = figures.iter().find(|(n, _)| n == name);
        let found = found.and_then(|(_, value)| value.parse().ok());
        found.ok_or_else(|| self.failure(format!("{name} is missing in its figures")))
    }

    /// Sends a command, and reads the answer's lines `STAT NAME VALUE` up to `END`.
    fn figures(&mut self, command: &str) -> Result<Vec<(String, String)>, Failure> {
        let mut line = self.ask(command)?;
        let mut figures = Vec::new();
        while line != "END" {
            let mut words = line.splitn(3, ' ');
            let (Some("STAT"), Some(name), value) = (words.next(), words.next(), words.next())
            else {
                self.connection = None;
                return Err(self.failure(format!("{command}: {line}")));
            };
            figures.push((name.to_owned(), value.unwrap_or_default().to_owned()));
            line = self.try_with(read_line)?;
        }
        Ok(figures)
    }

    fn ask(&mut self, command: &str) -> Result<String, Failure> {
        self.try_with(|connection| {
            write!(connection.get_mut(), "{command}\r\n")?;
            read_line(connection)
        })
    }

    /// Runs a command. After a failure it closes the connection, since the next answer could belong to either
    /// command.
    fn try_with<T>(
        &mut self,
        work: impl FnOnce(&mut BufReader<Box<dyn Stream>>) -> io::Result<T>,
    ) -> Result<T, Failure> {
        let done = match &mut self.connection {
            Some(connection) => work(connection),
            none => {
                connect(&self.address).and_then(|stream| work(none.insert(BufReader::new(stream))))
            }
        };
        done.map_err(|e| {
            self.connection = None;
            self.failure(e.to_string())
        })
    }

    fn failure(&self, why: String) -> Failure {
        Failure::Server {
            name: "memcached",
            address: self.address.clone(),
            why,
        }
    }
}

fn read_line(connection: &mut BufReader<Box<dyn Stream>>) -> io::Result<String> {
    let mut line = String::new();
    connection.take(LONGEST_LINE_BYTES).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn connect(address: &str) -> io::Result<Box<dyn Stream>> {
    if address.starts_with('/') {
        let stream = UnixStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        return Ok(Box::new(stream));
    }
    let mut last = io::Error::other("no such address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_write_timeout(Some(PATIENCE))?;
                return Ok(Box::new(stream));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_would_refuse_is_not_asked_for() {
        assert_eq!(nearest(0), 8 * MIB);
        assert_eq!(nearest(64 * MIB + 5), 64 * MIB);
        assert_eq!(nearest(u64::MAX), 1_000_000_000 * MIB);
    }
}
