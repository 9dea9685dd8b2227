//! Sampler, shipper and collector, which run while a test interferes with them.

use super::network::Namespace;
use gleaner_harness::PATIENCE;
pub(crate) use gleaner_harness::{Random, Running, number, wait_for};
use gleaner_tests::{program, same_rows};
use rusqlite::Connection;
use rusqlite::types::FromSql;
use serde_json::Value;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A running `gleaner-collector`.
pub(super) struct Collector {
    pub(super) running: Running,
    /// Address of the collector's listener without TLS, on which every request is allowed.
    pub(super) local: SocketAddr,
    namespace: Option<PathBuf>,
    pub(super) dataset: PathBuf,
}

impl Collector {
    /// Starts a collector with its data in `folder` and these additional lines of configuration.
    pub(super) fn start(folder: &Path, more: &str) -> Self {
        let command = Command::new(program("gleaner-collector").unwrap());
        Self::start_as(folder, more, command, None)
    }

    /// Starts a collector with `command`, which contains the program and, if needed, a wrapper around it. The
    /// test sends its requests from `namespace`.
    pub(super) fn start_as(
        folder: &Path,
        more: &str,
        mut command: Command,
        namespace: Option<&Namespace>,
    ) -> Self {
        let (file, data) = (folder.join("collector.toml"), folder.join("data"));
        let local =
            "local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\nseal_after = \"200ms\"";
        fs::write(&file, format!("data_folder = {data:?}\n{local}\n{more}\n")).unwrap();
        let running = Running::start(command.arg("run").arg("--config").arg(file));
        let line = running.hear("listening on http:");
        let (_, address) = line.rsplit_once('/').unwrap();
        Self {
            local: address.parse().unwrap(),
            namespace: namespace.map(Namespace::path),
            dataset: data.join("dataset"),
            running,
        }
    }

    /// Sends a request without TLS; returns the HTTP status and the document of the answer.
    pub(super) fn ask(&self, method: &str, path: &str) -> (u16, Value) {
        let local = self.local;
        let connect = move || {
            let stream = TcpStream::connect(local).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream
        };
        let stream = match &self.namespace {
            None => connect(),
            Some(namespace) => super::network::within(namespace, connect),
        };
        ask(stream, method, path).unwrap()
    }

    pub(super) fn status(&self) -> Value {
        let (status, answer) = self.ask("GET", "/v1/status");
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Sequence up to which the collector durably has a host's trace; 0 if it has nothing of this host.
    pub(super) fn mark(&self, host: &Host) -> i64 {
        let meta = |key: &str| {
            host.query::<String>(&format!("SELECT value FROM meta WHERE key = '{key}'"))
        };
        let (id, database) = (meta("host_id"), meta("database_id"));
        let path = format!("/v1/mark?host={id}&database={database}");
        let (status, answer) = self.ask("GET", &path);
        assert_eq!(status, 200, "{answer}");
        answer["acknowledged_sequence"].as_i64().unwrap_or(0)
    }

    /// Makes the collector move all acknowledged records into the dataset.
    pub(super) fn seal(&self) {
        let (status, answer) = self.ask("POST", "/v1/seal");
        assert_eq!(status, 200, "{answer}");
    }

    /// Asserts that the dataset has all rows of these hosts' databases, each once. Returns the number of
    /// rows.
    #[track_caller]
    pub(super) fn holds(&self, hosts: &[&Host]) -> u64 {
        self.seal();
        let databases: Vec<_> = hosts.iter().map(|host| host.database.clone()).collect();
        let scratch = tempfile::tempdir().unwrap();
        let agent = program("gleaner-agent").unwrap();
        let compared = same_rows(&agent, &self.dataset, &databases, scratch.path());
        compared.unwrap_or_else(|difference| panic!("{difference}"))
    }
}

/// Sends one request over a connection, which is used only for this request.
fn ask(mut stream: TcpStream, method: &str, path: &str) -> io::Result<(u16, Value)> {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    write!(
        stream,
        "{head}Content-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let document = serde_json::from_str(body).unwrap_or_else(|_| Value::String(body.to_owned()));
    Ok((status.unwrap_or_default(), document))
}

/// A host with a trace. The test starts and ends its programs.
pub(super) struct Host {
    pub(super) database: PathBuf,
    namespace: Option<PathBuf>,
}

impl Host {
    /// Creates a host in the folder `folder/name`, with this number of samples.
    pub(super) fn traced(folder: &Path, name: &str, samples: &str) -> Self {
        let folder = folder.join(name);
        fs::create_dir_all(&folder).unwrap();
        let host = Self {
            database: folder.join("trace.db"),
            namespace: None,
        };
        host.trace(samples);
        host
    }

    /// Records this number of further samples.
    pub(super) fn trace(&self, samples: &str) {
        let done = self.sampling().args(["--samples", samples]).output();
        let done = done.unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
    }

    /// Makes the host's programs run in the network of this namespace.
    pub(super) fn moved_to(mut self, namespace: &Namespace) -> Self {
        self.namespace = Some(namespace.path());
        self
    }

    /// Command that runs `gleaner-agent` with the host's database.
    pub(super) fn agent(&self) -> Command {
        let agent = program("gleaner-agent").unwrap();
        let mut command = match &self.namespace {
            None => Command::new(agent),
            Some(namespace) => super::network::entering(namespace, &agent),
        };
        command
            .args(["--socket", "none", "--database"])
            .arg(&self.database);
        command
    }

    /// Command that runs the sampler, with the shortest sample interval.
    pub(super) fn sampling(&self) -> Command {
        let mut command = self.agent();
        command.args(["run", "--sample-interval", "100ms"]);
        command
    }

    /// Command that runs the shipper, with these keys in the table `[ship]` of its configuration.
    pub(super) fn shipping(&self, keys: &str) -> Command {
        let config = self.database.with_file_name("agent.toml");
        let text = format!("[ship]\nbatch_interval = \"100ms\"\n{keys}\n");
        fs::write(&config, text).unwrap();
        let mut command = self.agent();
        command.arg("--config").arg(config).arg("ship");
        command
    }

    /// Reads one value from the database.
    #[track_caller]
    pub(super) fn query<T: FromSql>(&self, sql: &str) -> T {
        let connection = Connection::open(&self.database).unwrap();
        connection.busy_timeout(Duration::from_secs(10)).unwrap();
        connection.query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(super) fn last_sequence(&self) -> i64 {
        self.query(
            "SELECT max(sequence) FROM (SELECT sequence FROM samples UNION SELECT sequence FROM events \
             UNION SELECT sequence FROM gaps UNION SELECT sequence FROM hosts)",
        )
    }

    /// Last sequence that the shipper recorded as acknowledged; 0 if there is none.
    pub(super) fn acknowledged(&self) -> i64 {
        self.query(
            "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta WHERE key = 'acknowledged_sequence'",
        )
    }

    /// Waits until the shipper has recorded all records as acknowledged.
    #[track_caller]
    pub(super) fn is_shipped(&self) {
        let last = self.last_sequence();
        wait_for("all to be shipped", || self.acknowledged() == last);
    }

    /// Adds copies of the sample with the most processes, 90 s apart. Each copy has different sizes, so that
    /// the copies compress as badly as real samples. Also adds as many events with random words, since the
    /// samples of a quiet host are small.
    pub(super) fn lengthen(&self, samples: i64) {
        /// Maximum number of rows that are copied from each table of the sample, so that the result depends
        /// less on how busy the host is.
        const ROWS: usize = 12;
        let connection = Connection::open(&self.database).unwrap();
        let last = self.last_sequence();
        let fullest: i64 = self.query(
            "SELECT s.sequence FROM samples s LEFT JOIN processes p USING (sequence) GROUP BY s.sequence \
             ORDER BY count(p.pid) DESC LIMIT 1",
        );
        for table in &gleaner_schemas::rows::TABLES {
            let mut columns = vec![("sequence", format!("{last} + n.i"))];
            if table.key.is_empty() {
                columns.push(("time_ms", "t.time_ms + n.i * 90000".to_owned()));
            }
            for column in table.columns {
                let name = column.name;
                let value = if name.ends_with("_bytes") && column.nullable {
                    format!("CASE WHEN t.{name} THEN abs(random()) % 100000000000 END")
                } else {
                    format!("t.{name}")
                };
                columns.push((name, value));
            }
            let (names, values): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
            let copy = format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {samples}) \
                 INSERT INTO {0} ({1}) \
                 SELECT {2} FROM n, (SELECT * FROM {0} WHERE sequence = {fullest} LIMIT {ROWS}) t",
                table.name,
                names.join(", "),
                values.join(", "),
            );
            let copied = connection.execute(&copy, []);
            copied.unwrap_or_else(|e| panic!("{copy}: {e}"));
        }
        let events = format!(
            "INSERT INTO events (sequence, time_ms, kind, detail) \
             SELECT sequence + {samples}, time_ms, 'test', hex(randomblob(300)) FROM samples WHERE sequence > {last}"
        );
        connection.execute(&events, []).unwrap();
    }
}
