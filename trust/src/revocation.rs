//! The authority's list of revoked certificates (CRL, RFC 5280, 5). The collector checks every client's
//! certificate against it.

use crate::certificate::system_time;
use crate::profile::since_1970;
use crate::{Result, TrustError, files, hex};
use rcgen::{
    CertificateRevocationListParams, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
    date_time_ymd,
};
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// Time after which a list announces its next update. It is longer than the validity of any authority: nobody
/// renews an unchanged list, and an expired list would lock out the fleet.
const NEXT_UPDATE: Duration = Duration::from_secs(10 * 366 * 86_400);

/// Revoked certificates of the authority.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    /// Number of the list. Each list has a larger number than the one before (RFC 5280, 5.2.3).
    number: u64,
    /// Time of revocation of each certificate, by its serial number in hex digits.
    revoked: BTreeMap<String, SystemTime>,
}

impl Revocations {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let content = |reason: String| TrustError::Content {
            path: path.to_owned(),
            wanted: "the authority's revocation list",
            reason,
        };
        let bytes = files::read(path)?;
        let der = CertificateRevocationListDer::from_pem_slice(&bytes)
            .map_err(|e| content(e.to_string()))?;
        let (_, list) =
            CertificateRevocationList::from_der(&der).map_err(|e| content(e.to_string()))?;
        let number = list
            .crl_number()
            .map_or(Ok(0), |n| u64::try_from(n.clone()))
            .map_err(|_| content("its number is out of range".to_owned()))?;
        let revoked = list
            .iter_revoked_certificates()
            .map(|r| {
                let serial = hex::encode(&r.user_certificate.to_bytes_be());
                (serial, system_time(r.revocation_date))
            })
            .collect();
        Ok(Self { number, revoked })
    }

    /// Time of a certificate's revocation, by its serial number in hex digits.
    pub(crate) fn of(&self, serial: &str) -> Option<SystemTime> {
        self.revoked.get(serial).copied()
    }

    /// Adds a serial number; returns true if it is new.
    pub(crate) fn add(&mut self, serial: &str, now: SystemTime) -> bool {
        let new = !self.revoked.contains_key(serial);
        self.revoked.entry(serial.to_owned()).or_insert(now);
        new
    }

    /// Signs the list with the next number and writes it.
    pub(crate) fn write(
        &mut self,
        path: &Path,
        issuer: &Issuer<'_, KeyPair>,
        now: SystemTime,
    ) -> Result<()> {
        self.number += 1;
        let revoked_certs = self.revoked.iter().filter_map(|(serial, when)| {
            Some(RevokedCertParams {
                serial_number: SerialNumber::from_slice(&hex::decode(serial)?),
                revocation_time: date_time_ymd(1970, 1, 1) + since_1970(*when),
                reason_code: None,
                invalidity_date: None,
            })
        });
        let doing = "revocation list";
        let pem = CertificateRevocationListParams {
            this_update: date_time_ymd(1970, 1, 1) + since_1970(now),
            next_update: date_time_ymd(1970, 1, 1) + since_1970(now + NEXT_UPDATE),
            crl_number: SerialNumber::from(self.number),
            issuing_distribution_point: None,
            revoked_certs: revoked_certs.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        }
        .signed_by(issuer)
        .and_then(|list| list.pem())
        .map_err(TrustError::making(doing))?;
        files::write(path, pem.as_bytes(), files::PUBLIC)
    }
}

/// Two times in the first revocation list of a PEM file: when the list was made, and when the next one is
/// announced.
///
/// # Errors
/// [`TrustError::Io`], [`TrustError::Content`].
pub fn revocation_dates(path: &Path) -> Result<(SystemTime, Option<SystemTime>)> {
    let content = |reason: String| TrustError::Content {
        path: path.to_owned(),
        wanted: "a revocation list",
        reason,
    };
    let bytes = files::read(path)?;
    let der =
        CertificateRevocationListDer::from_pem_slice(&bytes).map_err(|e| content(e.to_string()))?;
    let (_, list) =
        CertificateRevocationList::from_der(&der).map_err(|e| content(e.to_string()))?;
    Ok((
        system_time(list.last_update()),
        list.next_update().map(system_time),
    ))
}
