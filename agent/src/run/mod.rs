//! The loop: takes and stores a sample at each interval until a signal arrives. A separate thread
//! ([`watcher`]) waits for the owner's return and informs listeners.

mod progress;
#[cfg(test)]
mod tests;
mod watcher;

use self::progress::Progress;
use self::watcher::Watcher;
use crate::Error;
use crate::activity::{ActivityWatch, Roots};
use crate::args::GlobalArgs;
use crate::clock::Moment;
use crate::config::{Config, Privacy};
use crate::identity::FileIdKey;
use crate::interval;
use crate::live::Server;
use crate::owner::Owner;
use crate::sample::Sample;
use crate::sample::sampler::Sampler;
use crate::sample::stat_files;
use crate::service::{Service, apply_configuration};
use crate::state_files::beside;
use crate::ticker::{Ticker, Wakeup};
use crate::trace::events::{self, Clocks};
use crate::trace::recorder::{Recorder, log_message};
use rustix::event::PollFlags;
use signal_hook::consts::SIGXFSZ;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Traces this host: the first sample follows after one interval. Ends once `samples` samples are stored, or
/// after the current sample when SIGINT or SIGTERM arrives.
///
/// # Errors
/// The database may not be written, or none of the kernel's files can be read. A full or read-only disk is no
/// error: the loop waits for it.
pub fn run(config: &Config, samples: Option<u64>) -> Result<(), Error> {
    run_as(config.clone(), samples, Service::default())
}

/// Runs as [`run`] does, as a service: reports its state to the service manager, and reads the configuration
/// again on SIGHUP.
///
/// # Errors
/// Errors of [`run`], and [`Error::Config`].
pub fn serve(args: GlobalArgs, samples: Option<u64>) -> Result<(), Error> {
    let config = Config::resolve(args.clone())?;
    run_as(config, samples, Service::of_this_process(args))
}

fn run_as(config: Config, samples: Option<u64>, mut service: Service) -> Result<(), Error> {
    let wait = |source| Error::Wait { source };
    let mut config = Arc::new(config);
    heed_file_size_limit().map_err(wait)?;
    stat_files::raise_limit();
    let mut ticker =
        Ticker::new(config.sample_interval, config.mem_available_interval).map_err(wait)?;
    service.follow(&ticker).map_err(wait)?;
    let Some((recorder, sampler)) = begin(&mut config, &mut ticker, &mut service)? else {
        service.stopping("ends without having begun");
        return Ok(());
    };
    let mut run = Run::new(config, ticker, recorder, sampler, service)?;
    let why = run.until_the_end(samples)?;
    run.service.stopping(why);
    let mut last = run.watcher.events()?;
    last.push(events::agent_stop(&Moment::now(), why));
    run.recorder.events(last);
    Ok(())
}

/// Opens the trace; while its disk is full or read-only, tries again at each interval. Returns `None` if a
/// signal arrived first.
fn begin(
    config: &mut Arc<Config>,
    ticker: &mut Ticker,
    service: &mut Service,
) -> Result<Option<(Recorder, Sampler)>, Error> {
    let wait = |source| Error::Wait { source };
    let mut has_said = false;
    loop {
        match try_begin(config) {
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut has_said, true) {
                    log_message(&format!("{error}; waiting until it can be"));
                    // Waiting is all that the agent can do; a restart would not help.
                    service.ready(format!("waiting: {error}"));
                }
            }
            begun => return begun.map(Some),
        }
        loop {
            let due = ticker.wait_with(&[]).map_err(wait)?;
            if service.handle_wakeup(&due).is_some() {
                return Ok(None);
            }
            if due.hangup {
                if let Some(next) = service.read_again() {
                    *config = Arc::new(next); // all keys take effect: nothing is open yet
                    let (interval, looks) = (config.sample_interval, config.mem_available_interval);
                    ticker.set(interval, looks).map_err(wait)?;
                }
                has_said = false;
                break;
            }
            if due.samples > 0 {
                break;
            }
        }
    }
}

fn try_begin(config: &Arc<Config>) -> Result<(Recorder, Sampler), Error> {
    let mut recorder = Recorder::open(Arc::clone(config))?;
    let key_file = beside(&config.database, "-key");
    let key = FileIdKey::load_or_create(&key_file).map_err(|source| Error::Write {
        path: key_file,
        source,
    })?;
    let sampler = Sampler::new(config.settings.clone(), key)?;
    recorder.begin_boot(sampler.boot_id())?;
    Ok((recorder, sampler))
}

/// Catches SIGXFSZ, whose default action ends the process: a write beyond RLIMIT_FSIZE then fails like one on
/// a full disk.
fn heed_file_size_limit() -> std::io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, unused).map(|_| ())
}

/// State kept from one wake to the next.
struct Run {
    config: Arc<Config>,
    service: Service,
    ticker: Ticker,
    recorder: Recorder,
    sampler: Sampler,
    watcher: Watcher,
    progress: Arc<Progress>,
    clocks: Clocks,
    /// Moment at which the last sample was due.
    last_due: Moment,
    /// True if the last sample took longer than allowed; only the first of several such samples is an event.
    overloaded: bool,
    /// True once a message said that terminals cannot be watched.
    said_blind: bool,
}

impl Run {
    fn new(
        config: Arc<Config>,
        ticker: Ticker,
        recorder: Recorder,
        mut sampler: Sampler,
        service: Service,
    ) -> Result<Self, Error> {
        let now = Moment::now();
        let begun = description(&config);
        log_message(&format!("{begun}; end with Ctrl-C"));
        let progress = Arc::new(Progress::new());
        let watcher = Watcher::start(
            ActivityWatch::new(Roots::of(&config.settings), now.time_ms),
            Owner::new(config.sample_interval_ms(), config.return_watch_after_ms()),
            listen(&config),
            Arc::clone(&progress),
        )?;
        sampler.ask(watcher.activity());
        let mut run = Self {
            service,
            ticker,
            recorder,
            sampler,
            watcher,
            progress,
            clocks: Clocks::new(now),
            last_due: now,
            overloaded: false,
            said_blind: false,
            config,
        };
        run.write_beginning(&now);
        run.service.ready(begun);
        Ok(run)
    }

    /// Writes the event of the agent's start. Writes the event of the boot, too, unless an earlier start
    /// wrote it.
    fn write_beginning(&mut self, now: &Moment) {
        let boot_id = self.sampler.boot_id();
        let new_boot_id = boot_id.filter(|id| !self.recorder.has_event("boot", id));
        let boot = new_boot_id.map(|id| events::boot(now, id));
        let start = events::agent_start(now);
        self.recorder
            .events(boot.into_iter().chain([start]).collect());
    }

    /// Runs until there is a reason to end, and returns that reason.
    fn until_the_end(&mut self, samples: Option<u64>) -> Result<&'static str, Error> {
        let mut stored = 0;
        while samples.is_none_or(|wanted| stored < wanted) {
            let due = self.wait()?;
            for event in self.clocks.step(&due.now, due.clock_set) {
                if let ("clock_step", Some(stepped_ms)) =
                    (event.1.kind.as_str(), event.1.duration_ms)
                {
                    self.watcher.clock_stepped(stepped_ms);
                }
                self.recorder.note(event);
            }
            if due.ready.contains(&true) {
                let returns = self.watcher.events()?;
                self.recorder.events(returns);
            }
            if let Some(signal) = self.service.handle_wakeup(&due) {
                return Ok(signal);
            }
            if due.samples > 0 {
                stored += u64::from(self.sample(&due)?);
            } else if due.look {
                self.sampler.look();
            }
            if due.hangup {
                stored += u64::from(self.reload()?);
            }
        }
        Ok("all samples taken")
    }

    /// Reads the configuration again and continues with it. Returns true if a sample was stored meanwhile.
    fn reload(&mut self) -> Result<bool, Error> {
        let mut is_stored = false;
        if let Some(next) = self.service.read_again() {
            let next = apply_configuration(&self.config, next);
            let intervals =
                |config: &Config| (config.sample_interval, config.mem_available_interval);
            if intervals(&next) != intervals(&self.config) {
                // Samples immediately, so that the time between the last sample at the old interval and the
                // first at the new one is no gap.
                let due = Wakeup {
                    now: Moment::now(),
                    samples: 1,
                    ..Wakeup::default()
                };
                is_stored = self.sample(&due)?;
                let set = self
                    .ticker
                    .set(next.sample_interval, next.mem_available_interval);
                set.map_err(|source| Error::Wait { source })?;
            }
            self.sampler.configure(&next.settings);
            self.watcher
                .configure(next.sample_interval_ms(), next.return_watch_after_ms());
            self.recorder.configure(Arc::clone(&next));
            self.config = next;
        }
        self.service.ready(self.status());
        Ok(is_stored)
    }

    fn status(&self) -> String {
        if self.recorder.is_failing() {
            return "samples are dropped: they cannot be stored".to_owned();
        }
        description(&self.config)
    }

    /// Waits for the next due task, or for a message from the watcher.
    fn wait(&mut self) -> Result<Wakeup, Error> {
        if !self.progress.turns() {
            log_message(
                "the last sample was late, and listeners received nothing: reading it is slow, or the disk is slow to write",
            );
        }
        self.progress.waits(self.config.sample_interval);
        let sources = [(self.watcher.wait_on(), PollFlags::IN)];
        let due = self.ticker.wait_with(&sources);
        self.progress.works();
        due.map_err(|source| Error::Wait { source })
    }

    /// Takes a sample, publishes and stores it; returns true if it was stored.
    fn sample(&mut self, due: &Wakeup) -> Result<bool, Error> {
        let interval_ms = self.config.sample_interval_ms();
        let last_due = std::mem::replace(&mut self.last_due, due.now);
        let missed = events::missed(due.samples, &last_due, &due.now, interval_ms);
        let sample = self.sampler.take()?;
        let overload = events::overload(sample.moment.time_ms, &sample.row, interval_ms);
        let was_overloaded = std::mem::replace(&mut self.overloaded, overload.is_some());
        let overload = overload.filter(|_| !was_overloaded);
        let headroom_share = self.config.settings.headroom_share;
        let published = self.watcher.publish(sample, headroom_share)?;
        let noted = [missed, overload, published.event].into_iter().flatten();
        for event in noted.chain(self.watcher.events()?) {
            self.recorder.note(event);
        }
        if let Some(errno) = published.blind
            && !std::mem::replace(&mut self.said_blind, true)
        {
            let why = std::io::Error::from(errno);
            log_message(&format!(
                "only samples detect the owner's return at a terminal: inotify: {why}"
            ));
        }
        let is_stored = self.recorder.sample(*published.sample)?;
        let status = self.status();
        self.service.status(status);
        Ok(is_stored)
    }
}

/// Status line for the service manager: what the agent does at present.
fn description(config: &Config) -> String {
    let paths = match config.privacy {
        Privacy::Plain => "in plain",
        Privacy::Hashed => "hashed",
    };
    format!(
        "sampling every {} into {} (paths {paths})",
        interval::format(config.sample_interval),
        config.database.display(),
    )
}

/// Opens the configured socket. If that fails, nobody can listen, but tracing continues.
fn listen(config: &Config) -> Server {
    let Some(path) = &config.socket else {
        return Server::default();
    };
    Server::open(path, config.sample_interval_ms()).unwrap_or_else(|why| {
        let path = path.display();
        log_message(&format!(
            "cannot open the socket {path}: {why}; choose another place with --socket"
        ));
        Server::default()
    })
}

/// Takes one sample without storing it. CPU use is measured from the CPU times in the captured tree `before`;
/// without such a tree, from CPU times read `settle` before the sample.
///
/// # Errors
/// None of the kernel's files can be read.
pub fn sample_once(
    config: &Config,
    settle: Duration,
    before: Option<&Path>,
) -> Result<Sample, Error> {
    let key = FileIdKey::random()?;
    let mut sampler = Sampler::new(config.settings.clone(), key)?;
    match before {
        Some(proc_root) => sampler.prime_from(proc_root)?,
        None => std::thread::sleep(settle),
    }
    sampler.take()
}
