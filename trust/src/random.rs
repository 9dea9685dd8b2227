//! Randomness from the kernel, by ring.

use crate::{Result, TrustError, provider};

/// Returns `N` bytes that nobody can guess.
///
/// # Errors
/// [`TrustError::NoRandomness`] where the kernel gives none.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| TrustError::NoRandomness)?;
    Ok(bytes)
}
