//! Reads requests to volumes from plain CSV. The header names the columns, in any order. Required are
//! `time_s`, `offset_bytes` and `bytes`; optional are `op` (default: read) and `client` (default: 0). Other
//! columns are ignored. Each client has its own volume.

use super::block::{BlockBytes, Blocks, TOLD};
use super::clock::Clock;
use super::input::Input;
use super::number::TimeUnit;
use super::rows::Rows;
use super::{Reading, number};
use crate::Request;
use crate::streams::{StreamError, StreamRequest};

/// Reader of a CSV file of requests to volumes.
pub(super) struct BlockCsv {
    rows: Rows,
    places: Places,
    file: u32,
    block: BlockBytes,
    blocks: Blocks,
    clock: Clock,
}

/// Indices of the columns in a row, from 0.
#[derive(Default)]
struct Places {
    time: usize,
    offset: usize,
    bytes: usize,
    op: Option<usize>,
    client: Option<usize>,
}

impl BlockCsv {
    /// Reads the header.
    ///
    /// # Errors
    /// A required column is missing.
    pub(super) fn new(input: Input, block: BlockBytes, file: u32) -> Result<Self, StreamError> {
        let mut rows = Rows::new(input, b',');
        let mut places = Places::default();
        // A file without lines has no rows and needs no header.
        if rows.next()? {
            let needed = |name: &str| {
                let advice =
                    "the first line names the columns: time_s,client,op,offset_bytes,bytes";
                let place = rows.place(name);
                place.ok_or_else(|| rows.wrong(format!("there is no column {name}"), advice))
            };
            places = Places {
                time: needed("time_s")?,
                offset: needed("offset_bytes")?,
                bytes: needed("bytes")?,
                op: rows.place("op"),
                client: rows.place("client"),
            };
        }
        Ok(Self {
            rows,
            places,
            file,
            block,
            blocks: TOLD,
            clock: Clock::default(),
        })
    }

    /// Parses the row as a request to a volume.
    fn row(&mut self) -> Result<Blocks, StreamError> {
        let (rows, places) = (&self.rows, &self.places);
        let at_ns = rows.field(places.time, "time_s", |text| TimeUnit::S.time_ns(text))?;
        let offset_bytes = rows.field(places.offset, "offset_bytes", number::whole)?;
        let bytes = rows.field(places.bytes, "bytes", number::bytes)?;
        let op = |place| rows.field(place, "op", number::is_write);
        let is_write = places.op.map_or(Ok(false), op)?;
        let within = |place| rows.field(place, "client", number::whole);
        let within = places.client.map_or(Ok(0), within)?;
        let wrong = |found| rows.wrong(found, "mend the line, or take it out");
        let client = super::client(self.file, within).map_err(wrong)?;
        let request = Request {
            bytes,
            is_write,
            ..Request::default()
        };
        let recorded = self.clock.request_at(client, at_ns, request);
        Blocks::of(recorded, offset_bytes, self.block).map_err(wrong)
    }
}

impl Reading for BlockCsv {
    fn read(&mut self) -> Result<Option<StreamRequest>, StreamError> {
        loop {
            if let Some(recorded) = self.blocks.next(self.block) {
                return Ok(Some(recorded));
            }
            if !self.rows.next()? {
                return Ok(None);
            }
            self.blocks = self.row()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::UntilError;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> Vec<Result<StreamRequest, String>> {
        match BlockCsv::new(Input::of(text), BlockBytes::default(), 0) {
            Ok(reading) => UntilError::error(reading)
                .map(|read| read.map_err(|error| error.to_string()))
                .collect(),
            Err(error) => vec![Err(error.to_string())],
        }
    }

    #[test]
    fn columns_are_found_by_name() {
        let text =
            b"bytes,why,offset_bytes,time_s,client,op\n4096,x,8192,1.5,2,write\n1,x,0,2,2,r\n";
        let told: Vec<_> = read(text)
            .into_iter()
            .map(|read| {
                let read = read.unwrap();
                let request = read.request;
                (
                    read.at_ns,
                    read.client.number(),
                    request.object,
                    request.bytes,
                    request.is_write,
                    request.think_ns,
                )
            })
            .collect();
        let volume = 2 << 44;
        assert_eq!(
            told,
            [
                (1_500_000_000, 2, volume + 2, 4096, true, 0),
                (2_000_000_000, 2, volume, 1, false, 500_000_000)
            ]
        );
        assert_eq!(read(b""), []);
        let plain = read(b"time_s,offset_bytes,bytes\n0,0,1\n");
        assert_eq!(plain[0].as_ref().map(|read| read.client.number()), Ok(0));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for (text, found) in [
            (
                "time_s,bytes\n",
                "stream line 1: there is no column offset_bytes; the first line names",
            ),
            (
                "time_s,offset_bytes,bytes\n0,0,x\n",
                "stream line 2: bytes is \"x\", not a number of bytes",
            ),
            (
                "time_s,offset_bytes,bytes\n0,18446744073709551615,9\n",
                "stream line 2: offset 18446744073709551615 lies",
            ),
        ] {
            let read = read(text.as_bytes());
            let error = read.last().unwrap().as_ref().unwrap_err();
            assert!(error.starts_with(found), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_requests_until_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b'1')], 0..200)) {
            let text = [b"time_s,offset_bytes,bytes,op\n", &bytes[..]].concat();
            let read = read(&text);
            let whole = read.iter().take_while(|read| read.is_ok()).count();
            prop_assert!(read.len() <= whole + 1);
        }
    }
}
