//! The socket for clients. Each handshake has its own thread; after the handshake, the connection belongs to
//! the device's thread.

use super::{Handle, Message, StartError};
use crate::device::frames::PAGE;
use crate::nbd::{Caller, Export, ExportRefusal, Exports, greet, listen_at};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Timeout of the handshake, after which the client is disconnected.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of simultaneous handshakes.
const MOST_HANDSHAKES: usize = 64;
/// Pause after accept(2) fails.
const PAUSE: Duration = Duration::from_millis(100);

/// The device's export as shown to clients.
#[derive(Clone, Copy)]
struct Handshake {
    bytes: u64,
}

impl Export for Handshake {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn description(&self) -> String {
        "memory of other hosts; its contents are lost when the clerk ends".to_owned()
    }
}

impl Exports for Handshake {
    type Contents = Self;

    fn open(&self, name: &str, _caller: &Caller) -> Result<Self, ExportRefusal> {
        match name {
            "" => Ok(*self),
            name => Err(ExportRefusal::Unknown(format!(
                "export {name:?}: there is one device here, which has no name"
            ))),
        }
    }

    fn names(&self, _caller: &Caller) -> Vec<String> {
        vec![String::new()]
    }
}

/// Listens for as long as the process lives; only the socket's owner can connect.
pub(super) fn listen(path: &Path, pages: u32, handle: Handle) -> Result<(), StartError> {
    let failed = |source| StartError::Listen {
        path: path.to_owned(),
        source,
    };
    let listener = listen_at(path).map_err(failed)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
    let told = Handshake {
        bytes: u64::from(pages) * PAGE as u64,
    };
    let shaking = Arc::new(AtomicUsize::new(0));
    let serve = move || {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(PAUSE);
                continue;
            };
            if shaking.load(Ordering::Relaxed) >= MOST_HANDSHAKES {
                continue;
            }
            shaking.fetch_add(1, Ordering::Relaxed);
            let (handle, shaking) = (handle.clone(), shaking.clone());
            let shake = move || {
                if let Ok(Some((stream, _))) = greet(stream, &told, PATIENCE) {
                    handle.tell(Message::Client(stream));
                }
                shaking.fetch_sub(1, Ordering::Relaxed);
            };
            // If no thread can be started, the connection is dropped and so closed.
            let _ = thread::Builder::new()
                .name("client".to_owned())
                .spawn(shake);
        }
    };
    thread::Builder::new()
        .name("listen".to_owned())
        .spawn(serve)?;
    Ok(())
}
