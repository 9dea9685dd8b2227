//! Output of `pmdumplog -ldmMx -Z UTC`, line by line: every value as recorded, without interpolation.
//!
//! ```text
//! Performance metrics from host a
//! …
//! PMID: 60.1.0 (mem.physmem)
//!     Data Type: 64-bit unsigned int  InDom: PM_INDOM_NULL 0xffffffff
//!     Semantics: discrete  Units: Kbyte
//! …
//! Sat Nov 21 22:59:50.045566 2026 3 metrics
//!     60.1.0 (mem.physmem): value 24684096
//!     60.2.0 (kernel.all.load):
//!         inst [1 or "1 minute"] value 0.25999999
//!         inst [5 or "5 minute"] value 0.25999999
//!     60.1.3 (mem.util.shared): No values returned!
//!
//! Sat Nov 21 22:59:53.044631 2026  <mark>
//! ```

use jiff::civil::Time;
use jiff::tz::Offset;

/// A parsed line of the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Line<'d> {
    /// Name of the host that the archive is about.
    Host(&'d str),
    /// Start of the description of a metric.
    Metric(&'d str),
    /// Type of the metric's values: true for 32-bit floating point.
    Type { is_single: bool },
    /// Unit of the metric's values.
    Units(&'d str),
    /// Start of a record, with its time in ms since 1970-01-01 UTC.
    Record { time_ms: i64 },
    /// The recording was interrupted at this time.
    Mark { time_ms: i64 },
    /// Value of a metric, or of one of its instances, on the metric's own line.
    Value {
        metric: &'d str,
        instance: Option<&'d str>,
        value: &'d str,
    },
    /// Start of the values of a metric's instances; each instance follows on its own line.
    Instances { metric: &'d str },
    /// Value of one instance.
    Instance { instance: &'d str, value: &'d str },
    /// Any other line.
    Other,
}

/// Parses a line.
pub(super) fn line(text: &str) -> Line<'_> {
    if let Some(indented) = text.strip_prefix("    ") {
        return value(indented)
            .or_else(|| instance(indented))
            .or_else(|| described(indented))
            .unwrap_or(Line::Other);
    }
    if let Some(host) = text.strip_prefix("Performance metrics from host ") {
        return Line::Host(host.trim());
    }
    if let Some(metric) = text.strip_prefix("PMID: ").and_then(named) {
        return Line::Metric(metric.0);
    }
    moment(text).unwrap_or(Line::Other)
}

/// Parses `60.1.0 (mem.physmem): value 24684096`. Also parses the first line of a metric with instances.
fn value(text: &str) -> Option<Line<'_>> {
    if !text.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (metric, rest) = named(text)?;
    let rest = rest.strip_prefix(':')?;
    if rest.trim().is_empty() {
        return Some(Line::Instances { metric });
    }
    if let Some(Line::Instance { instance, value }) = instance(rest) {
        let instance = Some(instance);
        return Some(Line::Value {
            metric,
            instance,
            value,
        });
    }
    let value = rest.strip_prefix(" value ")?;
    Some(Line::Value {
        metric,
        instance: None,
        value: plain(value),
    })
}

/// First name in `60.1.0 (a or b)`, and the text after the parenthesis.
fn named(text: &str) -> Option<(&str, &str)> {
    let (_, rest) = text.split_once(" (")?;
    let (names, rest) = rest.split_once(')')?;
    Some((names.split(" or ").next()?, rest))
}

/// Parses `inst [1 or "1 minute"] value 0.25999999`.
fn instance(text: &str) -> Option<Line<'_>> {
    let rest = text.trim_start().strip_prefix("inst [")?;
    let (instance, value) = rest.split_once("] value ")?;
    let (_, instance) = instance.split_once(" or ")?;
    Some(Line::Instance {
        instance: plain(instance),
        value: plain(value),
    })
}

/// Parses `Data Type: float  InDom: …` and `Semantics: instant  Units: Kbyte`.
fn described(text: &str) -> Option<Line<'_>> {
    if let Some(kind) = text.strip_prefix("Data Type: ") {
        let is_single = kind.split_whitespace().next() == Some("float");
        return Some(Line::Type { is_single });
    }
    let (_, units) = text.strip_prefix("Semantics: ")?.split_once("Units: ")?;
    Some(Line::Units(units.trim()))
}

/// Parses `Sat Nov 21 22:59:50.045566 2026 3 metrics`, and the form of a record without metrics.
fn moment(text: &str) -> Option<Line<'_>> {
    let mut words = text.split_whitespace();
    let _weekday = words.next().filter(|day| day.len() == 3)?;
    let month = words.next()?;
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let day: i8 = words.next()?.parse().ok()?;
    let time: Time = words.next()?.parse().ok()?;
    let year: i16 = words.next()?.parse().ok()?;
    let date = jiff::civil::Date::new(year, i8::try_from(month).ok()?, day).ok()?;
    let time = Offset::UTC.to_timestamp(date.to_datetime(time)).ok()?;
    let time_ms = time.as_millisecond();
    match (words.next()?, words.next()) {
        ("<mark>", None) => Some(Line::Mark { time_ms }),
        (_, Some("metric" | "metrics")) => Some(Line::Record { time_ms }),
        _ => None,
    }
}

/// Strips a string's quotes.
fn plain(value: &str) -> &str {
    let quoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    quoted.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_kind_of_line() {
        let time_ms = 1_795_301_990_045;
        for (text, expected) in [
            (
                "Performance metrics from host a.example",
                Line::Host("a.example"),
            ),
            ("PMID: 60.1.0 (mem.physmem)", Line::Metric("mem.physmem")),
            ("PMID: 60.1.0 (a.b or c.d)", Line::Metric("a.b")),
            (
                "    Data Type: float  InDom: 60.5 0xf000005",
                Line::Type { is_single: true },
            ),
            (
                "    Data Type: 64-bit unsigned int  InDom: PM_INDOM_NULL 0xffffffff",
                Line::Type { is_single: false },
            ),
            ("    Semantics: instant  Units: Kbyte", Line::Units("Kbyte")),
            (
                "Sat Nov 21 22:59:50.045566 2026 77 metrics",
                Line::Record { time_ms },
            ),
            (
                "Sat Nov 21 22:59:50.045566123 2026 1 metric",
                Line::Record { time_ms },
            ),
            (
                "Sun Nov  1 00:00:00.000000 2026  <mark>",
                Line::Mark {
                    time_ms: 1_793_491_200_000,
                },
            ),
            (
                "    60.1.0 (mem.physmem): value 24684096",
                Line::Value {
                    metric: "mem.physmem",
                    instance: None,
                    value: "24684096",
                },
            ),
            (
                "    60.12.4 (kernel.uname.nodename): value \"a (b): c\"",
                Line::Value {
                    metric: "kernel.uname.nodename",
                    instance: None,
                    value: "a (b): c",
                },
            ),
            (
                "    60.2.0 (kernel.all.load):",
                Line::Instances {
                    metric: "kernel.all.load",
                },
            ),
            (
                "        inst [1 or \"1 minute\"] value 0.25999999",
                Line::Instance {
                    instance: "1 minute",
                    value: "0.25999999",
                },
            ),
            (
                "    60.32.1 (hinv.cpu.model_name): inst [0 or \"cpu0\"] value \"x\"",
                Line::Value {
                    metric: "hinv.cpu.model_name",
                    instance: Some("cpu0"),
                    value: "x",
                },
            ),
            (
                "    60.1.3 (mem.util.shared): No values returned!",
                Line::Other,
            ),
            (
                "    commencing Sat Nov 21 22:59:50.022756 2026",
                Line::Other,
            ),
            ("Note: timezone set to \"TZ=UTC\"", Line::Other),
            ("Sat Nov 31 22:59:50.045566 2026 77 metrics", Line::Other),
            ("", Line::Other),
        ] {
            assert_eq!(line(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(
            start in prop_oneof![
                Just("    60.1.0 ("), Just("        inst ["), Just("PMID: "), Just("Sat Nov 21 "), Just("    Semantics: "), Just("")
            ],
            rest in "[ -~é\\n]{0,60}",
        ) {
            let _ = line(&format!("{start}{rest}"));
        }
    }
}
