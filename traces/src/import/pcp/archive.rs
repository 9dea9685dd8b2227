//! The samples of an archive. `pmlogger` records groups of metrics; each group has its own records and its
//! own interval. The records of one moment form one sample.

use super::dump::Line;
use super::metrics::{
    AVAILABLE, BOOTED, COLUMNS, CPUS, FACTS, FREE, Metric, NAMES, NEEDED, PHYSICAL, USED, scale,
};
use crate::import::{Facts, Reading, kernel};
use gleaner_schemas::column::Value;

/// Maximum distance of records that belong to one moment, in ms; a record that repeats a metric begins
/// another moment. `pmlogger` records the groups right after one another.
const MOMENT_MS: i64 = 500;
/// Maximum plausible memory size: 1 EiB.
const MEMORY_BYTES: f64 = (1_u64 << 60) as f64;

/// An item read from an archive; items come in the archive's order.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ArchiveItem {
    Sample {
        reading: Reading,
        /// Values in the order of [`NAMES`].
        values: Vec<Option<f64>>,
        facts: Facts,
    },
    /// A record at this time that gives no sample; `why` describes the fault.
    Unreadable { time_ms: i64, why: String },
    /// The recording was interrupted at this time.
    Mark { time_ms: i64 },
}

/// Values that rarely change. The archive has each of them once, and again at a change; until then it holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Inventory {
    physical_bytes: Option<f64>,
    cpus_count: Option<f64>,
    booted_s: Option<f64>,
    facts: [Option<Value>; FACTS.len()],
}

/// State while an archive is read.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) host: Option<String>,
    pub(super) inventory: Inventory,
    /// Time of the archive's first record.
    pub(super) first_ms: Option<i64>,
    /// A required metric whose unit cannot be converted.
    pub(super) foreign_unit: Option<String>,
    /// Metrics to read; a record's values have the same order.
    wanted: Vec<WantedMetric>,
    /// Metric that the current lines describe, or whose instances they list.
    metric: String,
    is_single: bool,
    record: Option<Record>,
    moment: Option<Moment>,
}

#[derive(Debug)]
struct WantedMetric {
    metric: Metric,
    column: &'static str,
    /// Factor from the metric's unit to the column's.
    scale: f64,
    is_single: bool,
}

#[derive(Debug)]
struct Record {
    time_ms: i64,
    values: Vec<(usize, f64)>,
    wrong: Option<String>,
}

/// Records that form one sample.
#[derive(Debug)]
struct Moment {
    first_ms: i64,
    /// Time of the memory reading.
    available_ms: Option<i64>,
    values: Vec<Option<f64>>,
    wrong: Option<String>,
}

impl Archive {
    /// State before the first line. The archive's recorded values replace those of `inventory`.
    pub(super) fn new(inventory: Inventory) -> Self {
        let needed = NEEDED.map(|(name, column)| (Metric::plain(name), column));
        let columns = COLUMNS
            .iter()
            .flat_map(|column| column.metrics.iter().map(|metric| (*metric, column.name)));
        let wanted = needed.into_iter().chain(columns);
        let wanted = wanted.map(|(metric, column)| WantedMetric {
            metric,
            column,
            scale: 1.0,
            is_single: false,
        });
        Self {
            host: None,
            inventory,
            first_ms: None,
            foreign_unit: None,
            wanted: wanted.collect(),
            metric: String::new(),
            is_single: false,
            record: None,
            moment: None,
        }
    }

    /// Returns true if the lines read so far state the machine's memory size.
    pub(super) fn has_memory(&self) -> bool {
        self.inventory.physical_bytes.is_some()
    }

    /// Reads a line, and appends the items that this line completes to `said`.
    pub(super) fn take(&mut self, line: Line<'_>, said: &mut Vec<ArchiveItem>) {
        match line {
            Line::Host(host) => self.host = Some(host.to_owned()),
            Line::Metric(metric) => metric.clone_into(&mut self.metric),
            Line::Type { is_single } => self.is_single = is_single,
            Line::Units(units) => self.is_in(units),
            Line::Record { time_ms } => {
                self.record_ends(said);
                self.first_ms.get_or_insert(time_ms);
                self.record = Some(Record {
                    time_ms,
                    values: Vec::new(),
                    wrong: None,
                });
            }
            Line::Mark { time_ms } => {
                self.ends(said);
                said.push(ArchiveItem::Mark { time_ms });
            }
            Line::Instances { metric } => metric.clone_into(&mut self.metric),
            Line::Instance { instance, value } => {
                let metric = std::mem::take(&mut self.metric);
                self.value(&metric, Some(instance), value);
                self.metric = metric;
            }
            Line::Value {
                metric,
                instance,
                value,
            } => self.value(metric, instance, value),
            Line::Other => {}
        }
    }

    /// Completes the last record and the last sample, after the archive's last line.
    pub(super) fn ends(&mut self, said: &mut Vec<ArchiveItem>) {
        self.record_ends(said);
        self.moment_ends(said);
    }

    /// Notes that the metric being described has the unit `units`.
    fn is_in(&mut self, units: &str) {
        let (metric, is_single) = (self.metric.as_str(), self.is_single);
        for wanted in self.wanted.iter_mut().filter(|w| w.metric.name == metric) {
            wanted.is_single = is_single;
            match scale(wanted.column, units) {
                Some(scale) => wanted.scale = scale,
                None => {
                    let foreign = || format!("{metric} is in {units:?}");
                    self.foreign_unit.get_or_insert_with(foreign);
                }
            }
        }
    }

    fn value(&mut self, metric: &str, instance: Option<&str>, value: &str) {
        let Some(record) = &mut self.record else {
            return;
        };
        let is_first = instance.is_none_or(|instance| instance == "cpu0");
        if let Some(at) = FACTS.iter().position(|(_, name)| *name == metric)
            && is_first
        {
            let (column, _) = FACTS[at];
            let fact = if column.ends_with("_bytes") {
                value.parse().ok().map(Value::Integer)
            } else {
                Some(Value::Text(value.to_owned()))
            };
            self.inventory.facts[at] = fact;
        }
        let is_it = |metric_of: &Metric| metric_of.name == metric && metric_of.instance == instance;
        for (at, wanted) in self.wanted.iter().enumerate() {
            if !is_it(&wanted.metric) {
                continue;
            }
            let number = if wanted.is_single {
                // Restores the decimal value before its rounding to 32 bits: 0.26 instead of 0.25999999.
                let single = value.parse::<f32>().ok();
                single.and_then(|single| single.to_string().parse().ok())
            } else {
                value.parse::<f64>().ok()
            };
            match number.filter(|n| n.is_finite() && *n >= 0.0) {
                Some(number) => record.values.push((at, number * wanted.scale)),
                None => {
                    let wrong =
                        || format!("{metric} is {}", value.chars().take(40).collect::<String>());
                    record.wrong.get_or_insert_with(wrong);
                }
            }
        }
    }

    fn record_ends(&mut self, said: &mut Vec<ArchiveItem>) {
        let Some(record) = self.record.take() else {
            return;
        };
        let is_other = self.moment.as_ref().is_some_and(|moment| {
            let passed_ms = record.time_ms - moment.first_ms;
            let repeats = |(at, _): &(usize, f64)| moment.values[*at].is_some();
            !(0..=MOMENT_MS).contains(&passed_ms) || record.values.iter().any(repeats)
        });
        if is_other {
            self.moment_ends(said);
        }
        let moment = self.moment.get_or_insert_with(|| Moment {
            first_ms: record.time_ms,
            available_ms: None,
            values: vec![None; self.wanted.len()],
            wrong: None,
        });
        for (at, value) in record.values {
            moment.values[at] = Some(value);
            match self.wanted[at].metric.name {
                AVAILABLE => moment.available_ms = Some(record.time_ms),
                PHYSICAL => self.inventory.physical_bytes = Some(value),
                CPUS => self.inventory.cpus_count = Some(value),
                BOOTED => self.inventory.booted_s = Some(value),
                _ => {}
            }
        }
        moment.wrong = moment.wrong.take().or(record.wrong);
    }

    fn moment_ends(&mut self, said: &mut Vec<ArchiveItem>) {
        let Some(moment) = self.moment.take() else {
            return;
        };
        if let Some(why) = moment.wrong {
            let time_ms = moment.first_ms;
            said.push(ArchiveItem::Unreadable { time_ms, why });
            return;
        }
        // Without a reading of available memory, the moment's values give no sample.
        let Some(time_ms) = moment.available_ms else {
            return;
        };
        let get = |metric: Metric| {
            let at = self.wanted.iter().position(|w| w.metric == metric)?;
            moment.values[at]
        };
        let plain = |name| get(Metric::plain(name));
        let both = || Some(plain(USED)? + plain(FREE)?);
        let total = self.inventory.physical_bytes.or_else(both);
        let total = total.filter(|bytes| *bytes > 0.0);
        let (Some(total), Some(available)) = (total, plain(AVAILABLE)) else {
            let why = format!("neither {PHYSICAL} nor {USED} and {FREE} are in the archive");
            said.push(ArchiveItem::Unreadable { time_ms, why });
            return;
        };
        if total > MEMORY_BYTES || available > total {
            let why = format!("{available} bytes of {total} are said to be available");
            said.push(ArchiveItem::Unreadable { time_ms, why });
            return;
        }
        let (total, available) = (total as i64, available as i64);
        let mut reading = kernel::reading(time_ms, total, available);
        reading.cpus_count = self.inventory.cpus_count.map_or(0, |count| count as i64);
        reading.booted_ms = self.inventory.booted_s.map_or(0, |s| (1000.0 * s) as i64);
        let mut values = Vec::with_capacity(NAMES.len());
        values.extend(kernel::values(total, available));
        let column = |column: &super::metrics::Column| column.metrics.iter().find_map(|m| get(*m));
        values.extend(COLUMNS.iter().map(column));
        let known = FACTS.iter().zip(&self.inventory.facts);
        let known = known.filter_map(|((column, _), fact)| Some((*column, fact.clone()?)));
        said.push(ArchiveItem::Sample {
            reading,
            values,
            facts: known.chain([kernel::headroom()]).collect(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::dump::line;
    use super::*;
    use proptest::prelude::*;

    const DESCRIBED: &str = "\
Performance metrics from host a
PMID: 60.1.58 (mem.util.available)
    Data Type: 64-bit unsigned int  InDom: PM_INDOM_NULL 0xffffffff
    Semantics: instant  Units: Kbyte
PMID: 60.1.0 (mem.physmem)
    Data Type: 64-bit unsigned int  InDom: PM_INDOM_NULL 0xffffffff
    Semantics: discrete  Units: Mbyte
PMID: 60.2.0 (kernel.all.load)
    Data Type: float  InDom: 60.5 0xf000005
    Semantics: instant  Units: none
";

    fn read(text: &str) -> (Archive, Vec<ArchiveItem>) {
        let mut archive = Archive::new(Inventory::default());
        let mut said = Vec::new();
        for text in DESCRIBED.lines().chain(text.lines()) {
            archive.take(line(text), &mut said);
        }
        archive.ends(&mut said);
        (archive, said)
    }

    fn value(values: &[Option<f64>], column: &str) -> Option<f64> {
        values[NAMES.iter().position(|name| *name == column).unwrap()]
    }

    #[test]
    fn records_of_one_moment_are_one_sample_and_each_value_is_in_its_unit() {
        let (archive, said) = read(
            "\
Sat Nov 21 22:59:50.000000 2026 2 metrics
    60.1.0 (mem.physmem): value 64
    60.0.32 (hinv.ncpu): value 2
Sat Nov 21 22:59:50.100000 2026 1 metric
    60.1.58 (mem.util.available): value 1024
Sat Nov 21 22:59:50.200000 2026 1 metric
    60.2.0 (kernel.all.load):
        inst [1 or \"1 minute\"] value 0.25999999
        inst [5 or \"5 minute\"] value 1
Sat Nov 21 22:59:55.000000 2026 1 metric
    60.2.0 (kernel.all.load): inst [1 or \"1 minute\"] value 3
Sat Nov 21 23:00:00.100000 2026 1 metric
    60.1.58 (mem.util.available): value 2048
Sat Nov 21 23:00:00.110000 2026 1 metric
    60.1.58 (mem.util.available): value 4096
",
        );
        assert_eq!(archive.host.as_deref(), Some("a"));
        assert_eq!(archive.foreign_unit, None);
        let samples: Vec<_> = said
            .iter()
            .map(|said| match said {
                ArchiveItem::Sample {
                    reading, values, ..
                } => {
                    let load = ["load1", "load5", "load15"].map(|name| value(values, name));
                    assert_eq!((reading.physical_bytes, reading.cpus_count), (64 << 20, 2));
                    (
                        reading.time_ms % 100_000,
                        reading.available_bytes >> 20,
                        load,
                    )
                }
                other => panic!("{other:?}"),
            })
            .collect();
        let nothing = [None; 3];
        let expected = [
            (90_100, 1, [Some(0.26), Some(1.0), None]),
            (100, 2, nothing),
            (110, 4, nothing),
        ];
        assert_eq!(samples, expected);
    }

    #[test]
    fn what_is_no_sample_says_why() {
        for (text, why) in [
            (
                "    60.1.58 (mem.util.available): value 1\n",
                "neither mem.physmem",
            ),
            (
                "    60.1.58 (mem.util.available): value ?\n",
                "mem.util.available is ?",
            ),
            (
                "    60.1.0 (mem.physmem): value 1\n    60.1.58 (mem.util.available): value 2000\n",
                "2048000 bytes of 1048576",
            ),
        ] {
            let (_, said) = read(&format!("Sat Nov 21 22:59:50.000000 2026 1 metric\n{text}"));
            let [ArchiveItem::Unreadable { why: found, .. }] = said.as_slice() else {
                panic!("{said:?}");
            };
            assert!(found.contains(why), "{found}");
        }
        // A record without available memory gives no sample.
        let (_, said) =
            read("Sat Nov 21 22:59:50.000000 2026 1 metric\n    60.0.32 (hinv.ncpu): value 2\n");
        assert_eq!(said, []);
    }

    #[test]
    fn a_unit_of_another_kind_is_noticed() {
        let (archive, _) = read(
            "\
PMID: 60.1.2 (mem.util.free)
    Data Type: 64-bit unsigned int  InDom: PM_INDOM_NULL 0xffffffff
    Semantics: instant  Units: Kbyte / sec
",
        );
        let found = archive.foreign_unit.as_deref();
        assert_eq!(found, Some("mem.util.free is in \"Kbyte / sec\""));
    }

    #[test]
    fn an_archive_of_pmlogger() {
        let mut archive = Archive::new(Inventory::default());
        let mut said = Vec::new();
        for text in include_str!("../../../tests/data/pcp/6.0.3.txt").lines() {
            archive.take(line(text), &mut said);
        }
        archive.ends(&mut said);
        assert_eq!(archive.host.as_deref(), Some("desk"));
        assert_eq!(archive.foreign_unit, None);
        let told: Vec<_> = said
            .iter()
            .map(|said| match said {
                ArchiveItem::Sample {
                    reading,
                    values,
                    facts,
                } => {
                    assert_eq!(reading.physical_bytes, 24_684_096 << 10);
                    assert_eq!(
                        (reading.cpus_count, reading.booted_ms),
                        (2, 1_795_256_796_000)
                    );
                    assert_eq!(facts.len(), 5);
                    assert_eq!(value(values, "swap_total_bytes"), Some(0.0));
                    assert_eq!(value(values, "zswap_bytes"), None);
                    let faults = value(values, "major_fault_total_count").is_some();
                    Some((reading.available_bytes >> 10, faults))
                }
                ArchiveItem::Mark { .. } => None,
                ArchiveItem::Unreadable { .. } => panic!("{said:?}"),
            })
            .collect();
        let expected = [
            Some((22_265_020, true)),
            Some((22_284_488, false)), // recorded every two seconds
            Some((22_300_828, true)),
            None,
            Some((22_367_588, true)),
            Some((22_374_432, false)),
        ];
        assert_eq!(told, expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn never_panics(at in any::<prop::sample::Index>(), length in 0..80_usize, instead in "[ -~é\\n]{0,40}") {
            let text = include_str!("../../../tests/data/pcp/6.0.3.txt");
            let at = at.index(text.len());
            let text = format!("{}{instead}{}", &text[..at], &text[text.len().min(at + length)..]);
            let mut archive = Archive::new(Inventory::default());
            let mut said = Vec::new();
            for text in text.lines() {
                archive.take(line(text), &mut said);
            }
            archive.ends(&mut said);
            prop_assert!(said.len() >= 4, "{:?}", said);
        }
    }
}
