//! Regions of remote memory, each backed by a part of an open file, after Dodo (Koussih, Acharya and Setia): opened, read,
//! written and closed by programs that want them.
//!
//! The file always has everything. A region's pages lie in memory that other hosts lend besides, so that reading them again
//! does not wait for a disk; who lends may stop at any moment, and what comes back is held against checksums that never left
//! this process. So whatever servers do, the worst is a read from the file.
//!
//! Rooms, from the top; each uses only those after it: `c`, `regions`, `region`, `address`, `pool`,
//! `keeper`, `node`, `transfer`, `room`, `quiet`, `settings`, `error`.

mod address;
pub mod c;
mod error;
mod keeper;
mod node;
mod pool;
mod quiet;
mod region;
mod regions;
mod room;
mod settings;
mod transfer;

pub use error::RegionError;
pub use region::Region;
pub use regions::{Figures, Regions};
pub use settings::{OnLoss, Settings};

/// Unit of checking, storing and fetching, in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// The lock, of whoever held it last: nothing here leaves a value half changed.
fn lock<T>(of: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
