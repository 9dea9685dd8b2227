//! The caller at the other end of a connection.

use gleaner_trust::{Peer, ServerTrust, TrustError};
use rustls::pki_types::CertificateDer;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Maximum time for which a connection may outlast its certificate's validity.
const LOOK_AGAIN: Duration = Duration::from_secs(3600);

/// The other end of one connection.
#[derive(Clone)]
pub struct Caller {
    /// Address of the caller.
    pub address: SocketAddr,
    way: Authentication,
}

#[derive(Clone)]
enum Authentication {
    Local,
    Anonymous,
    Known(Arc<KnownCaller>),
}

/// A caller with a certificate, and the data for checking it again.
pub(crate) struct KnownCaller {
    peer: Peer,
    chain: Vec<CertificateDer<'static>>,
    trust: Arc<ServerTrust>,
    /// Last check of the certificate: generation of the trusted files, and time.
    looked: Mutex<(u64, Instant)>,
}

/// Present identity of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerIdentity<'a> {
    /// A program of this machine, over plain HTTP.
    Local,
    /// A caller over TLS without a certificate.
    Anonymous,
    /// A caller over TLS with a certificate that is still valid.
    Known(&'a Peer),
}

impl Caller {
    /// Makes the caller for a program of this machine, over plain HTTP.
    #[must_use]
    pub fn local(address: SocketAddr) -> Self {
        let way = Authentication::Local;
        Self { address, way }
    }

    pub(crate) fn anonymous(address: SocketAddr) -> Self {
        let way = Authentication::Anonymous;
        Self { address, way }
    }

    pub(crate) fn known(
        address: SocketAddr,
        peer: Peer,
        chain: Vec<CertificateDer<'static>>,
        generation: u64,
        trust: Arc<ServerTrust>,
    ) -> Self {
        let known = KnownCaller {
            peer,
            chain,
            trust,
            looked: Mutex::new((generation, Instant::now())),
        };
        let way = Authentication::Known(Arc::new(known));
        Self { address, way }
    }

    /// Returns true for a caller with a certificate or on this machine.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self.way, Authentication::Anonymous)
    }

    /// Name of the caller, for the log and for limits.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.way {
            Authentication::Local => "a program on this machine".to_owned(),
            Authentication::Anonymous => self.address.ip().to_string(),
            Authentication::Known(known) => match &known.peer {
                Peer::Named(name) => name.clone(),
                peer => peer.to_string(),
            },
        }
    }

    /// Present identity of the caller. The certificate is checked again: it may have expired or been revoked
    /// since the connection began.
    ///
    /// # Errors
    /// [`TrustError::Refused`] with the reason.
    pub fn who(&self) -> Result<CallerIdentity<'_>, TrustError> {
        Ok(match &self.way {
            Authentication::Local => CallerIdentity::Local,
            Authentication::Anonymous => CallerIdentity::Anonymous,
            Authentication::Known(known) => {
                known.recheck()?;
                CallerIdentity::Known(&known.peer)
            }
        })
    }

    /// Certificate that the caller has shown, even if no longer valid (see [`Self::who`]).
    #[must_use]
    pub fn certificate(&self) -> Option<&CertificateDer<'static>> {
        match &self.way {
            Authentication::Known(known) => known.chain.first(),
            _ => None,
        }
    }
}

impl KnownCaller {
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
