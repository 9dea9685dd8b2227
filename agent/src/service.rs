//! The agent as a service: reports to the service manager, and reloads its configuration on request.

use crate::args::GlobalArgs;
use crate::config::Config;
use crate::ticker::{Ticker, Wakeup};
use crate::trace::recorder::log_message;
use gleaner_daemon::notify::ServiceManager;
use gleaner_daemon::terminal;
use std::sync::Arc;

/// Connection of a run to the service manager; empty if the run is not a service.
#[derive(Debug, Default)]
pub(crate) struct Service {
    manager: ServiceManager,
    /// Arguments from which the configuration is resolved again. `None` if the run belongs to another
    /// command, which ignores SIGHUP.
    args: Option<GlobalArgs>,
    status: String,
}

impl Service {
    /// Service of this process, with the arguments that it was started with.
    pub(crate) fn of_this_process(args: GlobalArgs) -> Self {
        Self {
            manager: ServiceManager::of_this_process(),
            args: Some(args),
            status: String::new(),
        }
    }

    /// Makes the ticker wait for signs of life and for SIGHUP as well.
    pub(crate) fn follow(&self, ticker: &Ticker) -> std::io::Result<()> {
        if let Some(every) = self.manager.sign_of_life_interval() {
            ticker.set_sign_of_life_interval(every)?;
        }
        if self.args.is_some() {
            ticker.watch_hangups()?;
        }
        Ok(())
    }

    /// Sends the service manager's sign of life if it is due; returns the reason to end, if there is one.
    pub(crate) fn handle_wakeup(&self, due: &Wakeup) -> Option<&'static str> {
        if due.beat {
            self.manager.alive();
        }
        let terminal = (due.hangup && terminal::has_hung_up()).then_some("SIGHUP");
        due.signal.or(terminal)
    }

    /// Reads the configuration again. Logs an error and returns `None` if it is wrong.
    pub(crate) fn read_again(&self) -> Option<Config> {
        self.manager.reloading();
        match Config::resolve(self.args.clone()?) {
            Ok(config) => Some(config),
            Err(error) => {
                log_message(&format!("continues with its present settings: {error}"));
                None
            }
        }
    }

    /// Reports that the service works (again), with `status`.
    pub(crate) fn ready(&mut self, status: String) {
        self.manager.ready(&status);
        self.status = status;
    }

    /// Reports what the service does at present.
    pub(crate) fn status(&mut self, status: String) {
        if status != self.status {
            self.manager.status(&status);
            self.status = status;
        }
    }

    /// Reports that the service ends.
    pub(crate) fn stopping(&self, why: &str) {
        self.manager.stopping(why);
    }
}

/// Applies a new configuration as far as possible without a restart, and logs the keys that need one.
pub(crate) fn apply_configuration(before: &Config, next: Config) -> Arc<Config> {
    let (next, left_out) = before.followed_by(next);
    log_message("the configuration was reloaded");
    if !left_out.is_empty() {
        let keys = left_out.join(", ");
        log_message(&format!("changes of {keys} take effect after a restart"));
    }
    Arc::new(next)
}
