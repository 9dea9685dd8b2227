//! Identity of this host towards recruiters.

use super::LinkError;
use crate::entrance::Entrance;
use gleaner_paging::websocket::PeerCertificates;
use gleaner_trust::{ClientPaths, ClientTrust};
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

/// The host's certificate, which may appear long after the memory server has started.
pub(super) struct Identity {
    paths: ClientPaths,
    loaded: OnceLock<Arc<ClientTrust>>,
}

impl Identity {
    /// Makes an identity without reading files.
    pub(super) const fn new(paths: ClientPaths) -> Self {
        Self {
            paths,
            loaded: OnceLock::new(),
        }
    }

    /// Loads the present files; if they are unusable, the former identity stays in use.
    ///
    /// # Errors
    /// [`LinkError::Trust`] if no usable files were ever read.
    pub(super) fn now(&self) -> Result<&ClientTrust, LinkError> {
        if let Some(trust) = self.loaded.get() {
            let _ = trust.reload_if_changed();
            return Ok(trust);
        }
        let trust = ClientTrust::load(&self.paths)?;
        Ok(self.loaded.get_or_init(|| trust))
    }

    /// Verifies a recruiter's certificates again with the lists in force.
    ///
    /// # Errors
    /// [`LinkError::Distrusted`].
    pub(super) fn recheck(
        &self,
        shown: &PeerCertificates,
        entrance: &Entrance,
    ) -> Result<(), LinkError> {
        let PeerCertificates { certificates, name } = shown;
        self.now()?
            .credentials()
            .recheck_server(certificates, name, entrance.lists(), SystemTime::now())
            .map_err(LinkError::Distrusted)
    }
}
