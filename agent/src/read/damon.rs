//! Estimates of DAMON_STAT (Linux 6.17, `Documentation/admin-guide/mm/damon/stat.rst`): the time since memory
//! was last accessed. The agent only reads them; the owner decides whether DAMON runs.

use super::{Tree, number};
use crate::missing_values::{AbsentValue, Reason};

/// Time since memory was last accessed, by percentile of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePercentiles {
    /// A tenth of memory is idle for at most this time.
    pub p10_ms: i64,
    /// A quarter of memory is idle for at most this time.
    pub p25_ms: i64,
    /// Half of memory is idle for at most this time.
    pub p50_ms: i64,
    /// Three quarters of memory are idle for at most this time.
    pub p75_ms: i64,
    /// Nine tenths of memory are idle for at most this time.
    pub p90_ms: i64,
}

impl IdlePercentiles {
    /// Parses the 101 values, from the 0th percentile to the 100th. A negative value (since Linux 6.19) is
    /// the time for which memory has been in use without pause.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let values: Option<Vec<i64>> = text
            .trim_ascii()
            .split(|&b| b == b',')
            .map(number)
            .collect();
        let values: [i64; 101] = values?.try_into().ok()?;
        Some(Self {
            p10_ms: values[10],
            p25_ms: values[25],
            p50_ms: values[50],
            p75_ms: values[75],
            p90_ms: values[90],
        })
    }

    /// Reads the values if DAMON_STAT exists and runs; otherwise its files hold no estimate.
    ///
    /// # Errors
    /// Unsupported without DAMON_STAT, or if it is switched off.
    pub fn read(sys: &Tree, text: &mut Vec<u8>) -> Result<Self, AbsentValue> {
        const ENABLED: &str = "module/damon_stat/parameters/enabled";
        const IDLE: &str = "module/damon_stat/parameters/memory_idle_ms_percentiles";
        let is_enabled = sys.parse(ENABLED, text, |text| Some(text.starts_with(b"Y")))?;
        if !is_enabled {
            return Err(AbsentValue::new(Reason::Unsupported, "DAMON_STAT is off"));
        }
        sys.parse(IDLE, text, Self::parse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hundred_and_one(first: i64, step: i64) -> String {
        let values = (0..101).map(|n| (first + n * step).to_string());
        values.collect::<Vec<_>>().join(",") + "\n"
    }

    #[test]
    fn tenths_and_quarters_of_memory() {
        let parsed = |text: &str| IdlePercentiles::parse(text.as_bytes());
        let percentiles = IdlePercentiles {
            p10_ms: -1000,
            p25_ms: 2000,
            p50_ms: 7000,
            p75_ms: 12_000,
            p90_ms: 15_000,
        };
        assert_eq!(parsed(&hundred_and_one(-3000, 200)), Some(percentiles));
        assert_eq!(parsed(""), None);
        assert_eq!(parsed("1,2,3\n"), None);
        assert_eq!(parsed(&hundred_and_one(0, 1).replace("50", "x")), None);
    }

    #[test]
    fn absent_without_damon_stat_and_where_it_is_off() {
        let dir = tempfile::tempdir().unwrap();
        let sys = Tree::open(dir.path()).unwrap();
        let read = || IdlePercentiles::read(&sys, &mut Vec::new()).map_err(|a| a.reason);
        assert_eq!(read(), Err(Reason::Unsupported));
        let folder = dir.path().join("module/damon_stat/parameters");
        std::fs::create_dir_all(&folder).unwrap();
        let idle = hundred_and_one(0, 100);
        std::fs::write(folder.join("memory_idle_ms_percentiles"), idle).unwrap();
        std::fs::write(folder.join("enabled"), "N\n").unwrap();
        assert_eq!(read(), Err(Reason::Unsupported));
        std::fs::write(folder.join("enabled"), "Y\n").unwrap();
        assert_eq!(read().map(|p| p.p50_ms), Ok(5000));
        std::fs::write(folder.join("memory_idle_ms_percentiles"), "1,2\n").unwrap();
        assert_eq!(read(), Err(Reason::Malformed));
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9,x\n-]{0,300}") {
            let _ = IdlePercentiles::parse(text.as_bytes());
        }
    }
}
