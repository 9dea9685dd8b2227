//! Encryption of pages for memory servers: AES-256-GCM (NIST SP 800-38D). Each start makes a random key,
//! which never leaves this process.
//!
//! The nonce is the page's version, which is never used twice. The page's number is authenticated, too. So
//! bytes that were altered, or that belong to another page or version, are detected. All copies of a page, at
//! servers and on disk, are the same bytes.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};

/// Tag of a page, stored beside its version.
pub(super) type TagBytes = [u8; 16];

/// Encrypts and decrypts pages.
pub(super) struct Seal(LessSafeKey);

impl Seal {
    /// Makes the cipher. Returns `None` for an invalid key, but every key of 32 bytes is valid.
    pub(super) fn new(key: &[u8; 32]) -> Option<Self> {
        let key = UnboundKey::new(&AES_256_GCM, key).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    fn nonce(version: u64) -> Nonce {
        let mut bytes = [0; NONCE_LEN];
        bytes[..8].copy_from_slice(&version.to_le_bytes());
        Nonce::assume_unique_for_key(bytes)
    }

    /// Encrypts a page in place. Returns `None` on failure, which never happens for a page.
    pub(super) fn close(&self, page: u32, version: u64, bytes: &mut [u8]) -> Option<TagBytes> {
        let aad = Aad::from(page.to_le_bytes());
        let nonce = Self::nonce(version);
        let tag = self.0.seal_in_place_separate_tag(nonce, aad, bytes).ok()?;
        tag.as_ref().try_into().ok()
    }

    /// Decrypts a page in place. Returns false if the bytes are not those of this page in this version.
    pub(super) fn open(&self, page: u32, version: u64, tag: &TagBytes, bytes: &mut [u8]) -> bool {
        let aad = Aad::from(page.to_le_bytes());
        let nonce = Self::nonce(version);
        let opened = self
            .0
            .open_in_place_separate_tag(nonce, aad, Tag::from(*tag), bytes, 0..);
        opened.is_ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_moved_or_is_older_is_found_out() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let mut sent = vec![5; 4096];
        let tag = seal.close(3, 9, &mut sent).unwrap();
        assert!(sent.iter().filter(|byte| **byte == 5).count() < 100);
        let opens = |page, version, change: usize| {
            let mut bytes = sent.clone();
            if let Some(byte) = bytes.get_mut(change) {
                *byte ^= 1;
            }
            seal.open(page, version, &tag, &mut bytes) && bytes == [5; 4096]
        };
        assert!(opens(3, 9, usize::MAX));
        assert!(!opens(3, 9, 0) && !opens(3, 9, 4095));
        assert!(!opens(4, 9, usize::MAX) && !opens(3, 8, usize::MAX));
        let other = Seal::new(&[8; 32]).unwrap();
        assert!(!other.open(3, 9, &tag, &mut sent.clone()));
    }
}
