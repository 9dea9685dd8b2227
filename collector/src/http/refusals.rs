//! Refusals in the log: each once, until its sender is heard again or an hour has passed.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(3600);
/// Senders remembered at most; more than that at once is an attack, and is logged as it comes.
const REMEMBERED: usize = 65_536;

/// What was logged about whom.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<String, (String, Instant)>>);

impl Refusals {
    /// Logs a refusal, if it is news.
    pub(super) fn log(&self, sender: &str, reason: &str) {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = logged.get(sender);
        if last.is_some_and(|(last, when)| last == reason && when.elapsed() < QUIET) {
            return;
        }
        if logged.len() >= REMEMBERED {
            logged.clear();
        }
        logged.insert(sender.to_owned(), (reason.to_owned(), Instant::now()));
        eprintln!("gleaner-collector: refused {sender}: {reason}");
    }

    /// The sender was heard: its next refusal is news.
    pub(super) fn forget(&self, sender: &str) {
        let mut logged = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        logged.remove(sender);
    }
}
