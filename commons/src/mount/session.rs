//! Mount of a catalog: a session with the kernel, in threads of its own.

use super::filesystem::FileSystem;
use super::prepared::PreparedMount;
use super::{MountError, kernel};
use crate::catalog::Catalog;
use crate::store::BlockStore;
use fuser::{MountOption, Session, SessionACL, SessionUnmounter};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Maximum number of threads that take the kernel's requests.
const MOST_SESSION_THREADS: usize = 4;

/// Settings of a mount.
#[derive(Clone, Copy, Debug)]
pub struct MountSettings<'a> {
    /// Folder to mount at.
    pub point: &'a Path,
    /// True if the kernel caches what was read.
    pub kernel_cache: bool,
    /// True if all users may use the mount, within the files' permissions.
    pub allows_others: bool,
}

/// A mounted catalog. [`Self::end`] unmounts it.
pub struct MountedFolder {
    point: PathBuf,
    /// Absent if a [`super::Remover`] unmounts.
    unmounter: Option<SessionUnmounter>,
    serving: JoinHandle<io::Result<()>>,
}

impl MountedFolder {
    /// Mounts a catalog, whose blocks `store` fetches as those of mount number `mount`. `ended` is called when
    /// the file system is unmounted, whoever does it.
    ///
    /// # Errors
    /// [`MountError::Mount`], [`MountError::System`].
    pub fn start(
        mount: usize,
        settings: &MountSettings<'_>,
        catalog: Arc<Catalog>,
        store: Arc<BlockStore>,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, MountError> {
        let point = fs::canonicalize(settings.point).map_err(MountError::System)?;
        let failed = |source: io::Error| MountError::Mount {
            point: point.clone(),
            source,
        };
        let files = FileSystem::new(mount, catalog, store, settings.kernel_cache);
        let mut session = Session::new(files, &point, &config(settings)).map_err(failed)?;
        let unmounter = Some(session.unmount_callable());
        let setting = || kernel::device(&point).and_then(kernel::readahead);
        let setting = settings.kernel_cache.then(setting);
        Self::serve(point, session, unmounter, setting, ended)
    }

    /// Serves a prepared mount, as [`Self::start`] does. Its folder is that of `prepared`.
    ///
    /// # Errors
    /// [`MountError::Mount`], [`MountError::System`].
    pub fn start_prepared(
        mount: usize,
        prepared: PreparedMount,
        settings: &MountSettings<'_>,
        catalog: Arc<Catalog>,
        store: Arc<BlockStore>,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, MountError> {
        let PreparedMount {
            point,
            device,
            readahead,
        } = prepared;
        let files = FileSystem::new(mount, catalog, store, settings.kernel_cache);
        let config = config(settings);
        let session = Session::from_fd(files, device, config.acl, config);
        let session = session.map_err(|source| MountError::Mount {
            point: point.clone(),
            source,
        })?;
        let setting = settings.kernel_cache.then_some(readahead);
        Self::serve(point, session, None, setting, ended)
    }

    /// Serves the kernel's requests in threads. `readahead` is the kernel's setting to enlarge, if any.
    fn serve(
        point: PathBuf,
        session: Session<FileSystem>,
        unmounter: Option<SessionUnmounter>,
        readahead: Option<io::Result<File>>,
        ended: impl FnOnce() + Send + 'static,
    ) -> Result<Self, MountError> {
        let serving = thread::Builder::new().name("session".to_owned());
        let serving = serving.spawn(move || {
            let result = session.run();
            ended();
            result
        });
        let serving = serving.map_err(MountError::System)?;
        if let Some(setting) = readahead {
            kernel::enlarge_readahead(setting);
        }
        Ok(Self {
            point,
            unmounter,
            serving,
        })
    }

    /// Folder that it is mounted at, without symbolic links.
    #[must_use]
    pub fn point(&self) -> &Path {
        &self.point
    }

    /// Unmounts the file system, unless it is unmounted already. If a program has a file open there, the mount
    /// is removed from the tree of folders, and the session ends with the process. A prepared mount was unmounted
    /// by its [`super::Remover`] before.
    ///
    /// # Errors
    /// [`MountError::Unmount`], [`MountError::Mount`], [`MountError::Panicked`].
    pub fn end(mut self) -> Result<(), MountError> {
        let point = &self.point;
        let Some(unmounter) = &mut self.unmounter else {
            return Ok(()); // the session ends with the process
        };
        if !self.serving.is_finished() && unmounter.unmount().is_err() {
            kernel::unmount(point).map_err(|source| MountError::Unmount {
                point: point.clone(),
                source,
            })?;
            return Ok(()); // the session ends with the process
        }
        match self.serving.join() {
            Ok(ended) => ended.map_err(|source| MountError::Mount {
                point: point.clone(),
                source,
            }),
            Err(_) => Err(MountError::Panicked),
        }
    }
}

fn config(settings: &MountSettings<'_>) -> fuser::Config {
    let mut config = fuser::Config::default();
    config.mount_options = vec![
        MountOption::RO,
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
        MountOption::DefaultPermissions,
        MountOption::FSName("gleaner-commons".to_owned()),
    ];
    config.acl = if settings.allows_others {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    config.n_threads = Some(cpus.clamp(1, MOST_SESSION_THREADS));
    config
}
