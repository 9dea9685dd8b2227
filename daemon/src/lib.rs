//! What every daemon does in the same way: its configuration ([`config`]), its places on the disk
//! ([`folders`]), what it tells the service manager ([`notify`]), and how it says why it failed ([`causes`]).
//! With the feature `listen`, also how a server takes connections (`listen`).
//!
//! Rooms, from the top; each uses only those after it: `listen`, `config`, `folders`, `notify`, `causes`, `terminal`.

pub mod causes;
pub mod config;
pub mod folders;
#[cfg(feature = "listen")]
pub mod listen;
pub mod notify;
pub mod terminal;
