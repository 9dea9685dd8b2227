//! Follows a file of quotas, which its writer replaces at each change.

use super::{Failure, HostChoice, QuotaNews};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::{Duration, SystemTime};

/// Interval of checks of the file's times. The owner's return is noticed at most this much later.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Follows the file until the receiver is gone.
pub(super) fn follow(
    path: &Path,
    quota_timeout: Duration,
    pick: HostChoice,
    heard: &Sender<QuotaNews>,
) {
    let mut seen = None;
    loop {
        let says = match fs::metadata(path) {
            Ok(metadata) if seen == Some(version(&metadata)) => None,
            Ok(metadata) => {
                seen = Some(version(&metadata));
                Some(read(path, &metadata, quota_timeout, &pick).unwrap_or_else(QuotaNews::Trouble))
            }
            Err(source) => {
                seen = None;
                let path = path.to_owned();
                Some(QuotaNews::Trouble(Failure::File { path, source }))
            }
        };
        if says.is_some_and(|says| heard.send(says).is_err()) {
            return;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Identity of a file's version; it differs whenever the file is replaced.
fn version(metadata: &Metadata) -> (u64, i64, i64, u64) {
    (
        metadata.ino(),
        metadata.mtime(),
        metadata.mtime_nsec(),
        metadata.len(),
    )
}

/// Reads the file, and rejects a file that is no longer updated.
fn read(
    path: &Path,
    metadata: &Metadata,
    quota_timeout: Duration,
    pick: &HostChoice,
) -> Result<QuotaNews, Failure> {
    let failed = |source| Failure::File {
        path: path.to_owned(),
        source,
    };
    let written = metadata.modified().map_err(failed)?;
    let age = SystemTime::now()
        .duration_since(written)
        .unwrap_or_default();
    if age > quota_timeout {
        return Err(Failure::Stale {
            path: path.to_owned(),
            age_s: quota_timeout.as_secs(),
        });
    }
    let quotas = super::quotas(&fs::read(path).map_err(failed)?, path.display().to_string())?;
    Ok(pick.of_all(quotas, &path.display().to_string()))
}
