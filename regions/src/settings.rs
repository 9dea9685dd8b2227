//! A program's settings for remote memory.

use gleaner_trust::ClientTrust;
use std::sync::Arc;
use std::time::Duration;

/// Sources of memory, and the behaviour when memory is lost.
#[derive(Clone)]
pub struct Settings {
    /// URLs of recruiters: `https://HOST:PORT`, or `http://` on this machine. One of them is enough for a
    /// request.
    pub recruiters: Vec<String>,
    /// Certificate and trusted authorities for recruiters and hosts. Without them, only recruiters and hosts
    /// on this machine are used.
    pub trust: Option<Arc<ClientTrust>>,
    /// Client name for a recruiter on this machine; elsewhere the certificate has it.
    pub client: Option<String>,
    /// Memory servers on this machine to use before any recruiter: `nbd://127.0.0.1:10809`, `nbd+unix:///?socket=PATH`.
    pub servers: Vec<String>,
    /// Behaviour of regions whose memory is lost.
    pub when_gone: OnLoss,
    /// Refraction period: time after a failure during which no host is asked for memory.
    pub refraction: Duration,
    /// Timeout of a server's answer; a server that takes longer counts as failed.
    pub patience: Duration,
    /// Interval at which leases are renewed. A lease expires after three intervals.
    pub renew_every: Duration,
}

/// Behaviour of regions whose memory is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Regions read their files.
    #[default]
    File,
    /// As in Dodo: later reads and writes fail. Written data are in the file nevertheless.
    Error,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            recruiters: Vec::new(),
            trust: None,
            client: None,
            servers: Vec::new(),
            when_gone: OnLoss::File,
            refraction: Duration::from_secs(60),
            patience: Duration::from_secs(3),
            renew_every: Duration::from_secs(10),
        }
    }
}
