//! `gleaner-commons mount`: shows a catalog's folder as a read-only file system until it is unmounted.

mod ahead;
mod error;
mod filesystem;
mod kernel;
mod reads;

pub use error::MountError;

use crate::catalog::{Catalog, Hash};
use crate::source::{BlockSource, SourceAddress};
use crate::status::{self, MountStatus};
use crate::store::{BlockStore, StoreSettings};
use filesystem::FileSystem;
use fuser::{MountOption, Session, SessionACL};
use gleaner_daemon::notify::ServiceManager;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Number of threads that fetch blocks from the source. They mostly wait.
const FETCHERS: usize = 32;
/// Maximum number of threads that take the kernel's requests.
const MOST_SESSION_THREADS: usize = 4;

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// Path of the catalog.
    pub catalog: PathBuf,
    /// Hash that the catalog must have.
    pub pinned: Option<Hash>,
    /// Folder to mount at.
    pub mount_point: PathBuf,
    /// Source of the files.
    pub source: SourceAddress,
    /// Maximum bytes of blocks in local memory.
    pub local_bytes: u64,
    /// True if the kernel caches what was read.
    pub kernel_cache: bool,
    /// Time after which a read fails.
    pub source_timeout: Duration,
    /// True if all users may use the mount, within the files' permissions.
    pub allows_others: bool,
    /// Socket for `gleaner-commons status`.
    pub socket: PathBuf,
}

/// Mounts, and returns once the file system is unmounted: after SIGTERM, SIGINT or SIGHUP (a closed terminal),
/// or by umount(8).
///
/// # Errors
/// [`MountError`]
pub fn run(options: &MountOptions) -> Result<(), MountError> {
    let (mut end, on_signal) = UnixStream::pair().map_err(MountError::System)?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        let pipe = on_signal.try_clone().map_err(MountError::System)?;
        signal_hook::low_level::pipe::register(signal, pipe).map_err(MountError::System)?;
    }
    let catalog = Arc::new(Catalog::open(&options.catalog, options.pinned)?);
    kernel::check_mount_point(&options.mount_point)?;
    let source = BlockSource::open(
        &options.source,
        Arc::clone(&catalog),
        options.source_timeout,
    )?;
    let settings = StoreSettings {
        local_bytes: options.local_bytes,
        fetchers: FETCHERS,
        timeout: options.source_timeout,
    };
    let store = BlockStore::start(Box::new(source), settings).map_err(MountError::System)?;
    let store = Arc::new(store);
    listen(options, &catalog, &store)?;
    let mounted = serve(options, catalog, store, &mut end, on_signal);
    let _ = fs::remove_file(&options.socket); // the file system is unmounted; the socket is of no more use
    mounted
}

fn listen(
    options: &MountOptions,
    catalog: &Arc<Catalog>,
    store: &Arc<BlockStore>,
) -> Result<(), MountError> {
    let failed = |source| MountError::Socket {
        path: options.socket.clone(),
        source,
    };
    if let Some(folder) = options.socket.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let (catalog, store, options) = (Arc::clone(catalog), Arc::clone(store), options.clone());
    let socket = options.socket.clone();
    let current = move || MountStatus {
        catalog: catalog.name(),
        catalog_path: catalog.path().display().to_string(),
        mount_point: options.mount_point.display().to_string(),
        source: options.source.to_string(),
        kernel_cache: options.kernel_cache,
        files_count: catalog.totals().files,
        files_bytes: catalog.totals().bytes,
        counters: store.counters(),
    };
    status::listen(&socket, current).map_err(failed)
}

fn serve(
    options: &MountOptions,
    catalog: Arc<Catalog>,
    store: Arc<BlockStore>,
    end: &mut UnixStream,
    mut on_end: UnixStream,
) -> Result<(), MountError> {
    let point = fs::canonicalize(&options.mount_point).map_err(MountError::System)?;
    let failed = |source: io::Error| MountError::Mount {
        point: point.clone(),
        source,
    };
    let files = FileSystem::new(catalog, store, options.kernel_cache);
    let mut session = Session::new(files, &point, &config(options)).map_err(failed)?;
    let mut unmounter = session.unmount_callable();
    let serving = thread::Builder::new().name("session".to_owned());
    let serving = serving.spawn(move || {
        let ended = session.run();
        let _ = on_end.write_all(&[0]); // the main thread may have ended
        ended
    });
    let serving = serving.map_err(MountError::System)?;
    if options.kernel_cache
        && let Err(e) = kernel::enlarge_readahead(&point)
    {
        eprintln!(
            "gleaner-commons: the kernel's readahead stays small ({e}): large reads are slower; root can change it"
        );
    }
    let service = ServiceManager::of_this_process();
    println!("mounted {}", point.display());
    service.ready("serves its mount");
    // A signal, or the end of the session, writes a byte.
    let _ = end.read(&mut [0]);
    service.stopping("unmounts");
    if !serving.is_finished() && unmounter.unmount().is_err() {
        kernel::detach(&point).map_err(|source| MountError::Unmount {
            point: point.clone(),
            source,
        })?;
        eprintln!(
            "gleaner-commons: {} was in use: programs that have files open there get errors from now on",
            point.display()
        );
        return Ok(()); // the session ends with the process
    }
    match serving.join() {
        Ok(ended) => ended.map_err(failed),
        Err(_) => Err(MountError::Panicked),
    }
}

fn config(options: &MountOptions) -> fuser::Config {
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::RO,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
        MountOption::DefaultPermissions,
        MountOption::FSName("gleaner-commons".to_owned()),
    ];
    config.acl = if options.allows_others {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    config.n_threads = Some(cpus.clamp(1, MOST_SESSION_THREADS));
    config
}
