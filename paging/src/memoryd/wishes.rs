//! The owner's wishes, stored across restarts.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const FILE: &str = "owner.json";

/// Wishes of the owner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OwnerWishes {
    pub(crate) pause: Option<Pause>,
    pub(crate) cap: Option<Cap>,
}

/// Pause of lending that a user requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// End of the pause, in milliseconds since 1970-01-01 UTC; `None`: the pause lasts until a user ends it.
    pub(crate) until_time_ms: Option<i64>,
    /// User who set the pause, and may end it.
    pub(crate) by_uid: u32,
}

/// Upper limit of lent memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cap {
    pub(crate) bytes: u64,
    /// User who set the cap, and may raise it.
    pub(crate) by_uid: u32,
}

/// File of the wishes.
#[derive(Debug)]
pub(crate) struct WishesFile {
    folder: PathBuf,
}

impl WishesFile {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Reads the stored wishes. An unreadable file may have contained a pause, so the result is a pause.
    ///
    /// # Errors
    /// Message about the fault of the file, with the wishes to use instead.
    pub(crate) fn read(&self) -> Result<OwnerWishes, (OwnerWishes, String)> {
        let path = self.folder.join(FILE);
        let wrong = |why: String| {
            let until_time_ms = None;
            let pause = Some(Pause {
                until_time_ms,
                by_uid: 0,
            });
            let why = format!(
                "{}: {why}: paused, until `gleaner owner resume`",
                path.display()
            );
            (OwnerWishes { pause, cap: None }, why)
        };
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|e| wrong(e.to_string())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(OwnerWishes::default()),
            Err(e) => Err(wrong(e.to_string())),
        }
    }

    /// Replaces the file atomically and durably.
    ///
    /// # Errors
    /// The error names the path.
    pub(crate) fn write(&self, wishes: &OwnerWishes) -> io::Result<()> {
        let path = self.folder.join(FILE);
        let write = || {
            fs::create_dir_all(&self.folder)?;
            let unfinished = path.with_extension("json.new");
            let mut file = File::create(&unfinished)?;
            file.write_all(&serde_json::to_vec(wishes)?)?;
            file.sync_all()?;
            fs::rename(&unfinished, &path)
        };
        write().map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_as_they_were_and_paused_where_nobody_can_tell() {
        let folder = tempfile::tempdir().unwrap();
        let kept = WishesFile::new(&folder.path().join("state"));
        assert_eq!(kept.read(), Ok(OwnerWishes::default()));
        let wishes = OwnerWishes {
            pause: Some(Pause {
                until_time_ms: Some(7),
                by_uid: 1000,
            }),
            cap: Some(Cap {
                bytes: 1 << 30,
                by_uid: 0,
            }),
        };
        kept.write(&wishes).unwrap();
        assert_eq!(kept.read(), Ok(wishes));
        fs::write(folder.path().join("state").join(FILE), "{\"pause\":").unwrap();
        let (wishes, why) = kept.read().unwrap_err();
        assert_eq!(wishes.pause.unwrap().until_time_ms, None);
        assert!(
            why.contains("owner.json") && why.contains("resume"),
            "{why}"
        );
    }
}
