//! One Arrow file: its index, written aside, mapped and read; and the files that are open.

mod hashing;
pub(crate) mod index;
mod kept;
pub(crate) mod mapped;
pub(crate) mod open_files;
pub(crate) mod staged;
