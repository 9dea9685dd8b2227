//! Sets up the daemon's parts, and runs the core.

use crate::args::GlobalArgs;
use crate::config::Config;
use crate::core::{Core, CoreEnds, CoreMessage, SlowCommand};
use crate::entrance::Entrance;
use crate::reload::Reloader;
use crate::standalone::StandaloneLease;
use crate::{itself, link, pages};
use anyhow::Context;
use gleaner_daemon::notify::ServiceManager;
use gleaner_paging::nbd::Load;
use gleaner_paging::store::Store;
use gleaner_trust::{ClientPaths, random};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::iter;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Options of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasureOptions {
    pub(crate) bytes: u64,
    pub(crate) is_filled: bool,
}

/// Lends until SIGTERM or SIGINT.
///
/// # Errors
/// The daemon cannot start.
pub(crate) fn run(args: GlobalArgs, measured: Option<MeasureOptions>) -> anyhow::Result<()> {
    let mut config = Config::load(&args)?.values;
    let (end, on_signal) = UnixStream::pair().context("make a pipe")?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, on_signal.try_clone()?)?;
    }
    let (hangups, on_hangup) = UnixStream::pair().context("make a pipe")?;
    signal_hook::low_level::pipe::register(SIGHUP, on_hangup)?;
    let manager = Arc::new(ServiceManager::of_this_process());
    // The number has 53 bits, which every JSON reader represents exactly.
    let generation = u64::from_le_bytes(random::bytes()?) >> 11;
    let store = Arc::new(Store::new(physical_bytes(), generation, config.store)?);
    // Other threads start only after this call, which locks the process's memory, so that theirs is locked, too.
    for note in itself::apply_process_settings(&store) {
        eprintln!("gleaner-memoryd: {note}");
    }
    if config.store.wants_locked && !store.is_locked() {
        eprintln!("gleaner-memoryd: guests' pages are not locked: they could be swapped out");
    }
    let standalone = match measured {
        Some(measured) => {
            StandaloneLease::adapt(&mut config.settings);
            Some(StandaloneLease::new(measured.bytes, measured.is_filled)?)
        }
        None => None,
    };
    let is_measured = standalone.is_some();
    let load = Arc::new(Load::default());
    let (core, ends) = Core::new(
        &config,
        store.clone(),
        generation,
        end,
        standalone,
        load.clone(),
        Arc::clone(&manager),
    )?;
    let CoreEnds {
        links,
        looks,
        kept,
        inbox,
    } = ends;
    let mut links_as = link_settings(&config);
    let entrance = Arc::new(Entrance::open(
        &links_as.certificates,
        &config.state_folder,
        store.clone(),
        inbox.clone(),
    ));
    let reload = Reloader {
        args,
        config: config.clone(),
        is_measured,
        inbox: inbox.clone(),
        manager,
        end: on_signal,
    };
    let reloading = thread::Builder::new().name("reload".to_owned());
    reloading.spawn(move || reload.follow(hangups))?;
    let guests = store.addresses();
    thread::Builder::new()
        .name("look".to_owned())
        .spawn(move || {
            while let Ok(first) = looks.recv() {
                // If several commands have arrived, one measurement is enough for all, and only the newest
                // wishes are written.
                let all: Vec<SlowCommand> = iter::once(first).chain(looks.try_iter()).collect();
                if let Some(wishes) = all.iter().rev().find_map(|look| look.wishes.as_ref())
                    && let Err(e) = kept.write(wishes)
                {
                    eprintln!(
                        "gleaner-memoryd: the owner's wish holds until the daemon ends, no longer: {e}"
                    );
                }
                let memory = itself::memory(&guests).unwrap_or_default();
                for SlowCommand { connection, .. } in all {
                    if !inbox.tell(CoreMessage::Looked { connection, memory }) {
                        return;
                    }
                }
            }
        })?;
    if let Some(note) = config.serving.note() {
        eprintln!("gleaner-memoryd: {note}");
    }
    let host_id = config.recruiters.host_id.as_deref().unwrap_or_default();
    links_as.pages_socket =
        pages::start_own(&config.serving, host_id, store.clone(), load.clone())?;
    links_as.pages = pages::start(&config.serving, entrance.clone(), store, load)?;
    let links = link::start(&links_as, links, &entrance)?;
    // This comes last, so that only the core's thread, and threads that help it to give memory back, have
    // this priority.
    if let Err(e) = itself::raise_priority() {
        eprintln!(
            "gleaner-memoryd: no real-time priority ({e}): on a busy host memory is returned later; give it CAP_SYS_NICE"
        );
    }
    core.run()?;
    if let Some(path) = &config.serving.pages_socket {
        let _ = std::fs::remove_file(path); // nobody listens there any more
    }
    // The links close their connections. All memory is given back by now.
    let _ = links.join();
    Ok(())
}

fn link_settings(config: &Config) -> link::Settings {
    let recruiters = &config.recruiters;
    link::Settings {
        urls: recruiters.urls.clone(),
        host_id: recruiters.host_id.clone(),
        certificates: ClientPaths {
            certificate: recruiters.certificate.clone(),
            key: recruiters.key.clone(),
            authority: recruiters.authority.clone(),
        },
        announce_every: Duration::from_millis(config.announce_every_ms.unsigned_abs()),
        pages: None,
        pages_socket: None,
    }
}

fn physical_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    // The fields' width depends on the machine.
    #[allow(clippy::useless_conversion)]
    let bytes = u64::from(info.totalram).saturating_mul(u64::from(info.mem_unit));
    bytes
}
