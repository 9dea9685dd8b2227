//! Parser of `/proc/loadavg`.

use super::{number, words};

/// Load averages and task counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadAverage {
    /// Load average over 1 minute.
    pub load1: f64,
    /// Load average over 5 minutes.
    pub load5: f64,
    /// Load average over 15 minutes.
    pub load15: f64,
    /// Number of tasks that are running or ready to run.
    pub running: i64,
    /// Total number of tasks.
    pub tasks: i64,
}

impl LoadAverage {
    /// Columns of `samples` that come from this file.
    pub const COLUMNS: [&str; 5] = [
        "load1",
        "load5",
        "load15",
        "running_tasks_count",
        "tasks_count",
    ];

    /// Parses the file's only line.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut words = words(text);
        let mut load = || number::<f64>(words.next()?).filter(|l| l.is_finite() && *l >= 0.0);
        let (load1, load5, load15) = (load()?, load()?, load()?);
        let mut counts = words.next()?.splitn(2, |&b| b == b'/');
        let mut count = || number::<u32>(counts.next()?).map(i64::from);
        Some(Self {
            load1,
            load5,
            load15,
            running: count()?,
            tasks: count()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_line() {
        let load = LoadAverage {
            load1: 0.67,
            load5: 1.29,
            load15: 1.07,
            running: 7,
            tasks: 124,
        };
        assert_eq!(
            LoadAverage::parse(b"0.67 1.29 1.07 7/124 22081\n"),
            Some(load)
        );
        assert_eq!(LoadAverage::parse(b"0.67 NaN 1.07 7/124 22081\n"), None);
        assert_eq!(LoadAverage::parse(b"0.67 1.29"), None);
        assert_eq!(LoadAverage::parse(b"0.67 -1.29 1.07 7/124 22081\n"), None);
        assert_eq!(LoadAverage::parse(b"0.67 1.29 1.07 -7/124 22081\n"), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = LoadAverage::parse(&text);
            let _ = LoadAverage::parse(&[b"0.1 0.2 0.3 ".as_slice(), &text].concat());
        }
    }
}
