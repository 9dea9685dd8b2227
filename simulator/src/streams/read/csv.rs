//! Reads CSV as libCacheSim does: text with one request per line, whose columns are configured.

use super::clock::Clock;
use super::columns::Columns;
use super::input::Input;
use super::rows::Rows;
use super::{Reading, number};
use crate::Request;
use crate::streams::{Client, StreamError, StreamRequest};

/// Reader of a CSV file with configured columns.
pub(super) struct Csv {
    rows: Rows,
    columns: Columns,
    file: u32,
    clock: Clock,
    is_begun: bool,
}

impl Csv {
    pub(super) fn new(input: Input, columns: &Columns, file: u32) -> Self {
        Self {
            rows: Rows::new(input, columns.delimiter),
            columns: columns.clone(),
            file,
            clock: Clock::default(),
            is_begun: false,
        }
    }

    /// Parses the field in column `place`, counted from 1; returns a default if there is no such column.
    fn field<T>(
        &self,
        place: Option<usize>,
        name: &str,
        without: T,
        of: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Result<T, StreamError> {
        place.map_or(Ok(without), |place| self.rows.field(place - 1, name, of))
    }

    fn client(&self) -> Result<Client, StreamError> {
        let within = self.field(self.columns.client, "the client", 0, number::whole)?;
        super::client(self.file, within).map_err(|found| {
            self.rows
                .wrong(found, "name another column, or read fewer files together")
        })
    }
}

impl Reading for Csv {
    fn read(&mut self) -> Result<Option<StreamRequest>, StreamError> {
        if !self.is_begun {
            self.is_begun = true;
            if self.columns.has_header && !self.rows.next()? {
                return Ok(None);
            }
        }
        if !self.rows.next()? {
            return Ok(None);
        }
        let columns = &self.columns;
        let object = |text: &str| match columns.object_is_number {
            true => number::whole(text),
            false => Ok(hashed(text)),
        };
        let request = Request {
            object: self.rows.field(columns.object - 1, "the object", object)?,
            bytes: self.field(columns.bytes, "the size", 1, number::bytes)?,
            is_write: self.field(columns.op, "the operation", false, number::is_write)?,
            think_ns: 0,
        };
        let time = |text: &str| columns.time_unit.time_ns(text);
        let at_ns = self.field(columns.time, "the time", 0, time)?;
        let client = self.client()?;
        Ok(Some(self.clock.request_at(client, at_ns, request)))
    }
}

/// Makes an object's number from its name: 64-bit FNV-1a with mixed bits. Of 400,000 traces with ten million
/// names each, one has two names with the same number.
fn hashed(name: &str) -> u64 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

#[cfg(test)]
mod tests {
    use super::super::UntilError;
    use super::*;
    use proptest::prelude::*;

    fn read(columns: &str, text: &[u8]) -> Vec<Result<StreamRequest, String>> {
        let columns = Columns::of(columns).unwrap();
        UntilError::error(Csv::new(Input::of(text), &columns, 0))
            .map(|read| read.map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn columns_are_where_they_are_said_to_be() {
        // The text is the beginning of libCacheSim's example.
        let text =
            b"version,time,op,size,lbn\n1,5633898,2a,512,42932745\n1,5633899.25,2a,6656,0x10\n";
        let columns = "time-col=2,obj-id-col=5,obj-size-col=4,has-header=true";
        let read: Vec<StreamRequest> = read(columns, text)
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let told = |at_ns, object, bytes, think_ns| StreamRequest {
            at_ns,
            client: Client::default(),
            request: Request {
                object,
                bytes,
                is_write: false,
                think_ns,
            },
        };
        assert_eq!(
            read,
            [
                told(5_633_898_000_000_000, 42_932_745, 512, 0),
                told(5_633_899_250_000_000, 16, 6656, 1_250_000_000)
            ]
        );
    }

    #[test]
    fn clients_operations_and_names_of_objects() {
        let text = b"/a/b;w;1\n\"/a/b\";R;0\n/c;get;1\n";
        let read = read(
            "obj-id-col=1,op-col=2,client-col=3,delimiter=;,obj-id-is-num=false",
            text,
        );
        let read: Vec<StreamRequest> = read.into_iter().map(Result::unwrap).collect();
        let [first, second, third] = &read[..] else {
            panic!()
        };
        assert_eq!(first.request.object, second.request.object);
        assert_ne!(first.request.object, third.request.object);
        let told = |read: &StreamRequest| {
            (
                read.request.is_write,
                read.client.number(),
                read.request.bytes,
            )
        };
        assert_eq!(
            [first, second, third].map(told),
            [(true, 1, 1), (false, 0, 1), (false, 1, 1)]
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_by_line_and_column() {
        for (text, found) in [
            (
                "1,2,3\nx,2,3\n",
                "stream line 2: the time is \"x\", not a time",
            ),
            (
                "1,two,3\n",
                "stream line 1: the object is \"two\", not a whole number",
            ),
            (
                "1,2\n",
                "stream line 1: 2 columns, and the size should be number 3",
            ),
            (
                "1,2,5000000000\n",
                "stream line 1: the size is \"5000000000\", not a number of bytes",
            ),
        ] {
            let read = read("time-col=1,obj-id-col=2,obj-size-col=3", text.as_bytes());
            let error = read.last().unwrap().as_ref().unwrap_err();
            assert!(error.starts_with(found), "{error}");
            assert!(
                error.ends_with(
                    "; say which columns and which header the file has, or mend the line"
                ),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_requests_until_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b'1')], 0..200)) {
            for columns in ["time-col=1,obj-id-col=2", "obj-id-col=1,obj-id-is-num=false,has-header=1"] {
                let read = read(columns, &bytes);
                let whole = read.iter().take_while(|read| read.is_ok()).count();
                prop_assert!(read.len() <= whole + 1);
            }
        }
    }
}
