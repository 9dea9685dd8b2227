//! What every daemon does in the same way: its configuration ([`config`]), its places on the disk ([`folders`]), and what it
//! tells the service manager ([`notify`]).

pub mod config;
pub mod folders;
pub mod notify;
pub mod terminal;
