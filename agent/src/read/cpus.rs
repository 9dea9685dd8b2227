//! `/sys/devices/system/cpu/online`.

/// How many CPUs a list like `0-3,6` names; `None` when it is no such list.
#[must_use]
pub fn count(list: &str) -> Option<i64> {
    list.trim().split(',').map(range).sum()
}

fn range(range: &str) -> Option<i64> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
    (last >= first).then(|| i64::from(last - first) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_single_ones() {
        for (list, cpus) in [
            ("0\n", Some(1)),
            ("0-3,6,8-9\n", Some(7)),
            ("", None),
            ("3-0", None),
            ("0-", None),
        ] {
            assert_eq!(count(list), cpus, "{list}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in ".{0,60}", list in "[0-9,-]{0,60}") {
            let _ = (count(&text), count(&list));
        }
    }
}
