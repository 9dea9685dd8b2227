//! The loop: samples at each interval, waits for the owner's return in between, and tells listeners of
//! both, until a signal comes. One thread, one poll.

use crate::Error;
use crate::activity::{ActivityWatch, Sign};
use crate::clock::{Moment, monotonic_us};
use crate::config::{Config, Privacy};
use crate::events::{self, Clocks};
use crate::history::History;
use crate::host;
use crate::identity::FileIdKey;
use crate::interval;
use crate::live::Server;
use crate::owner::Owner;
use crate::sample::Sample;
use crate::sampler::Sampler;
use crate::store::{Event, Store, beside};
use crate::ticker::{Due, Ticker};
use gleaner_schemas::live;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// While a sample is taken, the owner is looked for this often: a fifth of the 50 ms within which their
/// return is told, since one step of a sample may take most of the rest.
const LOOK_FOR_OWNER_EVERY_US: i64 = 5000;

/// Traces this host: the first sample comes one interval from now. Ends after `samples` of them, or
/// with the sample in hand when SIGINT or SIGTERM comes.
///
/// # Errors
/// When the database cannot be written or the kernel's files not be read at all.
pub fn run(config: &Config, samples: Option<u64>) -> Result<(), Error> {
    let mut run = Run::begin(config)?;
    let why = run.until_the_end(samples)?;
    run.store
        .write_events(&[events::agent_stop(&Moment::now(), why)])
}

/// What is at work from one wake to the next.
struct Run<'a> {
    config: &'a Config,
    ticker: Ticker,
    store: Store,
    sampler: Sampler,
    history: History,
    live: Server,
    owner: Owner,
    clocks: Clocks,
    /// When the last sample fell due.
    last_due: Moment,
    /// Whether the last sample took more than it may: of several in a row the first is an event.
    overloaded: bool,
    /// Whether it has been said that terminals cannot be waited for.
    said_blind: bool,
}

impl<'a> Run<'a> {
    fn begin(config: &'a Config) -> Result<Self, Error> {
        let ticker = Ticker::new(config.interval, config.mem_available_interval)
            .map_err(|source| Error::Wait { source })?;
        let now = Moment::now();
        let store = Store::open(&config.database, host::id().as_deref(), now.time_ms)?;
        let key_file = beside(&config.database, "-key");
        let key = FileIdKey::load_or_create(&key_file).map_err(|source| Error::Write {
            path: key_file,
            source,
        })?;
        let sampler = Sampler::new(config.settings.clone(), key)?;
        say(&format!(
            "sampling every {} into {} (paths {}); end with Ctrl-C",
            interval::format(config.interval),
            config.database.display(),
            if config.privacy == Privacy::Plain {
                "in plain"
            } else {
                "hashed"
            },
        ));
        let mut run = Self {
            config,
            ticker,
            store,
            sampler,
            history: History::default(),
            live: listen(config),
            owner: Owner::new(config.interval_ms(), config.owner_quiet_ms()),
            clocks: Clocks::new(now),
            last_due: now,
            overloaded: false,
            said_blind: false,
        };
        run.write_beginning(&now)?;
        Ok(run)
    }

    /// The start, and the boot before it where no earlier start has written it.
    fn write_beginning(&mut self, now: &Moment) -> Result<(), Error> {
        let mut beginning = Vec::new();
        if let Some(boot_id) = self.sampler.boot_id()
            && !self.store.has_event("boot", boot_id)?
        {
            beginning.push(events::boot(now, boot_id));
        }
        beginning.push(events::agent_start(now));
        self.store.write_events(&beginning)
    }

    /// Runs until it is to end; says why.
    fn until_the_end(&mut self, samples: Option<u64>) -> Result<&'static str, Error> {
        let mut taken = 0;
        while samples.is_none_or(|wanted| taken < wanted) {
            let (due, is_live, is_owner) = self.wait()?;
            if is_owner {
                self.look_for_owner(); // before all else: this is what listeners wait for
            }
            for event in self.clocks.step(&due.now, due.clock_set) {
                if let ("clock_step", Some(stepped_ms)) = (event.1.kind.as_str(), event.1.amount_ms)
                {
                    self.sampler.activity().clock_stepped(stepped_ms);
                }
                self.history.note(event);
            }
            if is_live {
                self.live.serve(due.now.time_ms);
            }
            if let Some(signal) = due.signal {
                return Ok(signal);
            }
            if due.samples > 0 {
                self.sample(&due)?;
                taken += 1;
            } else if due.look {
                self.sampler.look();
            }
        }
        Ok("all samples taken")
    }

    /// Waits; whether something came for [`Self::live`], and whether from the owner.
    fn wait(&mut self) -> Result<(Due, bool, bool), Error> {
        let mut sources = self.live.wait_on();
        let of_live = sources.len();
        for source in self.sampler.activity().wait_on() {
            sources.push((source, PollFlags::IN));
        }
        let due = self.ticker.wait_with(&sources);
        let due = due.map_err(|source| Error::Wait { source })?;
        let (live, owner) = due.ready.split_at(of_live);
        let (is_live, is_owner) = (live.contains(&true), owner.contains(&true));
        Ok((due, is_live, is_owner))
    }

    fn sample(&mut self, due: &Due) -> Result<(), Error> {
        let interval_ms = self.config.interval_ms();
        let last_due = std::mem::replace(&mut self.last_due, due.now);
        let missed = events::missed(due.samples, &last_due, &due.now, interval_ms);
        let Self {
            owner,
            live,
            history,
            ..
        } = self;
        let mut looked_us = monotonic_us();
        let sample = self.sampler.take(&mut |activity| {
            let now_us = monotonic_us();
            if now_us - looked_us >= LOOK_FOR_OWNER_EVERY_US {
                looked_us = now_us;
                if has_news(activity)
                    && let Some(sign) = activity.first_sign(Moment::now().time_ms)
                    && let Some(event) = welcome_back(activity, owner, live, sign)
                {
                    history.note(event);
                }
            }
        })?;
        let overload = events::overload(sample.moment.time_ms, &sample.row, interval_ms);
        let was_overloaded = std::mem::replace(&mut self.overloaded, overload.is_some());
        let overload = overload.filter(|_| !was_overloaded);
        let found = owner.sampled(&sample);
        for event in [missed, overload, found.event].into_iter().flatten() {
            history.note(event);
        }
        let row = gleaner_schemas::rows::SampleRow {
            interval_ms: found.interval_ms,
            ..sample.row.clone()
        };
        live.publish_sample(live::Sample {
            time_ms: sample.moment.time_ms,
            state: found.state,
            headroom_share: self.config.settings.headroom_share,
            row,
        });
        for message in found.messages {
            live.publish_owner(message);
        }
        history.write(self.config, &mut self.store, sample)?;
        if found.is_away {
            self.wait_for_owner();
        } else {
            self.sampler.activity().disarm();
        }
        Ok(())
    }

    fn wait_for_owner(&mut self) {
        match self.sampler.activity().arm(Moment::now().time_ms) {
            Ok(Some(sign)) => self.returned(sign),
            Ok(None) => {}
            Err(e) => {
                if !std::mem::replace(&mut self.said_blind, true) {
                    let why = std::io::Error::from(e);
                    say(&format!(
                        "the owner's return at a terminal is seen by samples only: inotify: {why}"
                    ));
                }
            }
        }
    }

    fn look_for_owner(&mut self) {
        if let Some(sign) = self.sampler.activity().first_sign(Moment::now().time_ms) {
            self.returned(sign);
        }
    }

    fn returned(&mut self, sign: Sign) {
        let activity = self.sampler.activity();
        if let Some(event) = welcome_back(activity, &mut self.owner, &mut self.live, sign) {
            self.write_now(event);
        }
    }

    /// Writes an event; with the next sample, where it cannot be written now.
    fn write_now(&mut self, event: Event) {
        if self
            .store
            .write_events(std::slice::from_ref(&event))
            .is_err()
        {
            self.history.note(event);
        }
    }
}

/// Tells of the owner's return, and waits for it no longer.
fn welcome_back(
    activity: &mut ActivityWatch,
    owner: &mut Owner,
    live: &mut Server,
    sign: Sign,
) -> Option<Event> {
    let returned = owner.returned(&Moment::now(), sign);
    let event = returned.map(|(message, event)| {
        live.publish_owner(message);
        event
    });
    activity.disarm();
    event
}

/// Whether there is something to read now.
fn has_news(activity: &ActivityWatch) -> bool {
    let sources = activity.wait_on();
    let to_poll = |&source| PollFd::from_borrowed_fd(source, PollFlags::IN);
    let mut sources: Vec<PollFd<'_>> = sources.iter().map(to_poll).collect();
    !sources.is_empty()
        && poll(&mut sources, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// The socket as configured; where it cannot be made, nobody can listen and tracing goes on.
fn listen(config: &Config) -> Server {
    let Some(path) = &config.socket else {
        return Server::default();
    };
    Server::open(path, config.interval_ms()).unwrap_or_else(|why| {
        let path = path.display();
        say(&format!(
            "nobody can listen at {path}: {why}; choose another place with --socket"
        ));
        Server::default()
    })
}

/// Says something to whoever started the agent, if they still read.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "gleaner-agent: {text}");
}

/// Takes one sample that is stored nowhere. CPU use is compared with the times in the captured tree
/// `before`, or with those of `settle` ago.
///
/// # Errors
/// When the kernel's files cannot be read at all.
pub fn sample_once(
    config: &Config,
    settle: Duration,
    before: Option<&Path>,
) -> Result<Sample, Error> {
    let key = FileIdKey::random().map_err(|source| Error::Read {
        path: "/dev/urandom".into(),
        source,
    })?;
    let mut sampler = Sampler::new(config.settings.clone(), key)?;
    match before {
        Some(proc_root) => sampler.prime_from(proc_root)?,
        None => std::thread::sleep(settle),
    }
    sampler.take(&mut |_| {})
}
