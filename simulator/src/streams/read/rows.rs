//! Rows of a text file: reads each line as fields.

use super::fields::Fields;
use super::input::Input;
use crate::streams::StreamError;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

/// Maximum length of a line; a trace has no longer lines.
const LINE_BYTES: u64 = 1 << 16;

/// Rows of a file, of which one is in memory at a time.
pub(super) struct Rows {
    path: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    /// Number of the row's line, from 1.
    number: u64,
    fields: Fields,
}

impl Rows {
    pub(super) fn new(input: Input, delimiter: u8) -> Self {
        let (path, reader) = input.buffered();
        Self {
            path,
            reader,
            line: Vec::new(),
            number: 0,
            fields: Fields::separated_by(delimiter),
        }
    }

    /// Reads the next row, skipping blank lines; returns false at the end.
    ///
    /// # Errors
    /// The system's error, or a line that is not text or has no end.
    pub(super) fn next(&mut self) -> Result<bool, StreamError> {
        loop {
            self.line.clear();
            let mut part = self.reader.by_ref().take(LINE_BYTES);
            let read = part
                .read_until(b'\n', &mut self.line)
                .map_err(StreamError::io("read", &self.path))?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            if self.line.last() != Some(&b'\n') && read as u64 == LINE_BYTES {
                return Err(self.wrong("longer than 64 KiB", IS_TEXT));
            }
            let Ok(line) = std::str::from_utf8(&self.line) else {
                return Err(self.wrong("not UTF-8", IS_TEXT));
            };
            let line = if self.number == 1 {
                line.trim_start_matches('\u{feff}')
            } else {
                line
            };
            let line = line.trim_end_matches(['\n', '\r']);
            if !line.trim().is_empty() {
                self.fields.split(line);
                return Ok(true);
            }
        }
    }

    /// Returns the field with index `place`, counted from 0, as parsed by `of`.
    ///
    /// # Errors
    /// The row has no such field, or `of` refuses the field with a description of valid values.
    pub(super) fn field<T>(
        &self,
        place: usize,
        name: &str,
        of: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Result<T, StreamError> {
        let Some(text) = self.fields.get(place) else {
            let found = format!(
                "{} columns, and {name} should be number {}",
                self.fields.count(),
                place + 1
            );
            return Err(self.wrong(found, COLUMNS));
        };
        of(text).map_err(|wanted| {
            self.wrong(format!("{name} is {:?}, not {wanted}", cut(text)), COLUMNS)
        })
    }

    /// Index of the column with this name; the row must be a header.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        (0..self.fields.count()).find(|place| self.fields.get(*place) == Some(name))
    }

    /// Makes an error about the present row.
    #[cold]
    pub(super) fn wrong(&self, found: impl Into<String>, advice: &'static str) -> StreamError {
        StreamError::Line {
            path: self.path.clone(),
            line: self.number,
            found: found.into(),
            advice,
        }
    }
}

const IS_TEXT: &str = "the format is text: name the format that the file is in";
const COLUMNS: &str = "say which columns and which header the file has, or mend the line";

/// Truncates a text to a length that fits a message.
fn cut(text: &str) -> String {
    const CHARACTERS: usize = 40;
    let mut cut: String = text.chars().take(CHARACTERS).collect();
    if text.chars().nth(CHARACTERS).is_some() {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Result<String, String>> {
        let mut rows = Rows::new(Input::of(bytes), b',');
        let mut read = Vec::new();
        loop {
            match rows.next() {
                Ok(true) => read.push(Ok(rows
                    .field(0, "first", |text| Ok(text.to_owned()))
                    .unwrap())),
                Ok(false) => return read,
                Err(error) => {
                    read.push(Err(error.to_string()));
                    return read;
                }
            }
        }
    }

    #[test]
    fn lines_end_as_they_may() {
        let told = |texts: &[&str]| -> Vec<Result<String, String>> {
            texts.iter().map(|text| Ok((*text).to_owned())).collect()
        };
        assert_eq!(
            read("\u{feff}a,b\r\n\n  \nc\nd".as_bytes()),
            told(&["a", "c", "d"])
        );
    }

    #[test]
    fn what_is_no_line_is_said() {
        let long = vec![b'x'; 3 << 16];
        assert_eq!(
            read(&long),
            [Err("stream line 1: longer than 64 KiB; the format is text: name the format that the file is in".to_owned())]
        );
        assert_eq!(
            read(b"a\n\xff\n")[1],
            Err(
                "stream line 2: not UTF-8; the format is text: name the format that the file is in"
                    .to_owned()
            )
        );
    }
}
