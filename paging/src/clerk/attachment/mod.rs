//! Makes a block device, and swap on it, of an NBD server's pages on this host, and undoes both.
//!
//! Each step is recorded in the attachment's folder before the next begins. So any process can undo the
//! steps, even after a crash, and every undo checks first whether there is anything to undo.

mod attach;
mod clerk;
pub(crate) mod commands;
mod detach;
pub(crate) mod failure;
mod folder;
mod fuse;
pub(crate) mod group;
mod kernel;
mod mounts;
pub(crate) mod process;
mod program;
mod record;
mod release;
mod room;
pub(crate) mod swap;
pub(crate) mod timeout;

pub(crate) use detach::DetachOptions;
