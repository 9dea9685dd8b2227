//! Logarithmic axes for lengths of time, from minutes to weeks.

use crate::page::figure::axis;
use crate::wording::seconds;
use plotly::layout::{Axis, AxisType};

/// Ticks for an axis of lengths of time, in s, the most useful first.
const MARKS_S: [f64; 20] = [
    3600.0,
    86_400.0,
    600.0,
    604_800.0,
    14_400.0,
    60.0,
    259_200.0,
    43_200.0,
    1800.0,
    1.0,
    10.0,
    300.0,
    7200.0,
    28_800.0,
    172_800.0,
    1_209_600.0,
    30.0,
    5.0,
    2.0,
    900.0,
];

/// Minimum distance of ticks, as a share of the axis: closer labels would overlap on a phone.
const APART_SHARE: f64 = 0.13;

/// A logarithmic axis from one length to another, with readable ticks.
pub(super) fn log_time_axis(title: &str, from_s: f64, to_s: f64) -> Axis {
    let (low, high) = (from_s.max(0.001).log10(), to_s.max(0.002).log10());
    let mut marks: Vec<f64> = Vec::new();
    for mark in MARKS_S {
        let at = mark.log10();
        let apart = |other: &f64| (other.log10() - at).abs() >= APART_SHARE * (high - low);
        if (low..=high).contains(&at) && marks.iter().all(apart) {
            marks.push(mark);
        }
    }
    axis()
        .type_(AxisType::Log)
        .title(title)
        .range(vec![low, high])
        .tick_text(marks.iter().map(|m| seconds(*m)).collect())
        .tick_values(marks)
        .tick_angle(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_do_not_crowd() {
        let axis = serde_json::to_value(log_time_axis("t", 600.0, 604_800.0)).unwrap();
        let marks: Vec<&str> = axis["ticktext"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m.as_str().unwrap())
            .collect();
        assert_eq!(
            marks.join(" ").replace('\u{a0}', " "),
            "1 h 1 d 10 min 7 d 4 h"
        );
    }
}
