//! Checks whether a daemon's disk has enough free space.

use crate::finding::Finding;
use crate::message::Message;
use crate::place::quoted;
use gleaner_schemas::units::Bytes;
use std::path::Path;

const SUBJECT: &str = "disk";

/// Disk space that a daemon needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    /// Free space below which the daemon stores nothing more.
    pub(crate) least_bytes: u64,
    /// Free space with which no warning is given.
    pub(crate) enough_bytes: u64,
}

/// Free space for users other than root (statvfs(3)), on the disk of the folder. If the folder does not
/// exist, the nearest folder above it is used.
pub(crate) fn read(folder: &Path) -> Option<u64> {
    let disk = folder
        .ancestors()
        .find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Judges the free space; `None` if it is unknown.
pub(crate) fn judge(free_bytes: Option<u64>, need: Need, folder: &Path) -> Option<Finding> {
    let free_bytes = free_bytes?;
    let (free, shown) = (Bytes::from(free_bytes), folder.display());
    let look = format!(
        "sudo du -xhd2 \"$(findmnt -n -o TARGET --target {})\" | sort -h | tail",
        quoted(folder)
    );
    let (least, enough) = (
        Bytes::from(need.least_bytes),
        Bytes::from(need.enough_bytes),
    );
    Some(if free_bytes < need.least_bytes {
        let found = format!("{free} free under {shown}: below {least} nothing is stored");
        Finding::of(Message::DiskFull, SUBJECT, found).remedy(look)
    } else if free_bytes < need.enough_bytes {
        let found = format!("{free} free under {shown}; it may come to need {enough}");
        Finding::of(Message::DiskLow, SUBJECT, found).remedy(look)
    } else {
        Finding::ok(
            SUBJECT,
            format!("{free} free under {shown}; it may come to need {enough}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_held_against_what_may_be_needed() {
        let need = Need {
            least_bytes: 10,
            enough_bytes: 100,
        };
        let judged = |free| judge(Some(free), need, Path::new("/x")).unwrap().message;
        assert_eq!(judged(100), None);
        assert_eq!(judged(99), Some(Message::DiskLow));
        assert_eq!(judged(10), Some(Message::DiskLow));
        assert_eq!(judged(9), Some(Message::DiskFull));
        assert_eq!(judge(None, need, Path::new("/x")), None);
        assert!(read(Path::new("/no/such/folder")).is_some_and(|bytes| bytes > 0));
    }
}
