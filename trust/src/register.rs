//! The register of issued certificates: the folder `issued/`, from which nothing is removed.
//!
//! Each file is a certificate. Its name begins with the kind and name of the holder, so that the certificates
//! of one host are found without opening ten thousand files.

use crate::certificate::{dates_of, from_pem, parse, serial_of};
use crate::identity::Peer;
use crate::{Dates, Result, Role, TrustError, files, hex, profile};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;

/// An issued certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Serial number, in lower-case hex digits.
    pub serial: String,
    /// Role of the holder.
    pub role: Role,
    /// Validity of the certificate.
    pub dates: Dates,
    /// Time of its revocation, if it was revoked.
    pub revoked: Option<SystemTime>,
}

/// State of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The certificate is valid.
    Valid,
    /// The certificate is out of date.
    Expired,
    /// The certificate is revoked.
    Revoked,
}

impl Record {
    /// State of the certificate at a moment.
    pub fn state(&self, now: SystemTime) -> State {
        if self.revoked.is_some() {
            State::Revoked
        } else if self.dates.until < now {
            State::Expired
        } else {
            State::Valid
        }
    }
}

/// The folder `issued/` of an authority.
pub(crate) struct Register {
    folder: PathBuf,
}

impl Register {
    pub(crate) fn of(authority: &Path) -> Self {
        Self {
            folder: authority.join("issued"),
        }
    }

    pub(crate) fn make(&self) -> Result<()> {
        files::make_folder_for_owner(&self.folder)
    }

    pub(crate) fn add(&self, role: &Role, serial: &[u8], certificate_pem: &str) -> Result<()> {
        let path = self
            .folder
            .join(format!("{}{}.crt", prefix(role), hex::encode(serial)));
        files::write(&path, certificate_pem.as_bytes(), files::PUBLIC)
    }

    /// Certificates of one host, reader, client or admin. For a collector or recruiter: those of all
    /// collectors or of all recruiters, whatever names they have.
    pub(crate) fn of_role(&self, role: &Role) -> Result<Vec<Record>> {
        let paths = self.paths(&prefix(role))?;
        paths.iter().map(|path| read_record(path)).collect()
    }

    /// Certificates of this role with this public key (SubjectPublicKeyInfo), each with its PEM text.
    pub(crate) fn with_key(&self, role: &Role, key: &[u8]) -> Result<Vec<(Record, String)>> {
        let mut found = Vec::new();
        for path in self.paths(&prefix(role))? {
            let pem = String::from_utf8_lossy(&files::read(&path)?).into_owned();
            let record = read_record(&path)?;
            if parse(&from_pem(&pem)?)?.public_key().raw == key {
                found.push((record, pem));
            }
        }
        Ok(found)
    }

    /// Every certificate, the oldest first.
    pub(crate) fn all(&self) -> Result<Vec<Record>> {
        let paths = self.paths("")?;
        let records: Result<Vec<_>> = paths.iter().map(|path| read_record(path)).collect();
        let mut records = records?;
        records.sort_by(|a, b| (a.dates.from, &a.serial).cmp(&(b.dates.from, &b.serial)));
        Ok(records)
    }

    fn paths(&self, prefix: &str) -> Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(TrustError::io(&self.folder))? {
            let name = entry.map_err(TrustError::io(&self.folder))?.file_name();
            let ours = |name: &str| name.starts_with(prefix) && name.ends_with(".crt");
            // Files that are being written have names that end in .tmp; they are skipped.
            if name.to_str().is_some_and(ours) {
                paths.push(self.folder.join(name));
            }
        }
        Ok(paths)
    }
}

fn prefix(role: &Role) -> String {
    match role {
        Role::Collector { .. } | Role::Recruiter { .. } => format!("{}-", role.kind()),
        _ => format!("{}-{}-", role.kind(), role.name()),
    }
}

fn read_record(path: &Path) -> Result<Record> {
    let content = |reason: String| TrustError::Content {
        path: path.to_owned(),
        wanted: "a certificate that this authority issued",
        reason,
    };
    let bytes = files::read(path)?;
    let der = CertificateDer::from_pem_slice(&bytes).map_err(|e| content(e.to_string()))?;
    let certificate = parse(&der).map_err(|e| content(e.to_string()))?;
    Ok(Record {
        serial: serial_of(&certificate),
        role: role_of(&certificate).map_err(|e| content(e.to_string()))?,
        dates: dates_of(&certificate),
        revoked: None,
    })
}

/// Role of the holder, read from a certificate that this authority made.
fn role_of(certificate: &X509Certificate<'_>) -> Result<Role> {
    Ok(match Peer::read(certificate)? {
        Peer::Host(host_id) => Role::Host { host_id },
        Peer::Reader(name) => Role::Reader { name },
        Peer::Client(name) => Role::Client { name },
        Peer::Admin(name) => Role::Admin { name },
        Peer::Named(_) if is_recruiter(certificate) => Role::Recruiter {
            names: server_names(certificate),
        },
        Peer::Named(_) => Role::Collector {
            names: server_names(certificate),
        },
    })
}

fn is_recruiter(certificate: &X509Certificate<'_>) -> bool {
    let mut names = certificate.subject().iter_common_name();
    names.any(|name| name.as_str() == Ok(profile::RECRUITER))
}

fn server_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => Some(std::net::IpAddr::from(<[u8; 4]>::try_from(*bytes).ok()?).to_string()),
            16 => Some(std::net::IpAddr::from(<[u8; 16]>::try_from(*bytes).ok()?).to_string()),
            _ => None,
        },
        _ => None,
    };
    names.value.general_names.iter().filter_map(name).collect()
}
