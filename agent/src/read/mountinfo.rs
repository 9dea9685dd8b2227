//! Parser of `/proc/[pid]/mountinfo` (proc_pid_mountinfo(5)).

use super::{lines, number, words};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A mount of a filesystem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device as (major, minor); a major of 0 is no block device.
    pub device: (u32, u32),
    /// Folder within the filesystem that is mounted at `point`.
    pub root: PathBuf,
    /// Path of the mount point.
    pub point: PathBuf,
    /// Type of filesystem.
    pub kind: String,
}

/// Returns the mounts in order: a later mount may cover an earlier one. Skips malformed lines.
pub fn mounts(text: &[u8]) -> impl Iterator<Item = Mount> {
    lines(text).filter_map(mount)
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut words = words(line);
    let (major, minor) = std::str::from_utf8(words.nth(2)?).ok()?.split_once(':')?;
    Some(Mount {
        device: (number(major.as_bytes())?, number(minor.as_bytes())?),
        root: unescaped(words.next()?),
        point: unescaped(words.next()?),
        kind: String::from_utf8_lossy(words.skip_while(|&word| word != b"-").nth(1)?).into_owned(),
    })
}

/// Decodes spaces and similar characters, written as three octal digits after a backslash.
fn unescaped(word: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let escaped = digits.and_then(|d| u8::from_str_radix(std::str::from_utf8(d).ok()?, 8).ok());
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() {
            &after[3..]
        } else {
            after
        };
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn device_point_and_kind_whatever_optional_fields_there_are() {
        let text = b"26 1 8:1 / / rw,relatime shared:1 master:2 - ext4 /dev/sda1 rw\n\
            29 26 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\ntorn 1 x\n\
            31 26 8:17 /a\\040b /mnt/usb\\040disk\\134x rw - vfat /dev/sdb1 rw\n";
        let mount = |device, root: &str, point: &str, kind: &str| Mount {
            device,
            root: root.into(),
            point: point.into(),
            kind: kind.into(),
        };
        let expected = [
            mount((8, 1), "/", "/", "ext4"),
            mount((0, 26), "/", "/sys/fs/cgroup", "cgroup2"),
            mount((8, 17), "/a b", "/mnt/usb disk\\x", "vfat"),
        ];
        assert_eq!(mounts(text).collect::<Vec<_>>(), expected);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..200), path in "[\\\\0-9a-z]{0,12}") {
            let _ = mounts(&text).count();
            let _ = mounts(format!("1 2 3:4 {path} {path} rw - ext4 x").as_bytes()).count();
        }
    }
}
