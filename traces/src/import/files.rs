//! Lists the files of a folder, one per machine, and reads their lines.

use super::ImportError;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Maximum length of a row's line; longer lines are skipped without being held in memory.
const LINE_BYTES: u64 = 1 << 16;

/// A machine's file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MachineFile {
    /// Name of the machine: the file's name without `.csv`.
    pub(super) machine: String,
    pub(super) path: PathBuf,
}

/// The `.csv` files in `folder`, ordered by the numbers in their names; and the names of all other entries.
///
/// # Errors
/// [`ImportError::NoFiles`]; or an error of the system.
pub(super) fn of_folder(folder: &Path) -> Result<(Vec<MachineFile>, Vec<String>), ImportError> {
    let entries = fs::read_dir(folder).map_err(ImportError::io("list folder", folder))?;
    let (mut files, mut others) = (Vec::new(), Vec::new());
    for entry in entries {
        let path = entry
            .map_err(ImportError::io("list folder", folder))?
            .path();
        if path.extension().is_some_and(|ending| ending == "csv") && path.is_file() {
            let machine = path.file_stem().and_then(|name| name.to_str());
            let machine = machine.ok_or_else(|| ImportError::Name { path: path.clone() })?;
            files.push(MachineFile {
                machine: machine.to_owned(),
                path,
            });
        } else {
            let name = path.file_name().unwrap_or(path.as_os_str());
            others.push(name.to_string_lossy().into_owned());
        }
    }
    if files.is_empty() {
        return Err(ImportError::NoFiles {
            folder: folder.to_owned(),
        });
    }
    files.sort_by_cached_key(|file| {
        let number = file.machine.parse::<u64>().ok();
        (number.is_none(), number, file.machine.clone())
    });
    others.sort();
    Ok((files, others))
}

/// The lines of a file, with their numbers.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

/// A line, without its newline character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    Text(&'a str),
    /// Reason why the line cannot be read.
    Unreadable(&'static str),
}

impl Lines<File> {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self::of(File::open(path)?))
    }
}

impl<R: Read> Lines<R> {
    pub(super) fn of(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(1 << 17, reader),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Reads the next line; returns it with its number, which counts from 1.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Line<'_>)>> {
        self.line.clear();
        if self.read_part()? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let is_too_long = self.line.last() != Some(&b'\n') && self.line.len() as u64 == LINE_BYTES;
        if is_too_long {
            while self.line.last() != Some(&b'\n') {
                self.line.clear();
                if self.read_part()? == 0 {
                    break;
                }
            }
            return Ok(Some((self.number, Line::Unreadable("longer than 64 KiB"))));
        }
        let line = match std::str::from_utf8(&self.line) {
            Ok(text) => Line::Text(text.trim_end_matches(['\n', '\r'])),
            Err(_) => Line::Unreadable("not UTF-8"),
        };
        Ok(Some((self.number, line)))
    }

    fn read_part(&mut self) -> io::Result<usize> {
        let mut part = self.reader.by_ref().take(LINE_BYTES);
        part.read_until(b'\n', &mut self.line)
    }
}

/// Cuts a text to a length that fits into a message.
pub(super) fn cut(text: &str) -> String {
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

    #[test]
    fn lines_end_as_they_may_and_long_ones_are_skipped() {
        let long = "x".repeat(3 << 16);
        let text = format!("a\r\n\nb\n{long}\nc\n\u{e9}\nd");
        let mut bytes = text.into_bytes();
        let accent = bytes.iter().position(|&b| b == 0xc3).unwrap();
        bytes.remove(accent); // half a character
        let mut lines = Lines::of(&bytes[..]);
        let mut found = Vec::new();
        while let Some((number, line)) = lines.next().unwrap() {
            found.push(match line {
                Line::Text(text) => format!("{number} {text}"),
                Line::Unreadable(why) => format!("{number}: {why}"),
            });
        }
        let expected = [
            "1 a",
            "2 ",
            "3 b",
            "4: longer than 64 KiB",
            "5 c",
            "6: not UTF-8",
            "7 d",
        ];
        assert_eq!(found, expected);
    }
}
