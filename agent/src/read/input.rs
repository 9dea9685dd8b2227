//! `/dev/input/event*`: the time when the owner last touched a keyboard, mouse or similar device.
//!
//! Devices stay open between samples, so that the kernel queues events; a sample drains the queues and keeps
//! only the newest time, never the code of an event. While the owner is away, the agent waits for events of
//! the devices.

use super::event_mask;
use crate::missing_values::{AbsentValue, Reason};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::DirEntryExt;
use std::path::Path;

/// Size of `struct input_event` on 64-bit machines: a timeval, then type, code and value.
const EVENT_BYTES: usize = 24;

/// A device's name and its node's inode: a newly plugged-in device may get an old name.
type Node = (String, u64);

/// The input devices being watched.
#[derive(Debug, Default)]
pub struct InputDevices {
    open: BTreeMap<Node, Device>,
}

#[derive(Debug)]
struct Device {
    fd: OwnedFd,
    /// True if the device gives nothing more for now, but poll would report it without end, such as a pipe
    /// without a writer.
    ended: bool,
}

impl InputDevices {
    /// Opens new devices, closes removed ones, drains all, and returns the newest event's wall-clock time in
    /// milliseconds; `None` without an event since the last call.
    ///
    /// # Errors
    /// Unsupported without input devices, denied if one may not be read (someone may be typing on it),
    /// malformed if an event is incomplete.
    pub fn newest_ms(
        &mut self,
        dev_root: &Path,
        sys_root: &Path,
    ) -> Result<Option<i64>, AbsentValue> {
        self.open_new(dev_root, sys_root)?;
        self.drain()
    }

    /// Reads the newest event like [`Self::newest_ms`], but only from devices that are open already.
    ///
    /// # Errors
    /// Malformed if an event is incomplete.
    pub fn drain(&mut self) -> Result<Option<i64>, AbsentValue> {
        let mut newest_ms = None;
        let mut gone = Vec::new();
        for (node, device) in &mut self.open {
            match drain(device) {
                Ok(time_ms) => newest_ms = newest_ms.max(time_ms),
                Err(DrainError::Gone) => gone.push(node.clone()),
                Err(DrainError::Torn) => {
                    return Err(AbsentValue::new(Reason::Malformed, "input: torn event"));
                }
            }
        }
        for node in gone {
            self.open.remove(&node);
        }
        Ok(newest_ms)
    }

    /// Descriptors that become readable with the next event.
    pub fn wait_on(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let live = self.open.values().filter(|device| !device.ended);
        live.map(|device| device.fd.as_fd())
    }

    /// Number of devices watched.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// Opens new devices and closes removed ones.
    ///
    /// # Errors
    /// Errors of [`Self::newest_ms`].
    pub fn open_new(&mut self, dev_root: &Path, sys_root: &Path) -> Result<(), AbsentValue> {
        let none = || AbsentValue::new(Reason::Unsupported, "no input device");
        let folder = dev_root.join("input");
        let mut refused = None;
        let mut plugged = BTreeSet::new();
        for entry in std::fs::read_dir(&folder).map_err(|_| none())?.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if !name.starts_with("event") {
                continue;
            }
            let node = (name, entry.ino());
            plugged.insert(node.clone());
            if self.open.contains_key(&node) || !has_user_input(sys_root, &node.0) {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(CWD, entry.path(), flags, Mode::empty()) {
                Ok(fd) => {
                    event_mask::leave_out_lights(&fd);
                    self.open.insert(node, Device { fd, ended: false });
                }
                Err(Errno::NODEV | Errno::NOENT | Errno::NXIO) => {} // unplugged in the meantime
                Err(e) => refused = Some(AbsentValue::from_errno("input", e)),
            }
        }
        self.open.retain(|node, _| plugged.contains(node));
        match refused {
            Some(absent) => Err(absent),
            None if self.open.is_empty() => Err(none()),
            None => Ok(()),
        }
    }
}

/// Returns true if a person may use the device: it has keys or relative axes. A sensor, which reports by
/// itself, has neither. A device that sysfs does not describe counts as one that a person may use.
fn has_user_input(sys_root: &Path, name: &str) -> bool {
    const KEYS_OR_RELATIVE_AXES: u64 = 1 << 1 | 1 << 2; // EV_KEY, EV_REL
    let file = sys_root
        .join("class/input")
        .join(name)
        .join("device/capabilities/ev");
    std::fs::read_to_string(file)
        .ok()
        .and_then(|bits| u64::from_str_radix(bits.trim().rsplit(' ').next()?, 16).ok())
        .is_none_or(|bits| bits & KEYS_OR_RELATIVE_AXES != 0)
}

enum DrainError {
    Gone,
    Torn,
}

fn drain(device: &mut Device) -> Result<Option<i64>, DrainError> {
    let mut newest_ms = None;
    let mut events = [0u8; EVENT_BYTES * 64];
    loop {
        let read = rustix::io::read(&device.fd, &mut events);
        device.ended = read == Ok(0);
        match read {
            Ok(0) | Err(Errno::AGAIN) => return Ok(newest_ms),
            Ok(length) => {
                let time_ms = newest_event_ms(&events[..length]).ok_or(DrainError::Torn)?;
                newest_ms = newest_ms.max(Some(time_ms));
            }
            Err(Errno::INTR) => {}
            Err(_) => return Err(DrainError::Gone),
        }
    }
}

/// Time of the newest event; `None` if the events are incomplete.
fn newest_event_ms(events: &[u8]) -> Option<i64> {
    let (events, rest) = events.as_chunks::<EVENT_BYTES>();
    if !rest.is_empty() {
        return None;
    }
    let word = |event: &[u8; EVENT_BYTES], at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&event[at..at + 8]);
        i64::from_ne_bytes(bytes)
    };
    events
        .iter()
        .map(|event| {
            word(event, 0)
                .saturating_mul(1000)
                .saturating_add(word(event, 8) / 1000)
        })
        .max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn event(seconds: i64, microseconds: i64) -> Vec<u8> {
        [seconds.to_ne_bytes(), microseconds.to_ne_bytes(), [0xee; 8]].concat()
    }

    #[test]
    fn only_the_newest_time_is_kept() {
        let events = [event(100, 0), event(105, 7000), event(103, 0)].concat();
        assert_eq!(newest_event_ms(&events), Some(105_007));
        assert_eq!(newest_event_ms(&events[..30]), None);
    }

    #[test]
    fn devices_are_drained_and_sensors_left_alone() {
        let root = tempfile::tempdir().unwrap();
        let (dev, sys) = (root.path().join("dev"), root.path().join("sys"));
        let mut devices = InputDevices::default();
        let reason = |r: Result<Option<i64>, AbsentValue>| r.map_err(|a| a.reason);
        assert_eq!(
            reason(devices.newest_ms(&dev, &sys)),
            Err(Reason::Unsupported)
        );

        std::fs::create_dir_all(dev.join("input")).unwrap();
        std::fs::write(dev.join("input/event0"), event(100, 0)).unwrap();
        std::fs::write(dev.join("input/event1"), event(900, 0)).unwrap();
        std::fs::write(dev.join("input/mice"), "not an event device").unwrap();
        for (name, bits) in [("event0", "120013\n"), ("event1", "9\n")] {
            let folder = sys
                .join("class/input")
                .join(name)
                .join("device/capabilities");
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("ev"), bits).unwrap();
        }
        assert_eq!(reason(devices.newest_ms(&dev, &sys)), Ok(Some(100_000)));
        assert_eq!(devices.count(), 1);
        assert_eq!(reason(devices.newest_ms(&dev, &sys)), Ok(None));

        std::fs::write(dev.join("input/event2"), "torn").unwrap();
        assert_eq!(
            reason(devices.newest_ms(&dev, &sys)),
            Err(Reason::Malformed)
        );
    }

    #[test]
    fn what_has_ended_is_not_waited_on_until_it_goes_on() {
        let dev = tempfile::tempdir().unwrap();
        let node = dev.path().join("input/event0");
        std::fs::create_dir(dev.path().join("input")).unwrap();
        rustix::fs::mknodat(
            CWD,
            &node,
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let mut devices = InputDevices::default();
        let mut state = || {
            let newest_ms = devices.newest_ms(dev.path(), dev.path()).unwrap();
            (newest_ms, devices.wait_on().count())
        };
        assert_eq!(state(), (None, 0)); // the device is not open
        let mut writer = std::fs::File::options().write(true).open(&node).unwrap();
        assert_eq!(state(), (None, 1));
        std::io::Write::write_all(&mut writer, &event(100, 0)).unwrap();
        assert_eq!(state(), (Some(100_000), 1));
        drop(writer);
        assert_eq!(state(), (None, 0));
    }

    #[test]
    fn devices_come_and_go_and_the_others_stay_open() {
        let dev = tempfile::tempdir().unwrap();
        let folder = dev.path().join("input");
        let no_sys = dev.path().join("sys");
        std::fs::create_dir(&folder).unwrap();
        let plug = |name: &str, seconds| {
            std::fs::write(folder.join(name), event(seconds, 0)).unwrap();
        };
        let unplug = |name: &str| std::fs::remove_file(folder.join(name)).unwrap();
        let mut devices = InputDevices::default();
        let mut newest_ms = || {
            let newest_ms = devices.newest_ms(dev.path(), &no_sys);
            (newest_ms.map_err(|a| a.reason), devices.count())
        };
        plug("event0", 900);
        assert_eq!(newest_ms(), (Ok(Some(900_000)), 1));
        plug("event1", 200); // event0, opened again, would report 900 again
        assert_eq!(newest_ms(), (Ok(Some(200_000)), 2));
        unplug("event1");
        assert_eq!(newest_ms(), (Ok(None), 1));
        plug("event1", 300);
        assert_eq!(newest_ms(), (Ok(Some(300_000)), 2));
        unplug("event1");
        plug("event1", 100); // another device with the old name, between two samples
        assert_eq!(newest_ms(), (Ok(Some(100_000)), 2));
        unplug("event0");
        unplug("event1");
        assert_eq!(newest_ms(), (Err(Reason::Unsupported), 0));
    }

    proptest! {
        #[test]
        fn never_panics(events in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = newest_event_ms(&events);
        }
    }
}
