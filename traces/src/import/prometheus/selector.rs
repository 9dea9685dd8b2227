//! Queries to Prometheus, in PromQL.

use super::series::Series;
use std::fmt::Write as _;

/// Selection of machines: label matchers, as in `{job="node"}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(String);

impl Selector {
    /// Parses label matchers, with or without braces: `{job="node"}`. Prometheus itself checks the matchers.
    ///
    /// # Errors
    /// Description of the fault.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let inside = match text.strip_prefix('{') {
            Some(rest) => rest
                .strip_suffix('}')
                .ok_or_else(|| format!("{text:?} begins with {{ and does not end with }}"))?,
            None => text,
        };
        let inside = inside.trim().trim_end_matches(',');
        if inside.is_empty() || inside.contains(['=', '~']) {
            Ok(Self(inside.to_owned()))
        } else {
            Err(format!(
                "{text:?} matches no label; expected one such as {{job=\"node\"}}"
            ))
        }
    }

    /// Query for the series in `names` that match the selector and the matchers `more`.
    pub(super) fn of(&self, names: &[&str], more: &[String]) -> String {
        let mut selector = format!("{{__name__=~\"{}\"", names.join("|"));
        let given = Some(&self.0).filter(|given| !given.is_empty());
        for matcher in given.into_iter().chain(more) {
            selector.push(',');
            selector.push_str(matcher);
        }
        selector.push('}');
        selector
    }

    /// Query for all series that the importer reads and that match `more`. Of the series with a label `mode`,
    /// only those of mode `idle` match.
    pub(super) fn of_figures(&self, more: &[String]) -> String {
        let idle = "mode=~\"|idle\"".to_owned();
        let more: Vec<String> = std::iter::once(idle).chain(more.iter().cloned()).collect();
        self.of(&Series::NAMES, &more)
    }
}

/// Matcher for a label whose value is one of `values`.
pub(super) fn one_of<'a>(label: &str, values: impl Iterator<Item = &'a str>) -> String {
    let mut pattern = String::new();
    for (at, value) in values.enumerate() {
        if at > 0 {
            pattern.push('|');
        }
        for c in value.chars() {
            if "\\.+*?()|[]{}^$".contains(c) {
                pattern.push('\\');
            }
            pattern.push(c);
        }
    }
    format!("{label}=~{}", quoted(&pattern))
}

/// Quotes a text as a string of PromQL, which has Go's escapes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(c);
            }
            c if c.is_control() => {
                let _ = write!(quoted, "\\U{:08x}", u32::from(c)); // writing to a String cannot fail
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked() {
        let selector = Selector::parse(" {job=\"node\",} ").unwrap();
        assert_eq!(selector, Selector::parse("job=\"node\"").unwrap());
        assert_eq!(selector.of(&["up"], &[]), "{__name__=~\"up\",job=\"node\"}");
        let asked = selector.of_figures(&["a=\"b\"".to_owned()]);
        assert!(asked.starts_with("{__name__=~\"node_memory_MemTotal_bytes|"));
        assert!(
            asked.ends_with("\",job=\"node\",mode=~\"|idle\",a=\"b\"}"),
            "{asked}"
        );
        let all = Selector::parse("{}").unwrap();
        assert_eq!(all, Selector::default());
        assert_eq!(all.of(&["up", "x"], &[]), "{__name__=~\"up|x\"}");
        for wrong in ["{job=\"node\"", "node"] {
            assert!(Selector::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_are_taken_by_the_letter() {
        let asked = one_of("instance", ["a.b:9100", "[::1]:\"\\\n"].into_iter());
        assert_eq!(
            asked,
            r#"instance=~"a\\.b:9100|\\[::1\\]:\"\\\\\U0000000a""#
        );
    }
}
