//! A lease of fixed size, as the default export of an NBD server, without agent, owner or recruiter: for
//! measurements and for trying clients. The pages are handled as for every lease, and each access checks that
//! the lease still exists.

use crate::itself;
use anyhow::{Context, bail};
use gleaner_paging::nbd::{Address, Door, Leases, Listener, Load, Shares};
use gleaner_paging::store::{Options, Store};
use gleaner_trust::random;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

const LEASE: &str = "standalone";
/// Limit of connections; a lease's client opens a few.
const MOST_CONNECTIONS: u64 = 256;

/// Serves `bytes` of memory at `listen` until SIGTERM or SIGINT; then gives all of it back and ends clients'
/// connections.
///
/// # Errors
/// The server cannot start.
pub(crate) fn serve(listen: &Address, bytes: u64) -> anyhow::Result<()> {
    if !listen.is_this_machine() {
        bail!(
            "{listen} is open to the network, and this export is open to anybody: listen on 127.0.0.1 or [::1]"
        );
    }
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
    listener.serve(exports, Door::Open, load.clone(), MOST_CONNECTIONS)?;
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
