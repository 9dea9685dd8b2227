//! Addresses on loopback.
#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU8, Ordering};

/// An address on loopback that nobody listens to, nor will unless it is told: its part of loopback is this call's alone.
///
/// # Panics
/// When this machine has no port left.
#[must_use]
pub fn unused_address() -> SocketAddr {
    static CALLS: AtomicU8 = AtomicU8::new(64);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = std::process::id().to_be_bytes();
    let listener = TcpListener::bind((Ipv4Addr::new(127, call, high, low.clamp(1, 254)), 0));
    listener.unwrap().local_addr().unwrap()
}
