//! Contents of the certificates made here (RFC 5280): names, purposes, numbers and dates.

use crate::{Result, Role, TrustError, hex, random};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Common name of a collector's certificate.
const COLLECTOR: &str = "Gleaner collector";
/// Common name of a recruiter's certificate. The register recognises a recruiter's certificate by it.
pub(crate) const RECRUITER: &str = "Gleaner recruiter";

/// Certificates become valid this long before they are made, so that peers with slow clocks accept them
/// immediately.
const BACKDATED: Duration = Duration::from_secs(86_400);

/// Validity of a certificate.
#[derive(Debug, Clone, Copy)]
pub struct Validity {
    /// First moment of validity.
    pub from: SystemTime,
    /// Last moment of validity. It is limited by that of the authority's certificate.
    pub until: SystemTime,
}

impl Validity {
    /// Validity for this many days from now. It begins a day earlier, for peers with slow clocks.
    pub fn days(days: u32) -> Self {
        let now = SystemTime::now();
        Self {
            from: now - BACKDATED,
            until: now + Duration::from_secs(u64::from(days) * 86_400),
        }
    }
}

/// Makes a serial number of 128 bits. The first bit is 0, since serial numbers are positive; the second is 1,
/// so that there are no leading zeros.
pub(crate) fn new_serial() -> Result<[u8; 16]> {
    let mut serial = random::bytes::<16>()?;
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

/// Parameters of the authority's own certificate.
pub(crate) fn own_params(name: &str, validity: &Validity) -> Result<CertificateParams> {
    let serial = new_serial()?;
    let mut params = CertificateParams::default();
    // The name gets random digits. Verifiers find issuers and revocation lists by name, and would confuse two
    // authorities of the same name while both are trusted.
    let unlike_others = hex::encode(&serial[..4]);
    params.distinguished_name = common_name(&format!("{name} Gleaner authority {unlike_others}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = date_time_ymd(1970, 1, 1) + since_1970(validity.from);
    params.not_after = date_time_ymd(1970, 1, 1) + since_1970(validity.until);
    Ok(params)
}

/// Parameters of a certificate for `role`.
pub(crate) fn params(role: &Role, serial: &[u8], validity: &Validity) -> Result<CertificateParams> {
    let making = TrustError::making("certificate's names");
    let names = match role {
        Role::Collector { names } | Role::Recruiter { names } => names.clone(),
        // Clients of the host's memory server identify it by its host id, whatever its address is.
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
        // A host sends its rows to the collector as a client, and serves lent memory as a server.
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

/// Time since 1970 in whole seconds, since certificates have no finer times.
pub(crate) fn since_1970(time: SystemTime) -> Duration {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Duration::from_secs(since.as_secs())
}
