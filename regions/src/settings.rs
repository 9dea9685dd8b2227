//! What a program says of the memory that it wants to use.

use gleaner_trust::ClientTrust;
use std::sync::Arc;
use std::time::Duration;

/// Where memory comes from, and what happens when it goes.
#[derive(Clone)]
pub struct Settings {
    /// Recruiters, `https://HOST:PORT`, or `http://` on this machine: any of them is asked.
    pub recruiters: Vec<String>,
    /// What is shown to recruiters and hosts, and trusted of theirs. Without it only this machine's are spoken to.
    pub trust: Option<Arc<ClientTrust>>,
    /// Whose the leases are, by a recruiter of this machine's; else the certificate says.
    pub client: Option<String>,
    /// Memory servers of this machine to use before any recruiter: `nbd://127.0.0.1:10809`, `nbd+unix:///?socket=PATH`.
    pub servers: Vec<String>,
    /// How regions go on whose memory is gone.
    pub when_gone: WhenGone,
    /// After a failure, nobody is asked for memory for so long.
    pub refraction: Duration,
    /// A server that is silent for longer has failed.
    pub patience: Duration,
    /// Leases are renewed at this interval, and run out after three.
    pub renew_every: Duration,
}

/// How regions go on whose memory is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenGone {
    /// They are read from their files.
    #[default]
    File,
    /// As Dodo's: reading and writing them are errors from then on. What was written is in the file even so.
    Error,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            recruiters: Vec::new(),
            trust: None,
            client: None,
            servers: Vec::new(),
            when_gone: WhenGone::File,
            refraction: Duration::from_secs(60),
            patience: Duration::from_secs(3),
            renew_every: Duration::from_secs(10),
        }
    }
}
