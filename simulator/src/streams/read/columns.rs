//! Columns of a CSV file, as in libCacheSim's `--trace-type-params`.

use super::number::TimeUnit;
use crate::streams::StreamError;

/// Numbers of the columns that are read, and the form of their contents. Other columns are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Column of the object. Column numbers start at 1, as in libCacheSim.
    pub(super) object: usize,
    pub(super) time: Option<usize>,
    pub(super) bytes: Option<usize>,
    pub(super) op: Option<usize>,
    pub(super) client: Option<usize>,
    pub(super) has_header: bool,
    pub(super) delimiter: u8,
    /// True if the object is a number; otherwise its text is hashed.
    pub(super) object_is_number: bool,
    pub(super) time_unit: TimeUnit,
}

impl Columns {
    /// Columns of the CSV that [`crate::streams::write::csv`] writes.
    #[must_use]
    pub fn ours() -> Self {
        Self {
            object: 2,
            time: Some(1),
            bytes: Some(3),
            op: Some(4),
            client: Some(5),
            has_header: true,
            delimiter: b',',
            object_is_number: true,
            time_unit: TimeUnit::S,
        }
    }

    /// Parses libCacheSim's parameters, such as `time-col=2, obj-id-col=5, obj-size-col=4, has-header=true,
    /// delimiter=,`. Its keys may also have `-field` for `-col`, and `_` for `-`. Gleaner's own keys are
    /// `op-col`, `client-col` and `time-unit`.
    ///
    /// # Errors
    /// [`StreamError::Setting`], which lists the known keys.
    pub fn of(text: &str) -> Result<Self, StreamError> {
        let mut columns = Self {
            object: 0,
            time: None,
            bytes: None,
            op: None,
            client: None,
            has_header: false,
            delimiter: b',',
            object_is_number: true,
            time_unit: TimeUnit::S,
        };
        let mut rest = text.trim_start_matches([' ', ',']);
        while let Some((key, more)) = rest.split_once('=') {
            let (value, more) = more.split_once(',').unwrap_or((more, ""));
            columns.set(&key.trim().replace('_', "-").to_lowercase(), value.trim())?;
            rest = more.trim_start_matches([' ', ',']);
        }
        if !rest.trim().is_empty() {
            return Err(refused(format!("{:?} has no value", rest.trim())));
        }
        if columns.object == 0 {
            return Err(refused("no column names the requested object".to_owned()));
        }
        Ok(columns)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), StreamError> {
        let wrong = || refused(format!("{key} cannot be {value:?}"));
        let place = || {
            let place = value
                .parse()
                .ok()
                .filter(|place| (1..=1024).contains(place));
            place.ok_or_else(wrong)
        };
        let flag = || match value.to_lowercase().as_str() {
            "true" | "1" | "yes" | "y" => Ok(true),
            "false" | "0" | "no" | "n" => Ok(false),
            _ => Err(wrong()),
        };
        match key.strip_suffix("-field").or(key.strip_suffix("-col")) {
            Some("time") => self.time = Some(place()?),
            Some("obj-id") => self.object = place()?,
            Some("obj-size" | "size") => self.bytes = Some(place()?),
            Some("op") => self.op = Some(place()?),
            Some("client") => self.client = Some(place()?),
            Some("next-access") => _ = place()?, // ignored: it follows from the stream
            _ => match key {
                "has-header" | "header" => self.has_header = flag()?,
                "obj-id-is-num" => self.object_is_number = flag()?,
                "delimiter" => self.delimiter = delimiter(value).ok_or_else(wrong)?,
                "time-unit" => self.time_unit = time_unit(value).ok_or_else(wrong)?,
                _ => return Err(refused(format!("there is no {key:?}"))),
            },
        }
        Ok(())
    }
}

/// Parses a delimiter. An empty value stands for a comma, since a comma ends a value.
fn delimiter(value: &str) -> Option<u8> {
    match value.as_bytes() {
        [] | [b'\\'] => Some(b','),
        b"\\t" | b"tab" => Some(b'\t'),
        b"space" => Some(b' '),
        [one] if one.is_ascii_punctuation() && *one != b'"' && *one != b'.' => Some(*one),
        _ => None,
    }
}

fn time_unit(value: &str) -> Option<TimeUnit> {
    match value {
        "s" => Some(TimeUnit::S),
        "ms" => Some(TimeUnit::Ms),
        "us" => Some(TimeUnit::Us),
        "ns" => Some(TimeUnit::Ns),
        _ => None,
    }
}

fn refused(found: String) -> StreamError {
    StreamError::Setting {
        found,
        advice: "there are time-col, obj-id-col (needed), obj-size-col, op-col and client-col (from 1), has-header and obj-id-is-num \
                 (true, false), delimiter (one character, \\t) and time-unit (s, ms, us, ns), with commas between: \
                 time-col=2, obj-id-col=5, obj-size-col=4, has-header=true"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn blank() -> Columns {
        Columns {
            time: None,
            bytes: None,
            op: None,
            client: None,
            has_header: false,
            ..Columns::ours()
        }
    }

    #[test]
    fn libcachesims_own_examples_are_read() {
        let read = |text| Columns::of(text).unwrap();
        let cloud_physics = Columns {
            object: 5,
            time: Some(2),
            bytes: Some(4),
            has_header: true,
            ..blank()
        };
        for text in [
            "time-col=2, obj-id-col=5, obj-size-col=4, has-header=true, delimiter=,",
            "time_col=2,obj_id_field=5,obj-size-field=4,header=1,delimiter=\\,, obj-id-is-num=true",
            "delimiter=,,time-col=2,obj-id-col=5,size-col=4,has-header=true",
        ] {
            assert_eq!(read(text), cloud_physics, "{text}");
        }
        let semicolons = read("obj-id-col=1,delimiter=;,obj-id-is-num=false,time-unit=us");
        assert_eq!(
            semicolons,
            Columns {
                object: 1,
                delimiter: b';',
                object_is_number: false,
                time_unit: TimeUnit::Us,
                ..blank()
            }
        );
        assert_eq!(read("obj-id-col=1,delimiter=\\t").delimiter, b'\t');
    }

    #[test]
    fn what_says_nothing_is_refused_with_what_there_is() {
        for (text, found) in [
            ("", "no column names"),
            ("time-col=2", "no column names"),
            ("obj-id-col=0", "obj-id-col cannot be \"0\""),
            ("obj-id-col=-1", "obj-id-col cannot be \"-1\""),
            ("obj-id-col=1,cnt-col=2", "there is no \"cnt-col\""),
            (
                "obj-id-col=1,has-header=maybe",
                "has-header cannot be \"maybe\"",
            ),
            ("obj-id-col=1,delimiter=ab", "delimiter cannot be \"ab\""),
            ("obj-id-col=1,header", "\"header\" has no value"),
        ] {
            let error = Columns::of(text).unwrap_err().to_string();
            assert!(error.starts_with(found), "{error}");
            assert!(error.contains("; there are time-col"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[a-z0-9=,; \\\\-]{0,60}") {
            let _ = Columns::of(&text);
        }
    }
}
