//! Randomness from the kernel, by ring.

use crate::{Result, TrustError, provider};

/// Returns `N` random bytes that are unguessable.
///
/// # Errors
/// [`TrustError::NoRandomness`] if the kernel gives none.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| TrustError::NoRandomness)?;
    Ok(bytes)
}

/// Returns a random share from 0 up to 1; one half if the kernel gives no randomness.
#[must_use]
pub fn share() -> f64 {
    bytes::<4>().map_or(0.5, |bytes| {
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    })
}
