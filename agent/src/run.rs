//! Samples at each interval until a signal comes.

use crate::Error;
use crate::clock::Moment;
use crate::config::{Config, Privacy};
use crate::history::History;
use crate::host;
use crate::identity::FileIdKey;
use crate::interval;
use crate::retention::Retention;
use crate::sample::Sample;
use crate::sampler::Sampler;
use crate::store::{Store, beside};
use crate::ticker::{Ticker, Wake};
use std::path::Path;
use std::time::Duration;

/// Traces this host: the first sample comes one interval from now. Ends after `samples` of them, or
/// with the sample in hand when SIGINT or SIGTERM comes.
///
/// # Errors
/// When the database cannot be written or the kernel's files not be read at all.
pub fn run(config: &Config, samples: Option<u64>) -> Result<(), Error> {
    let mut ticker = Ticker::new(config.interval, config.mem_available_interval)
        .map_err(|source| Error::Wait { source })?;
    let mut store = Store::open(
        &config.database,
        host::id().as_deref(),
        Moment::now().time_ms,
    )?;
    let key_file = beside(&config.database, "-key");
    let key = FileIdKey::load_or_create(&key_file).map_err(|source| Error::Write {
        path: key_file,
        source,
    })?;
    let mut sampler = Sampler::new(config.settings.clone(), key)?;
    let mut history = History::default();
    let mut retention = Retention::new(config.limits);
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
        match ticker.wait().map_err(|source| Error::Wait { source })? {
            Wake::Look => {
                sampler.look();
                continue;
            }
            Wake::Sample => {}
            Wake::Signal => break,
        }
        let sample = sampler.take()?;
        history.write(config, &mut store, sample)?;
        store.retain(&mut retention, &Moment::now())?;
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
