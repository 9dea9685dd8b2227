//! Certificates from the collector's authority: the first for a token, later ones by timely renewal.

use crate::Error;
use crate::config::{AUTHORITY, Config, HOST};
use crate::host;
use crate::ship::answer::{Reply, Trouble};
use crate::ship::client::Client;
use crate::ship::folder::{self, COLLECTOR, PUBLIC, REQUEST, SECRET};
use crate::trace::database::{meta, open_to_read};
use gleaner_trust::{
    Address, ClientPaths, ClientTrust, Credentials, KeyAndRequest, fingerprint, token,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

#[derive(Serialize)]
struct Enrolment<'a> {
    token: &'a str,
    host_id: &'a str,
    request_pem: &'a str,
}

#[derive(Serialize)]
struct Renewal<'a> {
    request_pem: &'a str,
}

#[derive(Deserialize)]
struct EnrolmentReply {
    certificate_pem: String,
    authority_pem: String,
}

/// Result of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnrolmentResult {
    /// The collector's address.
    pub collector: String,
    /// Id of this host at the collector.
    pub host_id: String,
    /// Folder with certificate, key and address.
    pub folder: PathBuf,
    /// The authority's fingerprint (SHA-256).
    pub authority: String,
}

impl EnrolmentResult {
    /// Renders the result as text.
    #[must_use]
    pub fn text(&self) -> String {
        format!(
            "This host is {} to {}.\nCertificate and key lie in {}; they are renewed by `gleaner-agent ship`.\n\
             Next: start it, beside `gleaner-agent run`:\n  gleaner-agent ship\n",
            self.host_id,
            self.collector,
            self.folder.display()
        )
    }
}

/// Enrols this host with the collector at `address` by a one-time token.
///
/// No server is trusted yet: the collector's authority must have the fingerprint in the token. The key is
/// created here and never leaves this host.
///
/// # Errors
/// [`Error::Collector`], [`Error::Trust`], [`Error::Enrolment`], [`Error::Put`].
pub fn enroll(config: &Config, address: &str, token: &str) -> Result<EnrolmentResult, Error> {
    let address = Address::parse(address)?;
    if !address.is_secret() {
        return Err(Error::Collector {
            what: format!("{address} has no TLS, and so there is nothing to enrol for"),
        });
    }
    let refused = |trouble: Trouble| Error::Enrolment {
        why: trouble.to_string(),
    };
    let patience = config.ship.timeout;
    let authority = token::fingerprint(token)?.to_owned(); // before any request
    let host_id = host_id(config)?;
    let stranger = Client::unverified(address.clone(), patience);
    let reply = stranger.get("/v1/authority").map_err(refused)?;
    let authority_pem = reply.of_status_200(&address).map_err(refused)?.body.clone();
    let credentials = Credentials::for_enrolment(&authority_pem, token)?;

    let client = Client::with_credentials(address.clone(), &credentials, patience)?;
    let folder = &config.ship.folder;
    folder::make(folder)?;
    let made = stored_request(folder)?;
    let asked = Enrolment {
        token: token.trim(),
        host_id: &host_id,
        request_pem: &made.request_pem,
    };
    let reply = client.post("/v1/enroll", &asked).map_err(refused)?;
    let granted = granted(&reply, &address).map_err(refused)?;
    if fingerprint(&granted.authority_pem)? != authority {
        return Err(gleaner_trust::TrustError::ForeignAuthority.into());
    }
    folder::put(&folder.join(AUTHORITY), &granted.authority_pem, PUBLIC)?;
    put_host(&folder.join(HOST), &granted, &made)?;
    folder::put(&folder.join(COLLECTOR), &format!("{address}\n"), PUBLIC)?;
    check(folder)?;
    let request = folder.join(REQUEST);
    std::fs::remove_file(&request).map_err(Error::put(&request))?;
    Ok(EnrolmentResult {
        collector: address.to_string(),
        host_id,
        folder: folder.clone(),
        authority,
    })
}

/// Requests the next certificate once two thirds of the present one's life have passed. Returns true if it
/// was received.
pub(crate) fn renew(client: &Client, path: &Path, now: SystemTime) -> Result<bool, Trouble> {
    let dates = client.credentials().and_then(|c| c.dates());
    if !dates.is_some_and(|dates| dates.renewal_due(now)) {
        return Ok(false);
    }
    let made = KeyAndRequest::new().map_err(Error::from)?;
    let asked = Renewal {
        request_pem: &made.request_pem,
    };
    let reply = client.post("/v1/renew", &asked)?;
    let granted = granted(&reply, client.address())?;
    put_host(path, &granted, &made)?;
    Ok(true)
}

/// Key and request, stored until the answer arrives: if the answer is lost, the collector repeats it only
/// for the same key and token.
fn stored_request(folder: &Path) -> Result<KeyAndRequest, Error> {
    const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
    let path = folder.join(REQUEST);
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    if let Some(at) = kept.find(BEGIN) {
        let (key_pem, request_pem) = kept.split_at(at);
        return Ok(KeyAndRequest {
            key_pem: key_pem.to_owned(),
            request_pem: request_pem.to_owned(),
        });
    }
    let made = KeyAndRequest::new()?;
    folder::put(
        &path,
        &format!("{}\n{}", made.key_pem.trim(), made.request_pem),
        SECRET,
    )?;
    Ok(made)
}

fn put_host(path: &Path, granted: &EnrolmentReply, made: &KeyAndRequest) -> Result<(), Error> {
    let both = format!("{}\n{}", granted.certificate_pem.trim(), made.key_pem);
    folder::put(path, &both, SECRET)
}

/// Checks that the stored files are usable.
fn check(folder: &Path) -> Result<(), Error> {
    let paths = ClientPaths {
        certificate: folder.join(HOST),
        key: folder.join(HOST),
        authority: folder.join(AUTHORITY),
    };
    Ok(ClientTrust::load(&paths).map(drop)?)
}

fn granted(reply: &Reply, address: &Address) -> Result<EnrolmentReply, Trouble> {
    let body = &reply.of_status_200(address)?.body;
    serde_json::from_str(body).map_err(|e| Trouble::Unexpected {
        address: address.to_string(),
        why: e.to_string(),
    })
}

/// Id of this host as its trace has it, or will have it.
fn host_id(config: &Config) -> Result<String, Error> {
    let found = match open_to_read(&config.database) {
        Ok(connection) => {
            meta(&connection, "host_id").map_err(Error::database(&config.database))?
        }
        Err(Error::NoDatabase { .. }) => None,
        Err(error) => return Err(error),
    };
    found.or_else(host::id).ok_or_else(|| Error::Enrolment {
        why: "this host has no name yet, since it has no /etc/machine-id: run `gleaner-agent run --samples 1` first"
            .to_owned(),
    })
}
