//! Follows a recruiter's `GET /v1/quotas/watch`: server-sent events (WHATWG HTML, 9.2).

use super::super::FollowArgs;
use super::{Failure, HostChoice, QuotaNews};
use gleaner_trust::http::{HttpClient, Limits};
use gleaner_trust::{Address, ClientPaths, ClientTrust};
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::Sender;
use std::time::Duration;

/// Pause between two attempts to connect.
const WAIT: Duration = Duration::from_secs(1);
/// Timeout of each of name resolution, connection and head of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a line. The quota of a host has less than 1 KiB, and there may be ten thousand hosts.
const LONGEST_LINE_BYTES: u64 = 32 << 20;

/// Connection to a recruiter's stream of quotas.
pub(super) struct Watch {
    url: String,
    http: HttpClient,
}

impl Watch {
    pub(super) fn new(url: &str, args: &FollowArgs) -> Result<Self, Failure> {
        let refuse = |why: String| Failure::Recruiter {
            url: url.to_owned(),
            why,
        };
        let address = Address::parse(url).map_err(|e| refuse(e.to_string()))?;
        let trust = match (&args.certificate, &args.key, &args.authority) {
            (Some(certificate), Some(key), Some(authority)) => {
                Some(ClientTrust::load(&ClientPaths {
                    certificate: certificate.clone(),
                    key: key.clone(),
                    authority: authority.clone(),
                })?)
            }
            _ if address.is_secret() => {
                return Err(refuse(
                    "https:// needs --certificate, --key and --authority".to_owned(),
                ));
            }
            _ => None,
        };
        let limits = Limits {
            connect: Some(PATIENCE),
            answer: Some(PATIENCE),
            body: Some(args.quota_timeout), // ends a silently dead connection, which is then replaced
            ..Limits::default()
        };
        Ok(Self {
            url: address.to_string(),
            http: HttpClient::new("gleaner-recruiter", trust, limits)?,
        })
    }

    /// Follows the recruiter until the receiver is gone.
    pub(super) fn follow(mut self, pick: HostChoice, heard: &Sender<QuotaNews>) {
        loop {
            if let Err(failure) = self.listen(&pick, heard)
                && heard.send(QuotaNews::Trouble(failure)).is_err()
            {
                return;
            }
            std::thread::sleep(WAIT);
        }
    }

    /// Reads the events of one connection: first the quotas of all hosts, then those of changed hosts.
    fn listen(&mut self, pick: &HostChoice, heard: &Sender<QuotaNews>) -> Result<(), Failure> {
        let url = self.url.clone();
        let failed = |why: String| Failure::Recruiter {
            url: url.clone(),
            why,
        };
        let address = format!("{url}/v1/quotas/watch");
        self.http.follow_files()?;
        let mut answer = self
            .http
            .agent()
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
                // The stream has ended, or its timeout has passed; the caller connects again.
                Ok(0) => return Ok(()),
                Err(e) if is_time_out(&e) => return Ok(()),
                Err(e) => return Err(failed(e.to_string())),
                Ok(_) => (),
            }
            let Some(data) = line.strip_prefix(b"data:") else {
                continue; // skips event names and keep-alive lines
            };
            let quotas = super::quotas(data.trim_ascii(), &address)?;
            let says = match &only {
                Some(id) => pick.of_changed(quotas, id),
                None => {
                    let says = pick.of_all(quotas, &url);
                    if let QuotaNews::Quota(quota) = &says {
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
}

fn is_time_out(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    error.kind() == std::io::ErrorKind::TimedOut || matches!(inner, Some(ureq::Error::Timeout(_)))
}
