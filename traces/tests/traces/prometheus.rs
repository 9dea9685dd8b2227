//! The Prometheus importer against an invented server, which can have the limits and errors of real ones.

use crate::import::fills_what_it_names;
use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, TimestampMillisecondType};
use gleaner_dataset::Dataset;
use gleaner_schemas::column::Row;
use gleaner_schemas::rows::SampleRow;
use gleaner_traces::import::prometheus::{Address, Prometheus, SOURCE, Selector, Times};
use gleaner_traces::import::{ImportError, ImportSummary, import};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

const DAY_MS: i64 = 86_400_000;
const STEP_MS: i64 = 15_000;
/// 2026-11-21 23:00:00.053 UTC; an hour later it is the next day.
const START_MS: i64 = 1_795_302_000_053;
const SCRAPES: i64 = 960; // four hours
const GIB: i64 = 1 << 30;

/// Behaviour of an invented server.
#[derive(Clone, Debug, Default)]
struct Manners {
    /// Maximum number of samples that the server returns for one query.
    most_samples: Option<usize>,
    /// Fixed answer to every request: status and body.
    always: Option<(u16, &'static str)>,
    token: Option<&'static str>,
}

struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    folder: TempDir,
}

/// A series: its name, its labels besides job and instance, and its value at a scrape's number.
type Series = (&'static str, &'static str, fn(i64) -> f64);

/// Series of a machine with all metrics of node_exporter. The machine is restarted once, and one scrape has no memory.
fn series() -> Vec<Series> {
    let mut all: Vec<Series> = vec![
        ("node_memory_MemTotal_bytes", "", |_| (8 * GIB) as f64),
        ("node_memory_MemAvailable_bytes", "", |i| {
            (5 * GIB - i * 4096) as f64
        }),
        ("node_boot_time_seconds", "", |i| {
            if i < 500 { 1.795e9 } else { 1.795305e9 }
        }),
        ("node_load1", "", |i| i as f64 / 100.0),
        (
            "node_cpu_seconds_total",
            r#","cpu":"0","mode":"idle""#,
            |i| i as f64,
        ),
        (
            "node_cpu_seconds_total",
            r#","cpu":"1","mode":"idle""#,
            |i| i as f64,
        ),
        (
            "node_uname_info",
            r#","nodename":"otter","release":"6.18.44","machine":"x86_64""#,
            |_| 1.0,
        ),
        (
            "node_os_info",
            r#","pretty_name":"Debian GNU/Linux 12 (bookworm)""#,
            |_| 1.0,
        ),
        (
            "node_dmi_info",
            r#","product_name":"OptiPlex 7090""#,
            |_| 1.0,
        ),
        (
            "node_cpu_info",
            r#","cpu":"0","model_name":"AMD EPYC""#,
            |_| 1.0,
        ),
    ];
    let rest = "MemFree Buffers Cached SwapCached AnonPages Shmem Mapped Active_file Inactive_file Unevictable Dirty \
        Writeback Slab KReclaimable KernelStack PageTables SecPageTables Percpu VmallocUsed Hugetlb SwapTotal SwapFree \
        Zswap Zswapped";
    let more = "load5 load15 procs_running processes_threads pressure_memory_waiting_seconds_total \
        pressure_memory_stalled_seconds_total pressure_cpu_waiting_seconds_total pressure_io_waiting_seconds_total \
        pressure_io_stalled_seconds_total vmstat_workingset_refault_file vmstat_workingset_refault_anon vmstat_pswpin \
        vmstat_pswpout vmstat_pgmajfault vmstat_pgsteal_kswapd vmstat_pgsteal_direct vmstat_oom_kill zfs_arc_size \
        zfs_arc_c_min";
    let memory = rest
        .split_whitespace()
        .map(|n| format!("node_memory_{n}_bytes"));
    let more = more.split_whitespace().map(|n| format!("node_{n}"));
    for name in memory.chain(more) {
        all.push((name.leak(), "", |i| i as f64)); // some fifty short names in a test
    }
    all
}

impl Server {
    fn with(manners: Manners) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/behind", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(60)))
                    .unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                let headers: Vec<String> = lines
                    .map(Result::unwrap)
                    .take_while(|l| !l.is_empty())
                    .collect();
                heard.lock().unwrap().push(request.clone());
                let (status, body) = answer(&manners, &request, &headers);
                let head = format!(
                    "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                // The client may have closed the connection.
                let _ = stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(body.as_bytes()));
            }
        });
        Self {
            url,
            asked,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn dataset(&self) -> PathBuf {
        self.folder.path().join("dataset")
    }

    fn import(&self, address: Address, times: Times) -> Result<ImportSummary, ImportError> {
        let address = Address {
            url: self.url.clone(),
            ..address
        };
        let selector = Selector::parse("{job=\"node\"}").unwrap();
        let mut importer = Prometheus::server(&address, selector, times)?;
        import(&mut importer, &self.dataset(), |_| ())
    }

    #[track_caller]
    fn refused(&self) -> String {
        let refused = self
            .import(Address::default(), ALL)
            .unwrap_err()
            .to_string();
        assert!(!self.dataset().exists(), "a dataset was begun");
        assert!(
            refused.contains(&self.url) || refused.contains("token"),
            "{refused}"
        );
        refused
    }
}

const ALL: Times = Times {
    from_ms: None,
    until_ms: Some(START_MS + 2 * DAY_MS),
};

fn answer(manners: &Manners, request: &str, headers: &[String]) -> (u16, String) {
    if let Some((status, body)) = manners.always {
        return (status, body.to_owned());
    }
    if let Some(token) = manners.token {
        let wanted = format!("authorization: bearer {token}");
        if !headers.iter().any(|h| h.to_lowercase() == wanted) {
            return (401, "Unauthorized".to_owned());
        }
    }
    let path = request.split(' ').nth(1).unwrap();
    let (path, parameters) = path.split_once('?').unwrap();
    let parameter = |name: &str| {
        let found = parameters
            .split('&')
            .find_map(|p| p.strip_prefix(&format!("{name}=")));
        decoded(found.unwrap())
    };
    let query = parameter("query");
    assert!(query.contains("job=\"node\""), "{query}");
    let in_ms = |text: String| -> i64 { text.replace('.', "").parse().unwrap() };
    match path {
        "/behind/api/v1/query_range" => {
            let (start, end) = (in_ms(parameter("start")), in_ms(parameter("end")));
            let mut targets = vec!["printer:9100"];
            if query.contains("node_memory_MemTotal_bytes") {
                targets.clear();
            }
            targets.push("otter:9100");
            let mut found = String::new();
            for instance in targets {
                let days = (start..=end).step_by(DAY_MS as usize).filter_map(|at| {
                    let day = (at - DAY_MS)..=at;
                    let count = (0..SCRAPES)
                        .filter(|i| day.contains(&(START_MS + i * STEP_MS)))
                        .count();
                    (count > 0).then(|| format!("[{},\"{count}\"]", at as f64 / 1000.0))
                });
                let days = days.collect::<Vec<_>>().join(",");
                let comma = if found.is_empty() { "" } else { "," };
                let metric = format!(r#"{{"instance":"{instance}","job":"node"}}"#);
                write!(found, r#"{comma}{{"metric":{metric},"values":[{days}]}}"#).unwrap();
            }
            (200, matrix(&found))
        }
        "/behind/api/v1/query" => {
            let (selector, range) = query.rsplit_once('[').unwrap();
            assert!(selector.contains(r#"instance=~"otter:9100""#), "{selector}");
            let length_ms: i64 = range.strip_suffix("ms]").unwrap().parse().unwrap();
            let at = in_ms(parameter("time"));
            // As in Prometheus up to version 2, a range includes its first ms.
            let times = (at - length_ms)..=at;
            let scrapes: Vec<i64> = (0..SCRAPES)
                .filter(|i| times.contains(&(START_MS + i * STEP_MS)))
                .collect();
            let series = series();
            if manners
                .most_samples
                .is_some_and(|most| scrapes.len() * series.len() > most)
            {
                let why =
                    "query processing would load too many samples into memory in query execution";
                let body =
                    format!(r#"{{"status":"error","errorType":"execution","error":"{why}"}}"#);
                return (422, body);
            }
            let mut found = Vec::new();
            for (name, labels, value) in series {
                let values = scrapes.iter().map(|i| {
                    let time_ms = START_MS + i * STEP_MS;
                    format!(
                        "[{}.{:03},\"{}\"]",
                        time_ms / 1000,
                        time_ms % 1000,
                        value(*i)
                    )
                });
                let values = values.collect::<Vec<_>>().join(",");
                found.push(format!(
                    r#"{{"metric":{{"__name__":"{name}","instance":"otter:9100","job":"node"{labels}}},"values":[{values}]}}"#
                ));
            }
            (200, matrix(&found.join(",")))
        }
        _ => (404, "404 page not found".to_owned()),
    }
}

fn matrix(found: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{found}]}}}}"#)
}

/// Decodes a percent-encoded text.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap();
                bytes.push(u8::from_str_radix(digits, 16).unwrap());
            }
            b'+' => bytes.push(b' '),
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Times, available memory and intervals of the machine `otter:9100`.
fn rows(dataset: &Path) -> Vec<(i64, i64, Option<i64>)> {
    let dataset = Dataset::open(dataset).unwrap();
    let columns = ["time", "available_bytes", "interval_ms"];
    let host_id = SOURCE.host_id("otter:9100");
    let rows = dataset
        .read_host(&SampleRow::TABLE, &host_id, &columns)
        .unwrap();
    let times = rows.column(0).as_primitive::<TimestampMillisecondType>();
    let integers = |at: usize| rows.column(at).as_primitive::<Int64Type>();
    let available = integers(1).iter().map(Option::unwrap);
    let both = times.values().iter().copied().zip(available);
    both.zip(integers(2)).map(|((t, a), i)| (t, a, i)).collect()
}

fn expected(scrapes: std::ops::Range<i64>) -> Vec<(i64, i64, Option<i64>)> {
    let first = scrapes.start;
    let row = |i| {
        (
            START_MS + i * STEP_MS,
            5 * GIB - i * 4096,
            (i != first).then_some(STEP_MS),
        )
    };
    scrapes.map(row).collect()
}

#[test]
fn every_sample_is_asked_for_once_and_has_its_own_time() {
    let server = Server::with(Manners::default());
    let imported = server.import(Address::default(), ALL).unwrap();
    assert_eq!(rows(&server.dataset()), expected(0..SCRAPES));
    assert_eq!(
        imported.skipped_entries,
        ["printer:9100 (it has no node_memory_MemTotal_bytes)"]
    );
    assert_eq!(imported.total.rows_count, SCRAPES as u64);
    // One request for the machines, one for the targets, and two for the days of one machine.
    assert_eq!(server.asked.lock().unwrap().len(), 4);
    fills_what_it_names(&SOURCE, "otter:9100", &server.dataset());
    let again = server.import(Address::default(), ALL).unwrap();
    assert_eq!(
        (again.new_rows_count, again.existing_rows_count),
        (0, imported.new_rows_count)
    );
}

#[test]
fn of_a_server_that_gives_little_at_once_less_is_asked_more_often() {
    let series = series().len() as u64;
    let server = Server::with(Manners {
        most_samples: Some(60 * series as usize), // 15 minutes
        ..Manners::default()
    });
    let imported = server.import(Address::default(), ALL).unwrap();
    assert_eq!(rows(&server.dataset()), expected(0..SCRAPES));
    assert_eq!(imported.total.rows_count, SCRAPES as u64);
    let whole = Server::with(Manners::default());
    whole.import(Address::default(), ALL).unwrap();
    assert_eq!(rows(&whole.dataset()), rows(&server.dataset()));
}

#[test]
fn times_are_kept_to() {
    let server = Server::with(Manners::default());
    let times = Times {
        from_ms: Some(START_MS + 100 * STEP_MS),
        until_ms: Some(START_MS + 700 * STEP_MS),
    };
    server.import(Address::default(), times).unwrap();
    assert_eq!(rows(&server.dataset()), expected(100..700));
    // A later import of all times adds the other samples. Sample 100 stays without an interval: the first
    // import did not know the sample before it.
    server.import(Address::default(), ALL).unwrap();
    let known = rows(&server.dataset());
    assert_eq!(known.len() as i64, SCRAPES);
    assert_eq!(known[700..], expected(0..SCRAPES)[700..]);
}

#[test]
fn whoever_asks_shows_the_token() {
    let server = Server::with(Manners {
        token: Some("secret"),
        ..Manners::default()
    });
    let refused = server.refused();
    assert!(
        refused.contains("answers 401") && refused.contains("--bearer-file"),
        "{refused}"
    );
    let token = server.folder.path().join("token");
    let address = || Address {
        bearer_file: Some(token.clone()),
        ..Address::default()
    };
    let unreadable = server.import(address(), ALL).unwrap_err().to_string();
    assert!(unreadable.contains("token: cannot read it"), "{unreadable}");
    std::fs::write(&token, "two words").unwrap();
    let unusable = server.import(address(), ALL).unwrap_err().to_string();
    assert!(
        unusable.contains("expected a token on one line"),
        "{unusable}"
    );
    std::fs::write(&token, "secret\n").unwrap();
    server.import(address(), ALL).unwrap();
    assert_eq!(rows(&server.dataset()).len() as i64, SCRAPES);
    let authority = Address {
        authority: Some(token.clone()),
        ..address()
    };
    let refused = server.import(authority, ALL).unwrap_err().to_string();
    assert!(refused.contains("holds no certificate"), "{refused}");
}

#[test]
fn what_is_no_answer_is_refused_with_the_address_and_what_to_do() {
    let refused = |status, body| {
        let always = Some((status, body));
        Server::with(Manners {
            always,
            ..Manners::default()
        })
        .refused()
    };
    let said = refused(200, "<html>hello</html>");
    assert!(
        said.contains("not as Prometheus does") && said.contains("--url"),
        "{said}"
    );
    let said = refused(404, "404 page not found");
    assert!(said.contains("answers 404"), "{said}");
    let said = refused(
        400,
        r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
    );
    assert!(
        said.contains("refuses: parse error") && said.contains("--selector"),
        "{said}"
    );
    let said = refused(
        503,
        r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#,
    );
    assert!(
        said.contains("query timed out") && said.contains("--from"),
        "{said}"
    );
    let said = refused(504, "<html>Gateway Time-out</html>");
    assert!(said.contains("504") && said.contains("--until"), "{said}");
    let empty = r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#;
    let said = refused(200, empty);
    assert!(
        said.contains("no series node_memory_MemTotal_bytes"),
        "{said}"
    );
    let partial = r#"{"status":"success","warnings":["a store is gone"],"data":{"resultType":"matrix","result":[]}}"#;
    let said = refused(200, partial);
    assert!(
        said.contains("a store is gone") && said.contains("may not be whole"),
        "{said}"
    );

    let little = Server::with(Manners {
        most_samples: Some(1),
        ..Manners::default()
    });
    let said = little.refused();
    assert!(
        said.contains("too many samples") && said.contains("--selector"),
        "{said}"
    );

    let mut gone = Server::with(Manners::default());
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    gone.url = format!("http://{port}");
    let said = gone.refused();
    assert!(
        said.contains("cannot query") && said.contains("see that Prometheus runs there"),
        "{said}"
    );
}
