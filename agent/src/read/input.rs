//! `/dev/input/event*`: when the owner last touched a keyboard, mouse or the like.
//!
//! Devices stay open from one sample to the next, so that the kernel queues what happens in between;
//! a sample drains them and keeps the newest time, never the code of an event.

use crate::absence::{Absent, Reason};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::path::Path;

/// Size of `struct input_event` on 64-bit machines: a timeval, then type, code and value.
const EVENT_BYTES: usize = 24;

/// The input devices being watched.
#[derive(Debug, Default)]
pub struct InputDevices {
    open: BTreeMap<String, OwnedFd>,
}

impl InputDevices {
    /// Opens devices that are new, drains all, and gives the newest event's wall-clock time in
    /// milliseconds: `None` when nothing happened since the last call.
    ///
    /// # Errors
    /// Unsupported where there is no input device, denied where one may not be read (someone may be
    /// typing on it), malformed where an event is torn.
    pub fn newest_ms(&mut self, dev_root: &Path, sys_root: &Path) -> Result<Option<i64>, Absent> {
        self.open_new(dev_root, sys_root)?;
        let mut newest_ms = None;
        let mut gone = Vec::new();
        for (name, device) in &self.open {
            match drain(device) {
                Ok(time_ms) => newest_ms = newest_ms.max(time_ms),
                Err(Drained::Gone) => gone.push(name.clone()),
                Err(Drained::Torn) => {
                    return Err(Absent::new(Reason::Malformed, "input: torn event"));
                }
            }
        }
        for name in gone {
            self.open.remove(&name);
        }
        Ok(newest_ms)
    }

    /// How many devices are watched.
    #[must_use]
    pub fn count(&self) -> usize {
        self.open.len()
    }

    fn open_new(&mut self, dev_root: &Path, sys_root: &Path) -> Result<(), Absent> {
        let none = || Absent::new(Reason::Unsupported, "no input device");
        let folder = dev_root.join("input");
        let mut refused = None;
        for entry in std::fs::read_dir(&folder).map_err(|_| none())?.flatten() {
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            if !name.starts_with("event")
                || self.open.contains_key(&name)
                || !can_be_touched(sys_root, &name)
            {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match openat(CWD, entry.path(), flags, Mode::empty()) {
                Ok(device) => {
                    self.open.insert(name, device);
                }
                Err(Errno::NODEV | Errno::NOENT | Errno::NXIO) => {} // unplugged meanwhile
                Err(e) => refused = Some(Absent::from_errno("input", e)),
            }
        }
        match refused {
            Some(absent) => Err(absent),
            None if self.open.is_empty() => Err(none()),
            None => Ok(()),
        }
    }
}

/// Whether the device has keys or relative axes: a sensor, which reports by itself, has neither.
/// A device that sysfs does not describe counts.
fn can_be_touched(sys_root: &Path, name: &str) -> bool {
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

enum Drained {
    Gone,
    Torn,
}

fn drain(device: &OwnedFd) -> Result<Option<i64>, Drained> {
    let mut newest_ms = None;
    let mut events = [0u8; EVENT_BYTES * 64];
    loop {
        match rustix::io::read(device, &mut events) {
            Ok(0) | Err(Errno::AGAIN) => return Ok(newest_ms),
            Ok(length) => {
                let time_ms = newest_event_ms(&events[..length]).ok_or(Drained::Torn)?;
                newest_ms = newest_ms.max(Some(time_ms));
            }
            Err(Errno::INTR) => {}
            Err(_) => return Err(Drained::Gone),
        }
    }
}

/// Time of the newest of some events; `None` when they are not whole.
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
        let reason = |r: Result<Option<i64>, Absent>| r.map_err(|a| a.reason);
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

    proptest! {
        #[test]
        fn never_panics(events in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = newest_event_ms(&events);
        }
    }
}
