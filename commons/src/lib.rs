//! The commons: a read-only file system of sealed folders. `seal` writes a [`catalog`], which names every
//! block of 64 KiB by its hash. `mount` shows the folder of a catalog on any host and reads its blocks from a
//! [`source`]; every block is hashed before a byte of it is answered.
//!
//! A read's journey: [`mount`] receives it from the kernel and divides it into blocks. [`store`] looks for
//! each block in local memory, joins a fetch of the block that is under way, or fetches it from its
//! [`store::BlockOrigin`], which is a [`source::BlockSource`] here.
//!
//! Rooms, from the top; each uses only those after it: `mount`, `status`, `verify`, `seal`, `source`,
//! `store`, `catalog`.

pub mod catalog;
pub mod mount;
pub mod seal;
pub mod source;
pub mod status;
pub mod store;
pub mod verify;
