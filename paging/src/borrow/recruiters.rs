//! The recruiters that a client may ask, one after another.

use super::BorrowError;
use super::ask::{RecruiterReply, ask, foreign};
use gleaner_schemas::lending::{LeaseList, LeaseRequest, LeaseView, RefusalKind, RenewalRequest};
use gleaner_trust::http::{HttpClient, Limits};
use gleaner_trust::{Address, ClientTrust, hex};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use ureq::Agent;
use ureq::http::Method;

/// Recruiters to ask, and the identity of the client.
#[derive(Clone)]
pub struct Settings {
    /// Recruiters, `https://HOST:PORT`, or `http://` on this machine.
    pub urls: Vec<String>,
    /// Certificate and trusted authorities; needed for `https`.
    pub trust: Option<Arc<ClientTrust>>,
    /// Client name for a recruiter on this machine; for others the certificate contains the name.
    pub client: Option<String>,
    /// Timeout of one recruiter's answer; the recruiter itself waits up to 5 s for hosts.
    pub patience: Duration,
}

/// The configured recruiters. Any of them can serve a request, so the one that answered last is asked first.
pub struct Recruiters {
    settings: Settings,
    http: Mutex<HttpClient>,
    first: AtomicUsize,
}

/// Time after which an unused HTTP connection is closed; renewals come every few seconds.
const LONGEST_IDLE: Duration = Duration::from_secs(60);

impl Recruiters {
    /// # Errors
    /// [`BorrowError::Settings`].
    pub fn new(mut settings: Settings) -> Result<Self, BorrowError> {
        let wrong = |what: String| Err(BorrowError::Settings { what });
        if settings.urls.is_empty() {
            return Err(nobody());
        }
        for url in &mut settings.urls {
            let address = Address::parse(url)?;
            *url = address.to_string();
            if address.is_secret() && settings.trust.is_none() {
                return wrong(format!("{url} takes a client's certificate"));
            }
        }
        let client = settings.client.as_deref().unwrap_or("me");
        if client.is_empty() || !client.chars().all(|c| c.is_ascii_graphic()) {
            return wrong(format!("{client:?} is no client's name"));
        }
        let limits = Limits {
            whole: Some(settings.patience),
            idle: Some(LONGEST_IDLE),
            ..Limits::default()
        };
        let http = HttpClient::new("gleaner", settings.trust.clone(), limits);
        let http = http.map_err(|e| BorrowError::Settings {
            what: e.to_string(),
        })?;
        Ok(Self {
            settings,
            http: Mutex::new(http),
            first: AtomicUsize::new(0),
        })
    }

    /// Requests memory: as many leases as copies, each on another host.
    ///
    /// # Errors
    /// [`BorrowError`].
    pub fn lease(&self, request: &LeaseRequest) -> Result<Vec<LeaseView>, BorrowError> {
        let document = json!(request);
        self.each((Method::POST, "leases", Some(&document)), |url, reply| {
            let leases = leases(url, reply)?;
            let is_enough = |view: &LeaseView| view.lease.granted_bytes >= request.bytes;
            if leases.len() != request.copies as usize || !leases.iter().all(is_enough) {
                return Err(foreign(url, "other leases than requested"));
            }
            Ok(leases)
        })
    }

    /// Renews a lease.
    ///
    /// # Errors
    /// [`BorrowError`]; a refusal `unknown_lease` means that the lease has ended.
    pub fn renew(&self, lease_id: &str, term_ms: i64) -> Result<LeaseView, BorrowError> {
        let path = format!("leases/{}/renew", checked(lease_id)?);
        let document = json!(RenewalRequest { term_ms });
        self.each((Method::POST, &path, Some(&document)), |url, reply| {
            let view: LeaseView = reply.told(url)?;
            if view.lease.lease_id != lease_id {
                return Err(foreign(url, "another lease than requested"));
            }
            Ok(view)
        })
    }

    /// Ends a lease. A lease that has ended already is no error.
    ///
    /// # Errors
    /// [`BorrowError`].
    pub fn release(&self, lease_id: &str) -> Result<(), BorrowError> {
        let path = format!("leases/{}", checked(lease_id)?);
        self.each((Method::DELETE, &path, None), |url, reply| reply.done(url))
    }

    /// Returns the client's leases.
    ///
    /// # Errors
    /// [`BorrowError`].
    pub fn leases(&self) -> Result<Vec<LeaseView>, BorrowError> {
        self.each((Method::GET, "leases", None), leases)
    }

    /// Asks the recruiters in turn, until one gives an answer that another recruiter could not improve. If
    /// none does, returns the most informative error.
    fn each<T>(
        &self,
        question: (Method, &str, Option<&Value>),
        told: impl Fn(&str, &RecruiterReply) -> Result<T, BorrowError>,
    ) -> Result<T, BorrowError> {
        let agent = self.agent();
        let client = self.settings.client.as_deref();
        let count = self.settings.urls.len();
        let first = self.first.load(Ordering::Relaxed);
        let mut failed = None;
        for place in (first..first + count).map(|n| n % count) {
            let url = &self.settings.urls[place];
            match ask(&agent, url, client, question.clone()).and_then(|reply| told(url, &reply)) {
                Err(e) if may_succeed_elsewhere(&e) => {
                    let is_refused = matches!(failed, Some(BorrowError::Refused { .. }));
                    failed = if is_refused { failed } else { Some(e) };
                }
                answer => {
                    self.first.store(place, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(failed.unwrap_or_else(nobody))
    }

    /// Returns the HTTP client. It is made again after the certificate files were replaced.
    fn agent(&self) -> Agent {
        let mut http = self.http.lock().unwrap_or_else(PoisonError::into_inner);
        // While files are replaced, certificate and key may not match. Then the old certificates stay in use.
        let _ = http.follow_files();
        http.agent().clone()
    }
}

/// Returns true if another recruiter may know the lease or reach its host.
fn may_succeed_elsewhere(error: &BorrowError) -> bool {
    match error {
        BorrowError::Unreachable { .. } | BorrowError::Foreign { .. } => true,
        BorrowError::Refused { refusal, .. } => matches!(
            refusal.kind,
            RefusalKind::Starting
                | RefusalKind::Ending
                | RefusalKind::Unreachable
                | RefusalKind::UnknownLease
        ),
        _ => false,
    }
}

fn leases(url: &str, reply: &RecruiterReply) -> Result<Vec<LeaseView>, BorrowError> {
    let LeaseList { leases } = reply.told(url)?;
    if leases
        .iter()
        .any(|view| checked(&view.lease.lease_id).is_err())
    {
        return Err(foreign(url, "a lease without an id"));
    }
    Ok(leases)
}

/// Checks a lease id, which becomes part of URLs and of exports' names.
fn checked(lease_id: &str) -> Result<&str, BorrowError> {
    if hex::is_lower(lease_id, 32) {
        return Ok(lease_id);
    }
    Err(BorrowError::NoLease {
        lease_id: lease_id.to_owned(),
    })
}

fn nobody() -> BorrowError {
    BorrowError::Settings {
        what: "no recruiter is named, such as https://recruiter.example:7444".to_owned(),
    }
}
