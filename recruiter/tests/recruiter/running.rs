//! Runs a recruiter for the tests.

use gleaner_harness::Running;
pub(crate) use gleaner_harness::{PATIENCE, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use ureq::Agent;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

/// Configuration with a short announcement interval and without a reserve.
pub(crate) const QUICK: &str = "announce_every = \"500ms\"\nreserve_share = 0.0\n";

/// A recruiter started by a test; killed when dropped.
pub(crate) struct Recruiter {
    running: Running,
    /// Address of the plain listener.
    pub(crate) url: String,
    /// Address of the TLS listener, if there is one.
    pub(crate) tls_url: Option<String>,
}

/// Status code, JSON document and header Retry-After of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) retry_after: Option<String>,
    pub(crate) media: String,
}

impl Recruiter {
    /// Starts a recruiter with full access on its own loopback port.
    pub(crate) fn start(folder: &Path, config: &str) -> Self {
        Self::start_at(folder, "127.0.0.1:0", config)
    }

    pub(crate) fn start_at(folder: &Path, local: &str, config: &str) -> Self {
        let config = format!("local_listen = {local:?}\nlocal_access = \"all\"\n{config}");
        Self::start_as(folder, &config)
    }

    pub(crate) fn start_as(folder: &Path, config: &str) -> Self {
        let file = folder.join("recruiter.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(program());
        command.args(["run", "--config"]).arg(file);
        let mut recruiter = Self {
            running: Running::start(&mut command),
            url: String::new(),
            tls_url: None,
        };
        let url = |line: String| line.rsplit(' ').next().unwrap().to_owned();
        if config.lines().any(|line| line.starts_with("listen = ")) {
            recruiter.tls_url = Some(url(recruiter.hear("listening on https:")));
        }
        recruiter.url = url(recruiter.hear("listening on http:"));
        recruiter
    }

    #[track_caller]
    pub(crate) fn hear(&self, words: &str) -> String {
        self.running.hear(words)
    }

    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        get(&agent(), &format!("{}{path}", self.url))
    }

    /// Requests a lease as the client `client`.
    pub(crate) fn lease(&self, client: &str, asked: &Value) -> Answer {
        self.post("/v1/leases", client, asked)
    }

    pub(crate) fn post(&self, path: &str, client: &str, asked: &Value) -> Answer {
        let request = agent().post(format!("{}{path}", self.url));
        let request = request.header("Gleaner-Client", client);
        answer(request.send_json(asked).unwrap())
    }

    pub(crate) fn delete(&self, lease_id: &str, client: &str) -> Answer {
        let request = agent().delete(format!("{}/v1/leases/{lease_id}", self.url));
        answer(request.header("Gleaner-Client", client).call().unwrap())
    }

    /// Waits until the recruiter grants leases and has `hosts_count` linked hosts.
    #[track_caller]
    pub(crate) fn ready(&self, hosts_count: u64) {
        wait_for("the recruiter to know its hosts", || {
            let health = self.get("/healthz").body;
            health["grants_in_ms"] == 0 && health["links_count"] == hosts_count
        });
    }

    /// Reloads another configuration, and waits for a log line that contains `words`.
    #[track_caller]
    pub(crate) fn reload(&self, folder: &Path, config: &str, words: &str) -> String {
        let config = format!("local_listen = \"127.0.0.1:0\"\nlocal_access = \"all\"\n{config}");
        std::fs::write(folder.join("recruiter.toml"), config).unwrap();
        self.running.signal(Signal::HUP);
        self.hear(words)
    }

    /// Kills the recruiter, which resembles a power failure as far as a process can notice.
    pub(crate) fn kill(&self) {
        self.running.kill();
    }
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_gleaner-recruiter")
}

/// Body of a request for a lease of these bytes, with this key.
pub(crate) fn asked(bytes: u64, key: &str) -> Value {
    json!({ "bytes": bytes, "key": key })
}

/// Id of the only lease in the answer.
#[track_caller]
pub(crate) fn lease_id(answer: &Answer) -> String {
    let leases = answer.body["leases"].as_array();
    let leases = leases.unwrap_or_else(|| panic!("{}", answer.body));
    assert_eq!(leases.len(), 1, "{}", answer.body);
    leases[0]["lease_id"].as_str().unwrap().to_owned()
}

/// A client without TLS.
pub(crate) fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

/// A client with a certificate.
pub(crate) fn agent_with(credentials: &gleaner_trust::Credentials) -> Agent {
    Agent::config_builder()
        .tls_config(gleaner_trust::http::tls(credentials).unwrap())
        .http_status_as_error(false)
        .timeout_global(Some(PATIENCE))
        .build()
        .into()
}

pub(crate) fn get(agent: &Agent, url: &str) -> Answer {
    answer(agent.get(url).call().unwrap())
}

pub(crate) fn answer(mut response: ureq::http::Response<ureq::Body>) -> Answer {
    let header = |name| {
        let value = response.headers().get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let (retry_after, media) = (header("retry-after"), header("content-type"));
    let status = response.status().as_u16();
    let text = response.body_mut().read_to_string().unwrap();
    Answer {
        status,
        body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
        retry_after,
        media: media.unwrap_or_default(),
    }
}
