//! Errors of this crate: each says what failed, where, and what to do.

use std::path::PathBuf;

/// Reason why an action failed or a peer is not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// A system call failed.
    #[error("{path}: {source}")]
    Io {
        /// File or folder on which the call failed.
        path: PathBuf,
        /// Error that the system returned.
        source: std::io::Error,
    },
    /// The folder has an authority already.
    #[error("{0} has an authority already: use it, or name another folder")]
    AuthorityExists(PathBuf),
    /// There is no authority in the folder.
    #[error(
        "{0} has no authority (authority.crt, authority.key): make one with `gleaner pki init`"
    )]
    NoAuthority(PathBuf),
    /// A file has unexpected contents.
    #[error("{path}: {reason}; give a PEM file with {wanted}")]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Contents that the file should have.
        wanted: &'static str,
        /// Fault in the contents.
        reason: String,
    },
    /// The private key does not match its certificate.
    #[error("{key} is not the private key of {certificate}: replace both together")]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// None of the given authorities signed the revocation list, so that it would revoke no certificate that
    /// they issued.
    #[error(
        "{0} has a revocation list that none of the given authorities signed: give their own, or add the authority that signed it"
    )]
    ForeignRevocations(PathBuf),
    /// A revocation list received over the network is rejected; the present lists stay in force.
    #[error("revocation list rejected: {0}")]
    ReceivedList(String),
    /// The certificate does not state its holder in a valid form.
    #[error("certificate refused: {0}")]
    Certificate(String),
    /// No trusted authority issued the certificate, or the certificate is out of date or revoked.
    #[error("certificate refused: {0}")]
    Refused(rustls::Error),
    /// The holder of this kind of certificate cannot renew it.
    #[error(
        "certificate refused: only hosts, readers, clients and admins renew their own; issue a new one with `gleaner pki issue`"
    )]
    NotRenewable,
    /// The certificate was revoked.
    #[error("certificate {0} is revoked: enrol this host again with a new token")]
    Revoked(String),
    /// The certificate is no longer valid.
    #[error("certificate expired: enrol this host again with a new token")]
    Expired,
    /// The signing request is malformed.
    #[error("certificate request refused: {0}")]
    Request(String),
    /// The name is not allowed in a certificate.
    #[error("{name:?} is not {wanted}")]
    Name {
        /// Name as given.
        name: String,
        /// Form that the value should have.
        wanted: &'static str,
    },
    /// No certificate issued by this authority matches.
    #[error("nothing issued here matches {0:?}: `gleaner pki list` shows serial numbers and hosts")]
    NotIssued(String),
    /// The authority did not make the token, or it has removed the record of the token long after its
    /// expiry.
    #[error(
        "token unknown: copy all of it, or make one with `gleaner pki token` for this collector"
    )]
    TokenUnknown,
    /// The token was used already.
    #[error("token used already: make another with `gleaner pki token`")]
    TokenUsed,
    /// The token has expired.
    #[error("token expired: make another with `gleaner pki token`")]
    TokenExpired,
    /// The token was made for another host.
    #[error("token is for another host: make one with `gleaner pki token --host {0}`")]
    TokenOfOtherHost(String),
    /// The token is for any host without a certificate, but this host has one already.
    #[error(
        "host {0} has a certificate already: make a token for it with `gleaner pki token --host {0}`"
    )]
    HostEnrolled(String),
    /// The server's authority is not the one that the token names.
    #[error("the collector's authority is not the one that made this token: check the address")]
    ForeignAuthority,
    /// A certificate cannot be made or signed, because of a broken key or a bug.
    #[error("{doing}: {source}")]
    Making {
        /// Name of the object being made, such as a certificate.
        doing: &'static str,
        /// Error of the certificate library.
        source: rcgen::Error,
    },
    /// Settings that rustls rejects.
    #[error("TLS settings: {0}")]
    Tls(#[from] rustls::Error),
    /// TLS cannot use the private key.
    #[error(
        "the private key cannot be used: {0}; enrol this host anew, or issue the certificate again"
    )]
    Key(String),
    /// The system returned no random numbers.
    #[error("the system gives no random numbers (getrandom): nothing secret can be made")]
    NoRandomness,
}

impl TrustError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn making(doing: &'static str) -> impl FnOnce(rcgen::Error) -> Self {
        move |source| Self::Making { doing, source }
    }

    pub(crate) fn name(name: &str, wanted: &'static str) -> Self {
        Self::Name {
            name: name.to_owned(),
            wanted,
        }
    }

    /// Returns true if a certificate was rejected because its authority has revoked it.
    pub fn is_revocation(&self) -> bool {
        use rustls::{CertificateError::Revoked, Error::InvalidCertificate};
        matches!(self, Self::Refused(InvalidCertificate(Revoked)))
    }

    /// Returns true if the caller caused the error by a bad token, request or certificate. Only such errors
    /// are reported to callers; errors of local files and of the system are not.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Io { .. }
                | Self::AuthorityExists(_)
                | Self::NoAuthority(_)
                | Self::Content { .. }
                | Self::Mismatch { .. }
                | Self::ForeignRevocations(_)
                | Self::Making { .. }
                | Self::Tls(_)
                | Self::Key(_)
                | Self::NoRandomness
        )
    }
}
