//! Samples of one machine: values of its series are joined by time, since all values of a scrape have one time.

use super::series::{Figures, Series, values};
use crate::import::{Facts, Reading, Readings, kernel};
use gleaner_schemas::column::Value;
use std::collections::BTreeMap;

/// Maximum plausible memory size: 1 EiB.
const MEMORY_BYTES: f64 = (1_u64 << 60) as f64;
/// Valid boot times in seconds: 2000-01-01 to 2100-01-01.
const BOOTS_S: std::ops::Range<f64> = 946_684_800.0..4_102_444_800.0;

/// A label of a series.
pub(super) type Label<'a> = (&'a str, &'a str);

/// Samples of one machine; they arrive series by series.
#[derive(Debug, Default)]
pub(super) struct Samples {
    scrapes: BTreeMap<i64, Scrape>,
    /// Distinct sets of facts about the machine, read from labels.
    facts: Vec<Facts>,
}

/// Values of one scrape.
#[derive(Debug)]
struct Scrape {
    figures: Figures,
    /// A series that has two different values in this scrape.
    contradicted: Option<Series>,
}

/// A series whose samples are being added.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stream {
    series: Series,
    /// Value stored instead of each sample's own, for series of which only the labels matter: the index in
    /// `Samples.facts`.
    stands_for: Option<f64>,
}

impl Samples {
    /// The series with this name and these labels; `None` if the importer does not read it.
    pub(super) fn stream<'a>(
        &mut self,
        name: &str,
        labels: impl Iterator<Item = Label<'a>> + Clone,
    ) -> Option<Stream> {
        let series = Series::named(name)?;
        let has = |wanted: Label<'_>| labels.clone().any(|label| label == wanted);
        match series {
            Series::Cpus if !has(("mode", "idle")) => return None,
            Series::CpuInfo if !has(("cpu", "0")) => return None,
            _ => {}
        }
        let mut facts = Facts::new();
        for (column, wanted) in series.facts() {
            let label = labels.clone().find(|(label, _)| label == wanted);
            if let Some((_, text)) = label.filter(|(_, text)| !text.is_empty()) {
                facts.push((column, Value::Text(text.to_owned())));
            }
        }
        let stands_for = (!series.facts().is_empty()).then(|| {
            let known = &mut self.facts;
            let at = known.iter().position(|f| *f == facts).unwrap_or_else(|| {
                known.push(facts);
                known.len() - 1
            });
            at as f64
        });
        Some(Stream { series, stands_for })
    }

    /// Adds a sample. NaN marks the end of a series or a failed measurement: the value is absent.
    pub(super) fn add(&mut self, stream: Stream, time_ms: i64, value: f64) {
        if !value.is_finite() {
            return;
        }
        let scrape = self.scrapes.entry(time_ms).or_insert(Scrape {
            figures: Figures::NONE,
            contradicted: None,
        });
        let place = &mut scrape.figures.0[stream.series as usize];
        if stream.series == Series::Cpus {
            *place = if place.is_nan() { 1.0 } else { *place + 1.0 };
            return;
        }
        let value = stream.stands_for.unwrap_or(value);
        if !place.is_nan() && *place != value {
            // The result must not depend on the order in which contradictions arrive: the first series by number wins.
            let first = scrape.contradicted.map_or(usize::MAX, |s| s as usize);
            if (stream.series as usize) < first {
                scrape.contradicted = Some(stream.series);
            }
        }
        *place = value;
    }

    /// Adds a reading to `readings` for each scrape.
    pub(super) fn read(self, readings: &mut Readings<'_>) {
        for (time_ms, scrape) in self.scrapes {
            match reading(time_ms, &scrape) {
                Ok(reading) => {
                    readings.host_is(facts(&self.facts, &scrape.figures));
                    let (total, available) = (reading.physical_bytes, reading.available_bytes);
                    readings.push(reading, &values(&scrape.figures, total, available));
                }
                Err(why) => readings.unreadable(format_args!("time {time_ms} ms"), why),
            }
        }
    }
}

/// The machine's reading from one scrape.
fn reading(time_ms: i64, scrape: &Scrape) -> Result<Reading, String> {
    let figures = &scrape.figures;
    if let Some(series) = scrape.contradicted {
        return Err(format!(
            "two series of {} say different things; choose between them by --selector",
            Series::NAMES[series as usize]
        ));
    }
    let bytes = |series: Series| match figures.get(series) {
        Some(bytes) if (0.0..=MEMORY_BYTES).contains(&bytes) => Ok(Some(bytes.round() as i64)),
        Some(bytes) => Err(format!(
            "{} is {bytes}, which no machine has",
            Series::NAMES[series as usize]
        )),
        None => Ok(None),
    };
    // If node_exporter answered but could not read /proc/meminfo, this is a time without memory, as in other sources.
    let total = bytes(Series::MemTotal)?.unwrap_or(0);
    let available = match bytes(Series::MemAvailable)? {
        None if total > 0 => {
            return Err("there is no node_memory_MemAvailable_bytes".to_owned());
        }
        available => available.unwrap_or(0),
    };
    let booted_s = figures
        .get(Series::BootTime)
        .filter(|s| BOOTS_S.contains(s));
    Ok(Reading {
        cpus_count: figures.get(Series::Cpus).unwrap_or(0.0) as i64,
        booted_ms: (booted_s.unwrap_or(0.0) * 1000.0).round() as i64,
        ..kernel::reading(time_ms, total, available)
    })
}

/// Facts of the machine at the scrape's time; `known` has the facts from the labels of all series.
fn facts(known: &[Facts], figures: &Figures) -> Facts {
    let mut facts = vec![kernel::headroom()];
    for series in [Series::Uname, Series::Os, Series::Dmi, Series::CpuInfo] {
        let at = figures.get(series).map(|at| at as usize);
        let said = at.and_then(|at| known.get(at));
        facts.extend(said.into_iter().flatten().cloned());
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::super::series::COLUMNS;
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    /// A series' name and labels, a time and a value.
    type Sample = (&'static str, &'static [Label<'static>], i64, f64);

    type NamedSeries = (&'static str, &'static [Label<'static>]);

    const GIB: f64 = (1_u64 << 30) as f64;
    const IDLE: [Label<'static>; 2] = [("mode", "idle"), ("cpu", "0")];
    const UNAME: [Label<'static>; 3] = [
        ("nodename", "otter"),
        ("release", "6.18.44"),
        ("machine", "x86_64"),
    ];
    const OTHER_UNAME: [Label<'static>; 2] = [("nodename", "otter"), ("release", "6.18.45")];

    fn read(samples: &[Sample]) -> Readings<'static> {
        let mut gathered = Samples::default();
        for (name, labels, time_ms, value) in samples {
            if let Some(stream) = gathered.stream(name, labels.iter().copied()) {
                gathered.add(stream, *time_ms, *value);
            }
        }
        let mut readings = Readings::new(&COLUMNS);
        gathered.read(&mut readings);
        readings
    }

    fn scrape(time_ms: i64) -> Vec<Sample> {
        vec![
            ("node_memory_MemTotal_bytes", &[], time_ms, 8.0 * GIB),
            ("node_memory_MemAvailable_bytes", &[], time_ms, 5.0 * GIB),
            ("node_load1", &[], time_ms, 0.25),
            (
                "node_pressure_memory_waiting_seconds_total",
                &[],
                time_ms,
                310.294_378_000_000_05,
            ),
            ("node_boot_time_seconds", &[], time_ms, 1.795_256_796e9),
            ("node_cpu_seconds_total", &IDLE, time_ms, 12_523.19),
            (
                "node_cpu_seconds_total",
                &[("mode", "idle"), ("cpu", "1")],
                time_ms,
                11_061.58,
            ),
            (
                "node_cpu_seconds_total",
                &[("mode", "user"), ("cpu", "1")],
                time_ms,
                3.0,
            ),
            ("node_uname_info", &UNAME, time_ms, 1.0),
            ("go_goroutines", &[], time_ms, 7.0),
        ]
    }

    #[test]
    fn a_scrape_is_a_reading_with_its_units_converted() {
        let mut readings = read(&scrape(1_795_302_037_053));
        let (observed, repairs) = readings.repair();
        assert_eq!((observed.len(), repairs.rows_count), (1, 1));
        let seen = &observed[0];
        assert_eq!(seen.time_ms, 1_795_302_037_053);
        assert_eq!(seen.physical_bytes, 8 << 30);
        assert_eq!(seen.available_bytes, 5 << 30);
        assert_eq!(seen.cpus_count, Some(2));
        assert_eq!(seen.booted_ms, Some(1_795_256_796_000));
        let known: BTreeMap<_, _> = seen.values.known().collect();
        let expected = [
            ("harvestable_bytes", Value::Integer(4_080_218_932)), // 5 GiB less 15 % of 8
            ("load1", Value::Real(0.25)),
            ("mem_available_bytes", Value::Integer(5 << 30)),
            ("mem_total_bytes", Value::Integer(8 << 30)),
            ("psi_memory_some_total_us", Value::Integer(310_294_378)),
        ];
        assert_eq!(known, expected.into_iter().collect());
        let text = |text: &str| Value::Text(text.to_owned());
        let facts = [
            kernel::headroom(),
            ("host_name", text("otter")),
            ("kernel_release", text("6.18.44")),
            ("architecture", text("x86_64")),
        ];
        assert_eq!(*seen.facts, facts);
    }

    /// Prometheus ends a series with NaN, which is no value. A time with nothing but NaN gives no scrape.
    #[test]
    fn what_is_no_number_is_absent_and_never_0() {
        let mut samples = scrape(1000);
        samples.extend(
            scrape(2000)
                .into_iter()
                .map(|(n, l, t, _)| (n, l, t, f64::NAN)),
        );
        samples.extend(scrape(3000));
        samples.push(("node_load5", &[], 3000, f64::INFINITY));
        samples.push(("node_memory_Slab_bytes", &[], 3000, f64::NAN));
        let mut readings = read(&samples);
        let (observed, repairs) = readings.repair();
        assert_eq!((observed.len(), repairs.rows_count), (2, 2));
        let known = |at: usize| observed[at].values.known().count();
        assert_eq!(known(0), known(1));
    }

    #[test]
    fn a_scrape_without_memory_is_none_and_says_why() {
        let wrong = |samples: &[Sample]| {
            let mut readings = read(samples);
            let (observed, repairs) = readings.repair();
            assert_eq!((observed.len(), repairs.rows_count), (0, 1));
            (repairs.without_memory_count, repairs.first_unreadable)
        };
        assert_eq!(wrong(&[("node_load1", &[], 7, 0.1)]), (1, None));
        let total: Sample = ("node_memory_MemTotal_bytes", &[], 7, GIB);
        let said = wrong(&[total]).1.unwrap();
        assert!(said.contains("time 7 ms: there is no node_memory_MemAvailable_bytes"));
        for bytes in [-1.0, 1e19] {
            let said = wrong(&[("node_memory_MemTotal_bytes", &[], 7, bytes)]).1;
            assert!(said.unwrap().contains("which no machine has"));
        }
        let other: Sample = ("node_memory_MemTotal_bytes", &[], 7, 2.0 * GIB);
        for samples in [[total, other], [other, total]] {
            let said = wrong(&samples).1.unwrap();
            assert!(
                said.contains("two series of node_memory_MemTotal_bytes"),
                "{said}"
            );
            assert!(said.contains("--selector"), "{said}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// A server returns samples machine by machine and hour by hour; a dump has them series by series.
        #[test]
        fn the_order_in_which_samples_come_makes_no_difference(
            mut samples in proptest::collection::vec((
                select(vec![
                    ("node_memory_MemTotal_bytes", &[][..]), ("node_memory_MemAvailable_bytes", &[]),
                    ("node_load1", &[]), ("node_cpu_seconds_total", &IDLE), ("node_uname_info", &UNAME),
                    ("node_uname_info", &OTHER_UNAME), ("node_memory_Slab_bytes", &[]), ("up", &[]),
                ]),
                0..6_i64,
                select(vec![1.0, 4096.0, 1e12, -3.0, 1e300, f64::NAN, f64::INFINITY]),
            ), 0..60),
            seed in any::<u64>(),
        ) {
            let of = |samples: &[(NamedSeries, i64, f64)]| {
                let flat: Vec<Sample> = samples.iter().map(|((n, l), t, v)| (*n, *l, *t * 1000, *v)).collect();
                let mut readings = read(&flat);
                let (observed, repairs) = readings.repair();
                (format!("{observed:?}"), repairs)
            };
            let before = of(&samples);
            samples.sort_by_key(|((name, labels), time, value)| {
                let key = name.len() as u64 ^ (labels.len() as u64) << 8 ^ (*time as u64) << 16 ^ value.to_bits();
                (key ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            });
            prop_assert_eq!(of(&samples), before);
        }
    }
}
