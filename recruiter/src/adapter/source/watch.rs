//! A recruiter's `GET /v1/quotas/watch`: server-sent events (WHATWG HTML, 9.2).

use super::super::Follow;
use super::{Failure, Heard, Pick};
use gleaner_trust::{ClientPaths, ClientTrust, provider};
use std::io::{BufRead, BufReader, Read};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// Between two tries.
const WAIT: Duration = Duration::from_secs(1);
/// Name, connection, and the answer's head may each take so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest line: a host's quota has under 1 KiB, and there may be ten thousand hosts.
const LONGEST_LINE_BYTES: u64 = 32 << 20;

/// A recruiter that is listened to.
pub(super) struct Watch {
    url: String,
    trust: Option<Arc<ClientTrust>>,
    /// A connection ends after this and is made anew, so that one that died in silence is got over.
    longest: Duration,
}

impl Watch {
    pub(super) fn new(url: &str, args: &Follow) -> Result<Self, Failure> {
        let url = url.trim_end_matches('/').to_owned();
        let refuse = |why: &str| Failure::Recruiter {
            url: url.clone(),
            why: why.to_owned(),
        };
        let uri: Uri = url
            .parse()
            .map_err(|_| refuse("no address: write it like https://recruiter.example:7444"))?;
        let host = uri.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_here =
            host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        match uri.scheme_str() {
            Some("https") => (),
            Some("http") if is_here => (),
            Some("http") => {
                return Err(refuse("plain HTTP is for this machine alone: use https://"));
            }
            _ => {
                return Err(refuse(
                    "no address: write it like https://recruiter.example:7444",
                ));
            }
        }
        let trust = match (&args.certificate, &args.key, &args.authority) {
            (Some(certificate), Some(key), Some(authority)) => {
                Some(ClientTrust::load(&ClientPaths {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    authority: authority.clone(),
                })?)
            }
            _ if uri.scheme_str() == Some("https") => {
                return Err(refuse(
                    "https:// needs --certificate, --key and --authority",
                ));
            }
            _ => None,
        };
        Ok(Self {
            url,
            trust,
            longest: args.lost_after,
        })
    }

    /// Until nobody listens.
    pub(super) fn follow(&self, pick: Pick, heard: &Sender<Heard>) {
        loop {
            if let Err(failure) = self.listen(&pick, heard)
                && heard.send(Heard::Trouble(failure)).is_err()
            {
                return;
            }
            std::thread::sleep(WAIT);
        }
    }

    /// One connection: all hosts' quotas at first, then those that change.
    fn listen(&self, pick: &Pick, heard: &Sender<Heard>) -> Result<(), Failure> {
        let failed = |why: String| Failure::Recruiter {
            url: self.url.clone(),
            why,
        };
        let address = format!("{}/v1/quotas/watch", self.url);
        let config = Config::builder()
            .tls_config(self.tls()?)
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .user_agent(concat!("gleaner-recruiter/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(PATIENCE))
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_recv_body(Some(self.longest))
            .build();
        let mut answer = config
            .new_agent()
            .get(&address)
            .header("Accept", "text/event-stream")
            .call()
            .map_err(|e| failed(e.to_string()))?;
        if !answer.status().is_success() {
            let said = answer.body_mut().with_config().limit(4096).lossy_utf8(true);
            let said = said.read_to_string().unwrap_or_default();
            return Err(failed(format!("{} {}", answer.status(), said.trim())));
        }
        let mut lines = BufReader::new(answer.into_body().into_reader());
        let mut only: Option<String> = None;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = lines
                .by_ref()
                .take(LONGEST_LINE_BYTES)
                .read_until(b'\n', &mut line);
            match read {
                // The end, or the longest that a connection may live: another one is made.
                Ok(0) => return Ok(()),
                Err(e) if is_time_out(&e) => return Ok(()),
                Err(e) => return Err(failed(e.to_string())),
                Ok(_) => (),
            }
            let Some(data) = line.strip_prefix(b"data:") else {
                continue; // names of events, and what keeps the connection alive
            };
            let quotas = super::quotas(data.trim_ascii(), &address)?;
            let says = match &only {
                Some(id) => pick.of_changed(quotas, id),
                None => {
                    let says = pick.of_all(quotas, &self.url);
                    if let Heard::Quota(quota) = &says {
                        only = Some(quota.host_id.clone());
                    }
                    says
                }
            };
            if heard.send(says).is_err() {
                return Ok(());
            }
        }
    }

    fn tls(&self) -> Result<TlsConfig, Failure> {
        let Some(trust) = &self.trust else {
            return Ok(TlsConfig::default());
        };
        trust.reload_if_changed()?;
        let credentials = trust.credentials();
        let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
        let authorities: Vec<_> = credentials.authorities().iter().map(|c| owned(c)).collect();
        let own: Vec<_> = credentials
            .certificates()
            .iter()
            .map(|c| owned(c))
            .collect();
        let key = credentials.key_pem().map(PrivateKey::from_pem).transpose();
        let key = key.map_err(|e| Failure::Recruiter {
            url: self.url.clone(),
            why: format!("{} is no key: {e}", trust.paths().key.display()),
        })?;
        Ok(TlsConfig::builder()
            .unversioned_rustls_crypto_provider(provider())
            .root_certs(RootCerts::new_with_certs(&authorities))
            .client_cert(key.map(|key| ClientCert::new_with_certs(&own, key)))
            .build())
    }
}

fn is_time_out(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == std::io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}
