//! Contents of the certificates that are made here (RFC 5280): names, purposes, numbers and dates.

use crate::{Result, Role, TrustError, hex, random};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Common name of a collector's certificate.
const COLLECTOR: &str = "Gleaner collector";
/// Common name of a recruiter's certificate, by which the register tells it from a collector's.
pub(crate) const RECRUITER: &str = "Gleaner recruiter";

/// A clock that is behind by less than this takes a certificate made just now.
const BACKDATED: Duration = Duration::from_secs(86_400);

/// Validity of a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Validity {
    /// First moment of validity.
    pub from: SystemTime,
    /// Last moment. The authority's own end comes first if it is earlier.
    pub until: SystemTime,
}

impl Validity {
    /// Validity of this many days from now on (a day earlier, for clocks that are behind).
    pub fn days(days: u32) -> Self {
        let now = SystemTime::now();
        Self {
            from: now - BACKDATED,
            until: now + Duration::from_secs(u64::from(days) * 86_400),
        }
    }
}

/// 128 bits without the first (numbers are positive), the second set (no leading zeros).
pub(crate) fn new_serial() -> Result<[u8; 16]> {
    let mut serial = random::bytes::<16>()?;
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// The authority's own certificate.
pub(crate) fn own_params(name: &str, validity: &Validity) -> Result<CertificateParams> {
    let serial = new_serial()?;
    let mut params = CertificateParams::default();
    // Two authorities of one name would be taken for each other where both are trusted for a while:
    // verifiers find issuers and revocation lists by name.
    let unlike_others = hex::encode(&serial[..4]);
    params.distinguished_name = common_name(&format!("{name} Gleaner authority {unlike_others}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = date_time_ymd(1970, 1, 1) + since_1970(validity.from);
    params.not_after = date_time_ymd(1970, 1, 1) + since_1970(validity.until);
    Ok(params)
}

/// A certificate for somebody.
pub(crate) fn params(role: &Role, serial: &[u8], validity: &Validity) -> Result<CertificateParams> {
    let making = TrustError::making("certificate's names");
    let names = match role {
        Role::Collector { names } | Role::Recruiter { names } => names.clone(),
        // Clients of its memory server know it by its id, wherever it is.
        Role::Host { host_id } => vec![host_id.clone()],
        _ => Vec::new(),
    };
    let mut params = CertificateParams::new(names).map_err(making)?;
    if let Some(uri) = role.uri() {
        let uri = uri
            .try_into()
            .map_err(TrustError::making("certificate's name"))?;
        params.subject_alt_names.push(SanType::URI(uri));
    }
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    let (subject, usages) = match role {
        Role::Collector { .. } => (COLLECTOR.to_owned(), vec![ServerAuth]),
        Role::Recruiter { .. } => (RECRUITER.to_owned(), vec![ServerAuth]),
        // A host sends its rows, and serves the memory that it lends.
        Role::Host { host_id } => (host_id.clone(), vec![ClientAuth, ServerAuth]),
        role => (role.name(), vec![ClientAuth]),
    };
    params.distinguished_name = common_name(&subject);
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = usages;
    params.use_authority_key_identifier_extension = true;
    params.serial_number = Some(SerialNumber::from_slice(serial));
    params.not_before = date_time_ymd(1970, 1, 1) + since_1970(validity.from);
    params.not_after = date_time_ymd(1970, 1, 1) + since_1970(validity.until);
    Ok(params)
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

/// Time since 1970, in whole seconds, the precision of certificates.
pub(crate) fn since_1970(time: SystemTime) -> Duration {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(since.as_secs())
}
