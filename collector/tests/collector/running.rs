//! Runs a collector for the tests.

pub(crate) use gleaner_harness::wait_for;
use gleaner_harness::{PATIENCE, Running};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use ureq::Agent;

/// A collector started by a test; killed when dropped.
pub(crate) struct Collector {
    running: Running,
    /// Address of the plain listener.
    pub(crate) url: String,
    /// Address of the TLS listener, if there is one.
    pub(crate) tls_url: Option<String>,
    data: PathBuf,
}

/// Status code and JSON document of an answer.
pub(crate) type Answer = (u16, Value);

impl Collector {
    /// Starts a collector with full access on its own loopback port; `more` has further lines of
    /// configuration.
    pub(crate) fn start(folder: &Path, more: &str) -> Self {
        let config = format!("local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\n{more}\n");
        Self::start_as(folder, &config, &mut Command::new(program()))
    }

    /// Starts the collector with `command`, which names the program or a wrapper of it.
    pub(crate) fn start_as(folder: &Path, config: &str, command: &mut Command) -> Self {
        let file = folder.join("collector.toml");
        let data = folder.join("data");
        std::fs::write(&file, format!("data_folder = {data:?}\n{config}")).unwrap();
        let command = command.arg("run").arg("--config").arg(file);
        let mut collector = Self {
            running: Running::start(command),
            url: String::new(),
            tls_url: None,
            data,
        };
        let url = |line: String| line.rsplit(' ').next().unwrap().to_owned();
        if config.lines().any(|line| line.starts_with("listen = ")) {
            collector.tls_url = Some(url(collector.hear("listening on https:")));
        }
        collector.url = url(collector.hear("listening on http:"));
        collector
    }

    #[track_caller]
    pub(crate) fn hear(&self, words: &str) -> String {
        self.running.hear(words)
    }

    /// Reloads another configuration, and waits for a log line that contains `words`.
    #[track_caller]
    pub(crate) fn reload(&self, folder: &Path, more: &str, words: &str) -> String {
        let data = &self.data;
        let config = format!(
            "data_folder = {data:?}\nlocal_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\n{more}\n"
        );
        std::fs::write(folder.join("collector.toml"), config).unwrap();
        self.running.signal(Signal::HUP);
        self.hear(words)
    }

    /// Lines of output since the last call.
    pub(crate) fn said(&self) -> Vec<String> {
        self.running.said()
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    pub(crate) fn dataset(&self) -> PathBuf {
        self.data.join("dataset")
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Sends a batch.
    pub(crate) fn send(&self, body: &[u8]) -> Answer {
        try_post(&agent(), &format!("{}/v1/batches", self.url), body).unwrap()
    }

    /// Sends `GET path`, and returns the answer.
    pub(crate) fn get(&self, path: &str) -> Answer {
        try_get(&agent(), &format!("{}{path}", self.url)).unwrap()
    }

    /// Sequence number of a database's last durable record.
    pub(crate) fn mark(&self, host: &str, database: &str) -> Option<i64> {
        let (status, mark) = self.get(&format!("/v1/mark?host={host}&database={database}"));
        assert_eq!(status, 200, "{mark}");
        mark["acknowledged_sequence"].as_i64()
    }

    /// Moves all acknowledged records to the dataset.
    pub(crate) fn seal(&self) {
        let answer = try_post(&agent(), &format!("{}/v1/seal", self.url), b"").unwrap();
        assert_eq!(answer.0, 200, "{answer:?}");
    }

    /// Ends the collector as systemd does, and returns its exit code.
    pub(crate) fn end(self) -> Option<i32> {
        self.running.end().0
    }

    /// Kills the collector, which resembles a power failure as far as a process can notice.
    pub(crate) fn kill(&self) {
        self.running.kill();
    }
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_gleaner-collector")
}

/// A client without TLS.
pub(crate) fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

pub(crate) fn try_post(agent: &Agent, url: &str, body: &[u8]) -> Result<Answer, ureq::Error> {
    let sent = agent
        .post(url)
        .header("Content-Type", gleaner_dataset::batch::MEDIA_TYPE)
        .header("Content-Encoding", "zstd")
        .send(body)?;
    answer(sent)
}

pub(crate) fn try_get(agent: &Agent, url: &str) -> Result<Answer, ureq::Error> {
    answer(agent.get(url).call()?)
}

fn answer(mut response: ureq::http::Response<ureq::Body>) -> Result<Answer, ureq::Error> {
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string()?;
    Ok((
        status,
        serde_json::from_str(&text).unwrap_or(Value::String(text)),
    ))
}
