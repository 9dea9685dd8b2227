//! Trust between programs: certificates are made, renewed and revoked, and hosts enrol.
//!
//! A deployment has one [`Authority`]. It issues certificates to the collector and the recruiters, and to
//! each host, reader, client and admin. [`ServerTrust`] and [`ClientTrust`] load the files for rustls; when
//! files are replaced, they load them again without a restart. [`Peer`] identifies the other side of a
//! connection.
//!
//! Clients of Gleaner's servers also find here what they need for a connection: [`Address`], [`http`],
//! [`Backoff`]; and for a request to a server of this machine: [`LoopbackServer`].
//!
//! Rooms, from the top; each uses only those after it: `loopback`, `http`, `client`, `server`, `authority`,
//! `register`, `revocation`, `profile`, `request`, `token`, `watched_files`, `received_lists`, `identity`,
//! `host`, `certificate`, `files`, `backoff`, `address`, `random`, `hex`, `error`.

mod address;
mod authority;
mod backoff;
pub mod certificate;
mod client;
mod error;
mod files;
pub mod hex;
mod host;
pub mod http;
mod identity;
mod loopback;
mod profile;
pub mod random;
mod received_lists;
mod register;
mod request;
mod revocation;
mod server;
pub mod token;
mod watched_files;

pub use address::{Address, AddressError};
pub use authority::{Authority, IssuedCertificate};
pub use backoff::Backoff;
pub use certificate::{Dates, fingerprint};
pub use client::{ClientPaths, ClientTrust, Credentials};
pub use error::TrustError;
pub use host::{host_id, this_host_id};
pub use identity::{Peer, Role};
pub use loopback::{JsonAnswer, LoopbackError, LoopbackServer};
pub use profile::Validity;
#[doc(hidden)]
pub use received_lists::count_signed_lists;
pub use received_lists::{MOST_RECEIVED_BYTES, RevocationSummary};
pub use register::{Record, State};
pub use request::KeyAndRequest;
pub use revocation::revocation_dates;
pub use server::{ServerPaths, ServerTrust};

use rustls::crypto::CryptoProvider;
use std::sync::{Arc, OnceLock};

/// Validity of an authority, in days.
pub const AUTHORITY_DAYS: u32 = 3650;
/// Default validity of a collector's or recruiter's certificate, in days.
pub const COLLECTOR_DAYS: u32 = 365;
/// Default validity of a host's certificate, in days. It is short, since the certificate is renewed
/// automatically.
pub const HOST_DAYS: u32 = 90;
/// Default validity of a reader's, client's or admin's certificate, in days.
pub const READER_DAYS: u32 = 365;

/// Result of this crate's functions.
pub type Result<T> = std::result::Result<T, TrustError>;

/// Provider of the cryptography for all connections (ring). It is passed explicitly, since the process-wide
/// default of rustls depends on the other dependencies of the program.
///
/// Every call returns the same value: ureq shares connections only between equal providers.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    PROVIDER
        .get_or_init(|| Arc::new(rustls::crypto::ring::default_provider()))
        .clone()
}
