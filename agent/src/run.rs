//! Samples at each interval until a signal comes.

use crate::Error;
use crate::config::{Config, Privacy};
use crate::identity::FileIdKey;
use crate::interval;
use crate::recorder::{Recorder, say};
use crate::sample::Sample;
use crate::sampler::Sampler;
use crate::store::beside;
use crate::ticker::{Ticker, Wake};
use signal_hook::consts::SIGXFSZ;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Traces this host: the first sample comes one interval from now. Ends after `samples` of them were
/// stored, or with the sample in hand when SIGINT or SIGTERM comes.
///
/// # Errors
/// When the database is not ours to write or the kernel's files cannot be read at all. A disk that is full
/// or read-only is waited for.
pub fn run(config: &Config, samples: Option<u64>) -> Result<(), Error> {
    let wait = |source| Error::Wait { source };
    let mut ticker = Ticker::new(config.interval, config.mem_available_interval).map_err(wait)?;
    heed_file_size_limit().map_err(wait)?;
    let Some((mut recorder, mut sampler)) = begin(config, &mut ticker)? else {
        return Ok(());
    };
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
    let mut stored = 0;
    while samples.is_none_or(|wanted| stored < wanted) {
        match ticker.wait().map_err(wait)? {
            Wake::Look => sampler.look(),
            Wake::Sample => stored += u64::from(recorder.sample(sampler.take()?)?),
            Wake::Signal => break,
        }
    }
    Ok(())
}

/// Opens the trace; while its disk is full or read-only, tries again at each interval. `None` when a
/// signal came first.
fn begin<'a>(
    config: &'a Config,
    ticker: &mut Ticker,
) -> Result<Option<(Recorder<'a>, Sampler)>, Error> {
    let mut has_said = false;
    loop {
        match try_begin(config) {
            Err(error) if error.may_pass() => {
                if !std::mem::replace(&mut has_said, true) {
                    say(&format!("{error}; waiting until it can be"));
                }
            }
            begun => return begun.map(Some),
        }
        loop {
            match ticker.wait().map_err(|source| Error::Wait { source })? {
                Wake::Look => {}
                Wake::Sample => break,
                Wake::Signal => return Ok(None),
            }
        }
    }
}

fn try_begin(config: &Config) -> Result<(Recorder<'_>, Sampler), Error> {
    let recorder = Recorder::open(config)?;
    let key_file = beside(&config.database, "-key");
    let key = FileIdKey::load_or_create(&key_file).map_err(|source| Error::Write {
        path: key_file,
        source,
    })?;
    let sampler = Sampler::new(config.settings.clone(), key)?;
    Ok((recorder, sampler))
}

/// A write beyond RLIMIT_FSIZE shall fail, like one on a full disk: the signal's default ends the process.
fn heed_file_size_limit() -> std::io::Result<()> {
    let unused = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(SIGXFSZ, unused).map(|_| ())
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
