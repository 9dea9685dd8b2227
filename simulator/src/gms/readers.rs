//! Programs that read sealed files, for comparisons of policies on hosts of today (the readers of `gms-commons`).
//! The paper has none of them. **Assumed**, and fixed before any run: the numbers below.
//!
//! A reader reads its files once in order, which is not counted, and then block after block: `shared-reader` and
//! `private-reader` in epochs, each of which reads every block once in a new random order, as a training run does;
//! `shared-zipf` and `private-zipf` by Zipf's law, as builds and virtual machines do. All shared readers read the same
//! files; a private reader has files of its own.

/// Blocks of a reader's files: 1 GiB in frames of 64 KiB.
pub(super) const BLOCKS: u32 = 16_384;
/// Exponent of Zipf's law, by which a block is drawn.
pub(super) const ZIPF_EXPONENT: f64 = 0.8;
/// Number of the files that all shared readers read; the files of clients have their clients' numbers.
pub(super) const SHARED_FILES: u32 = u32::MAX - 1;
