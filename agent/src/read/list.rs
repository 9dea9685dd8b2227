//! Lists of numbers in the form of sysfs, such as CPUs online or NUMA nodes with memory.

/// Parses a list like `0-3,6`; `None` if the text is no such list.
#[must_use]
pub fn numbers(list: &str) -> Option<Vec<u16>> {
    let ranges: Option<Vec<_>> = list.trim().split(',').map(range).collect();
    Some(ranges?.into_iter().flatten().collect())
}

fn range(range: &str) -> Option<std::ops::RangeInclusive<u16>> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let range = first.parse().ok()?..=last.parse().ok()?;
    (!range.is_empty()).then_some(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_and_single_ones() {
        for (list, expected) in [
            ("0\n", Some(vec![0])),
            ("0-3,6,8-9\n", Some(vec![0, 1, 2, 3, 6, 8, 9])),
            ("", None),
            ("3-0", None),
            ("0-", None),
        ] {
            assert_eq!(numbers(list), expected, "{list}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(list in "[0-9,-]{0,12}") {
            let _ = numbers(&list);
        }
    }
}
