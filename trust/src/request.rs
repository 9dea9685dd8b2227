//! Certificate requests (PKCS #10, RFC 2986). The authority uses only the public key in a request.

use crate::{Result, TrustError};
use rcgen::{CertificateParams, DistinguishedName, KeyPair, SubjectPublicKeyInfo};
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

/// Maximum length of a request. Our requests have 400 bytes; a P-384 key and a long name need 1 KiB.
const MOST_BYTES: usize = 16 << 10;

/// A new private key, and a certificate request that proves that the sender has the key.
pub struct KeyAndRequest {
    /// Private key in PKCS #8 and PEM form; it never leaves the machine.
    pub key_pem: String,
    /// Request for the authority. The authority uses the public key in it, and decides about the names
    /// itself.
    pub request_pem: String,
}

impl KeyAndRequest {
    /// Makes a new ECDSA P-256 key, and a request for a certificate for it.
    pub fn new() -> Result<Self> {
        let key = new_key()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        let doing = "certificate request";
        let request = params
            .serialize_request(&key)
            .map_err(TrustError::making(doing))?;
        Ok(Self {
            key_pem: key.serialize_pem(),
            request_pem: request.pem().map_err(TrustError::making(doing))?,
        })
    }
}

pub(crate) fn new_key() -> Result<KeyPair> {
    KeyPair::generate().map_err(TrustError::making("private key"))
}

/// Verifies the signature of a request, which proves that the sender has the private key, and returns the
/// public key.
pub(crate) fn public_key(request_pem: &str) -> Result<SubjectPublicKeyInfo> {
    let refused = |reason: &str| TrustError::Request(reason.to_owned());
    if request_pem.len() > MOST_BYTES {
        return Err(refused("it is larger than 16 KiB"));
    }
    let der = CertificateSigningRequestDer::from_pem_slice(request_pem.as_bytes())
        .map_err(|_| refused("it is not a certificate request in PEM form"))?;
    let request = match X509CertificationRequest::from_der(&der) {
        Ok(([], request)) => request,
        _ => return Err(refused("it cannot be read")),
    };
    let unsupported = || refused("its key is not ECDSA on P-256 or P-384, nor Ed25519");
    let key = SubjectPublicKeyInfo::from_der(request.certification_request_info.subject_pki.raw)
        .map_err(|_| unsupported())?;
    // Hosts need only a few kinds of keys; these are short and strong.
    let supported = [
        &rcgen::PKCS_ECDSA_P256_SHA256,
        &rcgen::PKCS_ECDSA_P384_SHA384,
        &rcgen::PKCS_ED25519,
    ];
    if !supported.contains(&rcgen::PublicKeyData::algorithm(&key)) {
        return Err(unsupported());
    }
    request
        .verify_signature()
        .map_err(|_| refused("it is not signed with its own key"))?;
    Ok(key)
}
