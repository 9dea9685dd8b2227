//! Identity of a certificate's holder, as the certificate states it.
//!
//! Gleaner's own certificates state the identity as a URI among the subject's alternative names (RFC 5280,
//! 4.2.1.6): `gleaner:host:<id>`, `gleaner:reader:<name>`, `gleaner:client:<name>` or `gleaner:admin:<name>`.
//! No public authority's certificate contains such a URI by chance.

use crate::{Result, TrustError, hex};
use rustls::pki_types::CertificateDer;
use std::fmt;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

const SCHEME: &str = "gleaner:";

/// Role for which a certificate is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The collector, with the DNS names and addresses by which hosts reach it.
    Collector {
        /// DNS names and IP addresses; at least one.
        names: Vec<String>,
    },
    /// A recruiter, with the DNS names and addresses by which hosts and clients reach it.
    Recruiter {
        /// DNS names and IP addresses; at least one.
        names: Vec<String>,
    },
    /// A host, which may write its own rows.
    Host {
        /// Id: 32 lower-case hex digits.
        host_id: String,
    },
    /// A person or program that may read the dataset and the hosts' quotas.
    Reader {
        /// Name: up to 64 letters, digits and `._-@`.
        name: String,
    },
    /// A program that leases memory.
    Client {
        /// Name, in the form of a reader's.
        name: String,
    },
    /// An administrator, who may read everything, and renew and end all leases.
    Admin {
        /// Name, in the form of a reader's.
        name: String,
    },
}

impl Role {
    /// Name of the role: `collector`, `recruiter`, `host`, `reader`, `client` or `admin`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Collector { .. } => "collector",
            Self::Recruiter { .. } => "recruiter",
            Self::Host { .. } => "host",
            Self::Reader { .. } => "reader",
            Self::Client { .. } => "client",
            Self::Admin { .. } => "admin",
        }
    }

    /// Name of the holder: the names of a server separated by blanks, the id of a host, or the name of a
    /// reader, client or admin.
    pub fn name(&self) -> String {
        match self {
            Self::Collector { names } | Self::Recruiter { names } => names.join(" "),
            Self::Host { host_id } => host_id.clone(),
            Self::Reader { name } | Self::Client { name } | Self::Admin { name } => name.clone(),
        }
    }

    /// URI for the holder's certificate; `None` for servers, which have none.
    pub(crate) fn uri(&self) -> Option<String> {
        match self {
            Self::Collector { .. } | Self::Recruiter { .. } => None,
            _ => Some(format!("{SCHEME}{}:{}", self.kind(), self.name())),
        }
    }

    /// Checks that the names of this role may stand in a certificate.
    ///
    /// # Errors
    /// [`TrustError::Name`] if a name is not allowed.
    pub fn check(&self) -> Result<()> {
        match self {
            Self::Host { host_id } => check_host_id(host_id),
            Self::Reader { name } => check_name(
                name,
                "a reader's name (1 to 64 letters, digits and ._-@, not beginning with a dot)",
            ),
            Self::Client { name } => check_name(
                name,
                "a client's name (1 to 64 letters, digits and ._-@, not beginning with a dot)",
            ),
            Self::Admin { name } => check_name(
                name,
                "an admin's name (1 to 64 letters, digits and ._-@, not beginning with a dot)",
            ),
            Self::Collector { names } | Self::Recruiter { names } => {
                match names.iter().find(|n| !is_server_name(n)) {
                    Some(name) => Err(TrustError::name(name, "a DNS name or an IP address")),
                    None if names.is_empty() => {
                        Err(TrustError::name("", "a DNS name or an IP address"))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

/// Identity of a client, from its verified certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A host, by its id.
    Host(String),
    /// A reader, by name.
    Reader(String),
    /// A program that leases memory, by name.
    Client(String),
    /// An administrator, by name.
    Admin(String),
    /// Holder of a certificate that another organisation's authority issued. The name is the first DNS name
    /// in lower case, otherwise the common name.
    Named(String),
}

impl Peer {
    /// Reads the identity in a client's certificate. The caller must have verified the certificate.
    ///
    /// # Errors
    /// [`TrustError::Certificate`] if the certificate is malformed, has no name, has several of Gleaner's
    /// URIs, or has one that is not exactly as Gleaner writes it.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self> {
        Self::read(&crate::certificate::parse(certificate)?)
    }

    pub(crate) fn read(certificate: &X509Certificate<'_>) -> Result<Self> {
        let refused = |reason: &str| TrustError::Certificate(reason.to_owned());
        let names = certificate
            .subject_alternative_name()
            .map_err(|_| refused("its alternative names cannot be read"))?;
        let names = names.map_or(&[][..], |n| n.value.general_names.as_slice());
        let mut ours = Vec::new();
        let mut first_dns_name = None;
        for name in names {
            match name {
                GeneralName::URI(uri) if is_of_scheme(uri) => ours.push(*uri),
                GeneralName::DNSName(name) => first_dns_name = first_dns_name.or(Some(*name)),
                GeneralName::Invalid(..) => {
                    return Err(refused("one of its alternative names cannot be read"));
                }
                _ => {}
            }
        }
        match ours.as_slice() {
            [] => {}
            [uri] => {
                let reason = "its gleaner: URI names no host, reader, client or admin";
                return Self::from_uri(uri).ok_or_else(|| refused(reason));
            }
            _ => {
                return Err(refused(
                    "it names more than one host, reader, client or admin",
                ));
            }
        }
        let common_name = || {
            let subject = certificate.subject();
            subject.iter_common_name().next()?.as_str().ok()
        };
        let name = match first_dns_name {
            Some(name) => Some(name.to_ascii_lowercase()), // DNS names ignore case
            None => common_name().map(str::to_owned),
        };
        match name {
            Some(name) if is_printable(&name) => Ok(Self::Named(name)),
            Some(_) => Err(refused("its name is empty, too long or not printable")),
            None => Err(refused("it has no DNS name and no common name")),
        }
    }

    fn from_uri(uri: &str) -> Option<Self> {
        let (kind, name) = uri.strip_prefix(SCHEME)?.split_once(':')?;
        match kind {
            "host" if is_host_id(name) => Some(Self::Host(name.to_owned())),
            "reader" if is_person_name(name) => Some(Self::Reader(name.to_owned())),
            "client" if is_person_name(name) => Some(Self::Client(name.to_owned())),
            "admin" if is_person_name(name) => Some(Self::Admin(name.to_owned())),
            _ => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(id) => write!(f, "host {id}"),
            Self::Reader(name) => write!(f, "reader {name}"),
            Self::Client(name) => write!(f, "client {name}"),
            Self::Admin(name) => write!(f, "admin {name}"),
            Self::Named(name) => write!(f, "{name:?}"),
        }
    }
}

/// Returns true if the URI has our scheme, in upper or lower case. A URI that resembles ours must not be
/// taken for a foreign name.
fn is_of_scheme(uri: &str) -> bool {
    uri.get(..SCHEME.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(SCHEME))
}

pub(crate) fn check_host_id(host_id: &str) -> Result<()> {
    if is_host_id(host_id) {
        return Ok(());
    }
    let wanted = "a host id (32 lower-case hex digits; `gleaner-agent status` shows it)";
    Err(TrustError::name(host_id, wanted))
}

pub(crate) fn is_host_id(text: &str) -> bool {
    hex::is_lower(text, 32)
}

fn check_name(name: &str, wanted: &'static str) -> Result<()> {
    if is_person_name(name) {
        return Ok(());
    }
    Err(TrustError::name(name, wanted))
}

fn is_person_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    (1..=64).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(allowed)
}

fn is_server_name(text: &str) -> bool {
    rustls::pki_types::ServerName::try_from(text).is_ok()
}

fn is_printable(text: &str) -> bool {
    (1..=253).contains(&text.len()) && !text.chars().any(char::is_control) && text.trim() == text
}
