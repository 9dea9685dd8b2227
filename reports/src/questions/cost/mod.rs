//! The question "What would lending cost the owners?"

mod context;
mod measured_cost;
mod quotas;
mod reclaims;
mod returns;
mod settings;

use super::{parts, without};
use crate::change;
use crate::imported::Recorders;
use crate::page::table::{Cell, Kind};
use crate::page::{Part, Section};
use crate::view::View;
use crate::wording::{bytes, share};
use gleaner_schemas::findings::LendingMode;

pub(crate) fn section(view: &View) -> Section {
    let mut all = Vec::new();
    let mut add = |title: &str, under: Vec<Part>| {
        if !under.is_empty() {
            all.push(Part::Heading(title.into()));
            all.extend(under);
        }
    };
    add(
        "How often would owners reclaim memory?",
        parts([
            reclaims::by_hour(view).map(Part::figure),
            reclaims::table(view).map(Part::Table),
        ]),
    );
    add(
        "What would an owner’s return cost?",
        parts([
            context::words(view).map(Part::Say),
            context::table(view).map(Part::Table),
        ]),
    );
    add(
        "How much memory would have been lent?",
        parts([
            quotas::figure(view).map(Part::figure),
            quotas::by_host(view).map(Part::Table),
        ]),
    );
    add(
        "Would other limits be better?",
        parts([
            settings::figure(view).map(Part::figure),
            settings::table(view).map(Part::Table),
        ]),
    );
    add(
        "How many owners return at once?",
        parts([
            returns::figure(view).map(Part::figure),
            returns::worst(view).map(Part::Table),
        ]),
    );
    add(
        "What did returns cost, as measured by the kernels?",
        parts([
            measured_cost::words(view).map(Part::Say),
            measured_cost::table(view).map(Part::Table),
        ]),
    );
    if all.is_empty() {
        let otherwise = Recorders::of(view).choose(
            "The cost depends on when owners leave and return, and too little of that was recorded. Give the agents access to a source of \
             the owners’ activity, and trace for some days.",
            "The cost depends on when owners leave and return, and the trace contains too little of that.",
            "The cost depends on when owners leave and return, and too little of that was recorded: traces of other programs do not \
             contain it. Give the agents access to a source of the owners’ activity, and trace for some days.",
        );
        all.push(match view.only_host() {
            Some(_) => without(view, "reclaims", otherwise),
            None => Part::say(otherwise),
        });
    }
    Section {
        id: "cost".into(),
        title: "What would lending cost the owners?".into(),
        answer: answer(view),
        parts: all,
    }
}

/// Sentence with the rate of owners' returns and the cost of each, compared with the week before.
fn answer(view: &View) -> String {
    let f = view.findings;
    let Some(now) = reclaims::pooled(f) else {
        return "The cost is not known: no host was traced for long enough with known idle periods."
            .into();
    };
    let mut text = format!(
        "Owners return {:.1} times per host and day",
        now.reclaims_per_day
    );
    if let Some(before) = view.before.and_then(reclaims::pooled) {
        let words = number_words(now.reclaims_per_day, before.reclaims_per_day);
        text.push_str(&format!(", {words} {}", view.before_label()));
    }
    text.push('.');
    let paper = context::pooled(f, LendingMode::Paper).or(context::pooled(f, LendingMode::Gentle));
    if let Some(context) = paper {
        let lent = context.mean_quota_bytes.map(|lent| {
            format!(
                "If idle hosts had lent all they may ({} each on average),",
                bytes(lent)
            )
        });
        text.push_str(&format!(
            " {} {} of the returns would have had memory to page in again: {} on average{}",
            lent.unwrap_or_else(|| "If idle hosts had lent all they may,".into()),
            share(context.share_of_returns_with_any),
            bytes(context.mean_bytes),
            match context.p99_bytes {
                0.0 => ", nothing in 99 of 100 returns".into(),
                p99 => format!(", more than {} in one of 100 returns", bytes(p99)),
            }
        ));
        let before = view.before.and_then(|b| context::pooled(b, context.mode));
        if let Some(before) = before {
            let words = match change::bytes_words(context.mean_bytes, before.mean_bytes).as_str() {
                "no change" => "as in".into(),
                words => format!("{words} than in"),
            };
            text.push_str(&format!(" (mean: {words} {})", view.before_label()));
        }
        text.push('.');
    }
    text
}

/// Words for a change of a number, to precede the earlier time: `2.3 more than in`, `as in`.
fn number_words(now: f64, before: f64) -> String {
    let difference = ((now - before) * 10.0).round() / 10.0;
    if difference > 0.0 {
        format!("{difference:.1} more than in")
    } else if difference < 0.0 {
        format!("{:.1} less than in", -difference)
    } else {
        "as in".into()
    }
}

/// Cell with a number with one decimal.
fn decimal(number: f64) -> Cell {
    Cell::of(Kind::Number, format!("{number:.1}"), "", number)
}

/// Cell with a difference of numbers, with its sign.
fn decimal_change(difference: f64) -> Cell {
    let rounded = (difference * 10.0).round() / 10.0;
    let sign = match rounded {
        r if r > 0.0 => "+",
        r if r < 0.0 => "−",
        _ => "",
    };
    Cell::of(
        Kind::Number,
        format!("{sign}{:.1}", rounded.abs()),
        "",
        difference,
    )
}

/// Cell with a class of hosts, without line breaks.
fn class_cell(class: &str) -> Cell {
    Cell::text(class.replace(' ', "\u{a0}"))
}

/// Words for a mode of lending, in a table's cell.
const fn mode_words(mode: LendingMode) -> &'static str {
    match mode {
        LendingMode::Paper => "paper",
        LendingMode::Gentle => "gentle",
    }
}

/// Note below tables with both modes.
const MODES: &str = "Paper: the host lends all unused memory above the headroom, including pages of idle processes. Gentle: it lends only the \
                     part that is available without paging out the owner’s pages.";

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::view::ask as of;
    use gleaner_schemas::findings::{Findings, MemoryContext, Reclaims};

    pub(super) fn reclaims(reclaims_per_day: f64) -> Reclaims {
        Reclaims {
            host_id: None,
            size_class: "all".into(),
            hosts_count: 3,
            reclaims_count: 42,
            observed_days: 21.0,
            reclaims_per_day,
        }
    }

    pub(super) fn context(mean_bytes: f64, p99_bytes: f64) -> MemoryContext {
        MemoryContext {
            host_id: None,
            size_class: "all".into(),
            mode: LendingMode::Paper,
            mean_quota_bytes: Some(8.0 * 1_073_741_824.0),
            returns_count: 42,
            mean_footprint_bytes: 1e9,
            mean_bytes,
            median_bytes: 0.0,
            p90_bytes: 0.0,
            p99_bytes,
            max_bytes: 1 << 30,
            mean_upper_bound_bytes: 1e9,
            share_of_returns_with_any: 0.02,
        }
    }

    #[test]
    fn the_answer_says_how_often_how_much_and_what_changed() {
        let mib = 1_048_576.0;
        let mut now = Findings {
            reclaims: vec![reclaims(4.2)],
            memory_context: vec![context(3.0 * mib, 64.0 * mib)],
            ..Findings::default()
        };
        let plain = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(
            plain(of(&now, None, answer)),
            "Owners return 4.2 times per host and day. If idle hosts had lent all they may (8.0 GiB each on average), 2.0 % of the \
             returns would have had memory to page in again: 3.0 MiB on average, more than 64.0 MiB in one of 100 returns."
        );
        let before = Findings {
            reclaims: vec![reclaims(4.9)],
            memory_context: vec![context(2.0 * mib, 0.0)],
            ..Findings::default()
        };
        let changed = plain(of(&now, Some(&before), answer));
        assert!(
            changed.contains("4.2 times per host and day, 0.7 less than in the time before."),
            "{changed}"
        );
        assert!(
            changed.ends_with("(mean: 1.0 MiB more than in the time before)."),
            "{changed}"
        );
        now.reclaims.clear();
        assert!(of(&now, None, answer).starts_with("The cost is not known"));
    }

    #[test]
    fn nothing_known_is_said_once() {
        let section = of(&Findings::default(), None, section);
        assert_eq!(section.parts.len(), 1);
    }
}
