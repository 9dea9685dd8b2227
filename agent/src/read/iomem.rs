//! `/proc/iomem`: the machine's physical address ranges.

use super::{LARGEST_BYTES, lines};
use crate::missing_values::{AbsentValue, Reason};

/// Sum of the "System RAM" ranges, in bytes, at any depth: hotplugged memory is listed below its device.
///
/// # Errors
/// Denied if the kernel hides the addresses (only root sees other values than zeroes), malformed without such
/// a range or with an unreadable one.
pub fn system_ram_bytes(text: &[u8]) -> Result<u64, AbsentValue> {
    let malformed = |what: &str| AbsentValue::new(Reason::Malformed, format!("iomem: {what}"));
    let ranges: Option<Vec<(u64, u64)>> = lines(text).filter_map(ram_range).collect();
    let ranges = ranges.ok_or_else(|| malformed("not a range"))?;
    if ranges.is_empty() {
        return Err(malformed("no System RAM"));
    }
    if ranges.iter().all(|range| *range == (0, 0)) {
        return Err(AbsentValue::new(
            Reason::Denied,
            "iomem: addresses are hidden",
        ));
    }
    let sum_bytes = ranges.iter().fold(0u64, |sum, (first, last)| {
        sum.saturating_add((last - first).saturating_add(1))
    });
    if sum_bytes > LARGEST_BYTES {
        return Err(malformed("more than there can be"));
    }
    Ok(sum_bytes)
}

/// First and last address in a line of System RAM, `Some(None)` if they are malformed; `None` for other
/// lines.
fn ram_range(line: &[u8]) -> Option<Option<(u64, u64)>> {
    let text = String::from_utf8_lossy(line);
    let (range, _) = text.split_once(" : System RAM")?;
    let address = |hex| u64::from_str_radix(hex, 16).ok();
    let range = range.trim_start().split_once('-');
    let range = range.and_then(|(first, last)| Some((address(first)?, address(last)?)));
    Some(range.filter(|(first, last)| first <= last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_summed_and_their_contents_are_not() {
        let text = b"00000000-00000fff : Reserved\n00001000-0009ffff : System RAM\n\
            00100000-001fffff : System RAM\n  00100000-0017ffff : Kernel code\n\
            140000000-1400fffff : virtio0\n  140000000-1400fffff : System RAM (virtio_mem)\n";
        assert_eq!(system_ram_bytes(text), Ok(0x9f000 + 0x10_0000 + 0x10_0000));
    }

    #[test]
    fn hidden_addresses_are_denied_not_two_bytes() {
        let text = b"00000000-00000000 : System RAM\n00000000-00000000 : System RAM\n";
        assert_eq!(
            system_ram_bytes(text).map_err(|a| a.reason),
            Err(Reason::Denied)
        );
        for text in [
            "",
            "00001000-0009ffff : System RAM\n00100000-0x1ffff : System RAM\n",
            "00001000-0009ffff : System RAM\n00100000-00000fff : System RAM\n",
            "00001000-0009ffff : System RAM\n0-ffffffffffffffff : System RAM\n",
        ] {
            let reason = system_ram_bytes(text.as_bytes()).map_err(|a| a.reason);
            assert_eq!(reason, Err(Reason::Malformed), "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..100), a in any::<u64>(), b in any::<u64>()) {
            let _ = system_ram_bytes(&text);
            let _ = system_ram_bytes(format!("{a:x}-{b:x} : System RAM\n0-ffffffffffffffff : System RAM").as_bytes());
        }
    }
}
