//! Against the week before.

use crate::wording::{bytes, share};

/// `1.2 GiB more`, `no change`.
pub(crate) fn bytes_words(now: f64, before: f64) -> String {
    words(now - before, bytes((now - before).abs()))
}

/// Of shares: `3.1 points less`.
pub(crate) fn share_words(now: f64, before: f64) -> String {
    let difference = now - before;
    let points = share(difference.abs()).replace('%', "points");
    words((difference * 1000.0).round(), points)
}

fn words(difference: f64, size: String) -> String {
    if difference > 0.0 {
        format!("{size} more")
    } else if difference < 0.0 {
        format!("{size} less")
    } else {
        "no change".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_read_like_this() {
        let plain = |text: String| text.replace('\u{a0}', " ");
        let gib = 1_073_741_824.0;
        assert_eq!(plain(bytes_words(3.0 * gib, 1.0 * gib)), "2.0 GiB more");
        assert_eq!(plain(bytes_words(gib, gib)), "no change");
        assert_eq!(plain(share_words(0.71, 0.74)), "3.0 points less");
        assert_eq!(plain(share_words(0.7101, 0.71)), "no change");
    }
}
