//! Lower-case hexadecimal digits, used for ids of hosts, leases and sessions, for serial numbers and for
//! fingerprints.

use std::fmt::Write;

/// Encodes each byte as two lower-case digits.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}"); // writing to a String cannot fail
    }
    text
}

/// Decodes the output of [`encode`]; `None` for any other text.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !is_lower(text, text.len()) {
        return None;
    }
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    text.as_bytes().chunks(2).map(byte).collect()
}

/// Returns true if the text consists of exactly `digits_count` lower-case hex digits.
#[must_use]
pub fn is_lower(text: &str, digits_count: usize) -> bool {
    text.len() == digits_count && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_bytes_of_lower_case_digits_are_read() {
        assert_eq!(encode(&[0, 0x0a, 0xff]), "000aff");
        assert_eq!(decode("000aff"), Some(vec![0, 0x0a, 0xff]));
        assert_eq!(decode(""), Some(Vec::new()));
        for text in ["0", "0A", "+1", "0g", " 0", "é", "00\n0"] {
            assert_eq!(decode(text), None, "{text:?}");
        }
        assert!(is_lower("0a", 2) && !is_lower("0a", 3) && !is_lower("0A", 2));
    }
}
