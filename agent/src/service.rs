//! A run as a service: whom it tells how it is, and where its configuration is read again.

use crate::args::GlobalArgs;
use crate::config::Config;
use crate::ticker::{Due, Ticker};
use crate::trace::recorder::say;
use gleaner_daemon::notify::ServiceManager;
use gleaner_daemon::terminal;
use std::sync::Arc;

/// The service that a run is, if it is one.
#[derive(Debug, Default)]
pub(crate) struct Service {
    manager: ServiceManager,
    /// What the configuration is resolved from; `None`: it is somebody else's, and SIGHUP is nothing to this run.
    args: Option<GlobalArgs>,
    status: String,
}

impl Service {
    /// Of this process, with the arguments that it was started with.
    pub(crate) fn of_this_process(args: GlobalArgs) -> Self {
        Self {
            manager: ServiceManager::of_this_process(),
            args: Some(args),
            status: String::new(),
        }
    }

    /// Has the ticker wait for signs of life and for SIGHUP as well.
    pub(crate) fn follow(&self, ticker: &Ticker) -> std::io::Result<()> {
        if let Some(every) = self.manager.alive_every() {
            ticker.beat_every(every)?;
        }
        if self.args.is_some() {
            ticker.heed_hangups()?;
        }
        Ok(())
    }

    /// Gives the sign of life that is due; why the run is to end, if it is.
    pub(crate) fn heed(&self, due: &Due) -> Option<&'static str> {
        if due.beat {
            self.manager.alive();
        }
        let terminal = (due.hangup && terminal::has_hung_up()).then_some("SIGHUP");
        due.signal.or(terminal)
    }

    /// Reads the configuration again. One that cannot be is told of, and `None`.
    pub(crate) fn read_again(&self) -> Option<Config> {
        self.manager.reloading();
        match Config::resolve(self.args.clone()?) {
            Ok(config) => Some(config),
            Err(error) => {
                say(&format!("goes on with the settings it has: {error}"));
                None
            }
        }
    }

    /// It works, or works again, doing this.
    pub(crate) fn ready(&mut self, status: String) {
        self.manager.ready(&status);
        self.status = status;
    }

    /// It does this.
    pub(crate) fn status(&mut self, status: String) {
        if status != self.status {
            self.manager.status(&status);
            self.status = status;
        }
    }

    /// It ends.
    pub(crate) fn stopping(&self, why: &str) {
        self.manager.stopping(why);
    }
}

/// What is taken up of a configuration that was read again, and said of the rest.
pub(crate) fn taken_up(before: &Config, next: Config) -> Arc<Config> {
    let (next, left_out) = before.followed_by(next);
    say("the configuration was read again");
    if !left_out.is_empty() {
        let keys = left_out.join(", ");
        say(&format!("what changed in {keys} holds after a restart"));
    }
    Arc::new(next)
}
