//! A page that compares policies by gain and cost: one figure per cost, and a table.

use crate::ReportError;
use crate::headline::Headline;
use crate::page::figure::{Figure, Key, Plot, Unit, axis, layout};
use crate::page::table::{Cell, Kind, Table, numbers, words};
use crate::page::{Part, Section};
use crate::questions::sentence;
use crate::wording;
use crate::write::html;
use plotly::common::{Line, Marker, MarkerSymbol, Mode};
use plotly::layout::Axis;
use plotly::{Scatter, Trace};

/// Names in `style.css` of the colours of a setting's values; if there are more values, the colours repeat.
const COLOURS: [&str; 7] = [
    "size-1",
    "size-2",
    "size-3",
    "reserve",
    "static-kernel",
    "file-cache",
    "loss-5",
];
/// Symbols of the dots, each with the name of its mark in the legend ([`Key::mark`]).
const SYMBOLS: [(MarkerSymbol, &str); 5] = [
    (MarkerSymbol::Circle, "dot"),
    (MarkerSymbol::Diamond, "diamond"),
    (MarkerSymbol::Square, "area"),
    (MarkerSymbol::CircleOpen, "ring"),
    (MarkerSymbol::DiamondOpen, "diamond-open"),
];

/// Policies to compare.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Heading of the page.
    pub title: String,
    /// Subject of the page: `study: 10 cases`.
    pub subject: String,
    /// Period that the page covers.
    pub period: String,
    /// Sentences below the headline.
    pub about: Vec<String>,
    /// Names of the settings that distinguish policies. The first setting names the rows; the first one whose
    /// values differ determines the colours.
    pub keys: Vec<String>,
    /// Measures of each policy.
    pub measures: Vec<ComparedMeasure>,
    /// Index of the measure on the figures' vertical axis.
    pub benefit: usize,
    /// Indices of the measures on the horizontal axis, one figure each.
    pub costs: Vec<usize>,
    /// Groups (clusters) that are not compared with each other.
    pub groups: Vec<ComparedGroup>,
}

/// A measure of the comparison.
#[derive(Clone, Debug)]
pub struct ComparedMeasure {
    /// Name of the measure.
    pub label: &'static str,
    /// Unit of the measure.
    pub unit: ComparedUnit,
    /// Meaning of the measure.
    pub meaning: &'static str,
}

/// Unit of a measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ComparedUnit {
    /// A number without unit.
    #[default]
    Number,
    /// Share of 1.
    Share,
    /// Number of bytes.
    Bytes,
}

/// Policies on one cluster.
#[derive(Clone, Debug)]
pub struct ComparedGroup {
    /// Name of the cluster.
    pub name: String,
    /// Description of the cluster, in a sentence.
    pub about: String,
    /// Rows, one for each policy.
    pub rows: Vec<ComparedRow>,
}

/// A compared policy.
#[derive(Clone, Debug)]
pub struct ComparedRow {
    /// Values of the settings, in the order of [`Comparison::keys`].
    pub settings: Vec<String>,
    /// Values, in the order of the measures, as median, minimum and maximum; absent if unknown.
    pub values: Vec<Option<[f64; 3]>>,
}

impl ComparedRow {
    fn median(&self, measure: usize) -> Option<f64> {
        let value = self.values.get(measure).copied().flatten();
        value.map(|[median, ..]| median)
    }

    fn setting(&self, key: usize) -> &str {
        self.settings.get(key).map_or("", String::as_str)
    }
}

impl ComparedMeasure {
    fn words(&self, value: f64) -> String {
        match self.unit {
            ComparedUnit::Share => wording::share(value),
            ComparedUnit::Bytes => wording::bytes(value),
            ComparedUnit::Number => number(value),
        }
    }

    fn cell(&self, value: f64) -> Cell {
        match self.unit {
            ComparedUnit::Share => Cell::share(value),
            ComparedUnit::Bytes => Cell::bytes(value),
            ComparedUnit::Number => Cell::of(Kind::Number, number(value), "", value),
        }
    }

    /// Value on a figure's axis: shares as percentages.
    fn axis_value(&self, value: f64, unit: Unit) -> f64 {
        match self.unit {
            ComparedUnit::Share => (value * 1000.0).round() / 10.0,
            ComparedUnit::Bytes => unit.number(value),
            ComparedUnit::Number => (value * 1000.0).round() / 1000.0,
        }
    }

    fn axis(&self, unit: Unit) -> Axis {
        match self.unit {
            ComparedUnit::Share => axis().title(self.label).tick_suffix(" %"),
            ComparedUnit::Bytes => axis().title(format!("{}, {}", self.label, unit.name)),
            ComparedUnit::Number => axis().title(self.label),
        }
    }
}

/// Formats a number with three digits, or as an integer if the integer part has more.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Range of a cost's axis: it always includes 0, even if the lowest cost is far above.
fn from_0(most: f64) -> Vec<f64> {
    let most = if most > 0.0 { most } else { 1.0 };
    vec![-0.03 * most, 1.05 * most]
}

/// Text escaped for Plotly, which interprets some HTML as markup.
fn inert(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl Comparison {
    /// Returns one self-contained HTML page: it contains its styles, Plotly and data, and its content policy
    /// forbids every request. The same comparison gives the same page.
    ///
    /// # Errors
    /// A number cannot be written as JSON.
    pub fn html(&self) -> Result<String, ReportError> {
        let groups = self.groups.iter().enumerate();
        let mut sections: Vec<Section> =
            groups.map(|(at, group)| self.section(at, group)).collect();
        sections.push(self.meanings());
        let headline = Headline {
            lead: self.lead(),
            support: self.about.clone(),
            ..Headline::default()
        };
        let question = "What does lending gain, and what does it cost?";
        let about: [&str; 4] = [&self.title, &self.subject, &self.period, question];
        html::figures(about, &headline, &sections)
    }

    fn lead(&self) -> String {
        let said = self.groups.iter().filter_map(|group| {
            let range = self.range(group, self.benefit)?;
            Some(format!("on {} {range}", group.name))
        });
        let said: Vec<String> = said.collect();
        match self.measures.get(self.benefit) {
            Some(benefit) if !said.is_empty() => {
                sentence(&format!("{}: {}", benefit.label, wording::list(&said)))
            }
            _ => "No gain could be measured.".to_owned(),
        }
    }

    /// Range of a group's medians of one measure, in words: `11 %`, or `from 11 % to 67 %`.
    fn range(&self, group: &ComparedGroup, at: usize) -> Option<String> {
        let measure = self.measures.get(at)?;
        let values = || group.rows.iter().filter_map(|row| row.median(at));
        let low = measure.words(values().min_by(f64::total_cmp)?);
        let high = measure.words(values().max_by(f64::total_cmp)?);
        Some(if low == high {
            low
        } else {
            format!("from {low} to {high}")
        })
    }

    fn section(&self, at: usize, group: &ComparedGroup) -> Section {
        let figures = self.costs.iter().enumerate();
        let figures = figures.filter_map(|(n, cost)| self.figure(at, n, group, *cost));
        let mut parts: Vec<Part> = figures.map(Part::figure).collect();
        parts.extend(self.table(at, group).map(Part::Table));
        Section {
            id: format!("cluster-{}", at + 1),
            title: group.name.clone().into(),
            answer: group.about.clone(),
            parts,
        }
    }

    fn table(&self, at: usize, group: &ComparedGroup) -> Option<Table> {
        let keys = self.keys.iter().cloned().map(words);
        let measures = self.measures.iter().map(|m| numbers(m.label));
        let columns = keys.chain(measures).collect();
        let row = |row: &ComparedRow| {
            let settings = row.settings.iter().map(Cell::text);
            let values = self.measures.iter().enumerate();
            let values = values.map(|(at, m)| Cell::or_absent(row.median(at), |v| m.cell(v)));
            settings.chain(values).collect()
        };
        let mut table = Table::new(
            format!("rows-{}", at + 1),
            format!("All cases of {}", group.name),
            columns,
        );
        table.rows_shown = 2000;
        table.stays_open = true;
        table.with_rows(group.rows.iter().map(row).collect())
    }

    fn meanings(&self) -> Section {
        let row = |m: &ComparedMeasure| vec![Cell::text(m.label), Cell::text(m.meaning)];
        let columns = vec![words("measure"), words("meaning")];
        let mut table = Table::new("measures".to_owned(), "Measures", columns);
        table.in_order = true;
        table.rows = self.measures.iter().map(row).collect();
        Section {
            id: "words".to_owned(),
            title: "What do the terms mean?".into(),
            answer: String::new(),
            parts: vec![Part::Table(table)],
        }
    }

    /// Values of one setting over all groups, in the order of their first occurrence.
    fn values_of(&self, key: usize) -> Vec<&str> {
        let mut all = Vec::new();
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            let value = row.setting(key);
            if !all.contains(&value) {
                all.push(value);
            }
        }
        all
    }

    /// Indices of the settings that colours and symbols show. Colours show the first setting whose values
    /// differ. Symbols show the next such setting that has no more values than there are symbols.
    fn encoded_keys(&self) -> (usize, Option<usize>) {
        let differs = |key: &usize| self.values_of(*key).len() > 1;
        let mut keys = (0..self.keys.len()).filter(differs);
        let colour = keys.next().unwrap_or(0);
        let has_marks = |key: &usize| self.values_of(*key).len() <= SYMBOLS.len();
        (colour, keys.find(has_marks))
    }

    fn figure(&self, at: usize, n: usize, group: &ComparedGroup, cost: usize) -> Option<Figure> {
        let (x, y) = (self.measures.get(cost)?, self.measures.get(self.benefit)?);
        let most = |measure| {
            let values = group.rows.iter().filter_map(|row| row.median(measure));
            values.fold(0.0, f64::max)
        };
        let (along, up) = (Unit::of(most(cost)), Unit::of(most(self.benefit)));
        let (by_colour, by_mark) = self.encoded_keys();
        let colours = self.values_of(by_colour);
        let marks = by_mark.map_or_else(|| vec![""], |key| self.values_of(key));
        let mut data: Vec<Box<dyn Trace>> = Vec::new();
        for (c, colour) in colours.iter().enumerate() {
            for (m, mark) in marks.iter().enumerate() {
                let is_it = |row: &&ComparedRow| {
                    let mark_is = by_mark.is_none_or(|key| row.setting(key) == *mark);
                    row.setting(by_colour) == *colour && mark_is
                };
                let known = group.rows.iter().filter(is_it).filter_map(|row| {
                    let (x_value, y_value) = (row.median(cost)?, row.median(self.benefit)?);
                    Some((
                        x.axis_value(x_value, along),
                        y.axis_value(y_value, up),
                        self.hover_text(row),
                    ))
                });
                let known: Vec<(f64, f64, String)> = known.collect();
                if known.is_empty() {
                    continue;
                }
                // Values with the same colour get different symbols.
                let symbol = SYMBOLS[(m + c / COLOURS.len()) % SYMBOLS.len()].0.clone();
                data.push(
                    Scatter::new(
                        known.iter().map(|k| k.0).collect(),
                        known.iter().map(|k| k.1).collect(),
                    )
                    .mode(Mode::Markers)
                    .meta(COLOURS[c % COLOURS.len()])
                    .marker(
                        Marker::new()
                            .size(10)
                            .symbol(symbol)
                            .opacity(0.85)
                            .line(Line::new().width(1.5)),
                    )
                    .hover_text_array(known.into_iter().map(|k| k.2).collect::<Vec<String>>())
                    .hover_template("%{hovertext}<extra></extra>"),
                );
            }
        }
        if data.is_empty() {
            return None;
        }
        Some(Figure {
            id: format!("cost-{}-{}", at + 1, n + 1),
            title: format!("{}: {} against {}", group.name, y.label, x.label),
            sentence: format!(
                "{}: {} {}, {} {}. Points further up gain more; points further left cost less.",
                wording::count(group.rows.len() as i64, "case"),
                y.label,
                self.range(group, self.benefit)?,
                x.label,
                self.range(group, cost)?,
            ),
            key: self.key(&colours, by_mark, &marks),
            height_px: 380,
            plot: Plot {
                times: Vec::new(),
                data,
                layout: layout()
                    .x_axis(x.axis(along).range(from_0(x.axis_value(most(cost), along))))
                    .y_axis(y.axis(up)),
            },
        })
    }

    fn key(&self, colours: &[&str], by_mark: Option<usize>, marks: &[&str]) -> Vec<Key> {
        let key = |colour, mark, label: &str| Key {
            colour,
            mark,
            label: label.to_owned(),
            value: String::new(),
        };
        let mark_of = |c: usize| SYMBOLS[(c / COLOURS.len()) % SYMBOLS.len()].1;
        let by_colour = colours.iter().enumerate();
        let by_colour =
            by_colour.map(|(c, value)| key(COLOURS[c % COLOURS.len()], mark_of(c), value));
        let mut all: Vec<Key> = by_colour.collect();
        if by_mark.is_some() {
            let marks = marks.iter().enumerate();
            all.extend(marks.map(|(m, value)| key("idle", SYMBOLS[m].1, value)));
        }
        all
    }

    /// Text with all known values of a row, for hovering.
    fn hover_text(&self, row: &ComparedRow) -> String {
        let settings = self.keys.iter().zip(&row.settings);
        let settings = settings.map(|(key, value)| format!("{} {}", inert(key), inert(value)));
        let values = self.measures.iter().zip(&row.values);
        let values = values.filter_map(|(m, value)| {
            let [median, low, high] = (*value)?;
            let (median, low, high) = (m.words(median), m.words(low), m.words(high));
            let range = if low == high {
                String::new()
            } else {
                format!(" ({low} to {high})")
            };
            Some(format!("{} {median}{range}", m.label))
        });
        settings.chain(values).collect::<Vec<String>>().join("<br>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison() -> Comparison {
        let row = |program: &str, placement: &str, gain, reclaims| ComparedRow {
            settings: vec![program.into(), placement.into()],
            values: vec![gain, reclaims],
        };
        let measure = |label, unit| ComparedMeasure {
            label,
            unit,
            meaning: "as it says",
        };
        Comparison {
            title: "Lending, simulated".into(),
            keys: vec!["program".into(), "placement".into()],
            measures: vec![
                measure("share of gain", ComparedUnit::Share),
                measure("reclaims", ComparedUnit::Number),
            ],
            benefit: 0,
            costs: vec![1],
            groups: vec![ComparedGroup {
                name: "A <b>".into(),
                about: "29 hosts.".into(),
                rows: vec![
                    row(
                        "lu",
                        "random",
                        Some([0.25, 0.25, 0.25]),
                        Some([3.5, 3.0, 4.0]),
                    ),
                    row(
                        "lu",
                        "<script>",
                        Some([0.5, 0.4, 0.6]),
                        Some([12.0, 12.0, 12.0]),
                    ),
                    row("lu", "stick", None, Some([1.0, 1.0, 1.0])),
                ],
            }],
            ..Comparison::default()
        }
    }

    #[test]
    fn a_mark_for_each_policy_that_is_known() {
        let all = comparison();
        let figure = all.figure(0, 0, &all.groups[0], 1).unwrap();
        assert_eq!(figure.plot.data.len(), 2, "what is not known has no mark");
        let plot = serde_json::to_value(&figure.plot).unwrap();
        let (first, second) = (&plot["data"][0], &plot["data"][1]);
        assert_eq!(
            (&first["x"][0], &first["y"][0]),
            (&3.5.into(), &25.0.into())
        );
        let said = second["hovertext"][0]
            .as_str()
            .unwrap()
            .replace('\u{a0}', " ");
        assert_eq!(
            said,
            "program lu<br>placement &lt;script&gt;<br>share of gain 50 % (40 % to 60 %)<br>reclaims 12.0"
        );
        // All rows have the same program, so the placements determine the colours.
        assert_ne!(first["meta"], second["meta"]);
        let labels: Vec<&str> = figure.key.iter().map(|k| k.label.as_str()).collect();
        assert_eq!(labels, ["random", "<script>", "stick"]);
        let sentence = figure.sentence.replace('\u{a0}', " ");
        assert!(
            sentence.starts_with(
                "3 cases: share of gain from 25 % to 50 %, reclaims from 1.00 to 12.0."
            ),
            "{sentence}"
        );
    }

    #[test]
    fn the_page_holds_every_row_and_its_words_stay_words() {
        let page = comparison().html().unwrap();
        assert!(page.contains("Lending, simulated"));
        assert!(page.contains("A &#60;b&#62;"));
        assert!(
            page.contains("<td>&#60;script&#62;</td>"),
            "escaped in the table"
        );
        assert_eq!(
            page.matches("<span class=\"unseen\">not known</span>")
                .count(),
            1
        );
        assert_eq!(page, comparison().html().unwrap());
    }
}
