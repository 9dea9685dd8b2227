//! What ureq needs to speak TLS with the collector, made of certificates.

use crate::Error;
use crate::ship::settings::ShipSettings;
use gleaner_trust::{ClientPaths, ClientTrust, Credentials, provider};
use std::sync::Arc;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsConfigBuilder};

/// The files as configured; they are followed when they change.
///
/// # Errors
/// [`Error::Trust`]; [`Error::Collector`] where there is none.
pub(crate) fn load(settings: &ShipSettings) -> Result<Arc<ClientTrust>, Error> {
    if !settings.certificate.exists() {
        return Err(Error::Collector {
            what: format!("{} is not there", settings.certificate.display()),
        });
    }
    let paths = ClientPaths {
        certificate: settings.certificate.clone(),
        key: settings.key.clone(),
        authority: settings.authority.clone(),
    };
    Ok(ClientTrust::load(&paths)?)
}

/// To show and to trust what `credentials` say.
///
/// # Errors
/// [`Error::Key`] when ureq cannot read the key.
pub(crate) fn config(credentials: &Credentials) -> Result<TlsConfig, Error> {
    let owned = |der: &[u8]| Certificate::from_der(der).to_owned();
    let authorities: Vec<_> = credentials.authorities().iter().map(|c| owned(c)).collect();
    let own: Vec<_> = credentials
        .certificates()
        .iter()
        .map(|c| owned(c))
        .collect();
    let key = credentials.key_pem().map(PrivateKey::from_pem).transpose();
    let key = key.map_err(|e| Error::Key { why: e.to_string() })?;
    Ok(builder()
        .root_certs(RootCerts::new_with_certs(&authorities))
        .client_cert(key.map(|key| ClientCert::new_with_certs(&own, key)))
        .build())
}

/// To trust anybody and show nothing: for asking what a token's fingerprint is then held against.
pub(crate) fn unverified() -> TlsConfig {
    builder().disable_verification(true).build()
}

fn builder() -> TlsConfigBuilder {
    TlsConfig::builder().unversioned_rustls_crypto_provider(provider())
}
