//! The authority of one deployment: a folder with a key and the certificates signed with it.

use crate::certificate::{dates_of, from_pem, parse, serial_of};
use crate::identity::{Peer, check_host_id};
use crate::profile::Validity;
use crate::register::{Record, Register, State};
use crate::revocation::Revocations;
use crate::{Dates, Result, Role, TrustError, certificate, files, profile, request};
use rcgen::{Issuer, KeyPair, PublicKeyData};
use rustls::pki_types::CertificateDer;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A certificate with its private key, both in PEM form.
pub struct IssuedCertificate {
    /// Certificate without a chain, since the authority itself is its issuer.
    pub certificate_pem: String,
    /// Private key in PKCS #8. Its holder can act as the certificate's subject.
    pub key_pem: String,
}

impl IssuedCertificate {
    /// Writes both files like [`Self::write_for`], without a group.
    pub fn write(&self, certificate: &Path, key: &Path) -> Result<()> {
        self.write_for(certificate, key, None)
    }

    /// Writes both files durably, the key first.
    ///
    /// The folder's owner may read the key: if root writes the files, root gives them to that owner. The
    /// group `group` may read the key too; if it is `None`, the group that could read the replaced key file
    /// may. A reader that finds only one of the new files has two files that do not match, which
    /// [`ServerTrust`](crate::ServerTrust) and [`ClientTrust`](crate::ClientTrust) reject.
    ///
    /// # Errors
    /// [`TrustError::Io`]: a file cannot be written, or only root can give the key to that group.
    pub fn write_for(&self, certificate: &Path, key: &Path, group: Option<u32>) -> Result<()> {
        files::write_key(key, self.key_pem.as_bytes(), group)?;
        files::write(certificate, self.certificate_pem.as_bytes(), files::PUBLIC)
    }
}

/// An open authority.
pub struct Authority {
    folder: PathBuf,
    certificate_pem: String,
    dates: Dates,
    issuer: Issuer<'static, KeyPair>,
    register: Register,
}

impl Authority {
    /// Makes an authority in a folder, which is created if missing; only its owner may enter it.
    ///
    /// `name` becomes part of the certificate, for people. If the call is interrupted, it can be repeated.
    ///
    /// # Errors
    /// [`TrustError::AuthorityExists`] if the folder has an authority already.
    pub fn init(folder: &Path, name: &str, valid_days: u32) -> Result<Self> {
        if name.trim().is_empty() || name.chars().count() > 30 || name.chars().any(char::is_control)
        {
            return Err(TrustError::name(name, "a name of 1 to 30 characters"));
        }
        files::make_private_folder(folder)?;
        let lock = files::lock(folder)?;
        let (certificate_path, key_path) = (certificate_of(folder), key_of(folder));
        if certificate_path.exists() {
            return Err(TrustError::AuthorityExists(folder.to_owned()));
        }
        Register::of(folder).make()?;
        files::make_folder_for_owner(&crate::token::folder(folder))?;
        // The certificate is written last: if it exists, the authority is complete. A key without a
        // certificate is left over from an interrupted attempt, and is used.
        let key = match files::read_if_there(&key_path)? {
            Some(pem) => read_key(&key_path, &pem)?,
            None => {
                let key = request::new_key()?;
                files::write(&key_path, key.serialize_pem().as_bytes(), files::SECRET)?;
                key
            }
        };
        let certificate = profile::own_params(name, &Validity::days(valid_days))?
            .self_signed(&key)
            .map_err(TrustError::making("authority's certificate"))?;
        let issuer = Issuer::from_ca_cert_der(certificate.der(), key)
            .map_err(TrustError::making("authority"))?;
        Revocations::default().write(&revocation_file(folder), &issuer, SystemTime::now())?;
        files::write(
            &certificate_path,
            certificate.pem().as_bytes(),
            files::PUBLIC,
        )?;
        drop(lock);
        Self::open(folder)
    }

    /// Opens the authority in a folder.
    pub fn open(folder: &Path) -> Result<Self> {
        let (certificate_path, key_path) = (certificate_of(folder), key_of(folder));
        let read = |path: &Path| {
            files::read_if_there(path)?.ok_or_else(|| TrustError::NoAuthority(folder.to_owned()))
        };
        let certificate_pem = String::from_utf8_lossy(&read(&certificate_path)?).into_owned();
        let key = read_key(&key_path, &read(&key_path)?)?;
        let content = |e: TrustError| TrustError::Content {
            path: certificate_path.clone(),
            wanted: "the authority's certificate",
            reason: e.to_string(),
        };
        let der = from_pem(&certificate_pem).map_err(content)?;
        let parsed = parse(&der).map_err(content)?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(TrustError::Mismatch {
                certificate: certificate_path,
                key: key_path,
            });
        }
        Ok(Self {
            folder: folder.to_owned(),
            dates: dates_of(&parsed),
            issuer: Issuer::from_ca_cert_der(&der, key).map_err(TrustError::making("authority"))?,
            certificate_pem,
            register: Register::of(folder),
        })
    }

    /// The authority's own certificate, which everybody in the deployment trusts. It is public.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// SHA-256 of [`Self::certificate_pem`], in hex digits. Every token contains it.
    pub fn fingerprint(&self) -> Result<String> {
        certificate::fingerprint(&self.certificate_pem)
    }

    /// Validity of the authority itself.
    pub fn dates(&self) -> Dates {
        self.dates
    }

    /// Makes a key and a certificate for it, valid from now for `days`.
    pub fn issue(&self, role: &Role, days: u32) -> Result<IssuedCertificate> {
        self.issue_for(role, &Validity::days(days))
    }

    /// Issues a certificate like [`Self::issue`], with any validity.
    pub fn issue_for(&self, role: &Role, validity: &Validity) -> Result<IssuedCertificate> {
        let key = request::new_key()?;
        let _lock = self.lock()?;
        Ok(IssuedCertificate {
            certificate_pem: self.sign(role, &key, validity)?,
            key_pem: key.serialize_pem(),
        })
    }

    /// Makes a certificate for the key in a request. Names in the request are ignored.
    ///
    /// # Errors
    /// [`TrustError::Request`] if the request is malformed, too long or not signed with its own key, or if
    /// its kind of key is not supported.
    pub fn sign_request(&self, role: &Role, request_pem: &str, days: u32) -> Result<String> {
        let key = request::public_key(request_pem)?;
        let _lock = self.lock()?;
        self.sign(role, &key, &Validity::days(days))
    }

    /// Makes the next certificate for the holder of `presented`: a host, reader, client or admin.
    ///
    /// The caller must have verified `presented`, as TLS does. This function checks its revocation and
    /// expiry. It does so under the lock that revoking takes, so that a holder who is being revoked cannot
    /// renew.
    pub fn renew(
        &self,
        presented: &CertificateDer<'_>,
        request_pem: &str,
        days: u32,
        now: SystemTime,
    ) -> Result<String> {
        let key = request::public_key(request_pem)?;
        let presented = parse(presented)?;
        let role = match Peer::read(&presented)? {
            Peer::Host(host_id) => Role::Host { host_id },
            Peer::Reader(name) => Role::Reader { name },
            Peer::Client(name) => Role::Client { name },
            Peer::Admin(name) => Role::Admin { name },
            Peer::Named(_) => return Err(TrustError::NotRenewable),
        };
        let _lock = self.lock()?;
        let serial = serial_of(&presented);
        if self.revocations()?.of(&serial).is_some() {
            return Err(TrustError::Revoked(serial));
        }
        if dates_of(&presented).until < now {
            return Err(TrustError::Expired);
        }
        self.sign(&role, &key, &Validity::days(days))
    }

    /// Makes the first certificate of a host, in exchange for a token.
    ///
    /// The request is checked before the token is used up. A host that did not receive the answer may ask
    /// again with the same key; it receives the certificate that was made for this key.
    pub fn enroll(
        &self,
        token: &str,
        host_id: &str,
        request_pem: &str,
        days: u32,
        now: SystemTime,
    ) -> Result<String> {
        let key = request::public_key(request_pem)?;
        let _lock = self.lock()?;
        let host = Role::Host {
            host_id: host_id.to_owned(),
        };
        match self.redeem_locked(token, host_id, now) {
            Ok(()) => self.sign(&host, &key, &Validity::days(days)),
            Err(TrustError::TokenUsed) => self
                .issued_for(&host, &key, now)?
                .ok_or(TrustError::TokenUsed),
            Err(e) => Err(e),
        }
    }

    /// Makes a token with which one host can enrol once, while the token is valid.
    ///
    /// With `host`, only that host can use the token, even if it has a certificate already. Without `host`,
    /// any host can use it that has no valid certificate.
    pub fn new_token(&self, valid: Duration, host: Option<&str>) -> Result<String> {
        if let Some(host_id) = host {
            check_host_id(host_id)?;
        }
        let now = SystemTime::now();
        crate::token::make(&self.folder, &self.fingerprint()?, now + valid, host, now)
    }

    /// Uses up a token for a host. If several calls use the same token concurrently, only one succeeds.
    ///
    /// # Errors
    /// [`TrustError::TokenUnknown`], [`TrustError::TokenUsed`] or [`TrustError::TokenExpired`].
    /// [`TrustError::TokenOfOtherHost`]: the token is for another host. [`TrustError::HostEnrolled`]: the
    /// token is for any host, but this host has a valid certificate. The last two errors leave the token
    /// usable.
    pub fn redeem(&self, token: &str, host_id: &str, now: SystemTime) -> Result<()> {
        let _lock = self.lock()?;
        self.redeem_locked(token, host_id, now)
    }

    /// Uses up a token like [`Self::redeem`]. The caller holds the lock, so that two concurrent calls with
    /// two tokens do not enrol two machines as one host.
    fn redeem_locked(&self, token: &str, host_id: &str, now: SystemTime) -> Result<()> {
        check_host_id(host_id)?;
        let found = crate::token::find(&self.folder, &self.fingerprint()?, token, now)?;
        match found.host() {
            Some(host) if host != host_id => {
                return Err(TrustError::TokenOfOtherHost(host_id.to_owned()));
            }
            Some(_) => {}
            None => {
                let host = Role::Host {
                    host_id: host_id.to_owned(),
                };
                let records = self.with_revocations(self.register.of_role(&host)?)?;
                if records.iter().any(|r| r.state(now) == State::Valid) {
                    return Err(TrustError::HostEnrolled(host_id.to_owned()));
                }
            }
        }
        found.mark_used()
    }

    /// Revokes certificates; returns those that were not revoked before. `which` is a serial number, the id
    /// of a host (all its certificates), the name of a reader, client or admin (all their certificates), or
    /// the path of a certificate's file.
    ///
    /// # Errors
    /// [`TrustError::NotIssued`] if no certificate issued here matches `which`.
    pub fn revoke(&self, which: &str) -> Result<Vec<Record>> {
        let _lock = self.lock()?;
        let serial = match files::read_if_there(Path::new(which)) {
            Ok(Some(pem)) => certificate::serial(&String::from_utf8_lossy(&pem))?,
            // Other programs print serial numbers in upper case and with colons.
            _ => which.replace(':', "").to_ascii_lowercase(),
        };
        let matches = |r: &Record| match &r.role {
            Role::Host { host_id } => r.serial == serial || host_id == which,
            Role::Reader { name } | Role::Client { name } | Role::Admin { name } => {
                r.serial == serial || name == which
            }
            Role::Collector { .. } | Role::Recruiter { .. } => r.serial == serial,
        };
        let mut found = self.register.all()?;
        found.retain(matches);
        if found.is_empty() {
            return Err(TrustError::NotIssued(which.to_owned()));
        }
        let now = SystemTime::now();
        let mut revocations = self.revocations()?;
        found.retain(|r| revocations.add(&r.serial, now));
        if !found.is_empty() {
            revocations.write(&self.revoked_path(), &self.issuer, now)?;
        }
        found.iter_mut().for_each(|r| r.revoked = Some(now));
        Ok(found)
    }

    /// Every certificate issued, the oldest first.
    pub fn list(&self) -> Result<Vec<Record>> {
        self.with_revocations(self.register.all()?)
    }

    /// Path of the revocation list, which the server reads.
    pub fn revoked_path(&self) -> PathBuf {
        revocation_file(&self.folder)
    }

    /// Path of the authority's certificate, for servers and clients.
    pub fn certificate_path(&self) -> PathBuf {
        certificate_of(&self.folder)
    }

    /// Valid certificate that was made for exactly this key, if there is one. Whoever has the key may receive
    /// it: a certificate contains nothing that its holder may not know.
    fn issued_for(
        &self,
        role: &Role,
        key: &impl PublicKeyData,
        now: SystemTime,
    ) -> Result<Option<String>> {
        let revocations = self.revocations()?;
        let wanted = key.subject_public_key_info();
        for (record, pem) in self.register.with_key(role, &wanted)? {
            if record.dates.until >= now && revocations.of(&record.serial).is_none() {
                return Ok(Some(pem));
            }
        }
        Ok(None)
    }

    fn with_revocations(&self, mut records: Vec<Record>) -> Result<Vec<Record>> {
        let revocations = self.revocations()?;
        for record in &mut records {
            record.revoked = revocations.of(&record.serial);
        }
        Ok(records)
    }

    fn revocations(&self) -> Result<Revocations> {
        Revocations::read(&self.revoked_path())
    }

    fn lock(&self) -> Result<File> {
        files::lock(&self.folder)
    }

    /// Signs a certificate, and adds it to the register before returning it, so that every certificate in use
    /// is registered.
    fn sign(&self, role: &Role, key: &impl PublicKeyData, validity: &Validity) -> Result<String> {
        role.check()?;
        let serial = profile::new_serial()?;
        let validity = Validity {
            from: validity.from,
            until: validity.until.min(self.dates.until),
        };
        let pem = profile::params(role, &serial, &validity)?
            .signed_by(key, &self.issuer)
            .map_err(TrustError::making("certificate"))?
            .pem();
        self.register.add(role, &serial, &pem)?;
        Ok(pem)
    }
}

fn certificate_of(folder: &Path) -> PathBuf {
    folder.join("authority.crt")
}

fn key_of(folder: &Path) -> PathBuf {
    folder.join("authority.key")
}

fn revocation_file(folder: &Path) -> PathBuf {
    folder.join("revoked.crl")
}

fn read_key(path: &Path, pem: &[u8]) -> Result<KeyPair> {
    KeyPair::from_pem(&String::from_utf8_lossy(pem)).map_err(|e| TrustError::Content {
        path: path.to_owned(),
        wanted: "the authority's private key (PKCS #8)",
        reason: e.to_string(),
    })
}
