//! `gleaner-collector run`: everything put together, until it is interrupted.

use crate::Error;
use crate::config::{Certificates, Config};
use crate::hosts::Hosts;
use crate::http::{self, App};
use crate::journal::{self, Header, Journal};
use crate::sealer::Sealer;
use gleaner_trust::{ServerPaths, ServerTrust};
use std::fs::{self, File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// How often certificates and revocations are looked at.
const LOOK_AT_FILES: Duration = Duration::from_secs(5);

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// Why it cannot start.
pub fn run(config: &Config) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::io("start threads for", "the collector"))?;
    let served = runtime.block_on(serve(config));
    // What is still being answered is sent again; nothing acknowledged depends on it.
    runtime.shutdown_timeout(Duration::from_secs(5));
    served
}

async fn serve(config: &Config) -> Result<(), Error> {
    let _lock = lock(&config.data)?;
    let hosts = Arc::new(Hosts::open(&config.data.join("hosts.json"))?);
    let journal = open_journal(config, &hosts)?;
    let sealer = Sealer::start(
        config.dataset.clone(),
        journal.clone(),
        Arc::clone(&hosts),
        config.seal,
    )?;
    let app = Arc::new(App::new(config, hosts, journal, sealer));
    let router = http::router(Arc::clone(&app));
    if config.listen.is_none() && config.local.is_none() {
        return Err(Error::NoListener);
    }
    if let Some((address, certificates)) = &config.listen {
        let trust = trust(certificates)?;
        app.shows(&trust);
        let socket = bind(*address, "https").await?;
        tokio::spawn(look_at_files(Arc::clone(&trust)));
        tokio::spawn(http::serve(
            socket,
            Some(trust),
            Arc::clone(&app),
            router.clone(),
        ));
    }
    if let Some(address) = config.local {
        let socket = bind(address, "http").await?;
        tokio::spawn(http::serve(socket, None, Arc::clone(&app), router));
    }
    interrupted().await
}

/// Opens the journal, and learns from what an earlier run left there how far each host has come.
fn open_journal(config: &Config, hosts: &Arc<Hosts>) -> Result<Journal, Error> {
    let folder = config.data.join("journal");
    let told = Arc::clone(hosts);
    let durable = move |headers: &[Header]| headers.iter().for_each(|header| told.durable(header));
    let journal = Journal::open(&folder, config.journal, Box::new(durable))?;
    for &number in journal.closed().keys() {
        let contents = journal::read(&folder, number)?;
        contents
            .entries
            .iter()
            .for_each(|entry| hosts.durable(&entry.header));
    }
    Ok(journal)
}

/// One collector a folder: held until the process ends, however it ends.
fn lock(data: &Path) -> Result<File, Error> {
    fs::create_dir_all(data).map_err(Error::io("create", data))?;
    let path = data.join("lock");
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    let file = file.map_err(Error::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse {
            path: data.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(Error::io("lock", path)(source)),
    }
}

fn trust(certificates: &Certificates) -> Result<Arc<ServerTrust>, Error> {
    let paths = ServerPaths {
        certificate: certificates.certificate.clone(),
        key: certificates.key.clone(),
        authority: certificates.authority.clone(),
        revoked: certificates.revoked.clone(),
    };
    Ok(ServerTrust::load_allowing_anonymous(&paths)?)
}

/// Certificates rotate and are revoked without a restart.
async fn look_at_files(trust: Arc<ServerTrust>) {
    loop {
        tokio::time::sleep(LOOK_AT_FILES).await;
        if let Err(error) = trust.reload_if_changed() {
            eprintln!("gleaner-collector: goes on with the certificates it has: {error}");
        }
    }
}

async fn bind(address: SocketAddr, scheme: &str) -> Result<TcpListener, Error> {
    let failed = |source| Error::Listen { address, source };
    let socket = TcpListener::bind(address).await.map_err(failed)?;
    // The port that was given, where 0 asked for any.
    let bound = socket.local_addr().map_err(failed)?;
    eprintln!("gleaner-collector: listening on {scheme}://{bound}");
    Ok(socket)
}

async fn interrupted() -> Result<(), Error> {
    let listen = |kind| signal(kind).map_err(Error::io("wait for", "signals"));
    let mut terminated = listen(SignalKind::terminate())?;
    let mut interrupted = listen(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    Ok(())
}
