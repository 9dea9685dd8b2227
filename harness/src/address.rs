//! Addresses on loopback.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};

/// Returns a loopback address at which no program listens. Each call uses another part of the loopback
/// network, so that no other program gets the same address by chance.
///
/// # Panics
/// If this machine has no free port.
#[must_use]
pub fn unused_address() -> SocketAddr {
    static CALLS: AtomicU8 = AtomicU8::new(64);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    let listener = TcpListener::bind((Ipv4Addr::new(127, call, high, low.clamp(1, 254)), 0));
    listener.unwrap().local_addr().unwrap()
}
