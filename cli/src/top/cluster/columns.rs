//! The table's columns: which fit the terminal's width, and their content.

use super::rows::{Owner, Row};
use crate::top::args::Column;
use crate::top::draw::{fitted, length, parts, share, size};
use crate::top::ink::{Ink, Paint};
use gleaner_collector::ask::State;
use gleaner_schemas::findings::Category;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Columns from left to right.
pub(super) const ALL: [Column; 8] = [
    Column::Host,
    Column::State,
    Column::Memory,
    Column::Available,
    Column::Harvestable,
    Column::Owner,
    Column::Quota,
    Column::Age,
];

/// Order in which columns get room on a narrow terminal.
const KEPT: [Column; 8] = [
    Column::Host,
    Column::Available,
    Column::Quota,
    Column::Owner,
    Column::Age,
    Column::Memory,
    Column::Harvestable,
    Column::State,
];

const WIDEST_HOST: usize = 32;
const WIDEST_BAR: usize = 48;

pub(super) fn title(column: Column) -> &'static str {
    match column {
        Column::Host => "HOST",
        Column::State => "STATE",
        Column::Memory => "MEMORY",
        Column::Available => "AVAILABLE",
        Column::Harvestable => "HARVEST",
        Column::Owner => "OWNER",
        Column::Quota => "QUOTA",
        Column::Age => "AGE",
    }
}

fn least_width(column: Column) -> usize {
    match column {
        Column::Host => 11,
        Column::State => 11,
        Column::Memory => 10,
        Column::Available => 10, // width of its title and an arrow
        Column::Harvestable | Column::Quota => 9,
        Column::Owner => 12,
        Column::Age => 7,
    }
}

/// Number of blanks before a column. The owner's column is text after a column of numbers, and needs two.
const fn gap(column: Column) -> usize {
    match column {
        Column::Owner => 2,
        _ => 1,
    }
}

const fn is_number(column: Column) -> bool {
    matches!(
        column,
        Column::Available | Column::Harvestable | Column::Quota | Column::Age
    )
}

/// The columns that fit into a line, each with its width.
#[derive(Debug)]
pub(super) struct Columns {
    widths: Vec<(Column, usize)>,
    ink: Ink,
}

impl Columns {
    pub(super) fn fit(width: usize, ink: Ink) -> Self {
        let mut room = width;
        let mut kept = Vec::new();
        for column in KEPT {
            let gap = if kept.is_empty() { 0 } else { gap(column) };
            let wanted = least_width(column) + gap;
            if wanted > room && !kept.is_empty() {
                continue; // a narrower column may fit
            }
            room = room.saturating_sub(wanted);
            kept.push(column);
        }
        let mut widths: Vec<_> = ALL
            .into_iter()
            .filter(|column| kept.contains(column))
            .map(|column| (column, least_width(column)))
            .collect();
        // Distribute the remaining width: first to host names, then to the bar, then to longer host names.
        for (wide, most) in [
            (Column::Host, 20),
            (Column::Memory, WIDEST_BAR),
            (Column::Host, WIDEST_HOST),
        ] {
            if let Some((_, width)) = widths.iter_mut().find(|(column, _)| *column == wide) {
                let more = room.min(most.saturating_sub(*width));
                *width += more;
                room -= more;
            }
        }
        Self { widths, ink }
    }

    fn has(&self, column: Column) -> bool {
        self.widths.iter().any(|(has, _)| *has == column)
    }

    /// Titles; the column by which hosts are sorted has an arrow beside its title.
    pub(super) fn heading(&self, sorted_by: Column, is_reversed: bool) -> Line<'static> {
        let arrow = match (self.ink.is_unicode, is_reversed) {
            (true, false) => "↓",
            (true, true) => "↑",
            (false, false) => "v",
            (false, true) => "^",
        };
        let mut spans = Vec::new();
        for (column, width) in &self.widths {
            before(&mut spans, *column);
            let name = title(*column);
            let is_sorted = *column == sorted_by;
            let text = match (is_sorted, is_number(*column)) {
                (false, _) => name.to_owned(),
                // The arrow is left out if it does not fit beside the title.
                (true, true) if name.len() < *width => format!("{arrow}{name}"),
                (true, true) => name.to_owned(),
                (true, false) => format!("{name}{arrow}"),
            };
            let style = if is_sorted {
                Ink::bold().add_modifier(Modifier::UNDERLINED)
            } else {
                Ink::bold()
            };
            self.cell(&mut spans, &text, *width, is_number(*column), style);
        }
        Line::from(spans)
    }

    pub(super) fn line(&self, row: &Row) -> Line<'static> {
        let mut spans = Vec::new();
        let faint = if row.is_silent {
            self.ink.style(Paint::Soft)
        } else {
            Style::new()
        };
        for (column, width) in &self.widths {
            before(&mut spans, *column);
            if *column == Column::Memory {
                self.bar(&mut spans, row, *width);
                continue;
            }
            let (text, style) = self.text(row, *column, faint);
            let text = fitted(&text, *width, self.ink);
            self.cell(&mut spans, &text, *width, is_number(*column), style);
        }
        Line::from(spans)
    }

    fn text(&self, row: &Row, column: Column, faint: Style) -> (String, Style) {
        let unknown = || "-".to_owned();
        let sample = row.sample.as_ref();
        let bytes = |bytes: Option<u64>| bytes.map_or_else(unknown, size);
        match column {
            Column::Host => (row.name().to_owned(), faint),
            Column::State => (row.state.word().to_owned(), self.state_style(row)),
            // Without a column for the state, a bad state is shown here.
            Column::Owner if row.state != State::Well && !self.has(Column::State) => {
                (row.state.word().to_owned(), self.state_style(row))
            }
            Column::Owner => match row.live() {
                Some(sample) => {
                    let style = if sample.owner == Owner::Idle {
                        self.ink.style(Paint::Harvestable)
                    } else {
                        faint
                    };
                    let word = sample.owner.word();
                    let text = sample.idle_ms.map(|ms| format!("{word} {}", length(ms)));
                    (text.unwrap_or_else(|| word.to_owned()), style)
                }
                None if row.is_silent => (unknown(), faint),
                None => ("no sample".to_owned(), faint),
            },
            Column::Available => (bytes(sample.and_then(|s| s.available_bytes)), faint),
            Column::Harvestable => (bytes(sample.and_then(|s| s.harvestable_bytes)), faint),
            Column::Quota => (bytes(row.live().and_then(|s| s.quota_bytes)), faint),
            Column::Age => (sample.map_or_else(unknown, |s| length(s.age_ms)), faint),
            Column::Memory => (String::new(), faint),
        }
    }

    fn state_style(&self, row: &Row) -> Style {
        match row.state {
            State::Well => Style::new(),
            State::Silent => self.ink.style(Paint::Soft),
            State::Rejected | State::ClockWrong => self.ink.style(Paint::Warning),
        }
    }

    fn bar(&self, spans: &mut Vec<Span<'static>>, row: &Row, width: usize) {
        match row.live() {
            Some(sample) => {
                let of = |bytes| share(bytes, sample.physical_bytes);
                let shares = memory(
                    of(sample.kernel_bytes),
                    of(sample.process_bytes),
                    of(sample.file_cache_bytes),
                    of(sample.guest_bytes),
                    of(sample.available_bytes.unwrap_or(0)),
                );
                spans.extend(parts(&shares, width, self.ink));
            }
            None => spans.push(Span::raw(format!("{:<width$}", "-"))),
        }
    }

    fn cell(
        &self,
        spans: &mut Vec<Span<'static>>,
        text: &str,
        width: usize,
        right: bool,
        style: Style,
    ) {
        let blank = " ".repeat(width.saturating_sub(Span::raw(text).width()));
        let text = Span::styled(text.to_owned(), style);
        if right {
            spans.extend([Span::raw(blank), text]);
        } else {
            spans.extend([text, Span::raw(blank)]);
        }
    }
}

fn before(spans: &mut Vec<Span<'static>>, column: Column) {
    if !spans.is_empty() {
        spans.push(Span::raw(" ".repeat(gap(column))));
    }
}

/// Parts of a memory bar in the report's order, with their shares.
pub(super) fn memory(
    kernel: f64,
    process: f64,
    file_cache: f64,
    guest: f64,
    available: f64,
) -> [(Paint, f64); 5] {
    [
        (Paint::Kernel, kernel),
        (Paint::Category(Category::Process), process),
        (Paint::Category(Category::FileCache), file_cache),
        (Paint::Category(Category::Guest), guest),
        (Paint::Category(Category::Available), available),
    ]
}
