//! Leases as exports. The name of an export consists of lease and generation.

use super::export::{Caller, Contents, Export, ExportRefusal, Exports};
use super::wire::Fault;
use crate::store::{Error, Pages, Store};
use gleaner_daemon::shares::{Place, Shares};
use gleaner_trust::Peer;
use std::sync::Arc;

/// Name of a lease's export: `LEASE@GENERATION`. A restarted memory server may have other contents
/// under an old lease id; with the generation, clients cannot mistake them for the old ones.
#[must_use]
pub fn export_name(lease_id: &str, generation: u64) -> String {
    format!("{lease_id}@{generation}")
}

/// Parses an export's name as [`export_name`] writes it: lease and generation.
#[must_use]
pub fn lease_of(name: &str) -> Option<(&str, u64)> {
    let (lease_id, generation) = name.rsplit_once('@')?;
    Some((lease_id, generation.parse().ok()?))
}

/// The leases of one store.
pub struct Leases {
    /// Store with the leases' pages.
    pub store: Arc<Store>,
    /// Export for clients that request the empty name: lease and generation.
    pub default: Option<(String, u64)>,
    /// Limit of connections of each client, over all its leases.
    pub shares: Arc<Shares>,
}

/// Pages of a lease, used by one connection.
pub struct LeaseContents {
    name: String,
    pages: Pages,
    _place: Place,
}

impl Exports for Leases {
    type Contents = LeaseContents;

    fn open(&self, name: &str, caller: &Caller) -> Result<LeaseContents, ExportRefusal> {
        let unknown = |why: &str| ExportRefusal::Unknown(format!("export {name:?}: {why}"));
        let (lease_id, generation) = match (&self.default, name) {
            (Some((lease_id, generation)), "") => (&lease_id[..], *generation),
            (None, "") => {
                return Err(unknown(
                    "there is no default one; name a lease: LEASE@GENERATION",
                ));
            }
            (_, name) => {
                lease_of(name).ok_or_else(|| unknown("no name of a lease: LEASE@GENERATION"))?
            }
        };
        let is_for = |pages: &Pages| match caller {
            // A local program only needs to know the lease's name, which nobody can guess.
            Caller::Local => true,
            Caller::Certified(Peer::Client(client)) => client == pages.client(),
            Caller::Certified(_) => false,
        };
        // The answer for another client's lease is the same as for a missing lease.
        let found = self.store.pages(lease_id, generation).ok().filter(is_for);
        let pages = found.ok_or_else(|| {
            unknown(
                "over, its contents are lost, or not this client's; ask the recruiter for a lease",
            )
        })?;
        let place = self.shares.take(pages.client()).ok_or_else(|| {
            ExportRefusal::Forbidden(format!(
                "export {name:?}: its client has {} connections here, which is its share; close one",
                self.shares.connections_limit()
            ))
        })?;
        Ok(LeaseContents {
            name: export_name(lease_id, generation),
            pages,
            _place: place,
        })
    }

    fn names(&self, _caller: &Caller) -> Vec<String> {
        // Leases' names are secret: only the default export is listed.
        self.default.iter().map(|_| String::new()).collect()
    }
}

/// Leases of one client, for an address that is this client's alone: a program there that knows the name of
/// another client's lease does not get its pages.
pub struct ClientLeases {
    /// Leases of the store.
    pub leases: Leases,
    /// The only client whose leases are served.
    pub client: String,
}

impl Exports for ClientLeases {
    type Contents = LeaseContents;

    fn open(&self, name: &str, caller: &Caller) -> Result<LeaseContents, ExportRefusal> {
        let contents = self.leases.open(name, caller)?;
        if contents.pages.client() == self.client {
            return Ok(contents);
        }
        Err(ExportRefusal::Unknown(format!(
            "export {name:?}: over, its contents are lost, or not this client's; ask the recruiter for a lease"
        )))
    }

    fn names(&self, caller: &Caller) -> Vec<String> {
        self.leases.names(caller)
    }
}

impl Export for LeaseContents {
    fn bytes(&self) -> u64 {
        self.pages.bytes()
    }

    fn description(&self) -> String {
        "memory lent by an idle host; it is lost when its owner returns".to_owned()
    }

    fn name(&self) -> Option<String> {
        Some(self.name.clone())
    }
}

impl Contents for LeaseContents {
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), Fault> {
        Ok(self.pages.read(offset, into)?)
    }

    fn show(&self, offset: u64, bytes: u64, look: &mut dyn FnMut(&[u8])) -> Result<bool, Fault> {
        Ok(self.pages.show(offset, bytes, look)?)
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), Fault> {
        Ok(self.pages.write(offset, from)?)
    }

    fn fill(
        &self,
        offset: u64,
        bytes: u64,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<(), Fault> {
        Ok(self.pages.fill(offset, bytes, fill)?)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), Fault> {
        Ok(self.pages.discard(offset, bytes)?)
    }

    /// Memory cannot become more durable; a flush only checks that the lease still exists.
    fn flush(&self) -> Result<(), Fault> {
        Ok(self.pages.check_exists()?)
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error {
            Error::Gone => Self::Shutdown,
            Error::Beyond { .. } => Self::Invalid,
            Error::Full => Self::NoSpace,
            Error::Reserve { .. } => Self::NoMemory,
        }
    }
}
