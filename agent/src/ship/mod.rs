//! Sends the trace to the collector: a separate service with network access and without capabilities.
//!
//! [`batch`] reads the oldest records that the collector does not have, from the running agent's database and
//! from damaged databases that were set aside. [`shipper`] sends them in order, one batch at a time, through
//! [`client`]. [`run`] does this at each interval and waits longer after each failure. Only the collector
//! knows which records it has: it is asked at the start and after every failure.

pub(crate) mod answer;
pub(crate) mod batch;
pub(crate) mod client;
pub(crate) mod folder;
pub mod grant;
pub mod mark;
pub(crate) mod shipper;
pub mod summary;

use crate::Error;
use crate::config::Config;
use crate::interval;
use crate::state_files::lock_beside;
use crate::trace::recorder::log_message;
use gleaner_daemon::notify::ServiceManager;
use gleaner_trust::{Backoff, random};
use shipper::Shipper;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use summary::Summary;

/// Maximum wait after the first failure.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Maximum wait after many failures.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Maximum wait that a collector may request.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// Suffix of the lock held by a database's only shipper.
const LOCK: &str = "-ship-lock";

/// Ships at each interval, until SIGTERM or SIGINT ends the process.
///
/// # Errors
/// Errors that waiting does not fix: [`Error::Shipping`] if another process ships this trace,
/// [`Error::Collector`] if no collector is configured, or its address is not allowed.
pub fn run(config: &Config) -> Result<(), Error> {
    let _lock = lock(config)?;
    let manager = Arc::new(ServiceManager::of_this_process());
    let mut shipper = Shipper::new(config, Arc::clone(&manager))?;
    end_on_signals(Arc::clone(&manager)).map_err(|source| Error::Wait { source })?;
    let every = config.ship.batch_interval;
    let begun = format!(
        "shipping {} to {} every {}",
        config.database.display(),
        shipper.address(),
        interval::format(every),
    );
    log_message(&begun);
    manager.ready(&begun);
    // Ten thousand hosts switched on at the same time must not send at the same time.
    let mut due = Instant::now() + every.mul_f64(random::share());
    let mut trouble = FailureSeries::none();
    loop {
        rest(due.saturating_duration_since(Instant::now()), &manager);
        match shipper.round() {
            Ok(_) => {
                if trouble.over() {
                    manager.status(&begun);
                }
                while due <= Instant::now() {
                    due += every;
                }
            }
            Err(why) => {
                let wait = trouble.wait(&why, shipper.batches_count());
                if let Some(said) = &trouble.said {
                    manager.status(&format!("waiting: {said}"));
                }
                due = Instant::now() + wait;
            }
        }
    }
}

/// Ships all present records, and returns a summary.
///
/// # Errors
/// Errors of [`run`], and [`Error::Unshipped`] if not all could be shipped.
pub fn ship_once(config: &Config) -> Result<Summary, Error> {
    let _lock = lock(config)?;
    let mut shipper = Shipper::new(config, Arc::default())?;
    match shipper.round() {
        Ok(true) => shipper.summary(),
        Ok(false) => Err(Error::Unshipped {
            why: "some records stay here for now, for the reasons above".to_owned(),
        }),
        Err(trouble) => Err(Error::Unshipped {
            why: trouble.to_string(),
        }),
    }
}

fn lock(config: &Config) -> Result<std::fs::File, Error> {
    let path = &config.database;
    if !path.exists() {
        return Err(Error::NoDatabase { path: path.clone() });
    }
    lock_beside(path, LOCK)?.ok_or_else(|| Error::Shipping { path: path.clone() })
}

/// Ends the process immediately on a signal, whatever is in progress: everything can be repeated.
fn end_on_signals(manager: Arc<ServiceManager>) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let ending = move || {
        if signals.forever().next().is_some() {
            manager.stopping("ends");
            signal_hook::low_level::exit(0);
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(ending).map(drop)
}

/// Sleeps for `length`; sends signs of life to the service manager meanwhile.
pub(crate) fn rest(length: Duration, manager: &ServiceManager) {
    let due = Instant::now() + length;
    loop {
        manager.alive();
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        sleep(
            manager
                .sign_of_life_interval()
                .map_or(left, |every| left.min(every)),
        );
    }
}

/// Failures in a row: logs their beginning and their end, and computes waits.
struct FailureSeries {
    backoff: Backoff,
    batches_count: u64,
    since: Option<Instant>,
    said: Option<String>,
}

impl FailureSeries {
    const fn none() -> Self {
        Self {
            backoff: Backoff::new(FIRST_WAIT, LONGEST_WAIT),
            batches_count: 0,
            since: None,
            said: None,
        }
    }

    /// Time to wait after another failure. The first attempt is repeated before any message, since the
    /// collector may just have closed an idle connection.
    fn wait(&mut self, why: &answer::Trouble, batches_count: u64) -> Duration {
        let text = why.to_string();
        let is_second = self.since.is_some();
        self.since.get_or_insert_with(Instant::now);
        if is_second && self.said.is_none() {
            log_message(&format!(
                "{text}; nothing is lost, and shipping retries until it works"
            ));
            self.said = Some(text);
        }
        if std::mem::replace(&mut self.batches_count, batches_count) != batches_count {
            self.backoff.reset(); // a batch succeeded in between
        }
        let asked = why.retry_after().map(|asked| asked.min(LONGEST_ASKED));
        self.backoff.next(asked)
    }

    /// Ends the series. Returns true if a message had announced it.
    fn over(&mut self) -> bool {
        self.backoff.reset();
        let (since, said) = (self.since.take(), self.said.take());
        if let (Some(since), Some(_)) = (since, &said) {
            log_message(&format!(
                "shipping again after {}",
                interval::format(Duration::from_secs(since.elapsed().as_secs()))
            ));
        }
        said.is_some()
    }
}
