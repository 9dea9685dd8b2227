//! `/proc/iomem`: the machine's physical address ranges.

use super::lines;
use crate::absence::{Absent, Reason};

/// Sum of the "System RAM" ranges, in bytes, wherever they stand: hotplugged memory is listed below
/// its device.
///
/// # Errors
/// Denied when the kernel hides the addresses (it shows zeroes to all but root), malformed when
/// there is no such range.
pub fn system_ram_bytes(text: &[u8]) -> Result<u64, Absent> {
    let ranges: Vec<(u64, u64)> = lines(text).filter_map(ram_range).collect();
    if ranges.is_empty() {
        return Err(Absent::new(Reason::Malformed, "iomem: no System RAM"));
    }
    if ranges.iter().all(|range| *range == (0, 0)) {
        return Err(Absent::new(Reason::Denied, "iomem: addresses are hidden"));
    }
    Ok(ranges.iter().fold(0u64, |sum, (first, last)| {
        sum.saturating_add(last.saturating_sub(*first).saturating_add(1))
    }))
}

fn ram_range(line: &[u8]) -> Option<(u64, u64)> {
    let (range, name) = std::str::from_utf8(line).ok()?.split_once(" : ")?;
    if !name.starts_with("System RAM") {
        return None;
    }
    let (first, last) = range.trim_start().split_once('-')?;
    let address = |hex| u64::from_str_radix(hex, 16).ok();
    Some((address(first)?, address(last)?))
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
        assert_eq!(
            system_ram_bytes(b"").map_err(|a| a.reason),
            Err(Reason::Malformed)
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in proptest::collection::vec(any::<u8>(), 0..100), a in any::<u64>(), b in any::<u64>()) {
            let _ = system_ram_bytes(&text);
            let _ = system_ram_bytes(format!("{a:x}-{b:x} : System RAM\n0-ffffffffffffffff : System RAM").as_bytes());
        }
    }
}
