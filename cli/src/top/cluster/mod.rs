//! The cluster view: all hosts that a collector knows, from its `/v1/status`, and the commonses of a recruiter.

mod columns;
mod commonses;
mod rows;
mod view;

use super::args::Top;
use super::draw;
use super::ink::Ink;
use super::terminal::{NextStep, Screen};
use gleaner_collector::ask::{self, GroupTotals};
use gleaner_schemas::commons::CommonsView;
use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use ratatui::layout::{Constraint, Layout};
use ratatui::widgets::Paragraph;
use rows::{Choice, Fleet, Row, Totals};
use serde::Serialize;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use view::Page;

const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Filter that the key `i` sets.
const IDLE: &str = "idle";

/// View of a collector that is watched.
struct WatchedCollector {
    url: String,
    answers: Receiver<Result<Fleet, String>>,
    fleet: Option<Fleet>,
    answered: Instant,
    failure: Option<String>,
    choice: Choice,
    /// Indexes of the shown rows in the fleet, in display order.
    chosen: Vec<usize>,
    first: usize,
    /// Number of hosts that fitted into the last frame.
    page: usize,
    is_typing: bool,
    has_help: bool,
    ink: Ink,
}

impl WatchedCollector {
    fn start(args: &Top, url: &str, ink: Ink) -> Self {
        Self {
            answers: asked(
                url.to_owned(),
                args.recruiter.clone(),
                args.interval.unwrap_or(ASK_AGAIN),
            ),
            ..Self::idle(args, url, ink)
        }
    }

    /// View before the first request.
    fn idle(args: &Top, url: &str, ink: Ink) -> Self {
        Self {
            url: url.to_owned(),
            answers: channel().1,
            fleet: None,
            answered: Instant::now(),
            failure: None,
            choice: choice(args),
            chosen: Vec::new(),
            first: 0,
            page: 1,
            is_typing: false,
            has_help: false,
            ink,
        }
    }

    fn apply_answer(&mut self, answer: Result<Fleet, String>) {
        match answer {
            Ok(fleet) => {
                self.fleet = Some(fleet);
                self.answered = Instant::now();
                self.failure = None;
                self.choose();
            }
            Err(failure) => self.failure = Some(failure),
        }
    }

    fn choose(&mut self) {
        let rows = self.fleet.as_ref().map_or(&[][..], |fleet| &fleet.rows);
        self.chosen = self.choice.of(rows);
        self.scroll_to(self.first);
    }

    fn scroll_to(&mut self, first: usize) {
        self.first = first.min(self.chosen.len().saturating_sub(self.page));
    }

    fn page(&self, width: usize) -> Page<'_> {
        let age = self.answered.elapsed().as_millis();
        Page {
            url: &self.url,
            failure: self.failure.as_deref(),
            age_ms: i64::try_from(age).unwrap_or(i64::MAX),
            choice: &self.choice,
            is_typing: self.is_typing,
            width,
            ink: self.ink,
        }
    }

    fn sort_by(&mut self, step: usize) {
        let all = columns::ALL;
        let at = all.iter().position(|column| *column == self.choice.column);
        self.choice.column = all[(at.unwrap_or(0) + step) % all.len()];
        self.first = 0;
        self.choose();
    }

    fn filter(&mut self, filter: String) {
        self.choice.filter = filter;
        self.first = 0;
        self.choose();
    }

    fn typed(&mut self, key: KeyCode) {
        let mut filter = self.choice.filter.clone();
        match key {
            KeyCode::Enter => self.is_typing = false,
            KeyCode::Esc => {
                self.is_typing = false;
                self.filter(String::new());
            }
            KeyCode::Backspace => {
                filter.pop();
                self.filter(filter);
            }
            KeyCode::Char(c) => {
                filter.push(c);
                self.filter(filter);
            }
            _ => {}
        }
    }
}

impl Screen for WatchedCollector {
    fn refresh(&mut self) {
        while let Ok(answer) = self.answers.try_recv() {
            self.apply_answer(answer);
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let width = usize::from(area.width);
        if self.has_help {
            frame.render_widget(Paragraph::new(view::help(width, self.ink)), area);
            return;
        }
        let mut head = self.page(width).head(self.fleet.as_ref());
        head.push(ratatui::text::Line::default());
        head.truncate(usize::from(area.height).saturating_sub(4).max(1));
        let rows = u16::try_from(head.len()).unwrap_or(u16::MAX);
        let [above, table, below] = Layout::vertical([
            Constraint::Length(rows),
            Constraint::Fill(1),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(head), above);
        self.page = usize::from(table.height).saturating_sub(1).max(1);
        self.scroll_to(self.first);
        let shown = &self.chosen[self.first..];
        let shown = &shown[..shown.len().min(self.page)];
        let page = self.page(width);
        if let Some(fleet) = &self.fleet {
            frame.render_widget(Paragraph::new(page.table(fleet, shown)), table);
            let foot = page.foot(self.first, shown.len(), self.chosen.len());
            frame.render_widget(foot, below);
        }
    }

    fn key(&mut self, key: KeyEvent) -> NextStep {
        if self.has_help {
            self.has_help = false;
            return if key.code == KeyCode::Char('q') {
                NextStep::Quit
            } else {
                NextStep::Continue
            };
        }
        if self.is_typing {
            self.typed(key.code);
            return NextStep::Continue;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return NextStep::Quit,
            KeyCode::Char('?' | 'h') => self.has_help = true,
            KeyCode::Char('/') => self.is_typing = true,
            KeyCode::Char('i') if self.choice.filter == IDLE => self.filter(String::new()),
            KeyCode::Char('i') => self.filter(IDLE.to_owned()),
            KeyCode::Char('r') => {
                self.choice.is_reversed = !self.choice.is_reversed;
                self.choose();
            }
            KeyCode::Right => self.sort_by(1),
            KeyCode::Left => self.sort_by(columns::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll_to(self.first + 1),
            KeyCode::Up | KeyCode::Char('k') => self.scroll_to(self.first.saturating_sub(1)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll_to(self.first + self.page),
            KeyCode::PageUp => self.scroll_to(self.first.saturating_sub(self.page)),
            KeyCode::Home => self.scroll_to(0),
            KeyCode::End => self.scroll_to(self.chosen.len()),
            _ => {}
        }
        NextStep::Continue
    }
}

fn choice(args: &Top) -> Choice {
    Choice {
        column: args.sort,
        is_reversed: args.reverse,
        filter: args.filter.clone(),
    }
}

/// Requests the status repeatedly and parses the answers in a thread of its own: an answer may cover ten
/// thousand hosts, and keys must not wait for it.
fn asked(
    url: String,
    recruiter: Option<String>,
    interval: Duration,
) -> Receiver<Result<Fleet, String>> {
    let (sender, answers) = channel();
    thread::spawn(move || {
        loop {
            let status = ask::status(&url).map_err(|e| e.to_string());
            let answer = status.map(|status| {
                let commonses = recruiter.as_deref().map(commonses::fetch);
                Fleet {
                    commonses: commonses.map(|views| views.map_err(|e| e.to_string())),
                    ..Fleet::of(status)
                }
            });
            if sender.send(answer).is_err() {
                return;
            }
            thread::sleep(interval);
        }
    });
    answers
}

/// Watches a collector's hosts until the user quits.
pub(super) fn watch(args: &Top, url: &str, ink: Ink) -> anyhow::Result<()> {
    super::terminal::show(&mut WatchedCollector::start(args, url, ink))
}

/// Output of `gleaner top --cluster --json`, explained in docs/top.md.
#[derive(Serialize)]
struct Document<'a> {
    /// Time on the collector's clock, ms since 1970-01-01 UTC.
    time_ms: i64,
    collector: &'a str,
    version: &'a str,
    is_well: bool,
    problems: Vec<Problem<'a>>,
    /// Sums over the reporting hosts, whatever the filter.
    totals: &'a Totals,
    /// Sums over all collectors of the dataset that answer; absent if the collector has no peers.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<&'a GroupTotals>,
    /// Commonses of the recruiter; absent if none was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    commonses: Option<&'a [CommonsView]>,
    /// Hosts that pass the filter, in display order.
    hosts: Vec<&'a Row>,
}

#[derive(Serialize)]
struct Problem<'a> {
    severity: &'a str,
    text: &'a str,
}

/// Current state of the cluster as text.
///
/// # Errors
/// The collector, or the named recruiter, does not answer.
pub(super) fn once(args: &Top, url: &str, width: usize, ink: Ink) -> anyhow::Result<String> {
    let mut watched = WatchedCollector::idle(args, url, ink);
    let mut fleet = Fleet::of(ask::status(url)?);
    if let Some(recruiter) = &args.recruiter {
        fleet.commonses = Some(Ok(commonses::fetch(recruiter)?));
    }
    watched.apply_answer(Ok(fleet));
    Ok(watched.text(args.json, width)?)
}

impl WatchedCollector {
    fn text(&self, as_json: bool, width: usize) -> serde_json::Result<String> {
        let Some(fleet) = &self.fleet else {
            return Ok(String::new());
        };
        if as_json {
            let problems = fleet.problems.iter();
            let document = Document {
                time_ms: fleet.time_ms,
                collector: &self.url,
                version: &fleet.version,
                is_well: fleet.is_well,
                problems: problems
                    .map(|(severity, text)| Problem { severity, text })
                    .collect(),
                totals: &fleet.totals,
                group: fleet.group.as_ref(),
                commonses: fleet
                    .commonses
                    .as_ref()
                    .and_then(|answer| answer.as_deref().ok()),
                hosts: self.chosen.iter().map(|at| &fleet.rows[*at]).collect(),
            };
            return Ok(serde_json::to_string_pretty(&document)? + "\n");
        }
        let page = self.page(width);
        let mut lines = page.head(Some(fleet));
        lines.push(ratatui::text::Line::default());
        lines.extend(page.table(fleet, &self.chosen));
        Ok(draw::plain(&lines))
    }
}

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]
mod tests;
