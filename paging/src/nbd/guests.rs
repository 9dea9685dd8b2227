//! Clients admitted by certificate, and disconnected once the certificate is no longer valid.

use super::channel::Line;
use gleaner_trust::TrustError;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of certificates remembered per export; the newest are kept. A client that renews its
/// certificate keeps its name, so an export may be opened with several certificates.
const MOST_SHOWN: usize = 16;

/// Admission of clients: TLS settings, and a list of admitted clients.
pub trait Gate: Send + Sync {
    /// Returns the TLS settings for the next client. The server asks for each client, since certificates are
    /// renewed and revoked.
    ///
    /// # Errors
    /// Reason why there are no settings, which is sent to the client.
    fn settings(&self) -> Result<Arc<ServerConfig>, String>;

    /// Admits a client after its handshake. The client counts as admitted until the value is dropped.
    ///
    /// # Errors
    /// Reason why the client's certificate is no longer valid.
    fn admit(&self, arrival: Arrival) -> Result<Box<dyn Send>, String>;
}

/// Connection of a client that has shown a certificate and opened an export.
#[derive(Debug)]
pub struct Arrival {
    /// The client's certificate, followed by the intermediate certificates up to the authority.
    pub certificates: Vec<CertificateDer<'static>>,
    /// The export's own name.
    pub export: String,
    pub(super) line: Line,
}

type Chain = Arc<[CertificateDer<'static>]>;

/// Admitted clients, and the certificates with which each export was opened.
#[derive(Debug, Default)]
pub struct Guests(Mutex<GuestTable>);

#[derive(Debug, Default)]
struct GuestTable {
    next: u64,
    open: BTreeMap<u64, (Chain, Line)>,
    shown: BTreeMap<String, VecDeque<Chain>>,
}

/// An admitted client; removed from the list when this value is dropped.
#[derive(Debug)]
pub struct Guest {
    guests: Arc<Guests>,
    number: u64,
}

/// Result of [`Guests::recheck`].
#[derive(Debug, Default, PartialEq, Eq)]
pub struct RecheckResult {
    /// Connections that were closed.
    pub closed_count: usize,
    /// Names of exports that a revoked certificate has opened, with or without an open connection.
    pub exports: Vec<String>,
}

impl Guests {
    fn present(&self) -> MutexGuard<'_, GuestTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client to the list. Drops records of exports for which `is_there` returns false.
    pub fn enter(self: &Arc<Self>, arrival: Arrival, is_there: impl Fn(&str) -> bool) -> Guest {
        let Arrival {
            certificates,
            export,
            line,
        } = arrival;
        let mut present = self.present();
        if !present.shown.contains_key(&export) {
            present.shown.retain(|export, _| is_there(export));
        }
        let shown = present.shown.entry(export).or_default();
        let known = shown.iter().find(|chain| ***chain == certificates[..]);
        let chain = known.map_or_else(|| certificates.into(), Chain::clone);
        if !shown.iter().any(|other| Arc::ptr_eq(other, &chain)) {
            shown.push_back(Chain::clone(&chain));
            if shown.len() > MOST_SHOWN {
                shown.pop_front();
            }
        }
        present.next += 1;
        let number = present.next;
        present.open.insert(number, (chain, line));
        Guest {
            guests: Arc::clone(self),
            number,
        }
    }

    /// Checks all certificates again, and closes each connection whose certificate is no longer valid.
    pub fn recheck(
        &self,
        check: impl Fn(&[CertificateDer<'_>]) -> Result<(), TrustError>,
    ) -> RecheckResult {
        let (open, shown) = {
            let present = self.present();
            let open: Vec<(u64, Chain)> = present
                .open
                .iter()
                .map(|(number, (chain, _))| (*number, Chain::clone(chain)))
                .collect();
            let shown: Vec<(String, Vec<Chain>)> = present
                .shown
                .iter()
                .map(|(export, chains)| (export.clone(), chains.iter().cloned().collect()))
                .collect();
            (open, shown)
        };
        // The certificates are checked without the lock: clients that arrive in the meantime are admitted by
        // the newer settings.
        let mut bad = BTreeSet::new();
        for (number, chain) in &open {
            if check(chain).is_err() {
                bad.insert(*number);
            }
        }
        let is_revoked = |chain: &Chain| check(chain).is_err_and(|e| e.is_revocation());
        let exports = shown
            .into_iter()
            .filter(|(_, chains)| chains.iter().any(is_revoked))
            .map(|(export, _)| export)
            .collect();
        let present = self.present();
        let lines = bad.iter().filter_map(|number| present.open.get(number));
        let mut closed_count = 0;
        for (_, line) in lines {
            line.close_connection(); // the connection's thread notices the end, and removes the client
            closed_count += 1;
        }
        RecheckResult {
            closed_count,
            exports,
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.guests.present().open.remove(&self.number);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::nbd::channel::PlainStream;
    use rustls::{CertificateError, Error};
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    struct Visit {
        client: TcpStream,
        guest: Guest,
    }

    fn visit(guests: &Arc<Guests>, listener: &TcpListener, certificate: u8, export: &str) -> Visit {
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_nonblocking(true).unwrap();
        let plain = PlainStream::tcp(listener.accept().unwrap().0).unwrap();
        let arrival = Arrival {
            certificates: vec![CertificateDer::from(vec![certificate])],
            export: export.to_owned(),
            line: plain.line().unwrap(),
        };
        let guest = guests.enter(arrival, |export| export != "over");
        Visit { client, guest }
    }

    impl Visit {
        fn is_open(&mut self) -> bool {
            let read = self.client.read(&mut [0]);
            read.is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
        }

        fn is_closed(&mut self) -> bool {
            self.client.set_nonblocking(false).unwrap();
            let patience = Duration::from_secs(60);
            self.client.set_read_timeout(Some(patience)).unwrap();
            self.client.read(&mut [0]).unwrap() == 0
        }
    }

    fn refuse(
        what: CertificateError,
        bad: u8,
    ) -> impl Fn(&[CertificateDer<'_>]) -> Result<(), TrustError> {
        move |chain| match chain[0][0] == bad {
            true => Err(TrustError::Refused(Error::InvalidCertificate(what.clone()))),
            false => Ok(()),
        }
    }

    #[test]
    fn connections_of_a_revoked_certificate_end_and_its_exports_are_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let guests = Arc::new(Guests::default());
        let mut first = visit(&guests, &listener, 1, "a");
        let mut second = visit(&guests, &listener, 1, "b");
        let mut other = visit(&guests, &listener, 2, "a");
        let gone = visit(&guests, &listener, 3, "c");
        let all_is_well = guests.recheck(|_| Ok(()));
        assert_eq!(all_is_well, RecheckResult::default());
        let rechecked = guests.recheck(refuse(CertificateError::Revoked, 1));
        let exports = ["a", "b"].map(str::to_owned).to_vec();
        assert_eq!(
            rechecked,
            RecheckResult {
                closed_count: 2,
                exports
            }
        );
        assert!(first.is_closed() && second.is_closed() && other.is_open());
        // The certificates of an export stay recorded after its last client has left.
        drop(gone);
        let rechecked = guests.recheck(refuse(CertificateError::Revoked, 3));
        assert_eq!(
            (rechecked.closed_count, &rechecked.exports[..]),
            (0, &["c".to_owned()][..])
        );
        // After its certificate has expired, a client reconnects with the next one. So its lease stays.
        let rechecked = guests.recheck(refuse(CertificateError::Expired, 2));
        assert_eq!(
            rechecked,
            RecheckResult {
                closed_count: 1,
                exports: Vec::new()
            }
        );
        assert!(other.is_closed());
        drop((first.guest, second.guest, other.guest));
        assert!(guests.present().open.is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let guests = Arc::new(Guests::default());
        for certificate in 0..40 {
            for _ in 0..2 {
                visit(&guests, &listener, certificate, "a");
            }
        }
        visit(&guests, &listener, 1, "over");
        assert_eq!(guests.present().shown["a"].len(), MOST_SHOWN);
        visit(&guests, &listener, 1, "b");
        let present = guests.present();
        assert_eq!(present.shown.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(present.open.is_empty());
    }
}
