//! Bars, sparklines and texts used by both views.

use super::ink::{Ink, Paint};
use gleaner_schemas::units::{Bytes, brief_length};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// A bar of `width` cells, filled to `share`; fractions of a cell are drawn.
pub(super) fn bar(share: f64, width: usize, ink: Ink, paint: Paint) -> Vec<Span<'static>> {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if share.is_finite() {
        share.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let cells = share * width as f64;
    let text = if ink.is_unicode {
        let eighths = (cells * 8.0).round() as usize;
        let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
        "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
    } else {
        "#".repeat(cells.round() as usize)
    };
    let rest = width.saturating_sub(text.chars().count());
    vec![
        Span::styled(text, ink.style(paint)),
        Span::raw(" ".repeat(rest)),
    ]
}

/// A bar that consists of parts side by side, each in its own colour or, without colours, its own shade.
pub(super) fn parts(shares: &[(Paint, f64)], width: usize, ink: Ink) -> Vec<Span<'static>> {
    use gleaner_schemas::findings::Category;
    let mut spans = Vec::new();
    let (mut sum, mut drawn) = (0.0, 0);
    for (paint, share) in shares {
        sum += share.max(0.0);
        let until = ((sum * width as f64).round() as usize).clamp(drawn, width);
        let (shade, ascii) = match paint {
            _ if ink.has_colours() => ("█", "#"),
            Paint::Category(Category::FileCache) => ("▓", "="),
            Paint::Category(Category::Guest) => ("▒", "+"),
            Paint::Category(Category::Available) => ("░", "."),
            _ => ("█", "#"),
        };
        let shade = if ink.is_unicode { shade } else { ascii };
        spans.push(Span::styled(shade.repeat(until - drawn), ink.style(*paint)));
        drawn = until;
    }
    spans.push(Span::raw(" ".repeat(width - drawn)));
    spans
}

/// The last `width` of `values` as a row of bars, scaled from `least` (the lowest bar) to
/// `most`.
pub(super) fn sparkline(values: &[u64], least: u64, most: u64, width: usize, ink: Ink) -> String {
    const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const ASCII: [char; 8] = ['_', '_', '.', '.', '-', '-', '=', '='];
    let columns = if ink.is_unicode { COLUMNS } else { ASCII };
    let span = most.saturating_sub(least).max(1) as f64;
    let shown = values.iter().skip(values.len().saturating_sub(width));
    shown
        .map(|value| {
            let height = value.saturating_sub(least) as f64 / span;
            columns[((height * 7.0).round() as usize).min(7)]
        })
        .collect()
}

/// A size of at most nine characters: `512.0 MiB`, `1023 MiB`.
pub(super) fn size(bytes: u64) -> String {
    let text = Bytes::from(bytes).to_string();
    match text.split_once(' ') {
        Some((number, unit)) if text.len() > 9 => {
            let whole = number.split('.').next().unwrap_or(number);
            format!("{whole} {unit}")
        }
        _ => text,
    }
}

/// A length of time in one unit, rounded: `45 s`, `12 min`, `5 h`, `9 d`.
pub(super) fn length(ms: i64) -> String {
    brief_length(ms.max(0)).replace("days", "d")
}

/// `62.5 %`; empty if `whole` is 0.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{:.1} %", part as f64 / whole as f64 * 100.0)
}

pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Text at both ends of a line; if both do not fit, the right one is dropped.
pub(super) fn ends(left: Vec<Span<'static>>, right: String, width: usize) -> Line<'static> {
    let mut line = Line::from(left);
    let room = width.saturating_sub(line.width());
    let wanted = Span::raw(right.as_str()).width();
    if room > wanted {
        line.push_span(Span::raw(" ".repeat(room - wanted)));
        line.push_span(Span::raw(right));
    }
    line
}

/// `text` cut to `width`, with `…` if something is left out, and without control characters.
pub(super) fn fitted(text: &str, width: usize, ink: Ink) -> String {
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if Span::raw(text.as_str()).width() <= width {
        return text;
    }
    let more = if ink.is_unicode { "…" } else { "~" };
    let mut kept = String::new();
    for c in text.chars() {
        kept.push(c);
        if Span::raw(kept.as_str()).width() + 1 > width {
            kept.pop();
            break;
        }
    }
    kept + more
}

/// Text wrapped into lines of `width`. All lines except the first are indented.
pub(super) fn wrapped(text: &str, width: usize, indent: usize, style: Style) -> Vec<Line<'static>> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(" ".repeat(indent) + word),
            None => lines.push(word.to_owned()),
        }
    }
    lines
        .into_iter()
        .map(|line| Line::styled(line, style))
        .collect()
}

/// A word with its explanation beside it.
pub(super) fn labelled(
    label: &str,
    indent: usize,
    text: &str,
    width: usize,
    style: Style,
) -> Vec<Line<'static>> {
    let mut lines = wrapped(text, width.saturating_sub(indent).max(1), 0, style);
    for (i, line) in lines.iter_mut().enumerate() {
        let label = if i == 0 { label } else { "" };
        let label = Span::styled(format!("{label:indent$}"), Ink::bold());
        line.spans.insert(0, label);
    }
    lines
}

fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

/// Text of lines, without colours.
pub(super) fn plain(lines: &[Line<'_>]) -> String {
    let mut text = String::new();
    for line in lines {
        let spans: String = line
            .spans
            .iter()
            .map(|span| span.content.as_ref())
            .collect();
        text += spans.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use gleaner_schemas::findings::Category;

    const PAINT: Paint = Paint::Harvestable;

    fn text(spans: Vec<Span<'_>>) -> String {
        spans
            .into_iter()
            .map(|span| span.content.into_owned())
            .collect()
    }

    #[test]
    fn bars_fill_by_eighths_and_what_is_there_shows() {
        let bar = |share| text(bar(share, 4, Ink::PLAIN, PAINT));
        assert_eq!([bar(0.0), bar(0.001), bar(0.5)], ["    ", "▏   ", "██  "]);
        assert_eq!([bar(0.6), bar(1.0), bar(9.0)], ["██▍ ", "████", "████"]);
        assert_eq!([bar(f64::NAN), bar(-1.0)], ["    ", "    "]);
    }

    #[test]
    fn parts_fill_the_bar_without_gaps() {
        let part = |category, share| (Paint::Category(category), share);
        let shares = [
            part(Category::Process, 0.3),
            part(Category::FileCache, 0.3),
            part(Category::Available, 0.4),
        ];
        assert_eq!(text(parts(&shares, 10, Ink::PLAIN)), "███▓▓▓░░░░");
        assert_eq!(
            text(parts(&[part(Category::Process, 7.0)], 3, Ink::PLAIN)),
            "███"
        );
        assert_eq!(text(parts(&[], 3, Ink::PLAIN)), "   ");
    }

    #[test]
    fn sparklines_show_the_latest() {
        let spark = |values: &[u64]| sparkline(values, 0, 70, 3, Ink::PLAIN);
        assert_eq!(spark(&[0, 10, 70, 700]), "▂██");
        assert_eq!(sparkline(&[5, 5], 5, 5, 3, Ink::PLAIN), "▁▁");
    }

    #[test]
    fn words_fit_their_columns() {
        assert_eq!(
            [size(0), size(1 << 29), size(1023 << 20)],
            ["0 B", "512.0 MiB", "1023 MiB"]
        );
        assert_eq!(
            length(119_999) + &length(-5) + &length(172_800_000),
            "119 s0 s2 d"
        );
        assert_eq!(fitted("workstation-1", 6, Ink::PLAIN), "works…");
        assert_eq!(fitted("a\u{1b}[31m", 9, Ink::PLAIN), "a\u{fffd}[31m");
        assert_eq!(fitted("日本語です", 5, Ink::PLAIN), "日本…");
        let lines = wrapped("one two three four", 9, 2, Style::new());
        assert_eq!(plain(&lines), "one two\n  three\n  four\n");
        let lines = labelled("To do", 7, "one two three", 14, Style::new());
        assert_eq!(plain(&lines), "To do  one two\n       three\n");
    }
}
