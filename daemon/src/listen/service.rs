//! A server as a service: it reports readiness and signs of life, reloads its configuration, and ends.

use crate::notify::ServiceManager;
use crate::terminal;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// Interval of signs of life if no service manager wants them: effectively never.
const NEVER: Duration = Duration::from_secs(86_400);

/// Signals that a server handles. Take them before it listens: otherwise a SIGHUP right after its first
/// answer could end it.
#[derive(Debug)]
pub struct Signals {
    terminated: Signal,
    interrupted: Signal,
    hung_up: Signal,
}

impl Signals {
    /// Queues signals from now on for [`until_ended`]. Call it within a runtime.
    ///
    /// # Errors
    /// A signal's handler cannot be installed.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            interrupted: signal(SignalKind::interrupt())?,
            hung_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Reports to the service manager that the server is ready, with its status. Returns on SIGTERM or SIGINT, or
/// when its terminal has hung up. Calls `reload` on SIGHUP.
pub async fn until_ended(mut signals: Signals, status: &str, mut reload: impl FnMut()) {
    let manager = Arc::new(ServiceManager::of_this_process());
    manager.ready(status);
    let every = manager.sign_of_life_interval();
    let mut alive_at = Instant::now();
    loop {
        tokio::select! {
            _ = signals.terminated.recv() => break,
            _ = signals.interrupted.recv() => break,
            _ = signals.hung_up.recv() => {
                if terminal::has_hung_up() {
                    break;
                }
                manager.reloading();
                reload();
                manager.ready(status);
            }
            () = sleep_until(alive_at) => {
                // This task runs on the serving threads: if they hang, no sign of life is sent.
                let alive = Arc::clone(&manager);
                tokio::spawn(async move { alive.alive() });
                alive_at = Instant::now() + every.unwrap_or(NEVER);
            }
        }
    }
    manager.stopping("ends");
}
