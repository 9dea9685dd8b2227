//! Sets up all parts of a collector, for `gleaner-collector run` or inside another program.

use crate::Error;
use crate::args::GlobalArgs;
use crate::config::{Certificates, Config};
use crate::hosts::Hosts;
use crate::http::{self, App};
use crate::journal::{self, Header, Journal};
use crate::peers::Peers;
use crate::publish::Publisher;
use crate::sealer::Sealer;
use crate::tables::TablePublisher;
use gleaner_daemon::listen::{
    Limits, Signals, allow_descriptors, follow_files, serve, until_ended,
};
use gleaner_trust::{ServerPaths, ServerTrust};
use std::fs::{self, File, TryLockError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

/// A running collector; it ends when dropped.
#[derive(Debug)]
pub struct Collector {
    /// Address for agents and readers, with TLS.
    pub tls: Option<SocketAddr>,
    /// Address for this machine's programs, without TLS.
    pub local: Option<SocketAddr>,
    sealer: Sealer,
    app: Arc<App>,
    runtime: Option<Runtime>,
    _lock: File,
}

/// Runs a collector until SIGTERM or SIGINT. On SIGHUP it reads the configuration again.
///
/// # Errors
/// The collector cannot start.
pub fn run(args: &GlobalArgs) -> Result<(), Error> {
    let config = &Config::resolve(args)?;
    allow_descriptors();
    let runtime = threads()?;
    let signals = {
        let _within = runtime.enter();
        Signals::take().map_err(Error::io("wait for", "signals"))?
    };
    let collector = Collector::start_on(runtime, config)?;
    let mut status = Vec::new();
    for (scheme, address) in [("https", collector.tls), ("http", collector.local)] {
        if let Some(address) = address {
            let listening = format!("listening on {scheme}://{address}");
            eprintln!("gleaner-collector: {listening}");
            status.push(listening);
        }
    }
    let Some(runtime) = &collector.runtime else {
        return Ok(()); // the collector has ended already
    };
    let status = status.join(", ");
    runtime.block_on(until_ended(signals, &status, || {
        reload(args, config, &collector)
    }));
    Ok(())
}

fn threads() -> Result<Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::io("start threads for", "the collector"))
}

/// Applies the present configuration, except for keys that need a restart.
fn reload(args: &GlobalArgs, config: &Config, collector: &Collector) {
    match Config::resolve(args) {
        Ok(next) => {
            let left_out = config.restart_keys(&next);
            collector.configure(next);
            eprintln!("gleaner-collector: the configuration was reloaded");
            if !left_out.is_empty() {
                let keys = left_out.join(", ");
                eprintln!("gleaner-collector: changes of {keys} take effect after a restart");
            }
        }
        Err(error) => {
            eprintln!("gleaner-collector: continues with its present settings: {error}");
        }
    }
}

impl Collector {
    /// Locks the data folder, and starts to listen.
    ///
    /// # Errors
    /// The collector cannot start.
    pub fn start(config: &Config) -> Result<Self, Error> {
        Self::start_on(threads()?, config)
    }

    fn start_on(runtime: Runtime, config: &Config) -> Result<Self, Error> {
        if config.listen.is_none() && config.local_listen.is_none() {
            return Err(Error::NoListener);
        }
        let lock = lock(&config.data_folder)?;
        let hosts = Arc::new(Hosts::open(&config.data_folder.join("hosts.json"))?);
        let journal = open_journal(config, &hosts)?;
        let name = config.seal.collector_name.as_deref();
        let publisher = config.publish.as_ref();
        let publisher = publisher.map(|to| Publisher::start(&config.dataset, name, to));
        let sealer = Sealer::start(
            config.dataset.clone(),
            journal.clone(),
            Arc::clone(&hosts),
            config.seal.clone(),
            publisher.transpose()?,
        )?;
        let tables = config.tables.as_ref();
        let tables = tables.map(|to| TablePublisher::start(&config.dataset, to));
        let app = App::new(config, hosts, journal, sealer.clone(), tables.transpose()?);
        let app = Arc::new(app);
        let (tls, local) = runtime.block_on(listen(config, Arc::clone(&app)))?;
        app.set_peers(Peers::start(&app.identity(), &config.peers)?);
        Ok(Self {
            tls,
            local,
            sealer,
            app,
            runtime: Some(runtime),
            _lock: lock,
        })
    }

    /// Applies the rules of sealing and retention, and the size limits of batches.
    fn configure(&self, config: Config) {
        self.app.set_batch_limits(config.batch);
        self.sealer.configure(config.seal);
    }

    /// Moves all batches acknowledged so far to the dataset, and waits until that is done.
    ///
    /// # Errors
    /// Reason why they could not be sealed.
    pub fn seal(&self) -> Result<(), String> {
        self.sealer.seal_now()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // Clients repeat requests that are cut off here; no acknowledged batch depends on these requests.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

/// Serves in the background, and returns the listeners' addresses: with TLS, and without.
async fn listen(
    config: &Config,
    app: Arc<App>,
) -> Result<(Option<SocketAddr>, Option<SocketAddr>), Error> {
    let router = http::router(Arc::clone(&app));
    let limits = Limits {
        connections: Arc::new(Semaphore::new(config.connections_limit)),
        shares: None,
        reader_timeout: config.reader_timeout,
    };
    let (mut tls, mut local) = (None, None);
    if let Some((address, certificates)) = &config.listen {
        let trust = trust(certificates)?;
        app.set_certificate(&trust);
        let (socket, bound) = bind(*address).await?;
        tls = Some(bound);
        let complain = |error: &gleaner_trust::TrustError| {
            eprintln!("gleaner-collector: continues with its present certificates: {error}");
        };
        tokio::spawn(follow_files(Arc::clone(&trust), |_| {}, complain));
        let server = Arc::clone(&app);
        let served = serve(socket, Some(trust), limits.clone(), server, router.clone());
        tokio::spawn(served);
    }
    if let Some(address) = config.local_listen {
        let (socket, bound) = bind(address).await?;
        local = Some(bound);
        tokio::spawn(serve(socket, None, limits, app, router));
    }
    Ok((tls, local))
}

/// Opens the journal, and learns the progress of each host from the entries of an earlier run.
fn open_journal(config: &Config, hosts: &Arc<Hosts>) -> Result<Journal, Error> {
    let folder = config.data_folder.join("journal");
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

/// Takes the lock of a collector's data folder. The lock is held until the process ends, however it ends.
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
        revocation_list: certificates.revocation_list.clone(),
    };
    Ok(ServerTrust::load_allowing_anonymous(&paths)?)
}

/// Binds an address, and returns it with the actual port. For port 0, the kernel chooses the port.
async fn bind(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { address, source };
    gleaner_daemon::listen::bind(address).await.map_err(failed)
}
