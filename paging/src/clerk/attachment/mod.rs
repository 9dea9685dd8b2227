//! A block device, and swap on it, of an NBD server's pages on this host; and all of that undone.
//!
//! What was done is in a file of its folder before the next step is: any process can undo it, after a crash too, and every undoing
//! looks whether there is anything to undo.

mod attach;
mod clerk;
mod detach;
mod failure;
mod folder;
mod fuse;
mod group;
mod kernel;
mod mounts;
mod patience;
mod process;
mod program;
mod record;
mod release;
mod room;
mod swap;
pub(crate) mod tell;

pub(crate) use detach::DetachOptions;
