//! Facts that can be read from a certificate: dates, serial number, fingerprint.

use crate::{Result, TrustError, hex};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::time::ASN1Time;

/// Validity of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dates {
    /// First moment of validity.
    pub from: SystemTime,
    /// Last moment of validity.
    pub until: SystemTime,
}

impl Dates {
    /// Returns true if two thirds of the validity have passed.
    pub fn renewal_due(&self, now: SystemTime) -> bool {
        let life = self.until.duration_since(self.from).unwrap_or_default();
        now >= self.from + life * 2 / 3
    }
}

/// Validity of the first certificate of a PEM text.
pub fn dates(certificate_pem: &str) -> Result<Dates> {
    let der = from_pem(certificate_pem)?;
    Ok(dates_of(&parse(&der)?))
}

/// Returns true if two thirds of the certificate's validity have passed: it is time to request the next.
pub fn renewal_due(certificate_pem: &str, now: SystemTime) -> Result<bool> {
    Ok(dates(certificate_pem)?.renewal_due(now))
}

/// SHA-256 of the first certificate of a PEM text, in lower-case hex digits: the output of `openssl x509
/// -fingerprint -sha256` without colons.
pub fn fingerprint(certificate_pem: &str) -> Result<String> {
    Ok(hex::encode(&Sha256::digest(&from_pem(certificate_pem)?)))
}

/// Serial number of the first certificate of a PEM text, in lower-case hex digits.
pub fn serial(certificate_pem: &str) -> Result<String> {
    let der = from_pem(certificate_pem)?;
    Ok(serial_of(&parse(&der)?))
}

/// DNS names and IP addresses in the first certificate of a PEM text. Clients may use each of them to reach
/// the server.
pub fn server_names(certificate_pem: &str) -> Result<Vec<String>> {
    let der = from_pem(certificate_pem)?;
    let certificate = parse(&der)?;
    let names = certificate
        .subject_alternative_name()
        .map_err(|e| TrustError::Certificate(format!("its names cannot be read: {e}")))?;
    let names = names.map_or(&[][..], |names| names.value.general_names.as_slice());
    let text = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => {
            let four = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let either = four.or_else(|_| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
            either.ok().map(|address| address.to_string())
        }
        _ => None,
    };
    Ok(names.iter().filter_map(text).collect())
}

pub(crate) fn from_pem(certificate_pem: &str) -> Result<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(certificate_pem.as_bytes())
        .map_err(|e| TrustError::Certificate(format!("not a certificate in PEM form: {e}")))
}

/// Parses a certificate of any origin. It is an error if bytes follow the certificate.
pub(crate) fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>> {
    match x509_parser::parse_x509_certificate(certificate) {
        Ok(([], parsed)) => Ok(parsed),
        Ok(_) => Err(TrustError::Certificate("bytes follow it".to_owned())),
        Err(e) => Err(TrustError::Certificate(format!("it cannot be read: {e}"))),
    }
}

pub(crate) fn dates_of(certificate: &X509Certificate<'_>) -> Dates {
    let validity = certificate.validity();
    Dates {
        from: system_time(validity.not_before),
        until: system_time(validity.not_after),
    }
}

/// Serial number as in a revocation list: without leading zeros, as OpenSSL prints it.
pub(crate) fn serial_of(certificate: &X509Certificate<'_>) -> String {
    hex::encode(&certificate.tbs_certificate.serial.to_bytes_be())
}

/// Converts a time. Dates before 1970 become 1970: no certificate of ours has them.
pub(crate) fn system_time(time: ASN1Time) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(time.timestamp()).unwrap_or(0))
}
