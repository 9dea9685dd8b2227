//! The hours of a week: seven days of 24 cells, Monday first, as a map of colours.

use super::figure::{Figure, Key, Plot, Unit, axis, layout};
use crate::wording::{bytes, share};
use plotly::HeatMap;
use plotly::common::HoverInfo;
use plotly::layout::AxisType;

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];

/// Minimum difference between the values of a map's first and last colour, as a share of the map's largest
/// value.
const LEAST_CONTRAST: f64 = 0.2;

/// A value for each hour of the week; absent without data.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Week {
    cells: [[Option<f64>; 24]; 7],
}

/// Unit of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Share,
    Bytes,
    /// A number without unit.
    Number,
}

impl Measure {
    pub(crate) fn words(self, value: f64) -> String {
        match self {
            Self::Share => share(value),
            Self::Bytes => bytes(value),
            Self::Number => format!("{value:.1}"),
        }
    }
}

/// Texts and unit of a map.
pub(crate) struct Map {
    pub id: String,
    pub title: String,
    pub sentence: String,
    pub measure: Measure,
    /// Name of the colour scale: `gain` if more is better for borrowers, otherwise `loss`.
    pub colour: &'static str,
    /// Name of a cell's value in its hover text: `available`.
    pub label: &'static str,
}

/// Means over office hours, other hours and the weekend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Parts {
    /// Monday to Friday, from 9:00 to 17:00.
    pub office: Option<f64>,
    /// Monday to Friday, the other hours.
    pub off_hours: Option<f64>,
    pub weekend: Option<f64>,
}

impl Week {
    /// Makes a week from triples (weekday, hour, value). Weekdays are from 1 (Monday), hours from 0. Triples
    /// with other weekdays or hours are ignored.
    pub(crate) fn of(values: impl IntoIterator<Item = (i64, i64, Option<f64>)>) -> Self {
        let mut week = Self::default();
        for (weekday, hour, value) in values {
            let day = usize::try_from(weekday - 1).ok();
            let hour = usize::try_from(hour).ok();
            let cell = day
                .and_then(|day| week.cells.get_mut(day))
                .zip(hour)
                .and_then(|(day, hour)| day.get_mut(hour));
            if let Some(cell) = cell {
                *cell = value.filter(|v| v.is_finite());
            }
        }
        week
    }

    /// Returns each hour that has a value as (weekday, hour, value), with weekdays from 0 (Monday).
    pub(crate) fn known(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let days = self.cells.iter().enumerate();
        days.flat_map(|(day, hours)| {
            let hours = hours.iter().enumerate();
            hours.filter_map(move |(hour, value)| Some((day, hour, (*value)?)))
        })
    }

    pub(crate) fn at(&self, day: usize, hour: usize) -> Option<f64> {
        *self.cells.get(day)?.get(hour)?
    }

    /// All hours in order, Monday's first.
    pub(crate) fn in_a_row(&self) -> Vec<Option<f64>> {
        self.cells.concat()
    }

    /// Minimum and maximum of the values; absent if there are none.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let mut range = None;
        for (_, _, value) in self.known() {
            let (low, high) = range.unwrap_or((value, value));
            range = Some((low.min(value), high.max(value)));
        }
        range
    }

    pub(crate) fn mean(&self) -> Option<f64> {
        mean(self.known().map(|(_, _, value)| value))
    }

    pub(crate) fn parts(&self) -> Parts {
        let over = |is_in: fn(usize, usize) -> bool| {
            mean(
                self.known()
                    .filter(|(d, h, _)| is_in(*d, *h))
                    .map(|(_, _, v)| v),
            )
        };
        Parts {
            office: over(|day, hour| day < 5 && (9..17).contains(&hour)),
            off_hours: over(|day, hour| day < 5 && !(9..17).contains(&hour)),
            weekend: over(|day, _| day >= 5),
        }
    }

    /// Means by part of the week: `31 % on weekdays from 9:00 to 17:00, 74 % on weekdays at other hours, 90 %
    /// at the weekend`; parts without data are omitted.
    pub(crate) fn parts_words(&self, measure: Measure) -> String {
        let parts = self.parts();
        let said = [
            (parts.office, "on weekdays from 9:00 to 17:00"),
            (parts.off_hours, "on weekdays at other hours"),
            (parts.weekend, "at the weekend"),
        ];
        let said = said
            .into_iter()
            .filter_map(|(value, when)| Some(format!("{} {when}", measure.words(value?))));
        said.collect::<Vec<String>>().join(", ")
    }

    /// Hour with the maximum value (`most`) or the minimum value, in words (`Tuesday from 10:00`), and that
    /// value.
    pub(crate) fn hour_words(&self, most: bool) -> Option<(String, f64)> {
        let better = |a: f64, b: f64| if most { a > b } else { a < b };
        let mut found: Option<(usize, usize, f64)> = None;
        for (day, hour, value) in self.known() {
            if found.is_none_or(|(_, _, best)| better(value, best)) {
                found = Some((day, hour, value));
            }
        }
        found.map(|(day, hour, value)| (format!("{} from {hour}:00", DAYS[day]), value))
    }

    /// Returns the map as a figure: hours horizontally, weekdays vertically.
    pub(crate) fn figure(&self, map: Map) -> Option<Figure> {
        let (least, high) = self.range()?;
        // The colours must not exaggerate small differences, so they span at least a fifth of the largest
        // value.
        let low = least.min((1.0 - LEAST_CONTRAST) * high);
        let unit = Unit::of(high);
        let number = |value: f64| match map.measure {
            Measure::Share => (value * 1000.0).round() / 10.0,
            Measure::Bytes => unit.number(value),
            Measure::Number => (value * 1000.0).round() / 1000.0,
        };
        let (format, unit_name) = match map.measure {
            Measure::Share => (".1f", " %"),
            Measure::Bytes if unit.name == "GiB" => (".1f", " GiB"),
            Measure::Bytes => (".0f", " MiB"),
            Measure::Number => (".1f", ""),
        };
        let rows: Vec<Vec<Option<f64>>> = self
            .cells
            .iter()
            .map(|day| day.iter().map(|cell| cell.map(number)).collect())
            .collect();
        let hours: Vec<String> = (0..24)
            .map(|hour| format!("{hour}:00 to {}:00", hour + 1))
            .collect();
        // Even a map with a single value needs a scale.
        let top = if number(high) > number(low) {
            number(high)
        } else {
            number(low) + 1.0
        };
        let trace = HeatMap::new(hours, DAYS.map(String::from).to_vec(), rows)
            .hover_info(HoverInfo::All)
            .hover_template(format!(
                "%{{y}}, %{{x}}<br>{} %{{z:{format}}}{unit_name}<extra></extra>",
                map.label
            ))
            .hover_on_gaps(false)
            .show_scale(false)
            .x_gap(1)
            .y_gap(1)
            .zmin(number(low))
            .zmax(top)
            // Heat maps have no `meta`, so `name` has the colour.
            .name(map.colour);
        let x_axis = axis()
            .type_(AxisType::Category)
            .show_grid(false)
            .title("hour of the day")
            .tick_values(
                (0..24)
                    .step_by(3)
                    .map(|hour| f64::from(hour) - 0.5)
                    .collect(),
            )
            .tick_text(
                (0..24)
                    .step_by(3)
                    .map(|hour: i32| hour.to_string())
                    .collect(),
            )
            .tick_angle(0.0);
        let y_axis = axis()
            .type_(AxisType::Category)
            .show_grid(false)
            .range(vec![6.5, -0.5])
            .tick_values((0..7).map(f64::from).collect())
            .tick_text(DAYS.iter().map(|day| day[..3].to_owned()).collect());
        let blank = self.known().count() < 7 * 24;
        Some(Figure {
            id: map.id,
            title: map.title,
            sentence: map.sentence,
            key: vec![Key {
                colour: map.colour,
                mark: "scale",
                label: format!("{} to {}", map.measure.words(low), map.measure.words(high)),
                value: if blank {
                    "blank: no data".into()
                } else {
                    String::new()
                },
            }],
            height_px: 290,
            plot: Plot {
                times: Vec::new(),
                data: vec![trace],
                layout: layout().x_axis(x_axis).y_axis(y_axis),
            },
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + value));
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_out_of_the_week_are_left_out() {
        let week = Week::of([
            (1, 9, Some(0.25)),
            (7, 23, Some(0.75)),
            (0, 0, Some(9.0)),
            (8, 0, Some(9.0)),
            (1, 24, Some(9.0)),
            (-1, -1, Some(9.0)),
            (2, 3, Some(f64::NAN)),
        ]);
        let known: Vec<_> = week.known().collect();
        assert_eq!(known, [(0, 9, 0.25), (6, 23, 0.75)]);
        assert_eq!(week.range(), Some((0.25, 0.75)));
        assert_eq!(week.mean(), Some(0.5));
        assert_eq!(week.at(0, 9), Some(0.25));
        assert_eq!(week.at(7, 9), None);
    }

    #[test]
    fn a_week_is_told_by_its_parts() {
        let value = |day: i64, hour: i64| match (day, hour) {
            (6.., _) => 0.9,
            (_, 9..17) => 0.3,
            _ => 0.7,
        };
        let week = Week::of((1..=7).flat_map(|d| (0..24).map(move |h| (d, h, Some(value(d, h))))));
        assert_eq!(
            week.parts_words(Measure::Share).replace('\u{a0}', " "),
            "30 % on weekdays from 9:00 to 17:00, 70 % on weekdays at other hours, 90 % at the weekend"
        );
        assert_eq!(
            week.hour_words(false),
            Some(("Monday from 9:00".to_owned(), 0.3))
        );
    }

    #[test]
    fn cells_without_data_stay_blank_and_monday_is_on_top() {
        let map = || Map {
            id: "m".into(),
            title: "M".into(),
            sentence: "S.".into(),
            measure: Measure::Share,
            colour: "gain",
            label: "idle",
        };
        assert!(Week::default().figure(map()).is_none());
        let week = Week::of([(1, 0, Some(0.5)), (3, 5, Some(0.0))]);
        let figure = week.figure(map()).unwrap();
        let plot = serde_json::to_value(&figure.plot).unwrap();
        assert_eq!(plot["data"][0]["z"][0][0], 50.0);
        assert_eq!(plot["data"][0]["z"][2][5], 0.0);
        assert!(plot["data"][0]["z"][0][1].is_null());
        assert_eq!(plot["data"][0]["y"][0], "Monday");
        assert_eq!(
            plot["layout"]["yaxis"]["range"],
            serde_json::json!([6.5, -0.5])
        );
        assert_eq!(figure.key[0].value, "blank: no data");
    }
}
