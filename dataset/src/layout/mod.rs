//! Layout of a dataset's folder: the names of files, how files are moved to their places, and which writer owns them.

mod durable;
pub(crate) mod lock;
pub(crate) mod names;
mod places;
pub(crate) mod retired;
mod sweep;

pub(crate) use durable::{clear, create_folders, entries, put, remove, sync_folder};
pub(crate) use places::{
    DAMAGED, LOCK, RETIRED, STAGING, check_folder, date, day, folder, table_and_date,
};
pub(crate) use sweep::{arrow_files, sweep};
