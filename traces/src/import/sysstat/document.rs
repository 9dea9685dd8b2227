//! Output of `sadf -j`, parsed entry by entry. Only a few hundred bytes per sample are in memory, even for a
//! day of one-second samples.
//!
//! ```text
//! {"sysstat": {"hosts": [{"nodename": "a", "release": …, "machine": …, "number-of-cpus": 2, …,
//!   "statistics": [{"timestamp": {"date": "2026-11-21", "time": "22:57:50", "utc": 1, "interval": 1},
//!     "memory": {"memfree": 11128328, "avail": 23943264, …}, "hugepages": {…}, "queue": {…}, …}, …],
//!   "restarts": [{"boot": {"date": …, "time": …, "utc": 1, "cpu_count": 2}}, …]}]}}
//! ```
//!
//! `utc` is 1 for times in UTC; since sysstat 12.7.1 `tz` names the time zone instead.

use super::figures::{FIGURES, Figures};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::Value;
use std::fmt;
use std::io::Read;

/// A host's part of a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Host {
    pub(super) nodename: String,
    pub(super) kernel_release: Option<String>,
    pub(super) architecture: Option<String>,
    pub(super) cpus_count: Option<i64>,
    pub(super) entries: Vec<Entry>,
    pub(super) restarts: Vec<Restart>,
}

/// An entry of the statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entry {
    pub(super) stamp: Stamp,
    /// Figures of the entry: memory in KiB, numbers of tasks, and figures without a unit.
    pub(super) figures: Figures,
    /// Name and text of the first figure that is not a number.
    pub(super) wrong: Option<String>,
}

/// A boot of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Restart {
    pub(super) stamp: Stamp,
    pub(super) cpus_count: Option<i64>,
}

/// A time as written in the document.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Stamp {
    date: Option<jiff::civil::Date>,
    time: Option<jiff::civil::Time>,
    pub(super) zone: Zone,
}

impl Stamp {
    pub(super) fn date_time(&self) -> Option<DateTime> {
        Some(self.date?.to_datetime(self.time?))
    }
}

/// Time zone of a timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Zone {
    /// Offset from UTC in seconds.
    Offset(Offset),
    /// Local time of the host, or of the machine on which `sadf` printed the document.
    #[default]
    Local,
}

/// The hosts of a document.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) hosts: Vec<Host>,
    /// Fault that ended parsing, with its line. The content before it has been read.
    pub(super) cut: Option<String>,
    /// True if parsing stopped after the requested number of entries.
    pub(super) is_enough: bool,
}

/// Reads at most `most` entries of statistics, over all hosts; later content is not parsed.
pub(super) fn read(from: impl Read, most: usize) -> Document {
    let mut found = DocumentState {
        most,
        ..DocumentState::default()
    };
    let mut json = serde_json::Deserializer::from_reader(from);
    let mut cut = None;
    // A file may hold several documents, one after another.
    loop {
        let walk = DocumentPass {
            place: Place::Document,
            found: &mut found,
        };
        match walk.deserialize(&mut json) {
            Ok(()) => {}
            Err(_) if found.is_enough() => break,
            Err(error) => {
                cut = Some(error.to_string());
                break;
            }
        }
        if json.end().is_ok() {
            break;
        }
    }
    Document {
        is_enough: found.is_enough(),
        hosts: found.hosts,
        cut,
    }
}

#[derive(Default)]
struct DocumentState {
    hosts: Vec<Host>,
    most: usize,
    entries_count: usize,
    /// The entry or restart that is being read.
    entry: Entry,
    restart: Restart,
}

impl DocumentState {
    fn is_enough(&self) -> bool {
        self.entries_count >= self.most
    }
}

/// Part of the document that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Document,
    Sysstat,
    Hosts,
    Host,
    Statistics,
    Entry,
    EntryTime,
    Group(&'static str),
    Restarts,
    Restart,
    RestartTime,
}

impl Place {
    /// Place of the value that belongs to `key`, in an object at this place.
    fn under(self, key: &str) -> Option<Self> {
        Some(match (self, key) {
            (Self::Document, "sysstat") => Self::Sysstat,
            (Self::Sysstat, "hosts") => Self::Hosts,
            (Self::Host, "statistics") => Self::Statistics,
            (Self::Host, "restarts") => Self::Restarts,
            (Self::Entry, "timestamp") => Self::EntryTime,
            (Self::Entry, _) => Self::Group(FIGURES.iter().find(|f| f.group == key)?.group),
            (Self::Restart, "boot") => Self::RestartTime,
            _ => return None,
        })
    }

    /// Place of the elements of an array at this place.
    fn element(self) -> Option<Self> {
        Some(match self {
            Self::Hosts => Self::Host,
            Self::Statistics => Self::Entry,
            Self::Restarts => Self::Restart,
            _ => return None,
        })
    }

    /// Returns true if values at this place of the document are needed.
    fn keeps(self) -> bool {
        matches!(
            self,
            Self::Host | Self::EntryTime | Self::Group(_) | Self::RestartTime
        )
    }
}

/// A value of the document that is being parsed.
struct DocumentPass<'f> {
    place: Place,
    found: &'f mut DocumentState,
}

impl<'de> DeserializeSeed<'de> for DocumentPass<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.place.element() {
            Some(_) => json.deserialize_seq(self),
            None => json.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for DocumentPass<'_> {
    type Value = ();

    fn expecting(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(text, "what `sadf -j` prints")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let Some(place) = self.place.element() else {
            return Err(A::Error::custom("a list where sadf prints none"));
        };
        loop {
            let found = &mut *self.found;
            if place == Place::Host {
                found.hosts.push(Host::default());
            }
            let walk = DocumentPass { place, found };
            let is_there = elements.next_element_seed(walk)?.is_some();
            let found = &mut *self.found;
            if !is_there {
                if place == Place::Host {
                    found.hosts.pop();
                }
                return Ok(());
            }
            let Some(host) = found.hosts.last_mut() else {
                continue;
            };
            match place {
                Place::Entry => {
                    host.entries.push(std::mem::take(&mut found.entry));
                    found.entries_count += 1;
                    if found.is_enough() {
                        return Err(A::Error::custom("enough"));
                    }
                }
                Place::Restart => host.restarts.push(std::mem::take(&mut found.restart)),
                _ => {}
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while let Some(key) = values.next_key::<String>()? {
            if let Some(place) = self.place.under(&key) {
                let found = &mut *self.found;
                values.next_value_seed(DocumentPass { place, found })?;
            } else if self.place.keeps() {
                self.found.keep(self.place, &key, values.next_value()?);
            } else {
                values.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

impl DocumentState {
    fn keep(&mut self, place: Place, key: &str, value: Value) {
        match place {
            Place::Host => {
                let Some(host) = self.hosts.last_mut() else {
                    return;
                };
                match (key, value) {
                    ("nodename", Value::String(name)) => host.nodename = name,
                    ("release", Value::String(release)) => host.kernel_release = Some(release),
                    ("machine", Value::String(machine)) => host.architecture = Some(machine),
                    ("number-of-cpus", value) => host.cpus_count = value.as_i64(),
                    _ => {}
                }
            }
            Place::EntryTime => self.entry.stamp.keep(key, &value),
            Place::RestartTime => match key {
                "cpu_count" => self.restart.cpus_count = value.as_i64(),
                _ => self.restart.stamp.keep(key, &value),
            },
            Place::Group(group) => {
                let is_it = |f: &super::figures::Figure| f.group == group && f.name == key;
                let Some(at) = FIGURES.iter().position(is_it) else {
                    return;
                };
                let number = value.as_f64().filter(|n| n.is_finite() && *n >= 0.0);
                if number.is_none() {
                    let wrong = || format!("{key} is {}", cut(&value.to_string()));
                    self.entry.wrong.get_or_insert_with(wrong);
                }
                self.entry.figures.0[at] = number;
            }
            _ => {}
        }
    }
}

impl Stamp {
    fn keep(&mut self, key: &str, value: &Value) {
        let text = value.as_str();
        match key {
            "date" => self.date = text.and_then(|text| text.parse().ok()),
            "time" => self.time = text.and_then(|text| text.parse().ok()),
            "utc" if value.as_i64() == Some(1) => self.zone = Zone::Offset(Offset::UTC),
            "tz" => self.zone = text.and_then(offset).map_or(Zone::Local, Zone::Offset),
            _ => {}
        }
    }
}

/// UTC offset that a time zone's name states, if any: `UTC`, or `+03` and `-0330`, which are names of zones
/// without letters.
fn offset(name: &str) -> Option<Offset> {
    if matches!(name, "UTC" | "GMT" | "UCT") {
        return Some(Offset::UTC);
    }
    let digits = name.strip_prefix(['+', '-'])?;
    let is_number = matches!(digits.len(), 2 | 4) && digits.bytes().all(|b| b.is_ascii_digit());
    let number: i32 = digits.parse().ok().filter(|_| is_number)?;
    let (hours, minutes) = if digits.len() == 2 {
        (number, 0)
    } else {
        (number / 100, number % 100)
    };
    let seconds = 3600 * hours + 60 * minutes;
    let sign = if name.starts_with('-') { -1 } else { 1 };
    Offset::from_seconds(sign * seconds).ok()
}

/// Cuts a text to a length that fits into a message.
fn cut(text: &str) -> String {
    const CHARACTERS: usize = 40;
    text.chars().take(CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Output of three versions of sysstat for the same machine.
    const PRINTED: [&str; 3] = [
        include_str!("../../../tests/data/sysstat/11.5.7.json"),
        include_str!("../../../tests/data/sysstat/12.6.1.json"),
        include_str!("../../../tests/data/sysstat/12.7.9.json"),
    ];

    #[test]
    fn every_version_says_the_same_of_one_machine() {
        for printed in PRINTED {
            let document = read(printed.as_bytes(), usize::MAX);
            assert_eq!(document.cut, None);
            let [host] = document.hosts.as_slice() else {
                panic!("{document:?}");
            };
            assert_eq!((host.nodename.as_str(), host.cpus_count), ("desk", Some(2)));
            assert_eq!(host.architecture.as_deref(), Some("x86_64"));
            assert_eq!(host.entries.len(), 3);
            let used =
                super::super::UsedExclusion::of(host.entries.iter().map(|e| &e.figures)).unwrap();
            for entry in &host.entries {
                assert_eq!(used.mem_total_kib(&entry.figures), Some(24_684_096.0));
                assert_eq!(entry.stamp.zone, Zone::Offset(Offset::UTC));
                assert!(entry.stamp.date_time().is_some() && entry.wrong.is_none());
                assert!(entry.figures.get("ldavg-15").is_some_and(|load| load > 3.0));
                assert_eq!(entry.figures.get("swpused"), Some(0.0));
                assert_eq!(entry.figures.get("hugfree"), Some(0.0));
            }
        }
        let restarts = &read(PRINTED[1].as_bytes(), usize::MAX).hosts[0].restarts;
        let times = restarts.iter().map(|r| (r.stamp.date_time(), r.cpus_count));
        let expected = jiff::civil::date(2026, 11, 21).at(23, 21, 43, 0);
        assert_eq!(times.collect::<Vec<_>>(), [(Some(expected), Some(2))]);
    }

    #[test]
    fn no_more_is_read_than_is_asked_for() {
        let broken = PRINTED[0].rsplit_once("memfree").unwrap().0;
        let document = read(broken.as_bytes(), 1);
        assert_eq!((document.hosts[0].entries.len(), document.cut), (1, None));
        let document = read(broken.as_bytes(), usize::MAX);
        assert_eq!(document.hosts[0].entries.len(), 2);
        assert!(document.cut.unwrap().contains("line 26 column"));
    }

    #[test]
    fn documents_one_after_the_other_are_read() {
        let document = read(PRINTED.concat().as_bytes(), usize::MAX);
        assert_eq!((document.hosts.len(), document.cut), (3, None));
    }

    #[test]
    fn what_is_no_figure_is_said() {
        let text = PRINTED[0].replace("\"slab\": 1146432", "\"slab\": \"?\"");
        let entries = &read(text.as_bytes(), usize::MAX).hosts[0].entries;
        assert_eq!(entries[0].wrong.as_deref(), Some("slab is \"?\""));
        assert_eq!(entries[1].wrong, None);
    }

    #[test]
    fn time_zones_that_say_their_offset() {
        for (name, hours) in [
            ("UTC", Some(0.0)),
            ("+03", Some(3.0)),
            ("-0330", Some(-3.5)),
        ] {
            let seconds = offset(name).map(|o| f64::from(o.seconds()) / 3600.0);
            assert_eq!(seconds, hours, "{name}");
        }
        for name in ["CET", "", "+", "+1x", "+-1", "-99", "+00300"] {
            assert_eq!(offset(name), None, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics(
            which in 0..PRINTED.len(), at in any::<prop::sample::Index>(), length in 0..40_usize,
            instead in "[ -~é]{0,20}",
        ) {
            let mut bytes = PRINTED[which].as_bytes().to_vec();
            let at = at.index(bytes.len());
            let end = bytes.len().min(at + length);
            bytes.splice(at..end, instead.bytes());
            let whole = read(&bytes[..], usize::MAX);
            prop_assert!(whole.hosts.iter().map(|h| h.entries.len()).sum::<usize>() <= 4);
            let cut = read(&bytes[..at], usize::MAX);
            prop_assert!(cut.cut.is_some() || at + 1 >= PRINTED[which].len());
        }
    }
}
