//! Reloads the configuration without a restart, which would give back all memory.
//!
//! Reloading has a thread of its own: a file may be slow to read, and the core never waits.

use crate::args::GlobalArgs;
use crate::config::Config;
use crate::core::{CoreMessage, Inbox};
use crate::standalone::StandaloneLease;
use gleaner_daemon::notify::ServiceManager;
use gleaner_daemon::terminal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// Inputs of a reload.
pub(crate) struct Reloader {
    pub(crate) args: GlobalArgs,
    /// Configuration with which the daemon was started.
    pub(crate) config: Config,
    /// True for a measurement, whose settings override those of the file.
    pub(crate) is_measured: bool,
    pub(crate) inbox: Inbox,
    pub(crate) manager: Arc<ServiceManager>,
    /// Stream that ends the daemon when a byte is written to it.
    pub(crate) end: UnixStream,
}

impl Reloader {
    /// Reads the configuration again on each byte from `hangups`, until the core ends.
    pub(crate) fn follow(mut self, mut hangups: UnixStream) {
        while hangups.read(&mut [0; 64]).is_ok_and(|read| read > 0) {
            if terminal::has_hung_up() {
                let _ = self.end.write_all(&[0]); // the daemon may be ending already
                return;
            }
            self.manager.reloading();
            let doing = match Config::load(&self.args) {
                Ok(next) => match self.apply_to_core(next.values) {
                    Some(doing) => doing,
                    None => return,
                },
                Err(error) => {
                    eprintln!("gleaner-memoryd: continues with its present settings: {error}");
                    String::new()
                }
            };
            self.manager.ready(&doing);
        }
    }

    /// Passes new settings to the core; returns its status, or `None` if it has ended.
    fn apply_to_core(&self, next: Config) -> Option<String> {
        let left_out = self.config.restart_keys(&next);
        let mut settings = Box::new(next.settings);
        if self.is_measured {
            StandaloneLease::adapt(&mut settings);
        }
        let (done, doing) = channel();
        let told = CoreMessage::Configured { settings, done };
        let doing = self.inbox.tell(told).then(|| doing.recv().ok())??;
        eprintln!("gleaner-memoryd: the configuration was reloaded");
        if !left_out.is_empty() {
            let keys = left_out.join(", ");
            eprintln!("gleaner-memoryd: changes of {keys} take effect after a restart");
        }
        Some(doing)
    }
}
