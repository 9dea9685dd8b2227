//! Frame of this host's view.

use super::agent::AgentState;
use super::kernel::Reading;
use super::owner::{self, State};
use super::{FrameTime, Host};
use crate::top::draw::{
    bar, ends, fitted, labelled, length, percent, share, size, sparkline, wrapped,
};
use crate::top::ink::{Ink, Paint};
use gleaner_hosts::derived::{Figures, unsigned};
use gleaner_policy::guest_load::owner_load5;
use gleaner_policy::idle::{IdleRule, Verdict};
use gleaner_policy::quota::{Quota, Reason};
use gleaner_schemas::findings::Category;
use gleaner_schemas::live::{Owner, Sample};
use gleaner_schemas::units::Seconds;
use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Widths of the label before a bar, and of the size and the share behind it.
const LABEL: usize = 17;
const SIZE: usize = 11;
const SHARE: usize = 8;
/// Width of the minimum and maximum behind a sparkline.
const RANGE: usize = 24;
/// Minimum terminal width for showing shares.
const WITH_SHARES: usize = 60;

/// All lines of the frame, from the top.
pub(super) fn lines(host: &Host, now: FrameTime, width: usize, ink: Ink) -> Vec<Line<'static>> {
    let page = Page {
        host,
        now,
        width,
        ink,
    };
    let mut lines = vec![page.title()];
    match &host.told {
        Some(told) => lines.extend(page.of_agent(told)),
        None => lines.extend(page.without_agent()),
    }
    lines.extend(page.of_kernel());
    lines
}

struct Page<'a> {
    host: &'a Host,
    now: FrameTime,
    width: usize,
    ink: Ink,
}

impl Page<'_> {
    fn title(&self) -> Line<'static> {
        let name = fitted(
            &self.host.name,
            40.min(self.width.saturating_sub(24)),
            self.ink,
        );
        let left = vec![
            Span::styled("gleaner top", Ink::bold()),
            Span::raw("  "),
            Span::raw(name),
        ];
        let keys = if self.width < WITH_SHARES || !self.host.is_watched {
            ""
        } else {
            "q quit  ? help   "
        };
        ends(
            left,
            format!("{keys}{}", self.clock(self.now.time_ms)),
            self.width,
        )
    }

    fn of_agent(&self, told: &AgentState) -> Vec<Line<'static>> {
        let mut lines = vec![Line::default()];
        let state = owner::state(told, self.now.monotonic_ms);
        let words = state.map_or_else(
            || "not known before the first sample".to_owned(),
            |state| self.owner(state, told.sample.as_deref()),
        );
        lines.extend(self.named("Owner", &words, Style::new()));
        if let Some(owner) = &told.owner
            && let Some(absence_ms) = owner.absence_ms
        {
            lines.extend(self.named("", &self.returned(owner, absence_ms), self.soft()));
        }
        let Some(sample) = told.sample.as_deref() else {
            lines.push(Line::default());
            lines.push(self.heading("No sample yet", String::new()));
            return lines;
        };
        let quota = owner::gentle_quota(sample, state.unwrap_or(State::Known(Verdict::Unknown)));
        lines.extend(self.named("Quota", &quota_words(&quota), Style::new()));
        lines.push(Line::default());
        lines.extend(self.sample(told, sample));
        lines
    }

    fn owner(&self, state: State, sample: Option<&Sample>) -> String {
        let since = |ms: i64| {
            let away = length(self.now.time_ms.saturating_sub(ms));
            format!("{} ({away})", self.clock(ms))
        };
        match state {
            State::Known(Verdict::Idle { since_ms }) => format!("idle since {}", since(since_ms)),
            State::Known(Verdict::Waiting { at_ms }) if at_ms > self.now.time_ms => {
                format!("in use; idle at {} if nothing happens", self.clock(at_ms))
            }
            State::Known(Verdict::Waiting { .. }) => {
                "in use; the next sample decides whether it is idle".to_owned()
            }
            State::Known(Verdict::Loaded) => {
                let load =
                    sample.and_then(|sample| owner_load5(sample.row.load5, sample.row.guest_load5));
                let limit = IdleRule::default().load_limit;
                load.map_or_else(
                    || "loaded".to_owned(),
                    |load| format!("loaded: the 5-minute load is {load:.2}, idle is below {limit}"),
                )
            }
            State::Known(Verdict::Unknown) => {
                "unknown, counts as in use (gleaner-agent status says why)".to_owned()
            }
            State::Silent { for_ms } => {
                format!(
                    "the agent is silent for {}: counts as in use",
                    length(for_ms)
                )
            }
        }
    }

    fn returned(&self, owner: &Owner, absence_ms: i64) -> String {
        let source = owner.source.as_deref().unwrap_or("unknown");
        let (at, away) = (self.clock(owner.time_ms), length(absence_ms));
        format!("last return {at}, after {away} away ({source})")
    }

    fn sample(&self, told: &AgentState, sample: &Sample) -> Vec<Line<'static>> {
        let row = &sample.row;
        let age = length(self.now.time_ms.saturating_sub(sample.time_ms));
        let every = Seconds::from_ms(told.hello.sample_interval_ms);
        let figures = Figures::from(row);
        let physical = figures.physical_bytes;
        let title = if self.width < WITH_SHARES {
            format!("Last sample, {age} ago")
        } else {
            format!("Last sample, {age} ago (one every {every})")
        };
        let mut lines = vec![self.heading(&title, format!("of {}", size(physical)))];
        for category in Category::ALL {
            let bytes = figures.category_bytes(category);
            let paint = Paint::Category(category);
            lines.push(self.bar(category.label(), bytes, physical, paint));
            if category == Category::Available {
                lines.extend(self.since_first_sample(physical));
            }
        }
        let harvestable = row.harvestable_bytes.map(unsigned);
        lines.push(self.bar("harvestable", harvestable, physical, Paint::Harvestable));
        lines
    }

    /// Available memory at each sample received so far.
    fn since_first_sample(&self, physical: u64) -> Option<Line<'static>> {
        let samples = &self.host.samples;
        let (first, last) = samples.first().zip(samples.last())?;
        let available: Vec<u64> = samples.iter().map(|(_, bytes)| *bytes).collect();
        let paint = Paint::Category(Category::Available);
        let elapsed_ms = last.0.saturating_sub(first.0);
        (samples.len() > 1).then(|| self.history(elapsed_ms, &available, physical, paint))
    }

    fn without_agent(&self) -> Vec<Line<'static>> {
        let why = match &self.host.lost {
            Some(reason) => format!("No agent answers: {reason}."),
            None => "The agent has not answered yet.".to_owned(),
        };
        let mut lines = vec![Line::default()];
        lines.extend(wrapped(&why, self.width, 2, self.ink.style(Paint::Warning)));
        let what = "Whether the owner is here, the categories of memory and what could be lent are the agent's to tell. Below is what the kernel says.";
        lines.extend(wrapped(what, self.width, 2, Style::new()));
        lines
    }

    fn of_kernel(&self) -> Vec<Line<'static>> {
        let mut lines = vec![Line::default()];
        if let Some(why) = &self.host.unreadable {
            lines.extend(wrapped(why, self.width, 2, self.ink.style(Paint::Warning)));
        }
        let Some(now) = &self.host.reading else {
            return lines;
        };
        let every = Seconds(self.host.interval.as_secs_f64());
        let total = now.mem_total_bytes;
        let title = if self.host.is_watched && self.width >= WITH_SHARES {
            format!("Now, by the kernel (every {every})")
        } else {
            "Now, by the kernel".to_owned()
        };
        lines.push(self.heading(&title, format!("of {}", size(total))));
        if self.host.told.is_none() {
            for (label, bytes, category) in [
                ("anonymous", now.anon_bytes, Category::Process),
                ("page cache", now.page_cache_bytes, Category::FileCache),
                ("free", Some(now.mem_free_bytes), Category::Guest),
            ] {
                lines.push(self.bar(label, bytes, total, Paint::Category(category)));
            }
        }
        let available = now.mem_available_bytes;
        lines.push(self.bar("MemAvailable", available, total, Paint::Harvestable));
        if self.host.looks.len() > 1 {
            let looked_ms = self.host.interval.as_millis() * (self.host.looks.len() as u128 - 1);
            let looked_ms = i64::try_from(looked_ms).unwrap_or(i64::MAX);
            lines.push(self.history(looked_ms, &self.host.looks, total, Paint::Harvestable));
        }
        let swap = now
            .swap_total_bytes
            .filter(|total| *total > 0)
            .zip(now.swap_free_bytes);
        if let Some((total, free)) = swap {
            let used = total.saturating_sub(free);
            lines.push(self.bar(
                "swap used",
                Some(used),
                total,
                Paint::Category(Category::Reserve),
            ));
        }
        lines.extend(self.named("Pressure", &self.pressure(now), Style::new()));
        lines
    }

    fn pressure(&self, now: &Reading) -> String {
        let load = match (now.load1, now.load5) {
            (Some(load1), Some(load5)) => format!("load {load1:.2} (1 min), {load5:.2} (5 min)"),
            _ => "load not known".to_owned(),
        };
        let before = self.host.before.as_ref();
        match before.and_then(|before| now.pressure_since(before)) {
            Some((memory, io)) if memory >= 0.0005 || io >= 0.0005 => {
                let (memory, io) = (memory * 100.0, io * 100.0);
                format!("{memory:.1} % memory, {io:.1} % disks; {load}")
            }
            Some(_) => format!("none; {load}"),
            None => load,
        }
    }

    fn heading(&self, title: &str, right: String) -> Line<'static> {
        let left = vec![Span::styled(title.to_owned(), Ink::bold())];
        ends(left, right, self.width)
    }

    fn named(&self, name: &str, words: &str, style: Style) -> Vec<Line<'static>> {
        labelled(name, 10, words, self.width, style)
    }

    fn bar(&self, label: &str, bytes: Option<u64>, whole: u64, paint: Paint) -> Line<'static> {
        let has_share = self.width >= WITH_SHARES;
        let behind = SIZE + if has_share { SHARE } else { 0 };
        let width = self.width.saturating_sub(LABEL + behind);
        let mut spans = vec![Span::raw(format!("  {label:<15}"))];
        let Some(bytes) = bytes else {
            spans.push(Span::styled("not known", self.soft()));
            return Line::from(spans);
        };
        spans.extend(bar(share(bytes, whole), width, self.ink, paint));
        spans.push(Span::raw(format!("{:>SIZE$}", size(bytes))));
        if has_share {
            spans.push(Span::styled(
                format!("{:>SHARE$}", percent(bytes, whole)),
                self.soft(),
            ));
        }
        Line::from(spans)
    }

    /// A sparkline with its minimum and maximum; its scale spans at least a fiftieth of memory, so that
    /// smaller changes look flat.
    fn history(&self, elapsed_ms: i64, values: &[u64], whole: u64, paint: Paint) -> Line<'static> {
        let is_wide = self.width >= WITH_SHARES;
        let behind = if is_wide { RANGE } else { 0 };
        let room = self.width.saturating_sub(LABEL + behind).max(1);
        let shown = &values[values.len().saturating_sub(room)..];
        let (least, most) = shown.iter().fold((u64::MAX, 0), |(least, most), v| {
            (least.min(*v), most.max(*v))
        });
        let floor = least.min(most.saturating_sub(whole / 50));
        let steps = |values: &[u64]| values.len().saturating_sub(1).max(1) as f64;
        let shown_ms = (elapsed_ms as f64 * steps(shown) / steps(values)) as i64;
        let line = sparkline(shown, floor, most, room, self.ink);
        let mut spans = vec![
            Span::styled(
                format!("    {:<13}", format!("last {}", length(shown_ms))),
                self.soft(),
            ),
            Span::styled(line, self.ink.style(paint)),
        ];
        if is_wide {
            let range = format!("{} to {}", size(least), size(most));
            let blank = room.saturating_sub(shown.len());
            let range = format!("{}{range:>RANGE$}", " ".repeat(blank));
            spans.push(Span::styled(range, self.soft()));
        }
        Line::from(spans)
    }

    fn soft(&self) -> Style {
        self.ink.style(Paint::Soft)
    }

    /// Time of day on this host.
    fn clock(&self, time_ms: i64) -> String {
        Timestamp::from_millisecond(time_ms).map_or_else(
            |_| "never".to_owned(),
            |time| {
                let time = time.to_zoned(self.host.zone.clone());
                time.strftime("%H:%M:%S").to_string()
            },
        )
    }
}

fn quota_words(quota: &Quota) -> String {
    let once_idle = || size(quota.idle_quota_bytes);
    match quota.reason {
        Reason::Idle | Reason::Spare => format!("{} now", size(quota.quota_bytes)),
        Reason::NotIdleUntil { .. } | Reason::Loaded | Reason::ActivityUnknown => {
            format!("nothing now; {} once idle", once_idle())
        }
        Reason::HarvestableUnknown => {
            "nothing: the kernel does not say what could be taken without harm (MemAvailable is missing)".to_owned()
        }
    }
}

/// Lines of the help: explanations of the frame's lines and the keys.
pub(super) fn help(width: usize, ink: Ink) -> Vec<Line<'static>> {
    let mut lines = vec![
        Line::styled("gleaner top: this host", Ink::bold()),
        Line::default(),
    ];
    for (name, words) in [
        ("q", "quit (also Esc, Ctrl-C)"),
        ("?", "this page, and back"),
        (
            "Owner",
            "by the idle rule: no key, no pointer and a load below 0.3 for five minutes. The agent reports a return immediately.",
        ),
        (
            "Quota",
            "memory that could be lent now without pushing the owner's pages out; nothing unless the host is idle.",
        ),
        (
            "Sample",
            "physical memory by category at the agent's last sample; harvestable is the part of available that Linux could give immediately, less the headroom.",
        ),
        ("Now", "MemAvailable of the kernel, read every two seconds."),
        (
            "Pressure",
            "share of the time since the previous update in which some task waited.",
        ),
    ] {
        lines.extend(labelled(name, 10, words, width, Style::new()));
    }
    lines.push(Line::default());
    lines.push(Line::styled("any key: back", ink.style(Paint::Soft)));
    lines
}
