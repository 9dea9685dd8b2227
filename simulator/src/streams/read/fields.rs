//! Fields of a line, including quoted ones (RFC 4180). Each line is a row: an unclosed quote affects no other
//! line.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use std::ops::Range;

/// Splitter of lines into fields; it reuses its memory for each line.
pub(super) struct Fields {
    delimiter: u8,
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    fields: Vec<Range<usize>>,
}

impl Fields {
    /// Makes a splitter for fields separated by this ASCII character.
    pub(super) fn separated_by(delimiter: u8) -> Self {
        Self {
            delimiter,
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            text: Vec::new(),
            ends: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Splits `line` into fields.
    pub(super) fn split(&mut self, line: &str) {
        self.fields.clear();
        if line.contains('"') {
            self.unquote(line);
            return;
        }
        self.text.clear();
        self.text.extend_from_slice(line.as_bytes());
        let mut start = 0;
        for (at, byte) in self.text.iter().enumerate() {
            if *byte == self.delimiter {
                self.fields.push(start..at);
                start = at + 1;
            }
        }
        self.fields.push(start..self.text.len());
    }

    fn unquote(&mut self, line: &str) {
        self.reader.reset();
        // No field is longer than the line. A line has at most one field more than it has characters.
        self.text.resize(line.len(), 0);
        self.ends.resize(line.len() + 2, 0);
        let (result, _, written, mut count) =
            self.reader
                .read_record(line.as_bytes(), &mut self.text, &mut self.ends);
        if result == ReadRecordResult::InputEmpty {
            let (_, rest) = self.text.split_at_mut(written);
            let (_, _, _, more) = self.reader.read_record(&[], rest, &mut self.ends[count..]);
            count += more;
        }
        let mut start = 0;
        for &end in &self.ends[..count] {
            self.fields.push(start..end);
            start = end;
        }
    }

    /// Field with this index, counted from 0, without surrounding blanks.
    pub(super) fn get(&self, place: usize) -> Option<&str> {
        let bytes = self.text.get(self.fields.get(place)?.clone())?;
        // The line is split only at ASCII characters, so the fields of UTF-8 text are valid.
        std::str::from_utf8(bytes).ok().map(str::trim)
    }

    /// Number of fields.
    pub(super) fn count(&self) -> usize {
        self.fields.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(delimiter: u8, line: &str) -> Vec<String> {
        let mut fields = Fields::separated_by(delimiter);
        fields.split(line);
        let texts = (0..fields.count()).map(|place| fields.get(place).unwrap().to_owned());
        texts.collect()
    }

    #[test]
    fn fields_may_be_quoted_and_lines_may_be_torn() {
        for (line, expected) in [
            ("a; b ;c", vec!["a", "b", "c"]),
            ("\"a;b\";\"say \"\"hi\"\"\"", vec!["a;b", "say \"hi\""]),
            (";;", vec!["", "", ""]),
            ("\"never closed;x", vec!["never closed;x"]),
            ("ä;\"ö\"", vec!["ä", "ö"]),
            ("one", vec!["one"]),
            ("", vec![""]),
        ] {
            assert_eq!(split(b';', line), expected, "{line}");
        }
    }

    proptest! {
        #[test]
        fn with_and_without_quotes_it_is_the_same(texts in prop::collection::vec("[a-zä ]{0,6}", 1..8)) {
            let quoted: Vec<String> = texts.iter().map(|text| format!("\"{text}\"")).collect();
            prop_assert_eq!(split(b',', &quoted.join(",")), split(b',', &texts.join(",")));
        }

        #[test]
        fn no_line_panics(line in "[,\"\u{feff} äa\r]{0,40}") {
            let _ = split(b',', &line);
        }
    }
}
