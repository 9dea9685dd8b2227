//! Reads traces in the Storage Performance Council's format (SPC Trace File Format Specification 1.0.1): ASU,
//! LBA, size, opcode, timestamp. Further fields are ignored. An ASU is a client with its own volume.

use super::block::{BlockBytes, Blocks, TOLD};
use super::clock::Clock;
use super::input::Input;
use super::number::TimeUnit;
use super::rows::Rows;
use super::{Reading, number};
use crate::Request;
use crate::streams::{StreamError, StreamRequest};

/// Unit of an LBA.
const SECTOR_BYTES: u64 = 512;

/// Reader of a file in the SPC format.
pub(super) struct Spc {
    rows: Rows,
    file: u32,
    block: BlockBytes,
    blocks: Blocks,
    clock: Clock,
}

impl Spc {
    pub(super) fn new(input: Input, block: BlockBytes, file: u32) -> Self {
        Self {
            rows: Rows::new(input, b','),
            file,
            block,
            blocks: TOLD,
            clock: Clock::default(),
        }
    }

    /// Parses the row as a request to a volume.
    fn row(&mut self) -> Result<Blocks, StreamError> {
        let unit = self.rows.field(0, "the ASU", number::whole)?;
        let address = self.rows.field(1, "the LBA", number::whole)?;
        let bytes = self.rows.field(2, "the size", number::bytes)?;
        let is_write = self.rows.field(3, "the opcode", number::is_write)?;
        let at_ns = self
            .rows
            .field(4, "the timestamp", |text| TimeUnit::S.time_ns(text))?;
        let client =
            super::client(self.file, unit).map_err(|found| self.rows.wrong(found, NOT_SPC))?;
        let request = Request {
            bytes,
            is_write,
            ..Request::default()
        };
        let recorded = self.clock.request_at(client, at_ns, request);
        let blocks = match address.checked_mul(SECTOR_BYTES) {
            Some(offset_bytes) => Blocks::of(recorded, offset_bytes, self.block),
            None => Err(format!("LBA {address} is beyond every volume")),
        };
        blocks.map_err(|found| self.rows.wrong(found, NOT_SPC))
    }
}

const NOT_SPC: &str = "is the file of SPC: ASU, LBA, size, opcode, timestamp?";

impl Reading for Spc {
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
        UntilError::error(Spc::new(Input::of(text), BlockBytes::default(), 0))
            .map(|read| read.map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn a_row_is_a_request_to_its_units_volume() {
        // The first row, like the specification's example, writes 10,240 bytes from LBA 20 on: 2.5 blocks
        // from block 2.5 on. The second row has an additional field.
        let text = b"0,20,10240,W,0.5\n1,8,512,r,0.75,x\n0,0,4096,R,1\n";
        let told: Vec<_> = read(text)
            .into_iter()
            .map(|read| {
                let read = read.unwrap();
                let request = read.request;
                (
                    read.client.number(),
                    request.object,
                    request.bytes,
                    request.is_write,
                    request.think_ns,
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                (0, 2, 2048, true, 0),
                (0, 3, 4096, true, 0),
                (0, 4, 4096, true, 0),
                (1, (1 << 44) + 1, 512, false, 0),
                (0, 0, 4096, false, 500_000_000),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_by_line_and_field() {
        for (text, found) in [
            (
                "ASU,LBA,Size\n",
                "stream line 1: the ASU is \"ASU\", not a whole number",
            ),
            (
                "0,1,512,X,0\n",
                "stream line 1: the opcode is \"X\", not r, read",
            ),
            (
                "0,1,512,R\n",
                "stream line 1: 4 columns, and the timestamp should be number 5",
            ),
            (
                "0,18446744073709551615,512,R,0\n",
                "stream line 1: LBA 18446744073709551615 is beyond",
            ),
            (
                "9999999,1,512,R,0\n",
                "stream line 1: client 9999999 is more than",
            ),
        ] {
            let read = read(text.as_bytes());
            let error = read.last().unwrap().as_ref().unwrap_err();
            assert!(error.starts_with(found), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_requests_until_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b'1'), Just(b'R')], 0..200)) {
            let read = read(&bytes);
            let whole = read.iter().take_while(|read| read.is_ok()).count();
            prop_assert!(read.len() <= whole + 1);
        }
    }
}
