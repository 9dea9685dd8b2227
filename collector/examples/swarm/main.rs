//! Sends the records of a whole cluster from one process, for benchmarks. Each host has its own certificate
//! and its own TLS connection, and sends the records of a synthetic host.
//!
//! ```text
//! swarm --pki DIR --url 127.0.0.1:7443 --hosts 10000 --seconds 300               a sample each, every 90 s
//! swarm --pki DIR --url 127.0.0.1:7443 --hosts 10000 --backlog 960 --at-once 32  a day each, at once
//! swarm --pki DIR --url A:1,A:2 --hosts 19000 --connect-seconds 600              two collectors, hosts in turn
//! swarm --pki DIR --url A:1,A:2 --first 19000 --hosts 19000 --interval-seconds 450   the next 19,000, five times as seldom
//! swarm --pki DIR --hosts 50 --seconds 0                                         certificates alone, and an authority
//! swarm --hosts 50 --backlog 960 --dump DIR                                      the same bodies into files, unsent
//! ```
//!
//! Sixteen synthetic hosts are generated. All other hosts are copies of these with their own ids, so this
//! process needs little CPU time. A host's certificate is read when the host connects. More than 20,000 hosts use
//! several addresses of the loopback network, as one address has some 28,000 ports. Prints JSON.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod certificates;

use certificates::Certificates;
use gleaner_dataset::{Batch, Identity, RowsBuilder};
use gleaner_schemas::rows::TABLES;
use gleaner_traces::synth::{Cluster, Parameters, Preset};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, Semaphore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const TEMPLATES: usize = 16;
/// An agent's default interval between samples, in seconds.
const INTERVAL_S: usize = 90;
/// Maximum number of records in an agent's batch.
const RECORDS_AT_ONCE: usize = 512;
/// Number of hosts that share an address of the loopback network.
const HOSTS_OF_ADDRESS: usize = 20_000;

struct Args {
    pki: PathBuf,
    /// Addresses of the collectors, to which hosts are assigned in turn.
    collectors: Vec<String>,
    /// Number of the first host, so that several processes send for hosts of their own.
    first: usize,
    hosts: usize,
    seconds: u64,
    /// Time between two batches of a host, in seconds.
    interval_seconds: u64,
    /// Time over which the hosts connect and send their first batches, in seconds.
    connect_seconds: u64,
    backlog: usize,
    at_once: usize,
    dump: Option<PathBuf>,
}

/// An uncompressed batch in which each host's ids are filled in.
struct Template {
    content: Vec<u8>,
    rows: u64,
    host_id: String,
    database_id: String,
}

/// Time until a batch was acknowledged.
#[derive(Clone, Copy)]
struct Latency {
    us: u64,
    /// Index of the collector.
    collector: usize,
    /// True if the host was connected before; false if the time includes the TLS handshake.
    was_connected: bool,
}

#[derive(Default)]
struct Sums {
    batches: AtomicU64,
    rows: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    failures: AtomicU64,
    last_failure: Mutex<String>,
    latencies: Mutex<Vec<Latency>>,
}

fn main() {
    let args = args();
    let count = if args.backlog > 0 {
        args.backlog
    } else {
        (args.length().as_secs() / args.interval_seconds + 2) as usize
    };
    let records = if args.backlog > 0 { RECORDS_AT_ONCE } else { 1 };
    eprintln!("making {count} samples of {TEMPLATES} hosts");
    let templates = Arc::new(templates(count, records));
    if let Some(folder) = &args.dump {
        return dump(&args, &templates, folder);
    }
    let certificates = Arc::new(Certificates::open(&args.pki, args.numbers()));
    if args.seconds == 0 {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let sums = Arc::new(Sums::default());
    let begin = Instant::now();
    runtime.block_on(send_all(&args, &templates, &certificates, &sums));
    report(&args, &sums, begin.elapsed());
}

fn args() -> Args {
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    let mut words = std::env::args().skip(1);
    while let Some(key) = words.next() {
        given.insert(key, words.next().expect("a value after each option"));
    }
    let number = |key: &str, or: usize| given.get(key).map_or(or, |v| v.parse().expect(key));
    Args {
        pki: given.get("--pki").cloned().unwrap_or_default().into(),
        collectors: given
            .get("--url")
            .map(|urls| urls.split(',').map(str::to_owned).collect())
            .unwrap_or_default(),
        dump: given.get("--dump").map(PathBuf::from),
        first: number("--first", 0),
        hosts: number("--hosts", 100),
        seconds: number("--seconds", 180) as u64,
        interval_seconds: number("--interval-seconds", INTERVAL_S) as u64,
        connect_seconds: number("--connect-seconds", INTERVAL_S) as u64,
        backlog: number("--backlog", 0),
        at_once: number("--at-once", 64),
    }
}

impl Args {
    /// Numbers of the hosts.
    fn numbers(&self) -> Range<usize> {
        self.first..self.first + self.hosts
    }

    /// Length of the run. A longer time for connecting makes it longer by as much.
    fn length(&self) -> Duration {
        let longer_s = self.connect_seconds.saturating_sub(self.interval_seconds);
        Duration::from_secs(self.seconds + longer_s)
    }
}

/// Writes the batches to files instead of sending them, and prints the number of rows.
fn dump(args: &Args, templates: &[Vec<Template>], folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    let mut rows = 0;
    for n in args.numbers() {
        for (at, batch) in templates[n % TEMPLATES].iter().enumerate() {
            std::fs::write(folder.join(format!("{n:06}-{at:04}.batch")), batch.body(n)).unwrap();
            rows += batch.rows;
        }
    }
    println!("{:#}", serde_json::json!({ "rows": rows }));
}

/// Makes the batches of each synthetic host, in order.
fn templates(samples: usize, records_at_once: usize) -> Vec<Vec<Template>> {
    let parameters = Parameters {
        hosts: TEMPLATES,
        days: u32::try_from(1 + samples / 960 * 3).unwrap(),
        interval_ms: INTERVAL_S as i64 * 1000,
        ..Parameters::of_preset(Preset::Modern, 1).unwrap()
    };
    let cluster = Cluster::new(&parameters).unwrap();
    (0..TEMPLATES)
        .map(|index| {
            let mut host = cluster.host(index);
            let (host_id, database_id) = (host.host_id().to_owned(), host.database_id().to_owned());
            let mut batches = Vec::new();
            let mut left = samples;
            while left > 0 {
                // With one record per batch, only samples are sent. The few rows that an agent sends at its
                // start would distort the mean.
                let records: Vec<_> = host
                    .by_ref()
                    .filter(|record| records_at_once > 1 || record.rows_count() > 1)
                    .take(records_at_once.min(left))
                    .collect();
                assert!(!records.is_empty(), "the synthetic trace is too short");
                left -= records.len();
                batches.push(template(&host_id, &database_id, &records));
            }
            batches
        })
        .collect()
}

fn template(
    host_id: &str,
    database_id: &str,
    records: &[gleaner_traces::synth::Record],
) -> Template {
    let mut builders: BTreeMap<&str, RowsBuilder> = TABLES
        .iter()
        .map(|table| (table.name, RowsBuilder::new(table)))
        .collect();
    let mut rows = 0;
    for record in records {
        let identity = Identity {
            host_id,
            database_id,
            sequence: record.sequence,
            time_ms: record.time_ms,
        };
        let pushed = record.try_each(|table, values| {
            rows += 1;
            builders.get_mut(table).unwrap().push(identity, values)
        });
        pushed.unwrap();
    }
    let tables: Vec<_> = TABLES
        .iter()
        .map(|table| {
            (
                *table,
                builders.remove(table.name).unwrap().finish().unwrap(),
            )
        })
        .collect();
    let body = Batch::encode(&tables).unwrap();
    Template {
        content: zstd::decode_all(body.as_slice()).unwrap(),
        rows,
        host_id: host_id.to_owned(),
        database_id: database_id.to_owned(),
    }
}

impl Template {
    /// Makes the batch as host number `n` would send it.
    fn body(&self, n: usize) -> Vec<u8> {
        let mut content = self.content.clone();
        for (from, to) in [
            (&self.host_id, host_id(n)),
            (&self.database_id, host_id(n + (1 << 40))),
        ] {
            let mut at = 0;
            while let Some(found) = find(&content[at..], from.as_bytes()) {
                // In their column, the ids follow each other without a gap.
                at += found;
                content[at..at + 32].copy_from_slice(to.as_bytes());
                at += 32;
            }
        }
        zstd::encode_all(content.as_slice(), 3).unwrap()
    }
}

fn find(content: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted[0];
    let mut at = 0;
    while let Some(candidate) = content[at..].iter().position(|&b| b == first) {
        at += candidate;
        if content[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
    None
}

fn host_id(n: usize) -> String {
    format!(
        "{:032x}",
        (n as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    )
}

async fn send_all(
    args: &Args,
    templates: &Arc<Vec<Vec<Template>>>,
    certificates: &Arc<Certificates>,
    sums: &Arc<Sums>,
) {
    let turns = Arc::new(Semaphore::new(args.at_once));
    let end = Instant::now() + args.length();
    let collectors: Vec<SocketAddr> = args.collectors.iter().map(|c| c.parse().unwrap()).collect();
    let connecting = Duration::from_secs(args.connect_seconds);
    let interval = Duration::from_secs(args.interval_seconds);
    let hosts: Vec<_> = args
        .numbers()
        .map(|n| {
            let (templates, sums, turns) = (templates.clone(), sums.clone(), turns.clone());
            let phase = connecting.mul_f64((n - args.first) as f64 / args.hosts as f64);
            let is_backlog = args.backlog > 0;
            let collector = n % collectors.len();
            let mut host = Host {
                n,
                collector,
                address: collectors[collector],
                source: source(args.numbers().end, n),
                certificates: certificates.clone(),
                connection: None,
            };
            tokio::spawn(async move {
                let batches = &templates[n % TEMPLATES];
                if is_backlog {
                    let _turn = turns.acquire().await.unwrap();
                    for batch in batches {
                        host.deliver(batch, &sums).await;
                    }
                    return;
                }
                let mut due = Instant::now() + phase;
                for batch in batches {
                    if due > end {
                        break;
                    }
                    tokio::time::sleep_until(due.into()).await;
                    host.deliver(batch, &sums).await;
                    due += interval;
                }
                // The connection stays open until all hosts have sent.
                tokio::time::sleep_until(end.into()).await;
            })
        })
        .collect();
    for host in hosts {
        host.await.unwrap();
    }
}

/// Address from which host number `n` of `hosts` connects; `None` for the kernel's choice, which suffices for few.
fn source(hosts: usize, n: usize) -> Option<SocketAddr> {
    let number = u8::try_from(1 + n / HOSTS_OF_ADDRESS).expect("at most 255 addresses");
    (hosts > HOSTS_OF_ADDRESS).then(|| (Ipv4Addr::new(127, 0, 1, number), 0).into())
}

struct Host {
    n: usize,
    /// Index of the collector.
    collector: usize,
    address: SocketAddr,
    source: Option<SocketAddr>,
    certificates: Arc<Certificates>,
    connection: Option<TlsStream<TcpStream>>,
}

impl Host {
    /// Sends a batch until it is acknowledged.
    async fn deliver(&mut self, batch: &Template, sums: &Sums) {
        let body = batch.body(self.n);
        let was_connected = self.connection.is_some();
        let begin = Instant::now();
        loop {
            match self.post(&body).await {
                Ok(200) => break,
                Ok(429 | 503) => {
                    sums.retries.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                Ok(status) => panic!("host {} was refused: {status}", self.n),
                Err(error) => {
                    self.connection = None;
                    sums.failures.fetch_add(1, Ordering::Relaxed);
                    *sums.last_failure.lock().await = error.to_string();
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
        sums.latencies.lock().await.push(Latency {
            us: u64::try_from(begin.elapsed().as_micros()).unwrap(),
            collector: self.collector,
            was_connected,
        });
        sums.batches.fetch_add(1, Ordering::Relaxed);
        sums.rows.fetch_add(batch.rows, Ordering::Relaxed);
        sums.bytes.fetch_add(body.len() as u64, Ordering::Relaxed);
    }

    async fn post(&mut self, body: &[u8]) -> std::io::Result<u16> {
        let stream = match &mut self.connection {
            Some(stream) => stream,
            none => {
                let socket = TcpSocket::new_v4()?;
                if let Some(source) = self.source {
                    socket.bind(source)?;
                }
                let socket = socket.connect(self.address).await?;
                socket.set_nodelay(true)?;
                let name = "localhost".try_into().unwrap();
                let connector = TlsConnector::from(self.certificates.config(self.n));
                none.insert(connector.connect(name, socket).await?)
            }
        };
        let head = format!(
            "POST /v1/batches HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: zstd\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body).await?;
        stream.flush().await?;
        read_status(stream).await
    }
}

/// Reads one answer, and returns its status.
async fn read_status(stream: &mut TlsStream<TcpStream>) -> std::io::Result<u16> {
    let mut answer = Vec::new();
    let mut some = [0; 2048];
    loop {
        let count = stream.read(&mut some).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        answer.extend_from_slice(&some[..count]);
        let text = String::from_utf8_lossy(&answer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap_or(0) {
            return Ok(head[9..12].parse().unwrap());
        }
    }
}

fn report(args: &Args, sums: &Sums, took: Duration) {
    let latencies = sums.latencies.blocking_lock().clone();
    let of_collectors: Vec<_> = (0..args.collectors.len())
        .map(|collector| quantiles(&latencies, |l| l.collector == collector && l.was_connected))
        .collect();
    let seconds = took.as_secs_f64();
    let of = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    let found = serde_json::json!({
        "hosts": args.hosts,
        "seconds": seconds,
        "batches": of(&sums.batches),
        "rows": of(&sums.rows),
        "rows_per_second": of(&sums.rows) as f64 / seconds,
        "sent_bytes": of(&sums.bytes),
        "retries": of(&sums.retries),
        "failures": of(&sums.failures),
        "last_failure": *sums.last_failure.blocking_lock(),
        "acknowledged_ms": quantiles(&latencies, |_| true),
        "acknowledged_connected_ms": of_collectors,
    });
    println!("{found:#}");
}

/// Median, 99th percentile and maximum of some latencies, in ms.
fn quantiles(latencies: &[Latency], is_wanted: impl Fn(&Latency) -> bool) -> serde_json::Value {
    let wanted = latencies.iter().filter(|latency| is_wanted(latency));
    let mut us: Vec<u64> = wanted.map(|latency| latency.us).collect();
    us.sort_unstable();
    let quantile = |q: f64| {
        let at = ((us.len() as f64 - 1.0) * q) as usize;
        us.get(at).map(|&us| us as f64 / 1000.0)
    };
    serde_json::json!({ "p50": quantile(0.5), "p99": quantile(0.99), "most": quantile(1.0) })
}
