//! Samples at each interval until a signal comes.

use crate::Error;
use crate::changes::FileChanges;
use crate::clock::Moment;
use crate::config::{Config, Privacy};
use crate::gap;
use crate::identity::{self, FileIdKey};
use crate::interval;
use crate::sample::Sample;
use crate::sampler::Sampler;
use crate::store::{Record, Store, beside};
use gleaner_schemas::rows::{GapRow, HostRow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};
use rustix::time::{timerfd_create, timerfd_settime};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Traces this host: the first sample comes one interval from now. Ends after `samples` of them, or
/// with the sample in hand when SIGINT or SIGTERM comes.
///
/// # Errors
/// When the database cannot be written or the kernel's files not be read at all.
pub fn run(config: &Config, samples: Option<u64>) -> Result<(), Error> {
    let mut ticker = Ticker::new(config.interval).map_err(|source| Error::Wait { source })?;
    let mut store = Store::open(
        &config.database,
        host_id().as_deref(),
        Moment::now().time_ms,
    )?;
    let key_file = beside(&config.database, "-key");
    let key = FileIdKey::load_or_create(&key_file).map_err(|source| Error::Write {
        path: key_file,
        source,
    })?;
    let mut sampler = Sampler::new(config.settings.clone(), key)?;
    let mut history = History::default();
    eprintln!(
        "gleaner-agent: sampling every {} into {} (paths {}); end with Ctrl-C",
        interval::format(config.interval),
        config.database.display(),
        if config.privacy == Privacy::Plain {
            "in plain"
        } else {
            "hashed"
        },
    );
    let mut taken = 0;
    while samples.is_none_or(|wanted| taken < wanted) {
        if !ticker.wait().map_err(|source| Error::Wait { source })? {
            break;
        }
        let sample = sampler.take()?;
        history.write(config, &mut store, sample)?;
        taken += 1;
    }
    Ok(())
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
    sampler.take()
}

/// What is known of the samples before.
#[derive(Default)]
struct History {
    last: Option<Moment>,
    files: FileChanges,
}

impl History {
    fn write(
        &mut self,
        config: &Config,
        store: &mut Store,
        mut sample: Sample,
    ) -> Result<(), Error> {
        let now = sample.moment;
        let gap = match self.last {
            Some(before) => gap::between(&before, &now, config.interval_ms())
                .map(|cause| gap_row(before.time_ms, &now, cause)),
            None => store.last_sample()?.map(|last| {
                let cause = gap::at_start(&last, &now, sample.row.boot_id.as_deref());
                gap_row(last.time_ms, &now, cause)
            }),
        };
        let follows = self.last.filter(|_| gap.is_none());
        let begins_anew = follows.is_none_or(|before| before.utc_day() != now.utc_day());
        sample.row.interval_ms = follows.map(|before| now.boottime_ms - before.boottime_ms);
        sample.row.files_whole = begins_anew;
        if config.privacy == Privacy::Hashed {
            for file in &mut sample.files {
                file.path = None;
            }
        }
        let host = begins_anew.then(|| host_row(config, sample.row.physical_bytes));
        store.write(&Record {
            time_ms: now.time_ms,
            gap: gap.as_ref(),
            host: host.as_ref(),
            sample: &sample.row,
            processes: &sample.processes,
            files: &self.files.step(sample.files, begins_anew),
            activity: &sample.activity,
            absences: &sample.absences.rows(),
        })?;
        self.last = Some(now);
        Ok(())
    }
}

fn gap_row(from_time_ms: i64, now: &Moment, cause: gap::Cause) -> GapRow {
    GapRow {
        from_time_ms,
        to_time_ms: now.time_ms,
        cause: cause.as_str().to_owned(),
    }
}

fn host_row(config: &Config, physical_bytes: i64) -> HostRow {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    HostRow {
        host_name: text(names.nodename()),
        kernel_release: text(names.release()),
        architecture: text(names.machine()),
        cpus_count: std::thread::available_parallelism().map_or(0, |n| n.get() as i64),
        physical_bytes,
        page_size_bytes: config.settings.units.page_size_bytes as i64,
        sample_interval_ms: config.interval_ms(),
        headroom_share: config.settings.headroom_share,
        agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        privacy: config.privacy.as_str().to_owned(),
    }
}

/// The host's name; `None` without a machine id, when the database keeps a random one.
fn host_id() -> Option<String> {
    let machine_id = std::fs::read_to_string("/etc/machine-id").ok()?;
    (!machine_id.trim().is_empty()).then(|| identity::host_id(&machine_id))
}

/// Wakes at each interval of CLOCK_BOOTTIME, so that nothing drifts and a host that wakes from sleep
/// is sampled at once, and at a signal.
struct Ticker {
    timer: OwnedFd,
    signals: UnixStream,
}

impl Ticker {
    fn new(interval: Duration) -> std::io::Result<Self> {
        let (signals, sender) = UnixStream::pair()?;
        for signal in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::CLOEXEC)?;
        let length = Timespec::try_from(interval).map_err(std::io::Error::other)?;
        let spec = Itimerspec {
            it_interval: length,
            it_value: length,
        };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &spec)?;
        Ok(Self { timer, signals })
    }

    /// Waits for the next interval; false when a signal came.
    fn wait(&mut self) -> std::io::Result<bool> {
        let mut sources = [
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.timer, PollFlags::IN),
        ];
        loop {
            match poll(&mut sources, None) {
                Ok(_) if !sources[0].revents().is_empty() => return Ok(false),
                Ok(_) => {
                    let mut expirations = [0u8; 8];
                    rustix::io::read(&self.timer, &mut expirations)?; // several at once after a sleep
                    return Ok(true);
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }
}
