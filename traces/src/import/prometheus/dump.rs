//! Lines of `promtool tsdb dump`: one sample per line, series after series.
//!
//! ```text
//! {__name__="node_load1", instance="10.0.0.7:9100", job="node"} 0.33 1795302037053
//! ```

use super::machine::Label;
use std::borrow::Cow;

/// Splits a line after its labels, and returns both parts.
///
/// # Errors
/// Description of the fault.
pub(super) fn split(line: &str) -> Result<(&str, &str), String> {
    let mut is_quoted = false;
    let mut is_escaped = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b'}' if !is_quoted => return Ok(line.split_at(at + 1)),
            _ => {}
        }
    }
    Err("its labels have no end".to_owned())
}

/// Parses the text after the labels: value and time in ms.
///
/// # Errors
/// Description of the fault.
pub(super) fn sample(rest: &str) -> Result<(f64, i64), String> {
    let mut parts = rest.split_ascii_whitespace();
    let value = parts.next().and_then(|text| text.parse().ok());
    let time_ms = parts.next().and_then(|text| text.parse().ok());
    match (value, time_ms, parts.next()) {
        (Some(value), Some(time_ms), None) => Ok((value, time_ms)),
        _ => Err(format!("{rest:?} is no value and time")),
    }
}

/// Labels of a series.
pub(super) struct Labels<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Labels<'a> {
    /// Parses the labels in braces. Values are quoted like Go strings. Since Prometheus 3, names may be quoted, too.
    ///
    /// # Errors
    /// Description of the fault.
    pub(super) fn of(text: &'a str) -> Result<Self, String> {
        let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
        let mut rest = inside.ok_or("there are no braces around its labels")?;
        let mut labels = Vec::new();
        while !rest.is_empty() {
            let name;
            (name, rest) = if rest.starts_with('"') {
                string(rest)?
            } else {
                let end = rest.find('=').ok_or("a label has no value")?;
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            };
            let value;
            rest = rest.strip_prefix('=').ok_or("a label has no value")?;
            (value, rest) = string(rest)?;
            labels.push((name, value));
            rest = match rest.strip_prefix(',') {
                Some(more) => more.trim_start(),
                None if rest.is_empty() => rest,
                None => return Err("there is something between its labels".to_owned()),
            };
        }
        Ok(Self(labels))
    }

    /// The label `name`; empty if it is missing, as in Prometheus.
    pub(super) fn get(&self, name: &str) -> &str {
        self.iter().find(|(n, _)| *n == name).map_or("", |l| l.1)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Label<'_>> + Clone {
        self.0.iter().map(|(k, v)| (k.as_ref(), v.as_ref()))
    }
}

/// Parses a quoted string. Returns the string, and the text after it.
fn string(text: &str) -> Result<(Cow<'_, str>, &str), String> {
    let no_string = || {
        format!(
            "{:?} is no string in quotes",
            text.get(..40).unwrap_or(text)
        )
    };
    let text = text.strip_prefix('"').ok_or_else(no_string)?;
    let end = text.find(['"', '\\']).ok_or_else(no_string)?;
    if text[end..].starts_with('"') {
        return Ok((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(['"', '\\']).ok_or_else(no_string)?;
        bytes.extend_from_slice(&rest.as_bytes()[..end]);
        let is_end = rest[end..].starts_with('"');
        rest = &rest[end + 1..];
        if is_end {
            // Go's escape `\xNN` stands for one byte, so that the string may not be UTF-8; such labels are invalid.
            let string = String::from_utf8(bytes).map_err(|_| no_string())?;
            return Ok((Cow::Owned(string), rest));
        }
        let (escape, after) = rest.split_at_checked(1).ok_or_else(no_string)?;
        rest = after;
        let digits = match escape {
            "x" => 2,
            "u" => 4,
            "U" => 8,
            _ => {
                bytes.push(match escape {
                    "n" => b'\n',
                    "t" => b'\t',
                    "r" => b'\r',
                    "a" => 7,
                    "b" => 8,
                    "f" => 12,
                    "v" => 11,
                    "\\" | "\"" => escape.as_bytes()[0],
                    _ => return Err(no_string()),
                });
                continue;
            }
        };
        let (code, after) = rest.split_at_checked(digits).ok_or_else(no_string)?;
        rest = after;
        let code = u32::from_str_radix(code, 16).map_err(|_| no_string())?;
        if digits == 2 {
            bytes.push(code as u8); // two hex digits
        } else {
            let character = char::from_u32(code).ok_or_else(no_string)?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Pairs = Vec<(String, String)>;

    fn read(line: &str) -> Result<(Pairs, f64, i64), String> {
        let (text, rest) = split(line)?;
        let (value, time_ms) = sample(rest)?;
        let labels = Labels::of(text)?;
        let owned = labels.iter().map(|(k, v)| (k.to_owned(), v.to_owned()));
        let owned = owned.collect();
        Ok((owned, value, time_ms))
    }

    #[test]
    fn lines_as_promtool_prints_them() {
        let line = "{__name__=\"node_load1\", instance=\"10.0.0.7:9100\", job=\"node\"} 0.33 1795302037053";
        let (labels, value, time_ms) = read(line).unwrap();
        assert_eq!((value, time_ms), (0.33, 1_795_302_037_053));
        assert_eq!(labels.len(), 3);
        assert_eq!(
            labels[1],
            ("instance".to_owned(), "10.0.0.7:9100".to_owned())
        );
        let value = |line: &str| read(line).unwrap().1;
        assert_eq!(
            value("{__name__=\"a\"} 2.5276514304e+10 1"),
            25_276_514_304.0
        );
        assert!(value("{} NaN 1").is_nan());
        assert_eq!(value("{} +Inf -1"), f64::INFINITY);
        let strange = r#"{"a b"="}\"\\\n\u00e4\U0001f600\xc3\xa4 é", c=""} 1 2"#;
        let (labels, ..) = read(strange).unwrap();
        assert_eq!(labels[0], ("a b".to_owned(), "}\"\\\nä😀ä é".to_owned()));
        assert_eq!(labels[1], ("c".to_owned(), String::new()));
    }

    #[test]
    fn what_is_no_line_is_said_so() {
        for (line, why) in [
            ("", "no end"),
            ("{a=\"b\" 1 2", "no end"),
            ("{a=\"b\"} 1", "no value and time"),
            ("{a=\"b\"} 1 2 3", "no value and time"),
            ("{a=\"b\"} x 2", "no value and time"),
            ("a=\"b\"} 1 2", "no braces"),
            ("{a} 1 2", "no value"),
            ("{a=b} 1 2", "no string"),
            ("{a=\"b\";c=\"d\"} 1 2", "between its labels"),
            ("{a=\"\\q\"} 1 2", "no string"),
            ("{a=\"\\xff\"} 1 2", "no string"),
            ("{a=\"\\ud800\"} 1 2", "no string"),
            ("{a=\"\\xé\"} 1 2", "no string"),
        ] {
            let said = read(line).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
    }

    /// Quotes a text like Go's strconv.Quote. `seed` chooses among the escapes that Go allows for a character.
    fn quoted(text: &str, seed: u64) -> String {
        let mut quoted = String::from("\"");
        for (at, c) in text.chars().enumerate() {
            let mut bytes = [0; 4];
            let choice = (seed >> (at % 60)) % 4;
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '\n' => quoted.push_str("\\n"),
                _ if c.is_control() || choice == 0 => quoted += &format!("\\U{:08x}", u32::from(c)),
                _ if choice == 1 => {
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        quoted += &format!("\\x{byte:02x}");
                    }
                }
                c => quoted.push(c),
            }
        }
        quoted + "\""
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn labels_and_values_come_back_as_they_went(
            values in proptest::collection::vec(any::<String>(), 0..5),
            value in any::<f64>(), time_ms in any::<i64>(), seed in any::<u64>(),
        ) {
            let names = ["__name__", "job", "a", "b", "c"];
            let pairs: Vec<String> = names.iter().zip(&values)
                .map(|(name, value)| format!("{name}={}", quoted(value, seed))).collect();
            let line = format!("{{{}}} {value:e} {time_ms}", pairs.join(", "));
            let (labels, found, found_ms) = read(&line).unwrap();
            prop_assert!(found == value || value.is_nan());
            prop_assert_eq!(found_ms, time_ms);
            let expected: Vec<_> = names.iter().zip(&values).map(|(n, v)| ((*n).to_owned(), v.clone())).collect();
            prop_assert_eq!(labels, expected);
        }

        #[test]
        fn no_line_panics(
            line in "\\PC{0,60}",
            rough in "[{}\"\\\\=, xuUaé0-9]{0,40}",
        ) {
            let _ = read(&line);
            let _ = read(&rough);
            let _ = Labels::of(&rough);
        }
    }
}
