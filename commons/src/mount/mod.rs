//! Mounts: a catalog's folder as a read-only file system. [`run`] is `gleaner-commons mount`, which makes one
//! mount and returns when it is unmounted; the service makes several ([`MountedFolder`]). A service that gives up its
//! privileges mounts before ([`prepare`]), and a second process unmounts ([`Remover`]).

mod ahead;
mod error;
mod filesystem;
mod kernel;
mod prepared;
mod reads;
pub mod remover;
mod session;

pub use error::MountError;
pub use prepared::{MountUsers, PreparedMount, prepare};
pub use remover::Remover;
pub use session::{MountSettings, MountedFolder};

use crate::catalog::{Catalog, Hash};
use crate::source::{BlockSource, SourceAddress};
use crate::status::{self, MountStatus};
use crate::store::{BlockStore, StoreSettings};
use gleaner_daemon::notify::ServiceManager;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Number of threads that fetch blocks from the source. They mostly wait.
pub const FETCHERS: usize = 32;

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
    check_mount_point(&options.mount_point)?;
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
    let store = BlockStore::start(Box::new(source), None, settings).map_err(MountError::System)?;
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

/// Checks that `point` is a folder, and no mount that a killed daemon left.
///
/// # Errors
/// [`MountError::Point`], [`MountError::Stale`].
pub fn check_mount_point(point: &Path) -> Result<(), MountError> {
    kernel::check_mount_point(point)
}

fn serve(
    options: &MountOptions,
    catalog: Arc<Catalog>,
    store: Arc<BlockStore>,
    end: &mut UnixStream,
    mut on_end: UnixStream,
) -> Result<(), MountError> {
    let settings = MountSettings {
        point: &options.mount_point,
        kernel_cache: options.kernel_cache,
        allows_others: options.allows_others,
    };
    let ended = move || {
        let _ = on_end.write_all(&[0]); // the main thread may have ended
    };
    let mounted = MountedFolder::start(0, &settings, catalog, store, ended)?;
    let service = ServiceManager::of_this_process();
    println!("mounted {}", mounted.point().display());
    service.ready("serves its mount");
    // A signal, or the end of the session, writes a byte.
    let _ = end.read(&mut [0]);
    service.stopping("unmounts");
    mounted.end()
}
