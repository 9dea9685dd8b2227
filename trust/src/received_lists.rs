//! Revocation lists received over the network: the newest one of each authority.

use crate::certificate::{self, system_time};
use crate::{Result, TrustError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use std::time::SystemTime;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::OID_X509_EXT_ISSUER_DISTRIBUTION_POINT as DISTRIBUTION_POINT;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

/// Maximum length of a PEM text that is accepted. It has room for about 20,000 revoked certificates.
pub const MOST_RECEIVED_BYTES: usize = 1 << 20;

/// Length of a line of PEM text (RFC 7468, 2).
const LINE_CHARS: usize = 64;

/// Summary of the revocation lists in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevocationSummary {
    /// Time at which the newest list was made.
    pub made: SystemTime,
    /// Number of revoked certificates in all lists.
    pub certificates_count: usize,
}

/// Verified lists. An authority has one list, or several that each cover a part of its certificates.
#[derive(Clone, Default)]
pub(crate) struct ReceivedLists(Vec<ReceivedList>);

#[derive(Clone)]
struct ReceivedList {
    /// Certificate of the authority that signed the list.
    signer: CertificateDer<'static>,
    /// Extension that names the part of the certificates that the list covers (RFC 5280, 5.2.5); empty if the
    /// list covers all certificates.
    scope: Vec<u8>,
    age: Age,
    list: CertificateRevocationListDer<'static>,
}

/// Order of the lists of one authority by age: by CRL number (RFC 5280, 5.2.3), then by date. Lists without a
/// number count as the oldest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Age {
    number_bytes: usize,
    number: Vec<u8>,
    made: SystemTime,
}

impl ReceivedLists {
    /// Adds the lists of a PEM text to the present ones; returns `None` if none of them is newer. Lists of
    /// unknown authorities are skipped, since a sender may trust more authorities than this server.
    ///
    /// # Errors
    /// [`TrustError::ReceivedList`]: the text is too long, contains no list or a damaged one, or no authority
    /// of this server signed any of its lists.
    pub(crate) fn with(
        &self,
        pem: &str,
        authorities: &[CertificateDer<'static>],
    ) -> Result<Option<Self>> {
        if pem.len() > MOST_RECEIVED_BYTES {
            return Err(rejected(format!(
                "{} bytes are more than {MOST_RECEIVED_BYTES}",
                pem.len()
            )));
        }
        let (mut next, mut is_known, mut is_news) = (self.clone(), false, false);
        for list in CertificateRevocationListDer::pem_slice_iter(pem.as_bytes()) {
            let list = list.map_err(|e| rejected(e.to_string()))?;
            let Some(list) = ReceivedList::read(list, authorities)? else {
                continue;
            };
            is_known = true;
            is_news |= next.enter(list);
        }
        if !is_known {
            return Err(rejected(
                "it holds no list that an authority of this host signed".to_owned(),
            ));
        }
        Ok(is_news.then_some(next))
    }

    /// Stores a list if it is newer than the present one of the same authority and part; returns true if it
    /// was stored.
    fn enter(&mut self, list: ReceivedList) -> bool {
        let mut held = self.0.iter_mut();
        match held.find(|held| held.signer == list.signer && held.scope == list.scope) {
            Some(held) if held.age >= list.age => return false,
            Some(held) => *held = list,
            None => self.0.push(list),
        }
        true
    }

    /// Received lists that one of these authorities signed.
    pub(crate) fn of(
        &self,
        authorities: &[CertificateDer<'_>],
    ) -> Vec<CertificateRevocationListDer<'static>> {
        let held = self.0.iter();
        held.filter(|held| authorities.contains(&held.signer))
            .map(|held| held.list.clone())
            .collect()
    }
}

impl ReceivedList {
    /// Reads and verifies a list; returns `None` if none of `authorities` signed it.
    fn read(
        list: CertificateRevocationListDer<'static>,
        authorities: &[CertificateDer<'static>],
    ) -> Result<Option<Self>> {
        let (_, parsed) =
            CertificateRevocationList::from_der(&list).map_err(|e| rejected(e.to_string()))?;
        let Some(at) = signer(&parsed, authorities)? else {
            return Ok(None);
        };
        let number = parsed.crl_number().map(|number| number.to_bytes_be());
        let number = number.unwrap_or_default();
        let mut extensions = parsed.extensions().iter();
        let scope = extensions.find(|extension| extension.oid == DISTRIBUTION_POINT);
        Ok(Some(Self {
            signer: authorities[at].clone(),
            scope: scope.map_or_else(Vec::new, |extension| extension.value.to_vec()),
            age: Age {
                number_bytes: number.len(),
                number,
                made: system_time(parsed.last_update()),
            },
            list,
        }))
    }
}

/// Index of the authority that signed a list; `None` if none of these did.
pub(crate) fn signer(
    list: &CertificateRevocationList<'_>,
    authorities: &[CertificateDer<'_>],
) -> Result<Option<usize>> {
    let authorities = authorities
        .iter()
        .map(certificate::parse)
        .collect::<Result<Vec<_>>>()?;
    let has_signed = |authority: &X509Certificate<'_>| {
        authority.subject() == list.issuer()
            && list.verify_signature(authority.public_key()).is_ok()
    };
    Ok(authorities.iter().position(has_signed))
}

/// Encodes lists as one PEM text.
pub(crate) fn to_pem(lists: &[CertificateRevocationListDer<'_>]) -> String {
    let mut text = String::new();
    for list in lists {
        text.push_str("-----BEGIN X509 CRL-----\n");
        let coded = STANDARD.encode(list);
        let mut rest = &coded[..];
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(LINE_CHARS));
            text.push_str(line);
            text.push('\n');
            rest = after;
        }
        text.push_str("-----END X509 CRL-----\n");
    }
    text
}

/// Counts the lists in a PEM text that this authority signed and that a memory server would therefore accept.
/// Only fuzzers use this function.
///
/// # Errors
/// [`TrustError::ReceivedList`], [`TrustError::Certificate`].
#[doc(hidden)]
pub fn count_signed_lists(pem: &str, authority_pem: &str) -> Result<usize> {
    let authority = certificate::from_pem(authority_pem)?;
    let lists = ReceivedLists::default().with(pem, &[authority])?;
    Ok(lists.map_or(0, |lists| lists.0.len()))
}

/// Summary of these lists; `None` if there are none.
pub(crate) fn summary(lists: &[CertificateRevocationListDer<'_>]) -> Option<RevocationSummary> {
    let mut summary = None::<RevocationSummary>;
    for list in lists {
        let Ok((_, list)) = CertificateRevocationList::from_der(list) else {
            continue; // never happens: the list was parsed before
        };
        let summary = summary.get_or_insert(RevocationSummary {
            made: SystemTime::UNIX_EPOCH,
            certificates_count: 0,
        });
        summary.made = summary.made.max(system_time(list.last_update()));
        summary.certificates_count += list.iter_revoked_certificates().count();
    }
    summary
}

pub(crate) fn rejected(reason: String) -> TrustError {
    TrustError::ReceivedList(reason)
}
