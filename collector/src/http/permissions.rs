//! Permissions of callers.

use super::App;
use super::refusal::Refusal;
use crate::config::LocalAccess;
use gleaner_daemon::listen::{Caller, CallerIdentity};
use gleaner_trust::{Peer, TrustError};
use rustls::pki_types::CertificateDer;

/// Caller that may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A program on this machine, for any host.
    Local,
    /// A host of this id, for itself.
    Host(String),
    /// Holder of a certificate of this name, for the host that is bound to it.
    Named(String),
}

impl App {
    /// Identifies the hosts for which a caller may write at present. The caller's certificate may have been
    /// revoked since the connection began.
    pub(super) fn writer(&self, caller: &Caller) -> Result<Writer, Refusal> {
        match who(caller)? {
            CallerIdentity::Local if self.local_access == LocalAccess::All => Ok(Writer::Local),
            CallerIdentity::Local => Err(local_is_closed()),
            CallerIdentity::Anonymous => Err(no_certificate()),
            CallerIdentity::Known(Peer::Host(id)) => Ok(Writer::Host(id.clone())),
            CallerIdentity::Known(Peer::Named(name)) => Ok(Writer::Named(name.clone())),
            CallerIdentity::Known(peer @ (Peer::Reader(_) | Peer::Admin(_))) => Err(
                Refusal::forbidden(format!("the certificate of {peer} may read, not write")),
            ),
            CallerIdentity::Known(peer @ Peer::Client(_)) => Err(Refusal::forbidden(format!(
                "the certificate of {peer} is for leases of memory, which the recruiter gives: it may neither write nor read here"
            ))),
        }
    }

    /// Checks that a caller may read all hosts' rows.
    pub(super) fn may_read(&self, caller: &Caller) -> Result<(), Refusal> {
        match who(caller)? {
            CallerIdentity::Local if self.local_access == LocalAccess::All => Ok(()),
            CallerIdentity::Local => Err(local_is_closed()),
            CallerIdentity::Anonymous => Err(no_certificate()),
            CallerIdentity::Known(Peer::Reader(_) | Peer::Admin(_)) => Ok(()),
            CallerIdentity::Known(Peer::Host(_) | Peer::Client(_) | Peer::Named(_)) => {
                Err(Refusal::forbidden(
                    "only readers may read: `gleaner pki issue --reader NAME` makes a certificate for one",
                ))
            }
        }
    }

    /// Checks that a caller may see the state of the collector: every reader, and anybody on this machine.
    pub(super) fn may_see_status(&self, caller: &Caller) -> Result<(), Refusal> {
        match who(caller)? {
            CallerIdentity::Local => Ok(()),
            _ => self.may_read(caller),
        }
    }

    /// Checks that a caller may give commands to the collector. Only programs of this machine may, and only
    /// with all access.
    pub(super) fn may_direct(&self, caller: &Caller) -> Result<(), Refusal> {
        match who(caller)? {
            CallerIdentity::Local if self.local_access == LocalAccess::All => Ok(()),
            _ => Err(local_is_closed()),
        }
    }
}

/// Certificate that a caller has shown. Returns an error if the certificate is no longer valid.
pub(super) fn certificate(caller: &Caller) -> Result<CertificateDer<'static>, Refusal> {
    who(caller)?;
    caller.certificate().cloned().ok_or_else(no_certificate)
}

fn who(caller: &Caller) -> Result<CallerIdentity<'_>, Refusal> {
    let refused = |e: TrustError| Refusal::unauthorized(e.to_string());
    caller.who().map_err(refused)
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
