//! A server as a service: ready, well, read again, ended.

use crate::notify::ServiceManager;
use crate::terminal;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// A server that is nobody's service gives no signs of life.
const NEVER: Duration = Duration::from_secs(86_400);

/// Signals that a server takes. They are taken before it listens: a SIGHUP from whoever has just had an answer would else end it.
#[derive(Debug)]
pub struct Signals {
    terminated: Signal,
    interrupted: Signal,
    hung_up: Signal,
}

impl Signals {
    /// Queues signals from now on for [`until_ended`]; within a runtime.
    ///
    /// # Errors
    /// When the system hands out no signals.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            interrupted: signal(SignalKind::interrupt())?,
            hung_up: signal(SignalKind::hangup())?,
        })
    }
}

/// Reports to the service manager that the server is ready, with its status; returns on SIGTERM or SIGINT, or
/// when its terminal has hung up. Calls `reload` on SIGHUP.
pub async fn until_ended(mut signals: Signals, status: &str, mut reload: impl FnMut()) {
    let manager = Arc::new(ServiceManager::of_this_process());
    manager.ready(status);
    let every = manager.alive_every();
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
                // In a task of its own on the serving threads: if they are stuck, no sign of life is sent.
                let alive = Arc::clone(&manager);
                tokio::spawn(async move { alive.alive() });
                alive_at = Instant::now() + every.unwrap_or(NEVER);
            }
        }
    }
    manager.stopping("ends");
}
