//! Who is at the other end of a connection, and what they may do.

use super::refusal::Refusal;
use crate::config::LocalAccess;
use gleaner_trust::{Peer, ServerTrust};
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The other end of one connection.
#[derive(Clone)]
pub(crate) struct Caller {
    /// Where it is.
    pub(crate) address: SocketAddr,
    way: Way,
}

#[derive(Clone)]
enum Way {
    /// Plain HTTP from this machine.
    Local(LocalAccess),
    /// TLS without a certificate: good for enrolment alone.
    Anonymous,
    /// TLS with a certificate that was good when the connection began.
    Known(Arc<Known>),
}

struct Known {
    peer: Peer,
    chain: Vec<CertificateDer<'static>>,
    trust: Arc<ServerTrust>,
    /// Generation of the trusted files, and time, of the last look at the certificate.
    looked: Mutex<(u64, Instant)>,
}

/// A connection may outlast its certificate's validity by so long.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// Who may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A program of this machine, for any host.
    Local,
    /// This host, for itself.
    Host(String),
    /// Whoever has a certificate of this name, for the host that is bound to it.
    Named(String),
}

impl Caller {
    pub(crate) fn local(address: SocketAddr, access: LocalAccess) -> Self {
        let way = Way::Local(access);
        Self { address, way }
    }

    pub(crate) fn anonymous(address: SocketAddr) -> Self {
        let way = Way::Anonymous;
        Self { address, way }
    }

    pub(crate) fn known(
        address: SocketAddr,
        peer: Peer,
        chain: Vec<CertificateDer<'static>>,
        generation: u64,
        trust: Arc<ServerTrust>,
    ) -> Self {
        let known = Known {
            peer,
            chain,
            trust,
            looked: Mutex::new((generation, Instant::now())),
        };
        let way = Way::Known(Arc::new(known));
        Self { address, way }
    }

    /// Whether it has shown a certificate, or is on this machine.
    pub(crate) fn is_known(&self) -> bool {
        !matches!(self.way, Way::Anonymous)
    }

    /// Its name, for the log and for limits.
    pub(crate) fn name(&self) -> String {
        match &self.way {
            Way::Local(_) => "a program on this machine".to_owned(),
            Way::Anonymous => self.address.ip().to_string(),
            Way::Known(known) => match &known.peer {
                Peer::Host(id) => format!("host {id}"),
                Peer::Reader(name) => format!("reader {name}"),
                Peer::Named(name) => name.clone(),
            },
        }
    }

    /// For whom it may write, now: its certificate may have been revoked since the connection began.
    pub(crate) fn writer(&self) -> Result<Writer, Refusal> {
        match &self.way {
            Way::Local(LocalAccess::All) => Ok(Writer::Local),
            Way::Local(LocalAccess::Status) => Err(local_is_closed()),
            Way::Anonymous => Err(no_certificate()),
            Way::Known(known) => {
                known.recheck()?;
                match &known.peer {
                    Peer::Host(id) => Ok(Writer::Host(id.clone())),
                    Peer::Named(name) => Ok(Writer::Named(name.clone())),
                    Peer::Reader(name) => Err(Refusal::forbidden(format!(
                        "the certificate of reader {name} may read, not write"
                    ))),
                }
            }
        }
    }

    /// The certificate that it has shown, if that is still good.
    pub(crate) fn certificate(&self) -> Result<CertificateDer<'static>, Refusal> {
        let Way::Known(known) = &self.way else {
            return Err(no_certificate());
        };
        known.recheck()?;
        known.chain.first().cloned().ok_or_else(no_certificate)
    }

    /// Whether it may read all hosts' rows.
    pub(crate) fn may_read(&self) -> Result<(), Refusal> {
        match &self.way {
            Way::Local(LocalAccess::All) => Ok(()),
            Way::Local(LocalAccess::Status) => Err(local_is_closed()),
            Way::Anonymous => Err(no_certificate()),
            Way::Known(known) => {
                known.recheck()?;
                match &known.peer {
                    Peer::Reader(_) => Ok(()),
                    Peer::Host(_) | Peer::Named(_) => Err(Refusal::forbidden(
                        "only readers may read: `gleaner pki issue --reader NAME` makes a certificate for one",
                    )),
                }
            }
        }
    }

    /// Whether it may see how the collector is: whoever may read, and anybody on this machine.
    pub(crate) fn may_see_status(&self) -> Result<(), Refusal> {
        match &self.way {
            Way::Local(_) => Ok(()),
            _ => self.may_read(),
        }
    }

    /// Whether it may ask the collector to do things: with all access, on this machine.
    pub(crate) fn may_direct(&self) -> Result<(), Refusal> {
        match &self.way {
            Way::Local(LocalAccess::All) => Ok(()),
            _ => Err(local_is_closed()),
        }
    }
}

impl Known {
    fn recheck(&self) -> Result<(), Refusal> {
        let generation = self.trust.generation();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.0 == generation && looked.1.elapsed() < LOOK_AGAIN {
            return Ok(());
        }
        let checked = self.trust.recheck(&self.chain, SystemTime::now());
        checked.map_err(|e| Refusal::unauthorized(e.to_string()))?;
        *looked = (generation, Instant::now());
        Ok(())
    }
}

fn no_certificate() -> Refusal {
    Refusal::unauthorized(
        "no certificate was shown: enrol this host with `gleaner-agent enroll`, or have a certificate issued by `gleaner pki issue`",
    )
}

fn local_is_closed() -> Refusal {
    Refusal::forbidden(
        "without TLS only the status page and the metrics are served: use the TLS address, or set local_access = \"all\"",
    )
}
