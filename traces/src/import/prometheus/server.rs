//! A running Prometheus, queried through its HTTP API.
//!
//! Samples are returned as stored. A `query` at one time, for a selector with a range, returns all samples of
//! the range with their own times. `query_range` would return the last sample before each step: some samples
//! repeatedly, others never.

use super::answer::{Answer, Matrix};
use super::error::PrometheusError;
use super::machine::Samples;
use super::selector::{Selector, one_of};
use super::{MEMORY, Origin, Target, Targets, Times, UP};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::{Agent, Timeout};

const DAY_MS: i64 = 86_400_000;
/// Time range searched if none is given; longer than Prometheus usually keeps samples.
const LONGEST_MS: i64 = 10 * 365 * DAY_MS;
/// Shortest time range of one query.
const SHORTEST_MS: i64 = 60_000;
/// Maximum size of an answer, which is held in memory. If an answer is larger, a shorter time range is queried.
const ANSWER_BYTES: u64 = 64 << 20;
const CONNECT: Duration = Duration::from_secs(10);
/// Timeout of a query; Prometheus itself stops after two minutes (`--query.timeout`).
const PATIENCE: Duration = Duration::from_secs(180);

/// Status by which a proxy in front of Prometheus reports a timeout.
const GATEWAY_TIMEOUT: u16 = 504;

/// Address and credentials of Prometheus.
#[derive(Clone, Debug, Default)]
pub struct Address {
    /// URL like `http://host:9090`, with a path if needed.
    pub url: String,
    /// A file that holds a token, sent as `Authorization: Bearer …`.
    pub bearer_file: Option<PathBuf>,
    /// Certificates (PEM) of the trusted authority; `None`: the authorities of the system.
    pub authority: Option<PathBuf>,
}

pub(super) struct Server {
    agent: Agent,
    url: String,
    token: Option<String>,
    selector: Selector,
    times: Times,
    /// Starts of the UTC days on which machines have samples, in ms.
    days: BTreeMap<Target, Vec<i64>>,
    /// Length of the time range that one query covers, a part of a day, in ms.
    window_ms: i64,
}

/// Reason why a query failed.
enum Trouble {
    /// The query covers too much; a shorter time may succeed.
    TooMuch(String),
    Failed(PrometheusError),
}

impl Server {
    pub(super) fn at(
        address: &Address,
        selector: Selector,
        times: Times,
    ) -> Result<Self, PrometheusError> {
        let roots = match &address.authority {
            Some(path) => authorities(path)?,
            None => RootCerts::PlatformVerifier,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider)
            .root_certs(roots)
            .build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0) // the token is for this address only
            .max_redirects_will_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_recv_body(Some(PATIENCE))
            .user_agent(concat!("gleaner/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: agent.into(),
            url: address.url.trim_end_matches('/').to_owned(),
            token: address.bearer_file.as_deref().map(token).transpose()?,
            selector,
            times,
            days: BTreeMap::new(),
            window_ms: DAY_MS,
        })
    }

    /// Targets with samples of `series`, and the days on which they have samples.
    fn days_of(&self, series: &str) -> Result<BTreeMap<Target, Vec<i64>>, PrometheusError> {
        let until_ms = self.times.until_ms.unwrap_or_else(now_ms);
        let from_ms = self.times.from_ms.unwrap_or(until_ms - LONGEST_MS);
        let day = |time_ms: i64| time_ms.div_euclid(DAY_MS) * DAY_MS;
        // Each query is evaluated at the last ms of a day, and covers that day.
        let query = format!(
            "sum by (job,instance) (count_over_time({}[1d]))",
            self.selector.of(&[series], &[])
        );
        let parameters = [
            ("query", query),
            ("start", seconds(day(from_ms) + DAY_MS - 1)),
            ("end", seconds(day(until_ms - 1) + DAY_MS - 1)),
            ("step", "1d".to_owned()),
        ];
        let mut days = BTreeMap::new();
        let found = self.ask("query_range", &parameters, |series| {
            let mut of_target = Vec::new();
            for sample in series.samples() {
                of_target.push(day(sample?.0));
            }
            days.insert(Target::of(|label| series.label(label)), of_target);
            Ok(())
        });
        match found {
            Ok(()) => Ok(days),
            Err(trouble) => Err(self.request_error("query_range", trouble)),
        }
    }

    /// Queries the samples of the range `times`. They are added only after the whole answer has arrived.
    fn window(
        &self,
        wanted: &str,
        times: std::ops::Range<i64>,
        samples: &mut Samples,
    ) -> Result<(), Trouble> {
        // A range always includes its last ms. Prometheus' version decides whether it also includes its first ms.
        let length_ms = times.end - times.start;
        let parameters = [
            ("query", format!("{wanted}[{length_ms}ms]")),
            ("time", seconds(times.end - 1)),
        ];
        self.ask("query", &parameters, |series| {
            let labels = series.labels.iter().map(|(k, v)| (k.as_str(), v.as_str()));
            if let Some(stream) = samples.stream(series.label("__name__"), labels) {
                for sample in series.samples() {
                    let (time_ms, value) = sample?;
                    if times.contains(&time_ms) {
                        samples.add(stream, time_ms, value);
                    }
                }
            }
            Ok(())
        })
    }

    /// Queries `endpoint`, and passes each series to `each`.
    fn ask(
        &self,
        endpoint: &str,
        parameters: &[(&str, String)],
        mut each: impl FnMut(&Matrix<'_>) -> Result<(), String>,
    ) -> Result<(), Trouble> {
        let url = || self.endpoint(endpoint);
        let failed = |error: ureq::Error| match error {
            // In these cases, a query for a shorter time may succeed.
            ureq::Error::Timeout(Timeout::RecvResponse | Timeout::RecvBody)
            | ureq::Error::BodyExceedsLimit(_) => Trouble::TooMuch(error.to_string()),
            error => Trouble::Failed(PrometheusError::Unreachable {
                url: url(),
                why: error.to_string(),
            }),
        };
        let mut request = self.agent.get(url());
        for (name, value) in parameters {
            request = request.query(name, value);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let mut answer = request.call().map_err(failed)?;
        let status = answer.status().as_u16();
        if [401, 403].contains(&status) {
            return Err(Trouble::Failed(PrometheusError::NotAdmitted {
                url: url(),
                status,
            }));
        }
        if status == GATEWAY_TIMEOUT {
            return Err(Trouble::TooMuch("answered 504, a time-out".to_owned()));
        }
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES);
        let body = body.read_to_vec().map_err(failed)?;
        let stranger = |why| {
            Trouble::Failed(PrometheusError::Stranger {
                url: url(),
                status,
                why,
            })
        };
        match Answer::of(&body).map_err(stranger)? {
            Answer::Series(found) => found.iter().try_for_each(|m| each(m).map_err(stranger)),
            Answer::Partial(why) => Err(Trouble::Failed(PrometheusError::Partial {
                url: url(),
                why,
            })),
            Answer::Refused { kind, why } if exceeds_query_limits(&kind, &why) => {
                Err(Trouble::TooMuch(why))
            }
            Answer::Refused { why, .. } => Err(Trouble::Failed(PrometheusError::Refused {
                url: url(),
                why,
            })),
        }
    }

    fn endpoint(&self, endpoint: &str) -> String {
        format!("{}/api/v1/{endpoint}", self.url)
    }

    fn request_error(&self, endpoint: &str, trouble: Trouble) -> PrometheusError {
        match trouble {
            Trouble::Failed(error) => error,
            Trouble::TooMuch(why) => PrometheusError::TooMuch {
                url: self.endpoint(endpoint),
                why,
            },
        }
    }
}

impl Origin for Server {
    fn targets(&mut self) -> Result<Targets, PrometheusError> {
        self.days = self.days_of(MEMORY)?;
        Ok(Targets {
            machines: self.days.keys().cloned().collect(),
            all: self.days_of(UP)?.into_keys().collect(),
        })
    }

    fn samples(&mut self, machine: &Target) -> Result<Samples, PrometheusError> {
        let wanted = self.selector.of_figures(&[
            one_of("job", std::iter::once(machine.job.as_str())),
            one_of("instance", std::iter::once(machine.instance.as_str())),
        ]);
        let mut samples = Samples::default();
        for day_ms in self.days.remove(machine).unwrap_or_default() {
            let end_ms = (day_ms + DAY_MS).min(self.times.until_ms.unwrap_or(i64::MAX));
            let mut from_ms = day_ms.max(self.times.from_ms.unwrap_or(i64::MIN));
            while from_ms < end_ms {
                let to_ms = end_ms.min(from_ms + self.window_ms);
                match self.window(&wanted, from_ms..to_ms, &mut samples) {
                    Ok(()) => from_ms = to_ms,
                    Err(Trouble::TooMuch(_)) if to_ms - from_ms > SHORTEST_MS => {
                        self.window_ms = SHORTEST_MS.max((to_ms - from_ms) / 2);
                    }
                    Err(trouble) => return Err(self.request_error("query", trouble)),
                }
            }
        }
        Ok(samples)
    }
}

/// Returns true if the query exceeded `--query.max-samples` or `--query.timeout`.
fn exceeds_query_limits(kind: &str, why: &str) -> bool {
    ["timeout", "canceled"].contains(&kind) || why.contains("too many samples")
}

/// Formats a time as seconds, in the API's notation.
fn seconds(time_ms: i64) -> String {
    format!(
        "{}.{:03}",
        time_ms.div_euclid(1000),
        time_ms.rem_euclid(1000)
    )
}

fn now_ms() -> i64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since_1970.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(0))
}

fn token(path: &Path) -> Result<String, PrometheusError> {
    let unusable = |why: String| PrometheusError::Credentials {
        path: path.to_owned(),
        why,
    };
    let text = fs::read_to_string(path).map_err(|e| unusable(format!("cannot read it: {e}")))?;
    let token = text.trim();
    if token.is_empty() || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(unusable("expected a token on one line".to_owned()));
    }
    Ok(token.to_owned())
}

fn authorities(path: &Path) -> Result<RootCerts, PrometheusError> {
    let unusable = |why: String| PrometheusError::Credentials {
        path: path.to_owned(),
        why,
    };
    let pem = fs::read(path).map_err(|e| unusable(format!("cannot read it: {e}")))?;
    let mut certificates: Vec<Certificate<'static>> = Vec::new();
    for item in ureq::tls::parse_pem(&pem) {
        if let PemItem::Certificate(certificate) =
            item.map_err(|e| unusable(format!("it is no PEM: {e}")))?
        {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() {
        return Err(unusable("it holds no certificate (PEM)".to_owned()));
    }
    Ok(RootCerts::new_with_certs(&certificates))
}
