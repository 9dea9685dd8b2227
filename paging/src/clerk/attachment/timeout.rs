//! Waits, with a limit, for the kernel, which itself waits for a server.

use super::failure::AttachError;
use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Timeout of a step after its connection was cut. Processes that wait for the server then fail immediately,
/// so a longer wait is a fault.
const AFTER_CUT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Time limit for steps without progress, and the action that cuts the connection after it.
pub(crate) struct StepTimeout<'a> {
    limit: Duration,
    cut: &'a dyn Fn(),
    is_cut: Cell<bool>,
}

impl<'a> StepTimeout<'a> {
    /// Makes a timeout of `limit`. `cut` makes everything fail that waits for the server.
    pub(crate) fn new(limit: Duration, cut: &'a dyn Fn()) -> Self {
        Self {
            limit,
            cut,
            is_cut: Cell::new(false),
        }
    }

    /// Returns true if the connection was cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Runs `step` in its own thread, since no signal wakes a thread that waits for a block device. The value
    /// of `progress` must change while the step advances.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        name: &'static str,
        progress: &dyn Fn() -> u64,
        step: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AttachError> {
        let (done, is_done) = channel();
        std::thread::spawn(move || {
            let _ = done.send(step());
        });
        let limit = || if self.is_cut() { AFTER_CUT } else { self.limit };
        let (mut last, mut since) = (progress(), Instant::now());
        loop {
            match is_done.recv_timeout(LOOK_EVERY) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = progress();
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() >= limit() {
                if self.is_cut.replace(true) {
                    break;
                }
                (self.cut)();
                since = Instant::now();
            }
        }
        Err(AttachError::Hangs {
            step: name,
            waited: since.elapsed(),
        })
    }
}

/// Polls until `found` returns a value.
pub(crate) fn wait_for<T>(
    step: &'static str,
    limit: Duration,
    mut found: impl FnMut() -> Result<Option<T>, AttachError>,
) -> Result<T, AttachError> {
    let began = Instant::now();
    loop {
        if let Some(found) = found()? {
            return Ok(found);
        }
        let waited = began.elapsed();
        if waited >= limit {
            return Err(AttachError::Slow { step, waited });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn what_stands_still_is_cut_and_what_gets_on_is_not() {
        let (cut, is_cut) = channel();
        let cut = move || cut.send(()).unwrap();
        let timeout = StepTimeout::new(Duration::from_millis(200), &cut);
        assert_eq!(timeout.with("quick", &|| 0, || 7).unwrap(), 7);
        // The step takes longer than the limit, but makes progress all the time: it is not cut.
        let looks = AtomicU64::new(0);
        let getting_on = || looks.fetch_add(1, Ordering::Relaxed);
        let slept = timeout.with("long", &getting_on, || {
            std::thread::sleep(Duration::from_millis(500));
        });
        slept.unwrap();
        assert!(!timeout.is_cut());
        let until_cut = Mutex::new(is_cut);
        let ended = timeout.with("stuck", &|| 0, move || until_cut.lock().unwrap().recv());
        assert!(ended.unwrap().is_ok() && timeout.is_cut());
    }
}
