//! Rights of a caller: what it may read, and for whom it may request leases.

use super::App;
use super::problem::Problem;
use crate::args::LocalAccess;
use axum::http::HeaderMap;
use gleaner_daemon::listen::{Caller, CallerIdentity};
use gleaner_schemas::lending::{LeaseRequest, host_client};
use gleaner_trust::Peer;

/// Header in which programs of this machine, and administrators, state the name of the client.
pub(super) const CLIENT: &str = "gleaner-client";
/// Name of a client on this machine whose request states no name.
const LOCAL_CLIENT: &str = "local";

/// Client for whom leases are requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lessee {
    /// Name of the client.
    pub(super) client: String,
    /// True if this caller may see, renew and end all leases.
    pub(super) is_admin: bool,
    /// Host of the caller's certificate; `None`: the caller is no host.
    pub(super) host_id: Option<String>,
}

impl Lessee {
    /// Name of the client whose leases the caller may see and change; `None`: leases of all clients.
    pub(super) fn bounds(&self) -> Option<&str> {
        (!self.is_admin).then_some(self.client.as_str())
    }
}

impl App {
    /// Checks that a caller may read the quotas of hosts.
    pub(super) fn may_read(&self, caller: &Caller) -> Result<(), Problem> {
        match who(caller)? {
            CallerIdentity::Local
            | CallerIdentity::Known(Peer::Client(_) | Peer::Reader(_) | Peer::Admin(_)) => Ok(()),
            CallerIdentity::Anonymous => Err(no_certificate()),
            CallerIdentity::Known(peer @ (Peer::Host(_) | Peer::Named(_))) => {
                Err(Problem::forbidden(format!(
                    "the certificate of {peer} may not read quotas: clients, readers and admins may (`gleaner pki issue`)"
                )))
            }
        }
    }

    /// Checks that a caller may read the metrics.
    pub(super) fn may_scrape(&self, caller: &Caller) -> Result<(), Problem> {
        match who(caller)? {
            CallerIdentity::Known(peer @ Peer::Client(_)) => Err(Problem::forbidden(format!(
                "the certificate of {peer} may not read the metrics: readers and admins may"
            ))),
            _ => self.may_read(caller),
        }
    }

    /// Checks that a caller may act for host `host_id`.
    pub(super) fn may_link(&self, caller: &Caller, host_id: &str) -> Result<(), Problem> {
        match who(caller)? {
            CallerIdentity::Local if self.local_access == LocalAccess::All => Ok(()),
            CallerIdentity::Local => Err(local_is_closed()),
            CallerIdentity::Anonymous => Err(no_certificate()),
            CallerIdentity::Known(Peer::Host(id)) if id == host_id => Ok(()),
            CallerIdentity::Known(peer) => Err(Problem::forbidden(format!(
                "the certificate of {peer} may not speak for host {host_id}: that host's own certificate may"
            ))),
        }
    }

    /// Determines the host for which the caller may act; `named` is the host that the caller states.
    pub(super) fn own_host(
        &self,
        caller: &Caller,
        named: Option<String>,
    ) -> Result<String, Problem> {
        let host_id = match (who(caller)?, named) {
            (_, Some(named)) => named,
            (CallerIdentity::Known(Peer::Host(id)), None) => return Ok(id.clone()),
            (CallerIdentity::Local, None) => {
                return Err(Problem::malformed(
                    "without TLS, the parameter host_id names the host: /v1/commons/NAME/link?host_id=ID",
                ));
            }
            // The check below states which certificate is necessary.
            (CallerIdentity::Anonymous | CallerIdentity::Known(_), None) => String::new(),
        };
        self.may_link(caller, &host_id)?;
        Ok(host_id)
    }

    /// Determines the client of a new lease. A host leases its own memory alone, and nobody else leases memory
    /// in a host's name.
    pub(super) fn client_of(
        &self,
        caller: &Caller,
        lessee: Lessee,
        request: &LeaseRequest,
    ) -> Result<String, Problem> {
        match (&request.host_id, &lessee.host_id) {
            (None, None) => Ok(lessee.client),
            (Some(asked), Some(own)) if asked == own => Ok(lessee.client),
            (None, Some(own)) => Err(Problem::forbidden(format!(
                "host {own} may lease its own memory alone: set host_id to {own:?}"
            ))),
            (Some(asked), Some(own)) => Err(Problem::forbidden(format!(
                "host {own} may not lease memory of host {asked}: a host leases its own memory alone"
            ))),
            // Programs of this machine may act as any host (local_access = "all").
            (Some(asked), None) if matches!(who(caller)?, CallerIdentity::Local) => {
                Ok(host_client(asked))
            }
            (Some(asked), None) => Err(Problem::forbidden(format!(
                "host_id is for a host that leases its own memory: only the certificate of host {asked} may set it"
            ))),
        }
    }

    /// Determines the client for whom the caller may lease memory.
    pub(super) fn lessee(&self, caller: &Caller, headers: &HeaderMap) -> Result<Lessee, Problem> {
        let named = named(headers)?;
        let lessee = |client: String, is_admin| {
            Ok(Lessee {
                client,
                is_admin,
                host_id: None,
            })
        };
        match who(caller)? {
            CallerIdentity::Local if self.local_access == LocalAccess::All => match named {
                Some(client) => lessee(client, false),
                None => lessee(LOCAL_CLIENT.to_owned(), true),
            },
            CallerIdentity::Local => Err(local_is_closed()),
            CallerIdentity::Anonymous => Err(no_certificate()),
            CallerIdentity::Known(Peer::Admin(name)) => {
                lessee(named.unwrap_or_else(|| name.clone()), true)
            }
            CallerIdentity::Known(Peer::Client(name)) => match named {
                Some(other) if other != *name => Err(Problem::forbidden(format!(
                    "the certificate of client {name} may not ask for client {other}: leave out the header Gleaner-Client"
                ))),
                _ => lessee(name.clone(), false),
            },
            CallerIdentity::Known(Peer::Host(id)) if named.is_none() => Ok(Lessee {
                client: host_client(id),
                is_admin: false,
                host_id: Some(id.clone()),
            }),
            CallerIdentity::Known(peer) => Err(Problem::forbidden(format!(
                "the certificate of {peer} is not for leases: `gleaner pki issue --client NAME` makes one that is"
            ))),
        }
    }
}

/// Reads the client's name from the header. It must have the form of names in certificates: 1 to 64 letters,
/// digits and `._-@`, not beginning with a dot.
fn named(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(CLIENT) else {
        return Ok(None);
    };
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    let name = value.to_str().unwrap_or_default();
    let is_name = (1..=64).contains(&name.len()) && !name.starts_with('.');
    if is_name && name.bytes().all(allowed) {
        return Ok(Some(name.to_owned()));
    }
    Err(Problem::malformed(
        "Gleaner-Client is a name: 1 to 64 letters, digits and ._-@, not beginning with a dot",
    ))
}

fn who(caller: &Caller) -> Result<CallerIdentity<'_>, Problem> {
    caller
        .who()
        .map_err(|e| Problem::unauthorized(e.to_string()))
}

fn no_certificate() -> Problem {
    Problem::unauthorized(
        "no certificate was shown: `gleaner pki issue` makes one for a client, reader or admin, and `gleaner-agent enroll` for a host",
    )
}

fn local_is_closed() -> Problem {
    Problem::forbidden(
        "without TLS only quotas, hosts and metrics are served: use the TLS address, or set local_access = \"all\"",
    )
}
