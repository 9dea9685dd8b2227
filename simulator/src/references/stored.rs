//! Reads curves that `gleaner curve record` has written, and checks their values.

use super::error::ReferencesError;
use gleaner_schemas::curve::{CURVE_VERSION, Curve};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum size of a curve's file. Recorded curves are far smaller.
const MOST_BYTES: u64 = 64 << 20;
/// Longest time of a program that is accepted, in seconds: a thousand years.
const MOST_S: f64 = 3.2e10;

/// Reads a curve from a file. Memory use is bounded by the file's size.
///
/// # Errors
/// The system's error; [`ReferencesError::Form`] with line and column, or [`ReferencesError::Value`] with the key.
pub fn read_curve(path: &Path) -> Result<Curve, ReferencesError> {
    let file = File::open(path).map_err(ReferencesError::io("open", path))?;
    let mut text = Vec::new();
    let mut part = file.take(MOST_BYTES + 1);
    part.read_to_end(&mut text)
        .map_err(ReferencesError::io("read", path))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(ReferencesError::Form {
            path: path.to_owned(),
            reason: "the file is larger than any curve (64 MiB)".to_owned(),
        });
    }
    parse_curve(&text, path)
}

/// Parses a curve; `path` is for messages.
///
/// # Errors
/// As for [`read_curve`].
pub fn parse_curve(text: &[u8], path: &Path) -> Result<Curve, ReferencesError> {
    let curve: Curve = serde_json::from_slice(text).map_err(|error| ReferencesError::Form {
        path: path.to_owned(),
        reason: format!("this is no curve: {error}"),
    })?;
    check(&curve).map_err(|(key, found)| ReferencesError::Value {
        path: path.to_owned(),
        key,
        found,
    })?;
    Ok(curve)
}

type KeyFault = (String, String);

fn wrong(key: impl Into<String>, found: impl Into<String>) -> Result<(), KeyFault> {
    Err((key.into(), found.into()))
}

/// Checks the values; the error is a key, and a description of its fault.
fn check(curve: &Curve) -> Result<(), KeyFault> {
    if curve.curve_version != CURVE_VERSION {
        let found = format!(
            "is {}, and only {CURVE_VERSION} is read",
            curve.curve_version
        );
        return wrong("curve_version", found);
    }
    for (key, seconds) in [
        ("native_cpu_s", curve.native_cpu_s),
        ("native_wall_s", curve.native_wall_s),
    ] {
        if !(0.0..=MOST_S).contains(&seconds) {
            return wrong(
                key,
                format!("is {seconds}, and should be a number of seconds"),
            );
        }
    }
    if !curve.page_bytes.is_power_of_two() || !(512..=1 << 31).contains(&curve.page_bytes) {
        return wrong(
            "page_bytes",
            format!(
                "is {}, and should be a power of two from 512 to 2^31",
                curve.page_bytes
            ),
        );
    }
    if curve
        .footprint_pages
        .checked_mul(curve.page_bytes)
        .is_none()
    {
        return wrong(
            "footprint_pages",
            format!("is {}: more than any machine has", curve.footprint_pages),
        );
    }
    if !(curve.sampled_share > 0.0 && curve.sampled_share <= 1.0) {
        return wrong(
            "sampled_share",
            format!(
                "is {}, and should be above 0 and at most 1",
                curve.sampled_share
            ),
        );
    }
    check_faults(curve)?;
    check_windows(curve)?;
    let pairs = curve.first_touch.windows(2).enumerate();
    for (at, pair) in pairs {
        if let [before, after] = pair
            && (after.pages <= before.pages || after.references_count < before.references_count)
        {
            return wrong(format!("first_touch[{}]", at + 1), "does not rise");
        }
    }
    Ok(())
}

fn check_faults(curve: &Curve) -> Result<(), KeyFault> {
    if curve.faults.is_empty() {
        return wrong("faults", "has no points");
    }
    for (at, pair) in curve.faults.windows(2).enumerate() {
        let [before, after] = pair else { continue };
        if after.memory_pages <= before.memory_pages {
            return wrong(format!("faults[{}].memory_pages", at + 1), "does not rise");
        }
        if after.reuse_count > before.reuse_count {
            return wrong(
                format!("faults[{}].reuse_count", at + 1),
                "rises with the memory",
            );
        }
    }
    Ok(())
}

fn check_windows(curve: &Curve) -> Result<(), KeyFault> {
    for (at, window) in curve.windows.iter().enumerate() {
        let is_time = window.time_ms >= 0.0 && window.time_ms <= MOST_S * 1000.0;
        if !is_time {
            return wrong(
                format!("windows[{at}].time_ms"),
                format!("is {}", window.time_ms),
            );
        }
    }
    for (at, pair) in curve.windows.windows(2).enumerate() {
        if let [before, after] = pair
            && after.window_ms == before.window_ms
            && after.time_ms < before.time_ms
        {
            return wrong(format!("windows[{}].time_ms", at + 1), "goes back");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed() -> String {
        let seed = include_str!("../../../fuzz/corpus/curve/curve");
        seed.strip_prefix('0').unwrap().to_owned()
    }

    fn refused(text: &str) -> String {
        let refused = parse_curve(text.as_bytes(), Path::new("a.curve"));
        refused.unwrap_err().to_string()
    }

    #[test]
    fn a_curve_is_read_as_it_was_written() {
        let curve = parse_curve(seed().as_bytes(), Path::new("a.curve")).unwrap();
        assert_eq!(serde_json::to_string(&curve).unwrap(), seed());
    }

    #[test]
    fn cut_and_flipped_curves_are_refused_or_read() {
        let seed = seed();
        for end in 0..seed.len() {
            assert!(
                refused(&seed[..end]).starts_with("a.curve: this is no curve: "),
                "{end}"
            );
        }
        for at in 0..seed.len() {
            for mask in [1, 4, 0x10, 0x80] {
                let mut bytes = seed.clone().into_bytes();
                bytes[at] ^= mask;
                if let Err(error) = parse_curve(&bytes, Path::new("a.curve")) {
                    assert!(error.to_string().starts_with("a.curve: "), "{error}");
                }
            }
        }
    }

    #[test]
    fn impossible_values_are_refused_by_key() {
        for (from, to, found) in [
            (
                "\"curve_version\":1",
                "\"curve_version\":2",
                "curve_version is 2",
            ),
            (
                "\"native_cpu_s\":0.5",
                "\"native_cpu_s\":-1",
                "native_cpu_s is -1",
            ),
            (
                "\"native_cpu_s\":0.5",
                "\"native_cpu_s\":1e400",
                "number out of range at line 1 column",
            ),
            (
                "\"native_cpu_s\":0.5",
                "\"native_cpu_s\":NaN",
                "this is no curve: expected value at line 1 column",
            ),
            (
                "\"page_bytes\":4096",
                "\"page_bytes\":4000",
                "page_bytes is 4000",
            ),
            (
                "\"footprint_pages\":300",
                "\"footprint_pages\":18446744073709551615",
                "footprint_pages is",
            ),
            (
                "\"footprint_pages\":300",
                "\"footprint_pages\":-1",
                "invalid value: integer `-1`",
            ),
            (
                "\"sampled_share\":1.0",
                "\"sampled_share\":0.0",
                "sampled_share is 0",
            ),
            (
                "\"memory_pages\":150",
                "\"memory_pages\":32",
                "faults[1].memory_pages does not rise",
            ),
            (
                "\"reuse_count\":100",
                "\"reuse_count\":401",
                "faults[1].reuse_count rises with the memory",
            ),
            (
                "\"time_ms\":10.0",
                "\"time_ms\":-10.0",
                "windows[1].time_ms is -10",
            ),
            (
                "\"time_ms\":0.0",
                "\"time_ms\":20.0",
                "windows[1].time_ms goes back",
            ),
            (
                "\"pages\":300,\"references_count\":500",
                "\"pages\":300,\"references_count\":5",
                "first_touch[1] does not rise",
            ),
        ] {
            let seed = seed();
            assert!(seed.contains(from), "{from}");
            let error = refused(&seed.replacen(from, to, 1));
            assert!(error.contains(found), "{to}: {error}");
        }
    }

    #[test]
    fn many_claimed_pages_take_no_memory() {
        let seed = seed().replacen(
            "\"footprint_pages\":300",
            "\"footprint_pages\":1000000000",
            1,
        );
        let curve = parse_curve(seed.as_bytes(), Path::new("a.curve")).unwrap();
        assert_eq!(curve.faults.len(), 3);
    }
}
