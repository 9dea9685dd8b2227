//! Errors: the reason, the place, and the remedy.

use std::path::PathBuf;

/// Reason why something was not done, or somebody not trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// File or folder of the error.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// A folder that has an authority cannot be given a second one.
    #[error("{0} has an authority already: go on using it, or name another folder")]
    AuthorityExists(PathBuf),
    /// No authority where one was looked for.
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
        /// The fault of the file.
        reason: String,
    },
    /// A private key that is not its certificate's.
    #[error("{key} is not the private key of {certificate}: replace both together")]
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// A revocation list of another authority, which would say nothing about anybody.
    #[error(
        "{0} has a revocation list that none of the given authorities signed: give their own, or add the authority that signed it"
    )]
    ForeignRevocations(PathBuf),
    /// Revocation lists that arrived over the network and change nothing.
    #[error("revocation list rejected: {0}")]
    ReceivedList(String),
    /// A certificate that does not say, or says wrongly, whose it is.
    #[error("certificate refused: {0}")]
    Certificate(String),
    /// A certificate that does not lead to the authority, is out of date, or is revoked.
    #[error("certificate refused: {0}")]
    Refused(rustls::Error),
    /// A certificate of another kind than the one asked for.
    #[error(
        "certificate refused: only hosts, readers, clients and admins renew their own; issue a new one with `gleaner pki issue`"
    )]
    NotRenewable,
    /// A certificate that was revoked.
    #[error("certificate {0} is revoked: enrol this host again with a new token")]
    Revoked(String),
    /// A certificate that is no longer valid.
    #[error("certificate expired: enrol this host again with a new token")]
    Expired,
    /// A signing request that is not one.
    #[error("certificate request refused: {0}")]
    Request(String),
    /// A name that no certificate may carry.
    #[error("{name:?} is not {wanted}")]
    Name {
        /// Name as given.
        name: String,
        /// Form that the value should have.
        wanted: &'static str,
    },
    /// No certificate issued here matches.
    #[error("nothing issued here matches {0:?}: `gleaner pki list` shows serial numbers and hosts")]
    NotIssued(String),
    /// A token that this authority never gave, or gave long ago.
    #[error(
        "token unknown: copy it whole, or make one with `gleaner pki token` for this collector"
    )]
    TokenUnknown,
    /// A token that did its work.
    #[error("token used already: make another with `gleaner pki token`")]
    TokenUsed,
    /// A token that came too late.
    #[error("token expired: make another with `gleaner pki token`")]
    TokenExpired,
    /// A token that was made for one certain host, and this is not the one.
    #[error("token is for another host: make one with `gleaner pki token --host {0}`")]
    TokenOfOtherHost(String),
    /// The holder of any token must not become an existing host.
    #[error(
        "host {0} has a certificate already: make a token for it with `gleaner pki token --host {0}`"
    )]
    HostEnrolled(String),
    /// The authority that was met is not the one that the token names.
    #[error("the collector's authority is not the one that made this token: check the address")]
    ForeignAuthority,
    /// Making or signing failed, which takes a broken key or a bug.
    #[error("{doing}: {source}")]
    Making {
        /// Certificate or key that was being made.
        doing: &'static str,
        /// Error of the certificate library.
        source: rcgen::Error,
    },
    /// TLS took none of it.
    #[error("TLS settings: {0}")]
    Tls(#[from] rustls::Error),
    /// A private key that TLS cannot use.
    #[error(
        "the private key cannot be used: {0}; enrol this host anew, or issue the certificate again"
    )]
    Key(String),
    /// The system gave no random numbers.
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

    /// Returns true if the caller caused the error (a bad token, request or certificate) rather than files or
    /// the system here: only such errors are reported to strangers.
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
