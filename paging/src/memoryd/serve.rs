//! A lease of fixed size, as the default export of an NBD server, without agent, owner or recruiter: for
//! measurements and for trying clients. The pages are handled as for every lease, and each access checks that
//! the lease still exists.

use crate::itself;
use anyhow::{Context, bail};
use gleaner_daemon::shares::Shares;
use gleaner_paging::nbd::{Address, Arrival, Door, Gate, Leases, Listener, Load};
use gleaner_paging::store::{Options, Store};
use gleaner_trust::{ServerPaths, ServerTrust, random};
use rustls::ServerConfig;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

const LEASE: &str = "standalone";
/// Limit of connections; a lease's client opens a few.
const MOST_CONNECTIONS: u64 = 256;

/// Serves `bytes` of memory at `listen` until SIGTERM or SIGINT; then gives all of it back and ends clients'
/// connections. `tls` has the files of certificate, key and authority; `None`: clients connect without TLS.
///
/// # Errors
/// The server cannot start.
pub(crate) fn serve(listen: &Address, bytes: u64, tls: Option<&[PathBuf]>) -> anyhow::Result<()> {
    if !listen.is_this_machine() {
        bail!(
            "{listen} is open to the network, and this export is open to anybody: listen on 127.0.0.1 or [::1]"
        );
    }
    let door = door(tls)?;
    let (mut end, on_signal) = UnixStream::pair().context("make a pipe")?;
    for signal in [SIGTERM, SIGINT] {
        signal_hook::low_level::pipe::register(signal, on_signal.try_clone()?)?;
    }
    let generation = u64::from_le_bytes(random::bytes()?) >> 11;
    let store = Arc::new(Store::new(bytes, generation, Options::default())?);
    for note in itself::apply_process_settings(&store) {
        eprintln!("gleaner-memoryd: {note}");
    }
    store.open(LEASE, LEASE, bytes);
    let exports = Arc::new(Leases {
        store: store.clone(),
        default: Some((LEASE.to_owned(), generation)),
        shares: Arc::new(Shares::whole(MOST_CONNECTIONS)),
    });
    let listener = Listener::open(listen).with_context(|| format!("listen at {listen}"))?;
    let url = listener.url()?;
    let load = Arc::new(Load::default());
    listener.serve(exports, door, load.clone(), MOST_CONNECTIONS)?;
    println!("{url}");
    // Each signal writes one byte.
    let _ = end.read(&mut [0]);
    store.revoke_all();
    listen.clear();
    let counted = load.counted();
    eprintln!(
        "gleaner-memoryd: {} requests, {} of them with an error",
        counted.requests, counted.failed
    );
    Ok(())
}

fn door(tls: Option<&[PathBuf]>) -> anyhow::Result<Door> {
    let Some(files) = tls else {
        return Ok(Door::Open);
    };
    let [certificate, key, authority] = files else {
        bail!("--tls takes three files: CERTIFICATE KEY AUTHORITY");
    };
    let trust = ServerTrust::load(&ServerPaths {
        certificate: certificate.clone(),
        key: key.clone(),
        authority: authority.clone(),
        revocation_list: None,
    })?;
    Ok(Door::Tls(Arc::new(CertifiedClients(trust))))
}

/// Admission of every client with a valid certificate. The lease itself is one client's alone.
struct CertifiedClients(Arc<ServerTrust>);

impl Gate for CertifiedClients {
    fn settings(&self) -> Result<Arc<ServerConfig>, String> {
        Ok(self.0.config())
    }

    fn admit(&self, _arrival: Arrival) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }
}
