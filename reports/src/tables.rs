//! Tables: every cell knows its number, so that a reader sees units and a sort sees magnitudes.

pub(crate) mod hosts;
pub(crate) mod lasting;
pub(crate) mod memory;
pub(crate) mod trust;
pub(crate) mod users;

use crate::wording;
use gleaner_schemas::units::Bytes;

/// Rows beyond this stay out of the page: it is for reading, the findings have them all.
pub(crate) const ROWS_SHOWN: usize = 100;

/// A table with a caption; its first column names the row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub id: String,
    pub caption: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    /// Said beneath it.
    pub note: Option<String>,
    /// Whether its order is its own: no column sorts it.
    pub in_order: bool,
}

/// A column's heading and how its cells stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub label: &'static str,
    pub is_number: bool,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cell {
    /// As read; a unit stands apart so that numbers align.
    pub text: String,
    pub unit: String,
    /// What it sorts by; text sorts as text.
    pub value: Option<f64>,
    /// Name of the colour that its figure uses.
    pub swatch: Option<&'static str>,
    /// Length of a bar before the number, in percent.
    pub bar: Option<f64>,
    /// What a screen reader says where the eye sees a dash.
    pub absent: bool,
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    fn number(text: String, unit: &str, value: f64) -> Self {
        Self {
            text,
            unit: unit.into(),
            value: Some(value),
            ..Self::default()
        }
    }

    /// What is not known: a dash, never 0.
    pub(crate) fn absent() -> Self {
        Self {
            text: "–".into(),
            absent: true,
            ..Self::default()
        }
    }

    pub(crate) fn count(number: i64) -> Self {
        Self::number(wording::thousands(number), "", number as f64)
    }

    pub(crate) fn bytes(bytes: f64) -> Self {
        let printed = Bytes(bytes).to_string();
        let (number, unit) = printed.rsplit_once(' ').unwrap_or((&printed, ""));
        Self::number(number.into(), unit, bytes)
    }

    /// A size that was chosen: `4 GiB`.
    pub(crate) fn size(stored: i64) -> Self {
        let printed = wording::size(stored);
        let (number, unit) = printed.rsplit_once('\u{a0}').unwrap_or((&printed, ""));
        Self::number(number.into(), unit, stored as f64)
    }

    pub(crate) fn share(share: f64) -> Self {
        let printed = wording::share(share);
        let number = printed.trim_end_matches(['%', '\u{a0}']);
        Self::number(number.into(), "%", share)
    }

    pub(crate) fn seconds(seconds: f64) -> Self {
        Self::number(wording::seconds(seconds), "", seconds)
    }

    pub(crate) fn ms(ms: f64) -> Self {
        Self::number(format!("{ms:.1}"), "ms", ms)
    }

    /// A moment: reads as `text`, sorts by time.
    pub(crate) fn moment(text: String, time_ms: i64) -> Self {
        Self::number(text, "", time_ms as f64)
    }

    pub(crate) fn or_absent<T>(value: Option<T>, cell: impl Fn(T) -> Self) -> Self {
        value.map_or_else(Self::absent, cell)
    }

    fn swatch(mut self, colour: &'static str) -> Self {
        self.swatch = Some(colour);
        self
    }

    /// With a bar, `length` from 0 to 1.
    fn bar(mut self, length: f64) -> Self {
        self.bar = Some((length.clamp(0.0, 1.0) * 1000.0).round() / 10.0);
        self
    }
}

/// A column of words.
pub(crate) const fn words(label: &'static str) -> Column {
    Column {
        label,
        is_number: false,
    }
}

/// A column of numbers.
pub(crate) const fn numbers(label: &'static str) -> Column {
    Column {
        label,
        is_number: true,
    }
}

impl Table {
    fn new(id: String, caption: impl Into<String>, columns: Vec<Column>) -> Self {
        Self {
            id,
            caption: caption.into(),
            columns,
            ..Self::default()
        }
    }

    /// With these rows, as many as a page should have; absent without any.
    fn with_rows(mut self, mut rows: Vec<Vec<Cell>>) -> Option<Self> {
        let all = rows.len();
        rows.truncate(ROWS_SHOWN);
        if all > rows.len() {
            self.note = Some(format!(
                "The first {} of {} rows; the findings have them all.",
                rows.len(),
                wording::thousands(all as i64)
            ));
        }
        self.rows = rows;
        (!self.rows.is_empty()).then_some(self)
    }
}

/// The host's column where several hosts share a table.
fn host_column(many: bool, rest: Vec<Column>) -> Vec<Column> {
    let mut columns = Vec::from_iter(many.then_some(words("host")));
    columns.extend(rest);
    columns
}

/// The host's cell likewise.
fn host_cell(many: bool, name: String, rest: Vec<Cell>) -> Vec<Cell> {
    let mut cells = Vec::from_iter(many.then(|| Cell::text(name)));
    cells.extend(rest);
    cells
}

/// A list by decreasing number.
fn largest_first<T>(items: &[T], number: impl Fn(&T) -> f64) -> Vec<&T> {
    let mut sorted: Vec<&T> = items.iter().collect();
    sorted.sort_by(|a, b| number(b).total_cmp(&number(a)));
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::view::View;
    use gleaner_schemas::findings::Findings;

    fn demo() -> Findings {
        serde_json::from_str(include_str!("../fixtures/demo.json")).unwrap()
    }

    /// The numbers of a table, row by row.
    fn values(table: &Table) -> Vec<Vec<f64>> {
        let numbers = |row: &Vec<Cell>| row.iter().filter_map(|c| c.value).collect();
        table.rows.iter().map(numbers).collect()
    }

    fn texts(row: &[Cell]) -> Vec<String> {
        row.iter()
            .map(|c| format!("{}{}", c.text, c.unit))
            .collect()
    }

    #[test]
    fn every_number_in_a_table_is_one_of_the_findings() {
        let (f, clock) = (demo(), Clock::new("UTC").unwrap());
        let view = View::all(&f, &clock);
        let usage = &memory::usage(&view)[0];
        assert_eq!(
            usage.rows.len(),
            11,
            "the class of the only host is not told twice"
        );
        for row in &usage.rows {
            let of_row = |u: &&gleaner_schemas::findings::MemoryUsage| {
                u.size_class == "all"
                    && [Some(u.mean_bytes), Some(u.mean_share), u.sd_bytes]
                        == [row[1].value, row[2].value, row[3].value]
                    && row[4].value == Some(u.min_bytes as f64)
                    && row[5].value == Some(u.median_bytes)
                    && row[6].value == Some(u.max_bytes as f64)
                    && row[7].value == Some(u.samples_count as f64)
            };
            assert!(f.memory_usage.iter().any(|u| of_row(&u)), "{row:?}");
        }
        let dips: Vec<Vec<f64>> = f
            .dips
            .iter()
            .map(|d| {
                vec![
                    d.threshold_bytes as f64,
                    d.intervals as f64,
                    0.0,
                    d.min_available_bytes as f64,
                    d.min_time_ms as f64,
                ]
            })
            .collect();
        assert_eq!(values(&memory::dips(&view).unwrap()), dips);
        let processes: Vec<Vec<f64>> = f
            .top_processes
            .iter()
            .map(|p| {
                vec![
                    p.mean_bytes,
                    p.max_bytes as f64,
                    p.active_samples_count as f64,
                    p.cpu_s,
                ]
            })
            .collect();
        assert_eq!(values(&users::processes(&view).unwrap()), processes);
        let files: Vec<Vec<f64>> = f
            .top_files
            .iter()
            .map(|p| {
                vec![
                    p.mean_cached_bytes,
                    p.max_cached_bytes as f64,
                    p.samples_count as f64,
                ]
            })
            .collect();
        assert_eq!(values(&users::files(&view).unwrap()), files);
        let periods: Vec<Vec<f64>> = f
            .availability_periods
            .iter()
            .filter(|p| p.size_class == "all")
            .map(|p| {
                let mut row = vec![p.region_bytes as f64, 0.0, 0.0];
                row.extend(p.available_time_share);
                row
            })
            .collect();
        assert_eq!(values(&lasting::availability(&view).unwrap()), periods);
    }

    #[test]
    fn rows_read_like_this() {
        let (f, clock) = (demo(), Clock::new("UTC").unwrap());
        let view = View::all(&f, &clock);
        let row = |name: &str| {
            let usage = memory::usage(&view).remove(0);
            texts(usage.rows.iter().find(|r| r[0].text == name).unwrap())
        };
        assert_eq!(
            row("process"),
            [
                "process", "1.9GiB", "8.2%", "1.3GiB", "617.4MiB", "1.7GiB", "3.7GiB", "30"
            ]
        );
        assert_eq!(
            row("reserve"),
            [
                "reserve", "67.0MiB", "0.3%", "0B", "67.0MiB", "67.0MiB", "67.0MiB", "30"
            ]
        );
        let idle_region = lasting::availability(&view).unwrap().rows.pop().unwrap();
        assert_eq!(
            texts(&idle_region),
            ["16GiB", "idle", "0", "0", "–", "–", "–", "–", "–"]
        );
    }

    #[test]
    fn a_table_too_long_to_read_says_so() {
        let mut f = demo();
        let process = f.top_processes[0].clone();
        f.top_processes = vec![process; 250];
        let clock = Clock::new("UTC").unwrap();
        let table = users::processes(&View::all(&f, &clock)).unwrap();
        assert_eq!(table.rows.len(), ROWS_SHOWN);
        assert_eq!(
            table.note.unwrap(),
            "The first 100 of 250 rows; the findings have them all."
        );
    }
}
