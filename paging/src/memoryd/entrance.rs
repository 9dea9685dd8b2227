//! Admission of leases' clients by their certificates, which are checked against revocation lists.
//!
//! Lists arrive over the links with recruiters and are signed by the deployment's authority: a recruiter can
//! withhold a list, but not forge one. The newest list of each authority is stored in the state folder, and
//! verified again when it is read.

use crate::core::{CoreMessage, Inbox};
use gleaner_paging::nbd::{Arrival, Gate, Guests, lease_of};
use gleaner_paging::store::Store;
use gleaner_schemas::lending::RevocationCount;
use gleaner_trust::{ClientPaths, MOST_RECEIVED_BYTES, ServerPaths, ServerTrust, TrustError};
use rustls::ServerConfig;
use rustls::pki_types::CertificateRevocationListDer;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

const FILE: &str = "revoked.crl";
/// Interval between checks of admitted clients' certificates: a connection outlasts its certificate's
/// validity by at most this time.
const CHECK_EVERY: Duration = Duration::from_secs(3600);

/// Certificates of this host, revocation lists, and admitted clients.
pub(crate) struct Entrance {
    paths: ServerPaths,
    /// Unset until the host has certificates, which may be long after its memory server has started.
    trust: OnceLock<Arc<ServerTrust>>,
    /// Limits a warning to one line. Anybody may connect, and a line for each connection would fill the log.
    complained: Once,
    kept: PathBuf,
    guests: Arc<Guests>,
    store: Arc<Store>,
    core: Inbox,
    checked: Mutex<Instant>,
    /// Counts accepted lists.
    changes: watch::Sender<u64>,
}

impl Entrance {
    /// Reads the certificates and lists that exist now; certificates may also appear later.
    pub(crate) fn open(
        certificates: &ClientPaths,
        state: &Path,
        store: Arc<Store>,
        core: Inbox,
    ) -> Self {
        let entrance = Self {
            paths: ServerPaths {
                certificate: certificates.certificate.clone(),
                key: certificates.key.clone(),
                authority: certificates.authority.clone(),
                revocation_list: None,
            },
            trust: OnceLock::new(),
            complained: Once::new(),
            kept: state.join(FILE),
            guests: Arc::default(),
            store,
            core,
            checked: Mutex::new(Instant::now()),
            changes: watch::Sender::new(0),
        };
        let _ = entrance.trust(); // failure is no error here: later calls try again
        entrance
    }

    /// Returns certificates and lists. They are loaded by the first call that finds them usable.
    fn trust(&self) -> Result<&Arc<ServerTrust>, TrustError> {
        if let Some(trust) = self.trust.get() {
            return Ok(trust);
        }
        let trust = ServerTrust::load_receiving(&self.paths)?;
        match read_stored(&self.kept).map(|pem| pem.map(|pem| trust.receive(&pem))) {
            Ok(None | Some(Ok(_))) => {}
            Ok(Some(Err(e))) => self.complain(&format!("is not used: {e}")),
            Err(e) => self.complain(&format!("cannot be read: {e}")),
        }
        let mut is_first = false;
        let trust = self.trust.get_or_init(|| {
            is_first = true;
            trust
        });
        if is_first {
            self.tell(trust, Vec::new());
        }
        Ok(trust)
    }

    fn complain(&self, why: &str) {
        let path = self.kept.display();
        eprintln!("gleaner-memoryd: the revocation list {path} {why}; recruiters send it again");
    }

    /// Accepts lists from a recruiter. Newer lists take effect immediately: connections of revoked clients
    /// are closed, and their leases end.
    ///
    /// # Errors
    /// Reason why the lists change nothing.
    pub(crate) fn receive(&self, pem: &str) -> Result<(), TrustError> {
        let trust = self.trust()?;
        if !trust.receive(pem)? {
            return Ok(());
        }
        if let Err(e) = write_stored(&self.kept, &trust.revocations_pem()) {
            let path = self.kept.display();
            eprintln!(
                "gleaner-memoryd: the revocation list holds until the daemon ends, and no longer: {path}: {e}"
            );
        }
        self.check_again(trust);
        self.changes.send_modify(|count| *count += 1);
        Ok(())
    }

    /// Checks once an hour whether the certificates of admitted clients are still valid.
    pub(crate) fn check_in_time(&self) {
        let checked = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trust) = self.trust.get()
            && checked.elapsed() >= CHECK_EVERY
        {
            self.check_again(trust);
        }
    }

    fn check_again(&self, trust: &ServerTrust) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        let now = SystemTime::now();
        let rechecked = self.guests.recheck(|chain| trust.recheck(chain, now));
        let leases = rechecked.exports.iter().filter_map(|name| lease_of(name));
        let lease_ids: Vec<String> = leases.map(|(lease_id, _)| lease_id.to_owned()).collect();
        if rechecked.closed_count > 0 || !lease_ids.is_empty() {
            eprintln!(
                "gleaner-memoryd: certificates checked again: {} connections closed, {} leases of revoked clients end",
                rechecked.closed_count,
                lease_ids.len()
            );
        }
        self.tell(trust, lease_ids);
    }

    fn tell(&self, trust: &ServerTrust, lease_ids: Vec<String>) {
        let held = trust.revocation_summary().map(|summary| RevocationCount {
            issued_time_ms: since_1970_ms(summary.made),
            certificates_count: summary.certificates_count as u64,
        });
        self.core.tell(CoreMessage::Revocations { held, lease_ids });
    }

    /// Revocation lists in force.
    pub(crate) fn lists(&self) -> Vec<CertificateRevocationListDer<'static>> {
        let trust = self.trust().ok();
        trust.map_or_else(Vec::new, |trust| trust.revocations())
    }

    /// Returns a receiver that is notified whenever newer lists are accepted.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

impl Gate for Entrance {
    fn settings(&self) -> Result<Arc<ServerConfig>, String> {
        let trust = self.trust().map_err(|e| {
            self.complained
                .call_once(|| eprintln!("gleaner-memoryd: no TLS for leases' clients yet: {e}"));
            "this host is not enrolled (gleaner-agent enroll): it has no certificate".to_owned()
        })?;
        // After an error the former certificates stay in use.
        if matches!(trust.reload_if_changed(), Ok(true)) {
            self.check_again(trust);
        }
        Ok(trust.config())
    }

    fn admit(&self, arrival: Arrival) -> Result<Box<dyn Send>, String> {
        let trust = self.trust().map_err(|e| e.to_string())?;
        let certificates = arrival.certificates.clone();
        let is_there = |export: &str| {
            let lease = lease_of(export);
            lease.is_some_and(|(lease_id, generation)| {
                self.store.pages(lease_id, generation).is_ok()
            })
        };
        let guest = self.guests.enter(arrival, is_there);
        // The client is checked again after it was added to the list of guests. A revocation list may have
        // arrived since the handshake; lists that arrive later find the client among the guests.
        let rechecked = trust.recheck(&certificates, SystemTime::now());
        rechecked.map_err(|e| e.to_string())?;
        Ok(Box::new(guest))
    }
}

fn since_1970_ms(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

/// Reads the stored lists; `None` if there is no file.
fn read_stored(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut pem = String::new();
    file.take(MOST_RECEIVED_BYTES as u64 + 1)
        .read_to_string(&mut pem)?;
    Ok(Some(pem))
}

/// Replaces the stored lists atomically and durably.
fn write_stored(path: &Path, pem: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let unfinished = path.with_extension("crl.new");
    let mut file = File::create(&unfinished)?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
