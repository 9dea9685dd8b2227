//! Figures: Plotly traces and layout, a sentence that states the figure's message with numbers, and a key
//! (legend).
//!
//! Names that come from a host (of hosts, processes, files) are never put into a figure, since Plotly
//! interprets some markup in its texts. Colours are named here and defined in `style.css`, for light and dark
//! mode.

use plotly::common::Font;
use plotly::layout::{Axis, AxisType, HoverMode, Margin};
use plotly::{Layout, Trace};
use serde::{Serialize, Serializer};

/// A figure of the page.
pub(crate) struct Figure {
    pub id: String,
    pub title: String,
    /// Sentence that states the figure's message, with numbers.
    pub sentence: String,
    pub key: Vec<Key>,
    pub height_px: usize,
    pub plot: Plot,
}

/// A line of the figure's key (legend).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// Name of the colour in `style.css`.
    pub colour: &'static str,
    /// Class of the mark: `area`, `line`, `dash`, `band`, `dot`, `ring`, `scale`.
    pub mark: &'static str,
    pub label: String,
    pub value: String,
}

/// Plot that `figures.js` passes to Plotly. A trace's `meta` is the name of its colour.
///
/// Times are UTC. An axis of type `date` ([`time_axis`]) is drawn as an axis of milliseconds. `time.js` puts
/// its ticks at hours and midnights of the report's zone, where a day has 23, 24 or 25 hours. A hover
/// template with `%{text}` shows the time if the trace has no text.
#[derive(Serialize)]
pub(crate) struct Plot {
    /// Times by run of samples, in ms since 1970-01-01 UTC; a trace whose `x` is a single number uses the
    /// times of the run with that index.
    ///
    /// Serialised as the first time and then differences, which take less space.
    #[serde(serialize_with = "differences")]
    pub times: Vec<Vec<i64>>,
    pub data: Vec<Box<dyn Trace>>,
    pub layout: Layout,
}

fn differences<S: Serializer>(times: &[Vec<i64>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(times.iter().map(|run| {
        let mut before = 0;
        let since = |time: &i64| time - std::mem::replace(&mut before, *time);
        run.iter().map(since).collect::<Vec<i64>>()
    }))
}

impl Figure {
    /// Returns the plot as JSON that is inert inside a script element, whatever texts it contains.
    pub(crate) fn json(&self) -> askama::Result<String> {
        json(&self.plot)
    }
}

/// Returns JSON in a form that is inert inside a script element.
pub(crate) fn json(value: &impl Serialize) -> askama::Result<String> {
    serde_json::to_string(value)
        .map(|json| inert(&json))
        .map_err(askama::Error::custom)
}

/// Escapes the characters of JSON that could end a script element or a line of script.
fn inert(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
    text
}

/// Layout shared by all figures.
pub(crate) fn layout() -> Layout {
    Layout::new()
        .auto_size(true)
        .show_legend(false)
        .hover_mode(HoverMode::Closest)
        .font(Font::new().size(13))
        .margin(Margin::new().left(8).right(12).top(12).bottom(8))
}

pub(crate) fn axis() -> Axis {
    Axis::new().auto_margin(true).zero_line(false)
}

/// An axis of times in ms since 1970-01-01 UTC; `time.js` formats its ticks.
pub(crate) fn time_axis(title: &str) -> Axis {
    axis().type_(AxisType::Date).show_grid(false).title(title)
}

/// Unit of a memory axis.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub name: &'static str,
    bytes: f64,
}

impl Unit {
    /// Returns the unit that suits `largest_bytes`.
    pub(crate) fn of(largest_bytes: f64) -> Self {
        const MIB: f64 = 1_048_576.0;
        if largest_bytes < 2048.0 * MIB {
            Self {
                name: "MiB",
                bytes: MIB,
            }
        } else {
            Self {
                name: "GiB",
                bytes: 1024.0 * MIB,
            }
        }
    }

    /// Value in the unit, rounded to four decimals: finer than a pixel, and it halves the page's size.
    pub(crate) fn number(self, bytes: f64) -> f64 {
        (bytes / self.bytes * 10_000.0).round() / 10_000.0
    }

    pub(crate) fn hover(self, label: &str) -> String {
        let decimals = if self.name == "GiB" { 2 } else { 0 };
        format!("{label} %{{y:.{decimals}f}} {}<extra></extra>", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_in_a_script_element_stays_json_and_stays_there() {
        let hostile = "</script><script>alert(1)</script>\u{2028}&\u{2029}";
        let json = inert(&serde_json::to_string(hostile).unwrap());
        assert!(
            !json.contains(['<', '>', '&', '\u{2028}', '\u{2029}']),
            "{json}"
        );
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), hostile);
    }
}
