//! Address of a catalog: its path, with the hash that its file must have.

use super::{HASH_BYTES, Hash};
use gleaner_trust::hex;
use std::path::PathBuf;

/// Path of a catalog, with its pinned hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogAddress {
    /// Path of the catalog's file.
    pub path: PathBuf,
    /// Hash that the file must have; `None`: any.
    pub pinned: Option<Hash>,
}

impl CatalogAddress {
    /// Parses `PATH` or `PATH#HASH`.
    ///
    /// # Errors
    /// Description of a malformed hash: a mistyped one must not leave the catalog unpinned.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((path, hash)) = text.rsplit_once('#') else {
            return Ok(Self {
                path: PathBuf::from(text),
                pinned: None,
            });
        };
        let digits = hex::decode(hash).and_then(|bytes| Hash::try_from(bytes).ok());
        let wrong = || {
            format!(
                "a hash has {} lower-case hexadecimal digits",
                HASH_BYTES * 2
            )
        };
        Ok(Self {
            path: PathBuf::from(path),
            pinned: Some(digits.ok_or_else(wrong)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_whole_or_an_error() {
        let digits = "0a".repeat(32);
        let pinned = CatalogAddress::parse(&format!("a#b.catalog#{digits}")).unwrap();
        assert_eq!(pinned.path, PathBuf::from("a#b.catalog"));
        assert_eq!(pinned.pinned, Some([10; 32]));
        assert_eq!(CatalogAddress::parse("a.catalog").unwrap().pinned, None);
        for wrong in [
            "a#",
            "a#0a",
            &format!("a#{}", "0A".repeat(32)),
            &format!("a#{digits}0a"),
        ] {
            assert!(CatalogAddress::parse(wrong).is_err(), "{wrong}");
        }
    }
}
