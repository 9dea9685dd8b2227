//! What the handlers share.

use super::feed::Feed;
use super::metrics::Metrics;
use super::problem::Problem;
use crate::config::{Asking, Config, LocalAccess};
use crate::links::Links;
use crate::placing::Choice;
use crate::registry::{Registry, Settings};
use crate::revocations::RevocationNotice;
use axum::response::{IntoResponse, Response};
use gleaner_daemon::listen::{Log, Server};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;
use tokio::sync::Semaphore;

/// All hosts' quotas that are written out at the same time: megabytes each.
const WRITERS: usize = 4;

/// What the handlers share.
pub(crate) struct App {
    registry: Mutex<Registry>,
    settings: RwLock<(Settings, Asking)>,
    pub(crate) links: Links,
    pub(crate) revocations: RevocationNotice,
    pub(crate) choice: Mutex<Choice>,
    pub(crate) feed: Feed,
    pub(crate) metrics: Metrics,
    pub(super) local_access: LocalAccess,
    pub(super) writers: Arc<Semaphore>,
    complained: Log,
    started: Instant,
}

impl App {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            registry: Mutex::new(Registry::new(config.registry.clone(), 0)),
            settings: RwLock::new((config.registry.clone(), config.asking.clone())),
            links: Links::default(),
            revocations: RevocationNotice::default(),
            choice: Mutex::default(),
            feed: Feed::default(),
            metrics: Metrics::default(),
            local_access: config.local_access,
            writers: Arc::new(Semaphore::new(WRITERS)),
            complained: Log::default(),
            started: Instant::now(),
        }
    }

    /// Since the start: a clock that does not go back. Never held while something is waited for.
    pub(crate) fn now_ms(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// How the registry judges.
    pub(crate) fn judging(&self) -> Settings {
        self.read_settings().0.clone()
    }

    /// How hosts are asked.
    pub(crate) fn asking(&self) -> Asking {
        self.read_settings().1.clone()
    }

    /// Judges and asks otherwise from now on.
    pub(crate) fn configure(&self, config: &Config) {
        self.registry().configure(config.registry.clone());
        let settings = self.settings.write();
        *settings.unwrap_or_else(PoisonError::into_inner) =
            (config.registry.clone(), config.asking.clone());
    }

    fn read_settings(&self) -> RwLockReadGuard<'_, (Settings, Asking)> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// To the log, if it is news.
    pub(crate) fn complain(&self, sender: &str, words: &str) {
        if let Some(line) = self.complained.news(sender, words) {
            eprintln!("gleaner-recruiter: refused {line}");
        }
    }
}

impl Server for App {
    fn opened(&self) -> Box<dyn Send> {
        Box::new(self.metrics.connection())
    }

    fn turned_away(&self) {
        self.metrics.refused_for("connections_limit");
    }

    fn failed(&self, address: SocketAddr, error: &io::Error) {
        self.metrics.refused_for("connection");
        self.complain(&address.ip().to_string(), &error.to_string());
    }

    fn forbidden(&self, why: &str) -> Response {
        Problem::forbidden(why).into_response()
    }
}
