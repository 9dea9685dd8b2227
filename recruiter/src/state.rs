//! State shared by HTTP handlers, requests in progress, and conversations with hosts.

use crate::choice::Choice;
use crate::commons::{Commonses, Moment};
use crate::config::{Config, RequestSettings};
use crate::links::Links;
use crate::metrics::Metrics;
use crate::registry::{Registry, Settings};
use crate::revocations::RevocationNotice;
use gleaner_daemon::listen::Log;
use gleaner_policy::placement::{Candidate, Placement, Request, Shortage};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;

/// Settings that a reload of the configuration changes.
#[derive(Clone, Debug)]
struct StateSettings {
    registry: Settings,
    asking: RequestSettings,
    member_limit_bytes: u64,
}

impl StateSettings {
    fn of(config: &Config) -> Self {
        Self {
            registry: config.registry.clone(),
            asking: config.asking.clone(),
            member_limit_bytes: config.member_limit_bytes,
        }
    }
}

/// State of a recruiter. It is lost when the process ends; then hosts announce themselves again.
pub(crate) struct RecruiterState {
    registry: Mutex<Registry>,
    settings: RwLock<StateSettings>,
    pub(crate) links: Links,
    pub(crate) revocations: RevocationNotice,
    choice: Mutex<Choice>,
    commons: Mutex<Commonses>,
    pub(crate) metrics: Metrics,
    complained: Log,
    started: Instant,
    /// Time of the start, in ms since 1970-01-01 UTC.
    pub(crate) start_time_ms: i64,
}

impl RecruiterState {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            registry: Mutex::new(Registry::new(config.registry.clone(), 0)),
            settings: RwLock::new(StateSettings::of(config)),
            links: Links::default(),
            revocations: RevocationNotice::default(),
            choice: Mutex::default(),
            commons: Mutex::default(),
            metrics: Metrics::default(),
            complained: Log::default(),
            started: Instant::now(),
            start_time_ms: crate::now_ms(),
        }
    }

    /// Time since the recruiter's start, on a clock that never goes back.
    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// Settings of the registry.
    pub(crate) fn judging(&self) -> Settings {
        self.read_settings().registry.clone()
    }

    /// Settings of requests to hosts.
    pub(crate) fn asking(&self) -> RequestSettings {
        self.read_settings().asking.clone()
    }

    /// Largest weight of a commons' member whose memory server announces less.
    pub(crate) fn member_limit_bytes(&self) -> u64 {
        self.read_settings().member_limit_bytes
    }

    /// Present time for the commonses. It never goes back, whatever the system's clock does.
    pub(crate) fn moment(&self) -> Moment {
        let now_ms = self.now_ms();
        let time_ms = self.start_time_ms.saturating_add(now_ms);
        Moment {
            now_ms,
            time_s: u64::try_from(time_ms / 1000).unwrap_or_default(),
        }
    }

    /// Applies a new configuration.
    pub(crate) fn configure(&self, config: &Config) {
        self.registry().configure(config.registry.clone());
        let settings = self.settings.write();
        *settings.unwrap_or_else(PoisonError::into_inner) = StateSettings::of(config);
    }

    fn read_settings(&self) -> RwLockReadGuard<'_, StateSettings> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn commons(&self) -> MutexGuard<'_, Commonses> {
        self.commons.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses the next hosts to ask from `candidates`, one for each copy.
    pub(crate) fn choose(
        &self,
        placement: Placement,
        request: &Request<'_>,
        candidates: &mut Vec<Candidate>,
    ) -> Result<Vec<Candidate>, Shortage> {
        let now_ms = self.now_ms();
        let mut choice = self.choice.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = choice.choose(placement, request, candidates, now_ms)?;
        drop(choice);
        let hosts = chosen.iter().map(|&i| candidates[i].clone()).collect();
        let mut i = 0;
        candidates.retain(|_| {
            i += 1;
            !chosen.contains(&(i - 1))
        });
        Ok(hosts)
    }

    /// Logs why a sender was refused, unless the same was logged shortly before.
    pub(crate) fn complain(&self, sender: &str, words: &str) {
        if let Some(line) = self.complained.news(sender, words) {
            eprintln!("gleaner-recruiter: refused {line}");
        }
    }
}
