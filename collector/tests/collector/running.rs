//! A collector that runs while a test does things to it.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use ureq::Agent;

const PATIENCE: Duration = Duration::from_secs(90);

/// Waits until `condition` holds.
#[track_caller]
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running collector; killed when the test fails.
pub(crate) struct Collector {
    child: Child,
    said: Receiver<String>,
    /// Of the plain listener.
    pub(crate) url: String,
    /// Of the TLS listener, where there is one.
    pub(crate) tls_url: Option<String>,
    data: PathBuf,
}

/// What it answered: status and document.
pub(crate) type Answer = (u16, Value);

impl Collector {
    /// With all access on a loopback port of its own, and `more` lines of configuration.
    pub(crate) fn start(folder: &Path, more: &str) -> Self {
        let config = format!("local = \"127.0.0.1:0\"\nlocal_access = \"all\"\n{more}\n");
        Self::start_as(folder, &config, &mut Command::new(program()))
    }

    /// By `command`, which has the program and may have more before it.
    pub(crate) fn start_as(folder: &Path, config: &str, command: &mut Command) -> Self {
        let file = folder.join("collector.toml");
        let data = folder.join("data");
        std::fs::write(&file, format!("data = {data:?}\n{config}")).unwrap();
        let command = command.arg("run").arg("--config").arg(file);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, said) = channel();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut collector = Self {
            child,
            said,
            url: String::new(),
            tls_url: None,
            data,
        };
        let url = |line: String| line.rsplit(' ').next().unwrap().to_owned();
        if config.contains("listen = ") {
            collector.tls_url = Some(url(collector.hear("listening on https:")));
        }
        collector.url = url(collector.hear("listening on http:"));
        collector
    }

    /// Waits for a line that has `words`; gives it.
    #[track_caller]
    pub(crate) fn hear(&self, words: &str) -> String {
        let mut heard = Vec::new();
        let begin = Instant::now();
        while let Ok(line) = self
            .said
            .recv_timeout(PATIENCE.saturating_sub(begin.elapsed()))
        {
            if line.contains(words) {
                return line;
            }
            heard.push(line);
        }
        panic!("never said {words:?}, but {heard:#?}");
    }

    /// Has it read another configuration, and hears a line that has `words`.
    #[track_caller]
    pub(crate) fn reload(&self, folder: &Path, more: &str, words: &str) -> String {
        let data = &self.data;
        let config =
            format!("data = {data:?}\nlocal = \"127.0.0.1:0\"\nlocal_access = \"all\"\n{more}\n");
        std::fs::write(folder.join("collector.toml"), config).unwrap();
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
        self.hear(words)
    }

    /// What it has said since it was last listened to.
    pub(crate) fn said(&self) -> Vec<String> {
        self.said.try_iter().collect()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
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

    /// What `GET path` answers.
    pub(crate) fn get(&self, path: &str) -> Answer {
        try_get(&agent(), &format!("{}{path}", self.url)).unwrap()
    }

    /// How far a database is durable.
    pub(crate) fn mark(&self, host: &str, database: &str) -> Option<i64> {
        let (status, mark) = self.get(&format!("/v1/mark?host={host}&database={database}"));
        assert_eq!(status, 200, "{mark}");
        mark["acknowledged"].as_i64()
    }

    /// Has all that was acknowledged moved to the dataset.
    pub(crate) fn seal(&self) {
        let answer = try_post(&agent(), &format!("{}/v1/seal", self.url), b"").unwrap();
        assert_eq!(answer.0, 200, "{answer:?}");
    }

    /// Ends it as systemd would; its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }

    /// Ends it as a loss of power would, as far as a process can tell.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
