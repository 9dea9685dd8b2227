//! Splits a line into fields, also quoted ones (RFC 4180). A row is always one line: an unclosed quote
//! damages no other row.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

/// Splits lines into fields.
pub(super) struct Fields {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Fields {
    pub(super) fn separated_by(separator: u8) -> Self {
        Self {
            reader: ReaderBuilder::new().delimiter(separator).build(),
            text: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The fields of `line`, trimmed.
    pub(super) fn of<'f>(&'f mut self, line: &str) -> Vec<&'f str> {
        self.reader.reset();
        // No field is longer than the line, and a line has at most one field more than characters.
        self.text.resize(line.len(), 0);
        self.ends.resize(line.len() + 2, 0);
        let (result, _, written, ended) =
            self.reader
                .read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        let mut count = ended;
        if result == ReadRecordResult::InputEmpty {
            let (_, rest) = self.text.split_at_mut(written);
            let (_, _, _, more) = self.reader.read_record(&[], rest, &mut self.ends[ended..]);
            count += more;
        }
        let mut start = 0;
        let ends = self.ends[..count].iter();
        ends.map(|&end| {
            let field = self.text.get(start..end).unwrap_or_default();
            start = end;
            // Cutting at ASCII characters keeps UTF-8 valid.
            std::str::from_utf8(field).unwrap_or_default().trim()
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_may_be_quoted_and_lines_may_be_torn() {
        let mut fields = Fields::separated_by(b';');
        for (line, expected) in [
            ("a; b ;c", vec!["a", "b", "c"]),
            ("\"a;b\";\"say \"\"hi\"\"\"", vec!["a;b", "say \"hi\""]),
            (";;", vec!["", "", ""]),
            ("\"never closed;x", vec!["never closed;x"]),
            ("ä;\"ö\"", vec!["ä", "ö"]),
            ("one", vec!["one"]),
        ] {
            assert_eq!(fields.of(line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_as_it_was(texts in proptest::collection::vec("[a-z,;\"ä ]{0,6}", 1..8)) {
            let line: Vec<String> =
                texts.iter().map(|t| format!("\"{}\"", t.replace('"', "\"\""))).collect();
            let line = line.join(",");
            let mut fields = Fields::separated_by(b',');
            let trimmed: Vec<&str> = texts.iter().map(|t| t.trim()).collect();
            prop_assert_eq!(fields.of(&line), trimmed);
        }

        #[test]
        fn no_line_panics(line in "[,\"\u{feff} äa\r]{0,40}") {
            let _ = Fields::separated_by(b',').of(&line);
        }
    }
}
