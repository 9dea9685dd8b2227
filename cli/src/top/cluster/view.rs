//! Frame of the cluster view.

use super::columns::{Columns, memory, title};
use super::commonses;
use super::rows::{Choice, Fleet, Totals};
use crate::top::draw::{ends, fitted, labelled, length, parts, percent, share, size, wrapped};
use crate::top::ink::{Ink, Paint};
use gleaner_collector::ask::GroupTotals;
use gleaner_schemas::units::thousands;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Content of a frame, without the hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Page<'a> {
    pub(super) url: &'a str,
    /// Reason why the collector did not answer the last request.
    pub(super) failure: Option<&'a str>,
    /// Age of the last answer, in ms.
    pub(super) age_ms: i64,
    pub(super) choice: &'a Choice,
    /// True while the user types the filter.
    pub(super) is_typing: bool,
    pub(super) width: usize,
    pub(super) ink: Ink,
}

impl Page<'_> {
    /// Lines above the hosts.
    pub(super) fn head(&self, fleet: Option<&Fleet>) -> Vec<Line<'static>> {
        let mut lines = vec![self.title(fleet)];
        if let Some(failure) = self.failure {
            lines.extend(self.warning(failure));
        }
        let Some(fleet) = fleet else {
            if self.failure.is_none() {
                lines.push(Line::raw("Waiting for the collector's answer"));
            }
            return lines;
        };
        lines.extend(self.counts(fleet));
        lines.extend(self.sums(&fleet.totals));
        lines.extend(fleet.group.iter().flat_map(|group| self.group(group)));
        lines.extend(self.commonses(fleet));
        lines.extend(self.problem(fleet));
        lines
    }

    fn warning(&self, text: &str) -> Vec<Line<'static>> {
        let style = self.ink.style(Paint::Warning);
        wrapped(&fitted(text, 400, self.ink), self.width, 2, style)
    }

    fn commonses(&self, fleet: &Fleet) -> Vec<Line<'static>> {
        match &fleet.commonses {
            None => Vec::new(),
            Some(Ok(views)) => commonses::lines(views, self.width, self.ink),
            Some(Err(failure)) => self.warning(failure),
        }
    }

    fn title(&self, fleet: Option<&Fleet>) -> Line<'static> {
        let left = vec![
            Span::styled("gleaner top", Ink::bold()),
            Span::raw("  "),
            Span::raw(fitted(self.url, self.width.saturating_sub(14), self.ink)),
        ];
        let right = fleet.map_or_else(String::new, |_| {
            format!("answered {} ago", length(self.age_ms))
        });
        ends(left, right, self.width)
    }

    fn counts(&self, fleet: &Fleet) -> Vec<Line<'static>> {
        let hosts = fleet.rows.len();
        let states = fleet.states.iter().rev();
        let states: Vec<_> = states
            .map(|(state, count)| format!("{} {}", thousands(*count as usize), state.word()))
            .collect();
        let totals = &fleet.totals;
        let idle = match totals.hosts_count {
            0 => String::new(),
            heard => format!(
                "; {} of {} idle",
                thousands(totals.idle_count),
                thousands(heard)
            ),
        };
        let plural = if hosts == 1 { "" } else { "s" };
        let text = match states.as_slice() {
            [] => "no hosts yet".to_owned(),
            _ => format!(
                "{} host{plural}: {}{idle}",
                thousands(hosts),
                states.join(", ")
            ),
        };
        wrapped(&text, self.width, 2, Style::new())
    }

    fn sums(&self, totals: &Totals) -> Vec<Line<'static>> {
        if totals.physical_bytes == 0 {
            return Vec::new();
        }
        let of = |bytes| share(bytes, totals.physical_bytes);
        let shares = memory(
            of(totals.kernel_bytes),
            of(totals.process_bytes),
            of(totals.file_cache_bytes),
            of(totals.guest_bytes),
            of(totals.available_bytes),
        );
        let whole = format!(" {}", size(totals.physical_bytes));
        let mut bar = parts(&shares, self.width.saturating_sub(whole.len()), self.ink);
        bar.push(Span::raw(whole));
        let [kernel, process, file_cache, guest, available] = shares.map(|(paint, _)| Some(paint));
        let part = percent(totals.available_bytes, totals.physical_bytes);
        let mut lines = vec![Line::from(bar)];
        for amounts in [
            &[
                (kernel, "kernel", size(totals.kernel_bytes)),
                (process, "process", size(totals.process_bytes)),
                (file_cache, "file cache", size(totals.file_cache_bytes)),
                (guest, "guest", size(totals.guest_bytes)),
            ][..],
            &[
                (
                    available,
                    "available",
                    format!("{} ({part})", size(totals.available_bytes)),
                ),
                (None, "harvestable", size(totals.harvestable_bytes)),
                (None, "quota", size(totals.quota_bytes)),
            ],
        ] {
            lines.extend(self.amounts(amounts));
        }
        lines
    }

    /// Sums over all collectors of the dataset.
    fn group(&self, group: &GroupTotals) -> Vec<Line<'static>> {
        let sums = &group.sums;
        let answering = match group.collectors_count - group.answering_count {
            0 => format!("all {} collectors", group.collectors_count),
            _ => format!(
                "{} of {} collectors answer",
                group.answering_count, group.collectors_count
            ),
        };
        let text = format!(
            "{answering}: {} hosts, {} silent, {} idle; available {}, harvestable {}, quota {}",
            thousands(sums.hosts_count),
            thousands(sums.hosts_silent_count),
            thousands(sums.hosts_idle_count),
            size(sums.available_bytes),
            size(sums.harvestable_bytes),
            size(sums.quota_bytes),
        );
        wrapped(&text, self.width, 2, Style::new())
    }

    /// Names and sizes, as many per line as fit. A name has the colour of its part of the bar, if it has one.
    fn amounts(&self, amounts: &[(Option<Paint>, &str, String)]) -> Vec<Line<'static>> {
        const APART: &str = "   ";
        let mut lines: Vec<Line<'static>> = Vec::new();
        for (paint, name, size) in amounts {
            let mut spans = Vec::new();
            if let Some(paint) = paint {
                spans.extend(parts(&[(*paint, 1.0)], 1, self.ink));
                spans.push(Span::raw(" "));
            }
            let name = Span::styled(format!("{name} "), self.ink.style(Paint::Soft));
            spans.extend([name, Span::styled(size.clone(), Ink::bold())]);
            let wanted: usize = spans.iter().map(Span::width).sum();
            match lines.last_mut() {
                Some(line) if line.width() + APART.len() + wanted <= self.width => {
                    line.push_span(Span::raw(APART));
                    line.spans.extend(spans);
                }
                _ => lines.push(Line::from(spans)),
            }
        }
        lines
    }

    fn problem(&self, fleet: &Fleet) -> Option<Line<'static>> {
        let (severity, text) = fleet.problems.first()?;
        let more = match fleet.problems.len() - 1 {
            0 => String::new(),
            n => format!(" (and {n} more)"),
        };
        let text = fitted(
            &format!("{severity}: {text}"),
            self.width.saturating_sub(more.len()),
            self.ink,
        );
        Some(Line::styled(text + &more, self.ink.style(Paint::Warning)))
    }

    /// The hosts at the indexes `places`, below the column titles.
    pub(super) fn table(&self, fleet: &Fleet, places: &[usize]) -> Vec<Line<'static>> {
        let columns = Columns::fit(self.width, self.ink);
        let heading = columns.heading(self.choice.column, self.choice.is_reversed);
        let rows = places.iter().filter_map(|at| fleet.rows.get(*at));
        std::iter::once(heading)
            .chain(rows.map(|row| columns.line(row)))
            .collect()
    }

    /// Range and number of the shown hosts, and the keys.
    pub(super) fn foot(&self, first: usize, shown: usize, chosen: usize) -> Line<'static> {
        let filter = &self.choice.filter;
        let seen = if chosen == 0 {
            "no host is like that".to_owned()
        } else {
            let last = thousands(first + shown);
            format!(
                "{} to {last} of {}",
                thousands(first + 1),
                thousands(chosen)
            )
        };
        if self.is_typing {
            let left = vec![Span::styled(format!("filter: {filter}_"), Ink::bold())];
            return ends(
                left,
                format!("Enter keeps it, Esc drops it   {seen}"),
                self.width,
            );
        }
        let arrows = if self.ink.is_unicode { "←→" } else { "<>" };
        let sorted = title(self.choice.column).to_lowercase();
        let mut left = format!("q quit  ? help  {arrows} sort: {sorted}  / filter");
        if !filter.is_empty() {
            left += &format!(": {}", fitted(filter, 20, self.ink));
        }
        if self.width < left.chars().count() + seen.len() + 1 {
            left = format!("? help  {sorted}");
        }
        ends(
            vec![Span::styled(left, self.ink.style(Paint::Soft))],
            seen,
            self.width,
        )
    }
}

/// Lines of the help: explanations of the columns and the keys.
pub(super) fn help(width: usize, ink: Ink) -> Vec<Line<'static>> {
    let mut lines = vec![
        Line::styled("gleaner top: the cluster", Ink::bold()),
        Line::default(),
    ];
    for (name, words) in [
        ("q", "quit (also Ctrl-C; Esc)"),
        ("?", "this page, and back"),
        ("up, down", "scroll; PgUp, PgDn, Home and End too"),
        ("left, right", "sort by the column before, or behind"),
        ("r", "the other way round"),
        (
            "/",
            "hosts whose name, id, state or owner's state has the typed text",
        ),
        ("i", "only hosts that are idle, and back"),
        (
            "memory",
            "kernel, process, file cache, guest, available: by the last sample",
        ),
        ("available", "what the owner does not use"),
        (
            "harvest",
            "part that Linux could give immediately, less the headroom",
        ),
        ("owner", "by the idle rule at the last sample"),
        (
            "quota",
            "memory that could be lent now: nothing unless the host is idle",
        ),
        (
            "age",
            "of the last sample. Hosts that are silent count in no sum",
        ),
    ] {
        lines.extend(labelled(name, 13, words, width, Style::new()));
    }
    lines.push(Line::default());
    lines.push(Line::styled("any key: back", ink.style(Paint::Soft)));
    lines
}
