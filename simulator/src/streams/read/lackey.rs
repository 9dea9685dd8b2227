//! Reads the memory accesses that valgrind's tool lackey prints with `--trace-mem=yes`: ` L ADDRESS,BYTES` is a load,
//! ` S` a store, ` M` a load and a store; `I  ADDRESS,BYTES` is an instruction. Addresses are hexadecimal. Instructions
//! are not requests; they are the clock, at one in a nanosecond. Valgrind's own messages (`==PID== ...`) are ignored.

use super::Reading;
use super::block::{BlockBytes, Blocks, TOLD};
use super::clock::Clock;
use super::input::Input;
use super::number;
use super::rows::Rows;
use crate::Request;
use crate::streams::{Client, StreamError, StreamRequest};

/// Reader of a trace of lackey.
pub(super) struct Lackey {
    rows: Rows,
    client: Client,
    block: BlockBytes,
    blocks: Blocks,
    clock: Clock,
    /// Instructions so far.
    instructions: u64,
}

const NOT_LACKEY: &str = "is the file of valgrind --tool=lackey --trace-mem=yes?";
const ACCESS: &str = "an access: I, L, S or M, and an address of hexadecimal digits";

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Instruction,
    Load,
    /// A store, or a load and a store.
    Store,
    /// A message of valgrind.
    Message,
}

impl Lackey {
    pub(super) fn new(input: Input, block: BlockBytes, file: u32) -> Result<Self, StreamError> {
        let client = Client::of(file, 0).ok_or_else(|| super::merge::too_many_files(file))?;
        Ok(Self {
            rows: Rows::new(input, b','),
            client,
            block,
            blocks: TOLD,
            clock: Clock::default(),
            instructions: 0,
        })
    }

    /// Parses the row as an access; `None` if it is no request.
    fn row(&mut self) -> Result<Option<Blocks>, StreamError> {
        let (access, address) = self.rows.field(0, "the access", access)?;
        let is_write = match access {
            Access::Message => return Ok(None),
            Access::Instruction => {
                self.instructions = self.instructions.saturating_add(1);
                return Ok(None);
            }
            Access::Load => false,
            Access::Store => true,
        };
        let bytes = self.rows.field(1, "the size", number::bytes)?;
        let request = Request {
            bytes,
            is_write,
            ..Request::default()
        };
        let recorded = self
            .clock
            .request_at(self.client, self.instructions, request);
        let blocks = Blocks::of(recorded, address, self.block);
        blocks
            .map(Some)
            .map_err(|found| self.rows.wrong(found, NOT_LACKEY))
    }
}

/// Parses the first field of a line: kind and address.
fn access(text: &str) -> Result<(Access, u64), &'static str> {
    if text.starts_with("==") || text.starts_with("--") {
        return Ok((Access::Message, 0));
    }
    let (kind, digits) = text.split_once(' ').ok_or(ACCESS)?;
    let kind = match kind {
        "I" => Access::Instruction,
        "L" => Access::Load,
        "S" | "M" => Access::Store,
        _ => return Err(ACCESS),
    };
    let digits = digits.trim_start();
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = are_digits.then(|| u64::from_str_radix(digits, 16).ok());
    Ok((kind, address.flatten().ok_or(ACCESS)?))
}

impl Reading for Lackey {
    fn read(&mut self) -> Result<Option<StreamRequest>, StreamError> {
        loop {
            if let Some(recorded) = self.blocks.next(self.block) {
                return Ok(Some(recorded));
            }
            if !self.rows.next()? {
                return Ok(None);
            }
            if let Some(blocks) = self.row()? {
                self.blocks = blocks;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::UntilError;
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8]) -> Vec<Result<StreamRequest, String>> {
        let reading = Lackey::new(Input::of(text), BlockBytes::default(), 0).unwrap();
        UntilError::error(reading)
            .map(|read| read.map_err(|error| error.to_string()))
            .collect()
    }

    #[test]
    fn accesses_are_requests_for_pages() {
        let text = b"==5235== Lackey, an example Valgrind tool\n==5235== \nI  004014f0,2\nI  004014f2,3\n L 1fff000ffc,8\nI  004014f5,1\n S 1fff000758,8\n M 00601000,4\n==5235== \n";
        let told: Vec<_> = read(text)
            .into_iter()
            .map(|read| {
                let read = read.unwrap();
                let request = read.request;
                (request.object, request.bytes, request.is_write, read.at_ns)
            })
            .collect();
        // The first load lies on two pages.
        assert_eq!(
            told,
            [
                (0x01ff_f000, 4, false, 2),
                (0x01ff_f001, 4, false, 2),
                (0x01ff_f000, 8, true, 3),
                (0x601, 4, true, 3),
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_said_by_line() {
        for (text, found) in [
            (
                "I  0,1\n X 12,8\n",
                "stream line 2: the access is \"X 12\", not an access: I, L, S or M",
            ),
            (
                " L 0x12,8\n",
                "stream line 1: the access is \"L 0x12\", not an access",
            ),
            (
                " L 12\n",
                "stream line 1: 1 columns, and the size should be number 2",
            ),
            (
                " S 12,big\n",
                "stream line 1: the size is \"big\", not a number of bytes",
            ),
            (
                " S ffffffffffffffff,8\n",
                "stream line 1: offset 18446744073709551615 lies beyond",
            ),
        ] {
            let read = read(text.as_bytes());
            let error = read.last().unwrap().as_ref().unwrap_err();
            assert!(error.starts_with(found), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_requests_until_an_error(bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b' '), Just(b'L'), Just(b'1')], 0..200)) {
            let read = read(&bytes);
            let whole = read.iter().take_while(|read| read.is_ok()).count();
            prop_assert!(read.len() <= whole + 1);
        }
    }
}
