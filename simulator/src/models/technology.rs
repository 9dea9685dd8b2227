//! Technologies of remote memory, as TOML.

use gleaner_schemas::curve::Evidence;
use serde::Deserialize;

/// A remote memory: the times of an access to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Technology {
    /// Name by which a user selects the technology: that of its file.
    #[serde(skip)]
    pub name: String,
    /// Name in sentences.
    pub label: String,
    /// Description in one line.
    pub about: String,
    /// Origin of the figures.
    pub evidence: Evidence,
    /// Source of the figures, or the host on which they were measured.
    pub source: String,
    /// Name of the program with which the figures were measured; absent if they belong to no program.
    pub program: Option<String>,
    /// Unit of an access.
    pub granularity: Granularity,
    /// Bytes of a cache line; only for lines.
    pub line_bytes: Option<u64>,
    /// Time of software per page; only for pages.
    pub software_us: Option<Estimate>,
    /// Time of an access, without software and link.
    pub latency_us: Estimate,
    /// Rate of the link; without one, transmission takes no time.
    pub link_mbit_per_s: Option<Rate>,
    /// Time of an access to local memory; only for lines.
    pub local_us: Option<Estimate>,
    /// Number of misses that the processor waits for at the same time; only for lines.
    pub overlap: Option<Estimate>,
    /// Part of the technology at which accesses queue.
    pub queueing: Queueing,
}

/// Unit of an access to remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Granularity {
    /// Pages, which are fetched into local memory.
    Page,
    /// Cache lines, which are read and written where they are.
    Line,
}

/// Part of a technology at which accesses queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Queueing {
    /// The link serves one page at a time, in the order of arrival.
    Link,
    /// Nothing queues.
    None,
}

/// A figure with its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "[f64; 3]")]
pub struct Estimate {
    /// The expected value.
    pub value: f64,
    /// Lower end of the range.
    pub low: f64,
    /// Upper end of the range.
    pub high: f64,
}

/// A rate above 0.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Rate(f64);

/// Largest figure that is accepted: microseconds of an hour, or as many Mbit/s.
const MOST: f64 = 3.6e9;
/// Least rate of a link.
const LEAST_RATE: f64 = 1e-3;

impl TryFrom<[f64; 3]> for Estimate {
    type Error = String;

    fn try_from([value, low, high]: [f64; 3]) -> Result<Self, String> {
        if 0.0 <= low && low <= value && value <= high && high <= MOST {
            return Ok(Self { value, low, high });
        }
        Err(format!(
            "[{value}, {low}, {high}] is no value with its range: write [value, low, high], 0 or above, where low <= value <= high"
        ))
    }
}

impl TryFrom<f64> for Rate {
    type Error = String;

    fn try_from(mbit_per_s: f64) -> Result<Self, String> {
        if (LEAST_RATE..=MOST).contains(&mbit_per_s) {
            return Ok(Self(mbit_per_s));
        }
        Err(format!("{mbit_per_s} is no rate: write Mbit/s, above 0"))
    }
}

impl Rate {
    /// Time that this number of bytes takes on the link, in microseconds.
    #[must_use]
    pub fn us(self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.0
    }
}

/// Reason why a file describes no technology.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TechnologyError {
    /// The text is not TOML, has an unknown key, or an impossible value.
    #[error("{name}: {}", reason.trim_end())]
    File {
        /// Name of the technology.
        name: String,
        /// Position in the file, and the fault.
        reason: String,
    },
    /// A key that the granularity needs, or does not have.
    #[error("{name}: a technology of granularity {granularity} {fault}")]
    Key {
        /// Name of the technology.
        name: String,
        /// Granularity in the technology's file.
        granularity: &'static str,
        /// Description of the fault, with the key.
        fault: &'static str,
    },
}

impl Technology {
    /// Parses the text of a technology's file.
    ///
    /// # Errors
    /// [`TechnologyError`], with the line.
    pub fn parse(name: &str, text: &str) -> Result<Self, TechnologyError> {
        let parsed: Self = toml::from_str(text).map_err(|error| TechnologyError::File {
            name: name.to_owned(),
            reason: error.to_string(),
        })?;
        let technology = Self {
            name: name.to_owned(),
            ..parsed
        };
        technology.check()?;
        Ok(technology)
    }

    fn check(&self) -> Result<(), TechnologyError> {
        let refuse = |granularity, fault| {
            Err(TechnologyError::Key {
                name: self.name.clone(),
                granularity,
                fault,
            })
        };
        match self.granularity {
            Granularity::Page => {
                if self.software_us.is_none() {
                    return refuse("page", "needs software_us");
                }
                if self.line_bytes.is_some() || self.local_us.is_some() || self.overlap.is_some() {
                    return refuse("page", "has no line_bytes, local_us and overlap");
                }
                if self.queueing == Queueing::Link && self.link_mbit_per_s.is_none() {
                    return refuse("page", "whose link queues needs link_mbit_per_s");
                }
            }
            Granularity::Line => {
                let (Some(local), Some(overlap)) = (self.local_us, self.overlap) else {
                    return refuse("line", "needs local_us and overlap");
                };
                if !self
                    .line_bytes
                    .is_some_and(|bytes| bytes.is_power_of_two() && bytes <= 4096)
                {
                    return refuse("line", "needs line_bytes: a power of two, at most 4096");
                }
                if self.software_us.is_some()
                    || self.link_mbit_per_s.is_some()
                    || self.queueing == Queueing::Link
                {
                    return refuse("line", "has no software_us and no link");
                }
                if overlap.low < 1.0 || local.high > self.latency_us.low {
                    return refuse(
                        "line",
                        "needs an overlap of 1 or more, and a latency_us above local_us",
                    );
                }
            }
        }
        Ok(())
    }

    /// Shipped technology with this name.
    #[must_use]
    pub fn shipped_text(name: &str) -> Option<&'static str> {
        let found = SHIPPED_TECHNOLOGIES.iter().find(|(own, _)| *own == name);
        found.map(|(_, text)| *text)
    }
}

macro_rules! shipped {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../technologies/", $name, ".toml")))),+]
    };
}

/// Names and texts of the technologies that are compiled into Gleaner: the paper's six, then those of today.
pub const SHIPPED_TECHNOLOGIES: [(&str, &str); 14] = shipped![
    "now",
    "subpage",
    "myrnow",
    "atmnow",
    "cc-numa",
    "cc-now",
    "lease-swap-10gbe",
    "lease-swap-25gbe",
    "tcp-10gbe",
    "tcp-25gbe",
    "tcp-100gbe",
    "rdma-100g",
    "cxl-direct",
    "cxl-pooled",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_files_are_technologies() {
        for (name, text) in SHIPPED_TECHNOLOGIES {
            let technology = Technology::parse(name, text).unwrap();
            assert!(
                !technology.source.is_empty() && !technology.label.is_empty(),
                "{name}"
            );
            assert_eq!(Technology::shipped_text(name), Some(text));
        }
        let page_us = |name| {
            let text = Technology::shipped_text(name).unwrap();
            Technology::parse(name, text)
                .unwrap()
                .link_mbit_per_s
                .unwrap()
                .us(4096)
        };
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 0.005, "{found}");
        near(page_us("myrnow"), 80.0);
        near(page_us("atmnow"), 200.0);
        near(page_us("tcp-10gbe"), 3.28);
        near(page_us("tcp-25gbe"), 1.31);
        near(page_us("rdma-100g"), 0.33);
    }

    #[test]
    fn absurd_technologies_are_refused_by_line_or_key() {
        let text = Technology::shipped_text("tcp-10gbe").unwrap();
        for (from, to, found) in [
            ("link_mbit_per_s = 10000", "link_mbit_per_s = 0", "line 9"),
            ("link_mbit_per_s = 10000", "link_mbit_per_s = -1", "no rate"),
            (
                "link_mbit_per_s = 10000",
                "link_mbit_per_s = nan",
                "no rate",
            ),
            (
                "link_mbit_per_s = 10000",
                "link_mbit_per_s = inf",
                "no rate",
            ),
            ("link_mbit_per_s = 10000\n", "", "needs link_mbit_per_s"),
            (
                "latency_us = [20, 10, 40]",
                "latency_us = [5, 10, 40]",
                "line 8",
            ),
            (
                "latency_us = [20, 10, 40]",
                "latency_us = [20, -1, 40]",
                "no value with its range",
            ),
            (
                "latency_us = [20, 10, 40]",
                "latency_us = [20, 10, 1e300]",
                "no value with its range",
            ),
            (
                "latency_us = [20, 10, 40]",
                "latency_us = [20, 10]",
                "line 8",
            ),
            (
                "granularity = \"page\"",
                "granularity = \"line\"",
                "needs local_us",
            ),
            ("granularity = \"page\"", "granularity = \"word\"", "line 5"),
            ("label", "lable", "line 1"),
            ("evidence = \"assumed\"", "evidence = \"heard\"", "line 3"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = Technology::parse("mine", &text.replacen(from, to, 1)).unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with("mine: ") && error.contains(found),
                "{to}: {error}"
            );
        }
        let lines = Technology::shipped_text("cxl-direct").unwrap();
        for (from, to) in [
            ("line_bytes = 64", "line_bytes = 60"),
            ("overlap = [2, 1, 4]", "overlap = [0.5, 0.5, 4]"),
            ("local_us = [0.1, 0.1, 0.1]", "local_us = [0.3, 0.3, 0.3]"),
            ("queueing = \"none\"", "queueing = \"link\""),
        ] {
            assert!(lines.contains(from), "{from}");
            assert!(
                Technology::parse("mine", &lines.replacen(from, to, 1)).is_err(),
                "{to}"
            );
        }
    }
}
