//! Regions of remote memory, each backed by a part of an open file, after Dodo (Koussih, Acharya and Setia).
//! Programs open, read, write and close them explicitly.
//!
//! The file always has all data. A region's pages are also in memory lent by other hosts, so that reading
//! them again does not wait for a disk. A host may stop lending at any moment, and bytes from hosts are
//! checked against checksums that never leave this process. So whatever servers do, the worst case is a read
//! from the file.
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

/// Unit of checks and transfers, in bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Takes a lock even if it is poisoned: no code here leaves a value partly changed.
fn lock<T>(of: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
