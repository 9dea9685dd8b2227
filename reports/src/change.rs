//! Changes from the week before, in words.

use crate::view::View;
use crate::wording::{bytes, share};

/// Words for a difference of bytes: `1.2 GiB more`, `no change`.
pub(crate) fn bytes_words(now: f64, before: f64) -> String {
    words(now - before, bytes((now - before).abs()))
}

/// Words for a difference of shares: `3.1 points less`.
pub(crate) fn share_words(now: f64, before: f64) -> String {
    let difference = now - before;
    let points = share(difference.abs()).replace('%', "points");
    words((difference * 1000.0).round(), points)
}

/// Words for a change of bytes: `1.2 GiB more than the week before`; absent if either value is unknown.
pub(crate) fn bytes_than(view: &View, now: Option<f64>, before: Option<f64>) -> Option<String> {
    than(view, bytes_words(now?, before?))
}

/// Words for a change of shares: `3.1 points less than the week before`; absent if either value is unknown.
pub(crate) fn share_than(view: &View, now: Option<f64>, before: Option<f64>) -> Option<String> {
    than(view, share_words(now?, before?))
}

fn than(view: &View, words: String) -> Option<String> {
    let before = view.before_label();
    Some(match words.as_str() {
        NO_CHANGE => format!("the same as {before}"),
        words => format!("{words} than {before}"),
    })
}

const NO_CHANGE: &str = "no change";

fn words(difference: f64, size: String) -> String {
    if difference > 0.0 {
        format!("{size} more")
    } else if difference < 0.0 {
        format!("{size} less")
    } else {
        NO_CHANGE.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use gleaner_schemas::findings::Findings;

    #[test]
    fn differences_read_like_this() {
        let plain = |text: String| text.replace('\u{a0}', " ");
        let gib = 1_073_741_824.0;
        assert_eq!(plain(bytes_words(3.0 * gib, 1.0 * gib)), "2.0 GiB more");
        assert_eq!(plain(bytes_words(gib, gib)), "no change");
        assert_eq!(plain(share_words(0.71, 0.74)), "3.0 points less");
        assert_eq!(plain(share_words(0.7101, 0.71)), "no change");
    }

    #[test]
    fn a_change_names_what_it_is_against_and_needs_both_sides() {
        let clock = Clock::new("UTC").unwrap();
        let findings = Findings::default();
        let view = View::new(&findings, None, &clock, None);
        let said = share_than(&view, Some(0.5), Some(0.25)).unwrap();
        assert_eq!(
            said.replace('\u{a0}', " "),
            "25 points more than the time before"
        );
        let same = bytes_than(&view, Some(1.0), Some(1.0)).unwrap();
        assert_eq!(same, "the same as the time before");
        assert_eq!(bytes_than(&view, Some(1.0), None), None);
    }
}
