//! The commons: a read-only file system of sealed folders. `seal` writes a [`catalog`], which names every
//! block of 64 KiB by its hash. `mount` shows the folder of a catalog on any host and reads its blocks from a
//! [`source`]; every block is hashed before a byte of it is answered. [`run`] is the service, whose hosts share
//! the blocks that they have read.
//!
//! A read's journey: [`mount`] receives it from the kernel and divides it into blocks. [`store`] looks for
//! each block in local memory, or joins a fetch of the block that is under way. A fetch first asks other hosts:
//! [`peer`] asks the block's home, which [`directory`] computes from the block's hash. The home answers from
//! its [`hold`], or names a host that has the block, or that fetches it. Otherwise the fetch reads the
//! [`store::BlockOrigin`], which is a [`source::BlockSource`] here, and gives the block to its home.
//!
//! With a recruiter, [`link`] receives the members and the epochs' weights, [`global`] decides by
//! `policy::global` where blocks are, and this host's part of them is in leases of its own memory server.
//!
//! Rooms, from the top; each uses only those after it: `run`, `privilege`, `metrics`, `mount`, `status`, `link`,
//! `peer`, `config`, `global`, `directory`, `hold`, `verify`, `seal`, `source`, `store`, `catalog`, `answer`.

mod answer;
pub mod catalog;
pub mod config;
pub mod directory;
pub mod global;
pub mod hold;
pub mod link;
pub mod metrics;
pub mod mount;
pub mod peer;
pub mod privilege;
pub mod run;
pub mod seal;
pub mod source;
pub mod status;
pub mod store;
pub mod verify;
