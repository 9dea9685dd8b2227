//! Connects to servers, each attempt on a thread of its own, with pauses in between.

use super::{Handle, Message};
use crate::nbd::client::{Source, connect};
use std::thread;
use std::time::Duration;

/// Timeout of one attempt.
const PATIENCE: Duration = Duration::from_secs(3);
/// Pause after the first failed attempt. After each further one the pause doubles, up to [`MOST_PAUSE_US`].
const LEAST_PAUSE_US: i64 = 100_000;
const MOST_PAUSE_US: i64 = 5_000_000;

/// Schedule of attempts to connect to one server.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    is_under_way: bool,
    pause_us: i64,
    not_before_us: i64,
}

impl Attempts {
    /// Begins an attempt, unless it is too early or one is under way.
    pub(super) fn begin(&mut self, number: u32, source: &Source, handle: &Handle, now_us: i64) {
        if self.is_under_way || now_us < self.not_before_us {
            return;
        }
        let (source, handle) = (source.clone(), handle.clone());
        let attempt = move || {
            let made = connect(
                &source.server,
                &source.export,
                source.tls.as_ref(),
                PATIENCE,
            );
            handle.tell(Message::Connected(number, made));
        };
        self.is_under_way = thread::Builder::new()
            .name("connect".to_owned())
            .spawn(attempt)
            .is_ok();
    }

    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }

    /// Delays the next attempt until the refraction period is over.
    pub(super) fn delay_reconnect(&mut self, now_us: i64, refraction_us: i64) {
        self.not_before_us = now_us.saturating_add(refraction_us);
    }

    pub(super) fn failed(&mut self, now_us: i64) {
        self.is_under_way = false;
        self.pause_us = (self.pause_us * 2).clamp(LEAST_PAUSE_US, MOST_PAUSE_US);
        self.not_before_us = now_us + self.pause_us;
    }
}
