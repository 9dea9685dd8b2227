//! `gleaner-clerk run`: serves the device to NBD clients of this machine until the clerk is ended.

mod config;
mod itself;
mod leases;
mod status;

pub(crate) use config::{Config, DAEMON};
pub(crate) use status::ask as ask_status;

use crate::args::RunArgs;
use anyhow::Context;
use gleaner_daemon::notify::ServiceManager;
use gleaner_paging::borrow::{Recruiters, Settings};
use gleaner_paging::device::run::{Options, RunningDevice};
use gleaner_trust::{ClientPaths, ClientTrust, hex, random};
use leases::Leases;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Timeout of a recruiter, which answers within milliseconds, or within seconds if it asks hosts.
const PATIENCE: Duration = Duration::from_secs(15);

/// Runs until SIGTERM or SIGINT. Then the contents are lost, so clients should disconnect first.
///
/// # Errors
/// The device cannot start.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let config = Config::load(args)?.values;
    let (mut end, on_signal) = UnixStream::pair().context("make a pipe")?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, on_signal.try_clone()?)?;
    }
    if let Some(folder) = &config.disk_folder {
        fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
    }
    for socket in [&config.listen, &config.status_socket] {
        if let Some(folder) = socket.parent() {
            fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        }
    }
    let borrower = borrower(&config)?;
    let (told, hears) = channel();
    let options = Options {
        device: config.device,
        disk_folder: config.disk_folder.clone(),
        socket: config.listen.clone(),
        refraction_period: config.refraction_period,
    };
    let running = RunningDevice::start(&options, &random::bytes()?, told)?;
    if config.lock_memory {
        // Without the needed privilege, the clerk runs without this protection. A host that swaps through the
        // clerk should grant the privilege.
        for note in itself::apply_process_settings() {
            eprintln!("gleaner-clerk: {note}");
        }
    }
    for source in config.servers.clone() {
        running.handle.join(source);
    }
    status::listen(&config.status_socket, running.handle.clone())
        .with_context(|| format!("listen at {}", config.status_socket.display()))?;
    let session = hex::encode(&random::bytes::<8>()?);
    let keeper = borrower.map(|(recruiters, trust)| {
        let handle = running.handle.clone();
        let device = (config.device.pages, config.device.copies);
        let borrowing = config.borrowing.clone();
        let leases = Leases::new(
            recruiters,
            trust,
            borrowing,
            device,
            config.refraction_period,
            handle,
            session,
        );
        std::thread::spawn(move || leases.keep(&hears))
    });
    println!("nbd+unix:///?socket={}", config.listen.display());
    let service = ServiceManager::of_this_process();
    service.ready("serves its device");
    // Each signal writes one byte.
    let _ = end.read(&mut [0]);
    service.stopping("gives its leases back");
    running.handle.end();
    running.join();
    for socket in [&config.listen, &config.status_socket] {
        let _ = fs::remove_file(socket);
    }
    if let Some(keeper) = keeper {
        let _ = keeper.join();
    }
    Ok(())
}

type Borrower = (Recruiters, Option<std::sync::Arc<ClientTrust>>);

fn borrower(config: &Config) -> anyhow::Result<Option<Borrower>> {
    let borrowing = &config.borrowing;
    if borrowing.urls.is_empty() {
        return Ok(None);
    }
    let trust = match &borrowing.certificate {
        None => None,
        Some((certificate, key, authority)) => Some(ClientTrust::load(&ClientPaths {
            certificate: certificate.clone(),
            key: key.clone(),
            authority: authority.clone(),
        })?),
    };
    let recruiters = Recruiters::new(Settings {
        urls: borrowing.urls.clone(),
        trust: trust.clone(),
        client: borrowing.client_name.clone(),
        patience: PATIENCE,
    })?;
    Ok(Some((recruiters, trust)))
}
