//! Converts requests to a volume into requests for its blocks.

use crate::Request;
use crate::streams::{Client, StreamRequest};

/// Block size of volumes, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockBytes(u32);

/// Bits of an object's number that give its block in a volume; the other bits give the volume.
const BLOCK_BITS: u32 = 44;

impl BlockBytes {
    /// Accepts a power of two from 512 to 2³¹.
    #[must_use]
    pub fn new(bytes: u32) -> Option<Self> {
        (bytes.is_power_of_two() && bytes >= 512).then_some(Self(bytes))
    }

    /// Number of bytes.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Block number of an object in its client's volume.
    #[must_use]
    pub const fn block(object: u64) -> u64 {
        object & ((1 << BLOCK_BITS) - 1)
    }
}

impl Default for BlockBytes {
    /// The default is the size of a memory page.
    fn default() -> Self {
        Self(4096)
    }
}

/// Remaining part of a request to a volume; it is taken block by block.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blocks {
    offset_bytes: u64,
    left_bytes: u32,
    is_told: bool,
    first: StreamRequest,
}

/// Remaining part of a request whose blocks have all been taken.
pub(super) const TOLD: Blocks = Blocks {
    offset_bytes: 0,
    left_bytes: 0,
    is_told: true,
    first: StreamRequest {
        at_ns: 0,
        client: Client::FIRST,
        request: Request {
            object: 0,
            bytes: 0,
            is_write: false,
            think_ns: 0,
        },
    },
};

impl Blocks {
    /// Splits the request `recorded` into blocks, from this offset of its client's volume on. The object in
    /// `recorded` is ignored.
    ///
    /// # Errors
    /// The volume has no such blocks.
    pub(super) fn of(
        recorded: StreamRequest,
        offset_bytes: u64,
        block: BlockBytes,
    ) -> Result<Self, String> {
        let end_bytes = offset_bytes.checked_add(u64::from(recorded.request.bytes));
        let blocks = end_bytes.map(|end| end / u64::from(block.0));
        match blocks {
            Some(blocks) if blocks < 1 << BLOCK_BITS => Ok(Self {
                offset_bytes,
                left_bytes: recorded.request.bytes,
                is_told: false,
                first: recorded,
            }),
            _ => Err(format!(
                "offset {offset_bytes} lies beyond 2^{BLOCK_BITS} blocks of {} bytes",
                block.0
            )),
        }
    }

    /// Takes the request for the next block. A request of 0 bytes gives one request, for 0 bytes of its
    /// block.
    pub(super) fn next(&mut self, block: BlockBytes) -> Option<StreamRequest> {
        if self.is_told {
            return None;
        }
        let block_bytes = u64::from(block.0);
        let number = self.offset_bytes / block_bytes;
        let room_bytes = block_bytes - self.offset_bytes % block_bytes;
        let bytes = u64::from(self.left_bytes).min(room_bytes) as u32; // at most `left_bytes`, a u32
        let recorded = StreamRequest {
            request: Request {
                object: u64::from(self.first.client.number()) << BLOCK_BITS | number,
                bytes,
                ..self.first.request
            },
            ..self.first
        };
        self.offset_bytes += u64::from(bytes);
        self.left_bytes -= bytes;
        self.is_told = self.left_bytes == 0;
        self.first.request.think_ns = 0;
        Some(recorded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(client: u32, offset_bytes: u64, bytes: u32, block_bytes: u32) -> Vec<StreamRequest> {
        let recorded = StreamRequest {
            at_ns: 9,
            client: Client::of(0, client).unwrap(),
            request: Request {
                bytes,
                think_ns: 5,
                ..Request::default()
            },
        };
        let block = BlockBytes::new(block_bytes).unwrap();
        let mut blocks = Blocks::of(recorded, offset_bytes, block).unwrap();
        std::iter::from_fn(|| blocks.next(block)).collect()
    }

    #[test]
    fn a_request_across_blocks_is_one_for_each() {
        let told: Vec<_> = split(3, 4096 + 1000, 8000, 4096)
            .iter()
            .map(|read| {
                (
                    read.request.object,
                    read.request.bytes,
                    read.request.think_ns,
                    read.at_ns,
                )
            })
            .collect();
        let volume = 3 << 44;
        assert_eq!(
            told,
            [
                (volume + 1, 3096, 5, 9),
                (volume + 2, 4096, 0, 9),
                (volume + 3, 808, 0, 9)
            ]
        );
        assert_eq!(split(0, 512, 0, 512).len(), 1);
        let of = |offset_bytes| {
            Blocks::of(
                StreamRequest::default(),
                offset_bytes,
                BlockBytes::default(),
            )
        };
        assert!(of((1 << 56) - 1).is_ok());
        assert!(of(1 << 56).is_err() && of(u64::MAX).is_err());
        for wrong in [0, 256, 1000, u32::MAX] {
            assert_eq!(BlockBytes::new(wrong), None);
        }
    }

    proptest! {
        #[test]
        fn no_byte_is_lost(offset_bytes in 0u64..1 << 40, bytes in 0u32..1 << 20, shift in 9u32..20) {
            let block_bytes = 1 << shift;
            let told = split(1, offset_bytes, bytes, block_bytes);
            let sum: u64 = told.iter().map(|read| u64::from(read.request.bytes)).sum();
            prop_assert_eq!(sum, u64::from(bytes));
            let first = told[0].request.object;
            for (place, read) in told.iter().enumerate() {
                prop_assert_eq!(read.request.object, first + place as u64);
                prop_assert!(read.request.bytes <= block_bytes);
                prop_assert!(read.request.bytes > 0 || bytes == 0);
            }
        }
    }
}
