//! The export of an NBD server as a file: `attach` starts this program a second time, which mounts a folder with the
//! file through FUSE, until somebody unmounts it.
//!
//! Two threads take a request from the kernel to the server and its answer back: one takes the kernel's requests and
//! sends them, the other one receives the answers.

mod connection;
mod file_system;

use connection::Connection;
use file_system::ExportFileSystem;
use fuser::{Config, MountOption, Session};
use gleaner_paging::nbd::client::{ConnectError, Server, connect};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Name of the file in the mounted folder.
pub(crate) const FILE: &str = "disk";
/// Time for connecting to the server.
const TO_CONNECT: Duration = Duration::from_secs(10);

/// Reason why an export is not mounted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ExportFileError {
    /// No connection to the server.
    #[error("{socket}")]
    Connect {
        /// Socket of the server.
        socket: PathBuf,
        /// Reason of the failure.
        source: ConnectError,
    },
    /// The folder cannot be mounted, or the kernel's requests cannot be taken.
    #[error("mount {point}")]
    Mount {
        /// Folder to mount.
        point: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The kernel refuses a resource.
    #[error("start a thread")]
    Thread(#[source] io::Error),
}

/// Mounts the default export of the server at `socket` in the folder `point`, and serves it until it is unmounted.
pub(crate) fn run(point: &Path, socket: &Path) -> Result<(), ExportFileError> {
    let mount_error = |source| ExportFileError::Mount {
        point: point.to_owned(),
        source,
    };
    let server = Server::Unix(socket.to_owned());
    let connected = connect(&server, "", None, TO_CONNECT);
    let (wire, export) = connected.map_err(|source| ExportFileError::Connect {
        socket: socket.to_owned(),
        source,
    })?;
    let (connection, answers) = Connection::new(&wire).map_err(ExportFileError::Thread)?;
    let connection = Arc::new(connection);
    // A page that this process needs must not have to come through this process.
    crate::attachment::process::lock_used_memory();
    let files = ExportFileSystem::new(Arc::clone(&connection), &export);
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::NoSuid,
        MountOption::NoDev,
        MountOption::NoAtime,
        MountOption::FSName("gleaner-clerk".to_owned()),
    ];
    let session = Session::new(files, point, &config).map_err(mount_error)?;
    let receiver = Arc::clone(&connection);
    thread::Builder::new()
        .name("answers".to_owned())
        .spawn(move || receiver.receive(answers))
        .map_err(ExportFileError::Thread)?;
    let ended = session.run().map_err(mount_error);
    connection.disconnect();
    ended
}
