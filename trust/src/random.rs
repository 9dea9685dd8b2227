//! Random numbers, which ring takes from the kernel.

use crate::{Result, TrustError, provider};

/// Returns `N` unguessable random bytes.
///
/// # Errors
/// [`TrustError::NoRandomness`] if the kernel returns none.
pub fn bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| TrustError::NoRandomness)?;
    Ok(bytes)
}

/// Returns a random number from 0 up to, but not including, 1. If the kernel returns no random bytes, returns
/// 0.5.
#[must_use]
pub fn share() -> f64 {
    bytes::<4>().map_or(0.5, |bytes| {
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    })
}
