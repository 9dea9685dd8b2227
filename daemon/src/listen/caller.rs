//! The caller at the other end of a connection.

use gleaner_trust::{Peer, ServerTrust, TrustError};
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// A connection may outlast its certificate's validity by so long.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// The other end of one connection.
#[derive(Clone)]
pub struct Caller {
    /// Address of the caller.
    pub address: SocketAddr,
    way: Way,
}

#[derive(Clone)]
enum Way {
    Local,
    Anonymous,
    Known(Arc<Known>),
}

/// Whoever shows a certificate, with what is needed to look at it again.
pub(crate) struct Known {
    peer: Peer,
    chain: Vec<CertificateDer<'static>>,
    trust: Arc<ServerTrust>,
    /// Generation of the trusted files, and time, of the last look at the certificate.
    looked: Mutex<(u64, Instant)>,
}

/// Identity of a caller, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who<'a> {
    /// A program of this machine, by plain HTTP.
    Local,
    /// TLS without a certificate.
    Anonymous,
    /// TLS with a certificate, which is still good.
    Known(&'a Peer),
}

impl Caller {
    /// A program of this machine, by plain HTTP.
    #[must_use]
    pub fn local(address: SocketAddr) -> Self {
        let way = Way::Local;
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
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self.way, Way::Anonymous)
    }

    /// Its name, for the log and for limits.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.way {
            Way::Local => "a program on this machine".to_owned(),
            Way::Anonymous => self.address.ip().to_string(),
            Way::Known(known) => match &known.peer {
                Peer::Named(name) => name.clone(),
                peer => peer.to_string(),
            },
        }
    }

    /// Identity of the caller now: its certificate may have been revoked, or have ended, since the connection began.
    ///
    /// # Errors
    /// [`TrustError::Refused`] with the reason.
    pub fn who(&self) -> Result<Who<'_>, TrustError> {
        Ok(match &self.way {
            Way::Local => Who::Local,
            Way::Anonymous => Who::Anonymous,
            Way::Known(known) => {
                known.recheck()?;
                Who::Known(&known.peer)
            }
        })
    }

    /// The certificate that it has shown, whether or not it is still good ([`Self::who`]).
    #[must_use]
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match &self.way {
            Way::Known(known) => known.chain.first(),
            _ => None,
        }
    }
}

impl Known {
    fn recheck(&self) -> Result<(), TrustError> {
        let generation = self.trust.generation();
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        if looked.0 == generation && looked.1.elapsed() < LOOK_AGAIN {
            return Ok(());
        }
        self.trust.recheck(&self.chain, SystemTime::now())?;
        *looked = (generation, Instant::now());
        Ok(())
    }
}
