//! Parts shared by all daemons: configuration ([`config`]), folders ([`folders`]), messages to the service manager
//! ([`notify`]), users of this host ([`accounts`]), causes of errors as text ([`causes`]), and each client's share of a
//! server's connections ([`shares`]). With the feature `listen`, also the connections of a server (`listen`).
//!
//! Rooms, from the top; each uses only those after it: `listen`, `config`, `folders`, `notify`, `accounts`, `causes`,
//! `shares`, `terminal`.

pub mod accounts;
pub mod causes;
pub mod config;
pub mod folders;
#[cfg(feature = "listen")]
pub mod listen;
pub mod notify;
pub mod shares;
pub mod terminal;
