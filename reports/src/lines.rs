//! A page of figures with lines: each section answers a question with one figure, and a table beside it.

use crate::ReportError;
use crate::comparison::ComparedUnit;
use crate::headline::Headline;
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout};
use crate::page::table::{Cell, Kind, Table, numbers, words};
use crate::page::{Part, Section};
use crate::wording;
use crate::write::html;
use plotly::common::{DashType, HoverInfo, Line, Mode};
use plotly::layout::{Axis, AxisType};
use plotly::{Scatter, Trace};

/// Names in `style.css` of the lines' colours; if there are more lines, the colours repeat with another dash.
const COLOURS: [&str; 7] = [
    "size-1",
    "size-2",
    "size-3",
    "reserve",
    "static-kernel",
    "file-cache",
    "loss-5",
];
/// Dashes of the lines, each with the name of its mark in the legend ([`Key::mark`]).
const DASHES: [(DashType, &str); 2] = [(DashType::Solid, "line"), (DashType::Dash, "dash")];

/// A page of figures with lines.
#[derive(Clone, Debug, Default)]
pub struct LinePage {
    /// Heading of the page.
    pub title: String,
    /// Subject of the page, such as a program.
    pub subject: String,
    /// Period or amount that the page covers.
    pub period: String,
    /// Question that the page answers.
    pub question: String,
    /// Answer in one sentence.
    pub lead: String,
    /// Sentences below the answer.
    pub about: Vec<String>,
    /// Sections, in order.
    pub sections: Vec<LineSection>,
}

/// A section: one figure, and its table.
#[derive(Clone, Debug, Default)]
pub struct LineSection {
    /// Id in the page's address, of lower-case letters and hyphens.
    pub id: &'static str,
    /// Question that the section answers.
    pub title: &'static str,
    /// Answer in one sentence, which the figure's label repeats.
    pub answer: String,
    /// Title of the figure.
    pub figure: &'static str,
    /// Horizontal axis of the figure.
    pub x: LineAxis,
    /// Vertical axis of the figure.
    pub y: LineAxis,
    /// Lines of the figure.
    pub lines: Vec<FigureLine>,
    /// Value of a dotted line across the figure, and its name in the legend.
    pub mark: Option<(f64, &'static str)>,
    /// Headings of the table's columns; the first one names the rows.
    pub columns: Vec<&'static str>,
    /// Rows of the table.
    pub rows: Vec<Vec<LineCell>>,
}

/// An axis of a figure.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineAxis {
    /// Name of the values.
    pub label: &'static str,
    /// Unit of the values.
    pub unit: ComparedUnit,
    /// True if the axis is logarithmic; values of 0 and below are then left out.
    pub is_log: bool,
}

/// A line of a figure.
#[derive(Clone, Debug, Default)]
pub struct FigureLine {
    /// Name in the legend.
    pub label: String,
    /// Points, in the order in which they are connected.
    pub points: Vec<(f64, f64)>,
}

/// A cell of a table.
#[derive(Clone, Debug)]
pub enum LineCell {
    /// Name without a unit.
    Text(String),
    /// A value with its unit.
    Value(ComparedUnit, f64),
    /// An unknown value.
    Absent,
}

impl LineAxis {
    fn axis(&self, unit: Unit) -> Axis {
        let axis = match self.unit {
            ComparedUnit::Share => axis().title(self.label).tick_suffix(" %"),
            ComparedUnit::Bytes => axis().title(format!("{}, {}", self.label, unit.name)),
            ComparedUnit::Number => axis().title(self.label),
        };
        match self.is_log {
            true => axis.type_(AxisType::Log),
            false => axis,
        }
    }

    fn value(&self, value: f64, unit: Unit) -> f64 {
        match self.unit {
            ComparedUnit::Share => (value * 1000.0).round() / 10.0,
            ComparedUnit::Bytes => unit.number(value),
            ComparedUnit::Number => (value * 1000.0).round() / 1000.0,
        }
    }

    fn words(&self, value: f64) -> String {
        words_of(self.unit, value)
    }
}

fn words_of(unit: ComparedUnit, value: f64) -> String {
    match unit {
        ComparedUnit::Share => wording::share(value),
        ComparedUnit::Bytes => wording::bytes(value),
        ComparedUnit::Number => number(value),
    }
}

/// Formats a number with three digits, or as an integer in groups of three digits if it has more.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => wording::thousands(value.round() as i64),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Text escaped for Plotly, which interprets some HTML as markup.
fn inert(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl LineCell {
    fn cell(&self) -> Cell {
        match self {
            Self::Text(text) => Cell::text(text.clone()),
            Self::Value(ComparedUnit::Share, value) => Cell::share(*value),
            Self::Value(ComparedUnit::Bytes, value) => Cell::bytes(*value),
            Self::Value(ComparedUnit::Number, value) => {
                Cell::of(Kind::Number, number(*value), "", *value)
            }
            Self::Absent => Cell::absent(),
        }
    }

    fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_))
    }
}

impl LinePage {
    /// Returns one self-contained HTML page: it contains its styles, Plotly and data, and its content policy forbids
    /// every request. The same input gives the same page.
    ///
    /// # Errors
    /// A number cannot be written as JSON.
    pub fn html(&self) -> Result<String, ReportError> {
        let sections: Vec<Section> = self.sections.iter().map(LineSection::section).collect();
        let headline = Headline {
            lead: self.lead.clone(),
            support: self.about.clone(),
            ..Headline::default()
        };
        let about: [&str; 4] = [&self.title, &self.subject, &self.period, &self.question];
        html::figures(about, &headline, &sections)
    }
}

impl LineSection {
    fn section(&self) -> Section {
        let figure = self.plot().map(Part::figure);
        let table = self.table().map(Part::Table);
        Section {
            id: self.id.to_owned(),
            title: self.title.into(),
            answer: self.answer.clone(),
            parts: figure.into_iter().chain(table).collect(),
        }
    }

    fn table(&self) -> Option<Table> {
        let first = self.rows.first();
        let columns = self.columns.iter().enumerate().map(|(at, label)| {
            let is_number = first
                .and_then(|row| row.get(at))
                .is_some_and(LineCell::is_number);
            match is_number {
                true => numbers(*label),
                false => words(*label),
            }
        });
        let mut table = Table::new(format!("{}-table", self.id), self.figure, columns.collect());
        table.in_order = true;
        table.stays_open = true;
        let row = |row: &Vec<LineCell>| row.iter().map(LineCell::cell).collect();
        table.with_rows(self.rows.iter().map(row).collect())
    }

    fn plot(&self) -> Option<Figure> {
        let most = |of: fn(&(f64, f64)) -> f64| {
            let points = self.lines.iter().flat_map(|line| &line.points);
            points.map(of).fold(0.0, f64::max)
        };
        let (along, up) = (
            Unit::of(most(|point| point.0)),
            Unit::of(most(|point| point.1)),
        );
        let mut data: Vec<Box<dyn Trace>> = Vec::new();
        let mut key = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let (dash, mark) = &DASHES[(at / COLOURS.len()) % DASHES.len()];
            let is_shown =
                |(x, y): &&(f64, f64)| (*x > 0.0 || !self.x.is_log) && (*y > 0.0 || !self.y.is_log);
            let shown: Vec<&(f64, f64)> = line.points.iter().filter(is_shown).collect();
            if shown.is_empty() {
                continue;
            }
            let hover = |(x, y): &&(f64, f64)| {
                let label = inert(&line.label);
                format!(
                    "{label}<br>{} {}<br>{} {}",
                    self.x.label,
                    self.x.words(*x),
                    self.y.label,
                    self.y.words(*y)
                )
            };
            let trace = Scatter::new(
                shown
                    .iter()
                    .map(|point| self.x.value(point.0, along))
                    .collect(),
                shown
                    .iter()
                    .map(|point| self.y.value(point.1, up))
                    .collect(),
            );
            data.push(
                trace
                    .mode(Mode::Lines)
                    .meta(colour)
                    .line(Line::new().width(2.0).dash(dash.clone()))
                    .hover_text_array(shown.iter().map(hover).collect::<Vec<String>>())
                    .hover_template("%{hovertext}<extra></extra>"),
            );
            key.push(Key {
                colour,
                mark,
                label: line.label.clone(),
                value: String::new(),
            });
        }
        if data.is_empty() {
            return None;
        }
        if let Some((value, label)) = self.mark {
            let value = self.y.value(value, up);
            let end = self.x.value(most(|point| point.0), along);
            data.push(
                Scatter::new(vec![0.0, end], vec![value, value])
                    .mode(Mode::Lines)
                    .meta("traced")
                    .line(Line::new().width(1.5).dash(DashType::Dot))
                    .hover_info(HoverInfo::Skip),
            );
            key.push(Key {
                colour: "traced",
                mark: "dot-line",
                label: label.to_owned(),
                value: String::new(),
            });
        }
        Some(Figure {
            id: format!("{}-figure", self.id),
            title: self.figure.to_owned(),
            sentence: self.answer.clone(),
            key,
            height_px: 380,
            plot: Plot {
                times: Vec::new(),
                data,
                layout: layout().x_axis(self.x.axis(along)).y_axis(self.y.axis(up)),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> LinePage {
        let section = LineSection {
            id: "faults",
            title: "How often does it fault?",
            answer: "With half of its memory it faults 20 times a second.".to_owned(),
            figure: "Fault rate over memory",
            x: LineAxis {
                label: "memory",
                unit: ComparedUnit::Bytes,
                is_log: false,
            },
            y: LineAxis {
                label: "faults a second",
                unit: ComparedUnit::Number,
                is_log: true,
            },
            lines: vec![
                FigureLine {
                    label: "<b>faults</b>".to_owned(),
                    points: vec![(1_048_576.0, 100.0), (2_097_152.0, 0.0)],
                },
                FigureLine::default(),
            ],
            mark: Some((2.0, "twice")),
            columns: vec!["memory", "faults a second"],
            rows: vec![vec![
                LineCell::Value(ComparedUnit::Bytes, 1_048_576.0),
                LineCell::Value(ComparedUnit::Number, 1234.5),
            ]],
        };
        LinePage {
            title: "Memory of a program".to_owned(),
            subject: "<script>".to_owned(),
            question: "How much memory does it need?".to_owned(),
            sections: vec![section],
            ..LinePage::default()
        }
    }

    #[test]
    fn a_line_has_its_points_above_0_and_its_words_stay_words() {
        let page = page();
        let figure = page.sections[0].plot().unwrap();
        let plot = serde_json::to_value(&figure.plot).unwrap();
        assert_eq!(
            plot["data"].as_array().unwrap().len(),
            2,
            "a line, and the mark"
        );
        assert_eq!(plot["data"][0]["x"], serde_json::json!([1.0]));
        let said = plot["data"][0]["hovertext"][0]
            .as_str()
            .unwrap()
            .replace('\u{a0}', " ");
        assert_eq!(
            said,
            "&lt;b&gt;faults&lt;/b&gt;<br>memory 1.0 MiB<br>faults a second 100"
        );
        let labels: Vec<&str> = figure.key.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(labels, ["<b>faults</b>", "twice"]);
    }

    #[test]
    fn the_page_holds_question_and_table() {
        let html = page().html().unwrap();
        assert!(html.contains("How much memory does it need?"));
        assert!(html.contains("1,235"), "the table's value");
        assert!(html.contains("&#60;script&#62;") && !html.contains("<strong><script>"));
        assert_eq!(html, page().html().unwrap());
    }
}
