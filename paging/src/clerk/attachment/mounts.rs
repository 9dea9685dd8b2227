//! Mounts as this process sees them.

use super::failure::{AttachError, at};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A line of /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Major and minor number.
    pub(crate) device: (u32, u32),
    /// Path of the mount point.
    pub(crate) point: PathBuf,
    /// Type of the file system.
    pub(crate) kind: String,
    /// Path of the mounted device or file, if it is a path.
    pub(crate) source: PathBuf,
    /// Options of the file system as a whole: for a cgroup, its controllers.
    pub(crate) options: Vec<String>,
}

/// All mounts; later ones lie above earlier ones.
pub(crate) fn table() -> Result<Vec<Mount>, AttachError> {
    const PATH: &str = "/proc/self/mountinfo";
    let text = std::fs::read_to_string(PATH).map_err(at(PATH))?;
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    let (major, minor) = before.next()?.split_once(':')?;
    let point = path(before.nth(1)?);
    let mut after = after.split(' ');
    Some(Mount {
        device: (major.parse().ok()?, minor.parse().ok()?),
        point,
        kind: after.next()?.to_owned(),
        source: path(after.next()?),
        options: after.next()?.split(',').map(str::to_owned).collect(),
    })
}

/// Decodes a path, in which spaces, tabs, line feeds and backslashes are octal.
fn path(escaped: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut parts = escaped.split('\\');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let code = part
            .get(..3)
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(part[3..].bytes());
            }
            None => bytes.extend(part.bytes()),
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_and_without_optional_fields() {
        let plain = parse(
            "42 27 0:39 / /run/a\\040b\\134c rw,nosuid - fuse /dev/fuse rw,user_id=0,group_id=0",
        )
        .unwrap();
        assert_eq!(plain.device, (0, 39));
        assert_eq!(plain.point, PathBuf::from("/run/a b\\c"));
        assert_eq!((plain.kind.as_str(), plain.options.len()), ("fuse", 3));
        let shared =
            parse("30 22 7:1 / /mnt rw shared:7 master:1 - ext4 /dev/loop1 rw,errors=remount-ro")
                .unwrap();
        assert_eq!(
            (shared.point, shared.source),
            ("/mnt".into(), "/dev/loop1".into())
        );
        assert_eq!(parse("30 22 7:1"), None);
        assert!(!table().unwrap().is_empty());
    }
}
