//! A server as a service: ready, well, read again, ended.

use gleaner_daemon::notify::ServiceManager;
use gleaner_daemon::terminal;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// A server that is nobody's service gives no signs of life.
const NEVER: Duration = Duration::from_secs(86_400);

/// Tells the service manager that the server is ready, and what it does; returns when SIGTERM or SIGINT comes, or when its
/// terminal is gone. SIGHUP has `reload` called.
///
/// # Errors
/// When the system hands out no signals.
pub async fn until_ended(status: &str, mut reload: impl FnMut()) -> io::Result<()> {
    let manager = Arc::new(ServiceManager::of_this_process());
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    manager.ready(status);
    let every = manager.alive_every();
    let mut alive_at = Instant::now();
    loop {
        tokio::select! {
            _ = terminated.recv() => break,
            _ = interrupted.recv() => break,
            _ = hung_up.recv() => {
                if terminal::has_hung_up() {
                    break;
                }
                manager.reloading();
                reload();
                manager.ready(status);
            }
            () = sleep_until(alive_at) => {
                // By a task of its own, on the threads that serve: where they are stuck nothing is said.
                let alive = Arc::clone(&manager);
                tokio::spawn(async move { alive.alive() });
                alive_at = Instant::now() + every.unwrap_or(NEVER);
            }
        }
    }
    manager.stopping("ends");
    Ok(())
}
