//! Makes a program for simulations from a client's recorded requests.

use super::read::BlockBytes;
use super::{Client, Objects, StreamError};
use crate::Request;
use crate::applications::{Layout, Program};
use std::sync::Arc;

/// Maximum length of a recording, 73 years. A longer recording must have another time unit than stated.
const LONGEST_NS: u64 = u64::MAX / 8;

/// Block size of the client's own cache if each object has its own size.
const BLOCK_BYTES: u32 = 512;

/// Layout of a stream's objects on disk and in regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredObjects {
    /// Blocks of each client's volume (SPC, CSV of blocks). Neighbours in the volume are neighbours on disk
    /// and in regions.
    AsVolume(BlockBytes),
    /// Named objects, each of its own size (oracleGeneral, CSV). On the client's disk and in regions, they
    /// lie in the order of their first requests.
    AsObjects,
}

/// A client's recorded requests, as a program.
///
/// The program has one process. It computes between the recorded requests, makes a request, and waits for the
/// answer, so that a recorded wait for a slow disk counts as computing. All its data are on the client's
/// first disk.
#[derive(Clone, Debug)]
pub struct ReplayedClient {
    client: Client,
    begin_ns: u64,
    layout: Layout,
    requests: Arc<Vec<Request>>,
}

impl ReplayedClient {
    /// Lays out a client's requests in regions of `region_bytes`, or of the largest object's size if that is
    /// larger. The client's first request is `begin_ns` after the stream's first request.
    pub(super) fn new(
        client: Client,
        begin_ns: u64,
        mut requests: Vec<Request>,
        stored: StoredObjects,
        region_bytes: u64,
    ) -> Result<Self, StreamError> {
        reject_impossible_requests(client, begin_ns, &requests, stored)?;
        let layout = match stored {
            StoredObjects::AsVolume(block) => as_volume(&mut requests, block.get(), region_bytes),
            StoredObjects::AsObjects => as_objects(&mut requests, region_bytes),
        };
        let layout = layout.ok_or_else(|| StreamError::Setting {
            found: format!("client {} asks for more than 2^32 blocks", client.number()),
            advice: "replay a part of the stream, or a volume with larger blocks".to_owned(),
        })?;
        Ok(Self {
            client,
            begin_ns,
            layout,
            requests: Arc::new(requests),
        })
    }

    /// Client that made the requests.
    #[must_use]
    pub const fn client(&self) -> Client {
        self.client
    }

    /// Begin of the client, since the stream's first request.
    #[must_use]
    pub const fn begin_ns(&self) -> u64 {
        self.begin_ns
    }
}

impl Program for ReplayedClient {
    type Stream = Requests;

    fn layout(&self) -> Layout {
        self.layout
    }

    /// The run is the same for every seed and number.
    fn run(&self, _: u64, _: u64) -> Requests {
        Requests {
            all: Arc::clone(&self.requests),
            next: 0,
        }
    }

    fn keeps_regions(&self) -> bool {
        true
    }

    fn processes(&self) -> u32 {
        1
    }
}

/// Iterator over the requests of a [`ReplayedClient`].
#[derive(Clone, Debug)]
pub struct Requests {
    all: Arc<Vec<Request>>,
    next: usize,
}

impl Iterator for Requests {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        let request = self.all.get(self.next).copied()?;
        self.next += 1;
        Some(request)
    }
}

/// Returns an error for requests that would overflow a simulation's time, or reach into another block.
fn reject_impossible_requests(
    client: Client,
    begin_ns: u64,
    requests: &[Request],
    stored: StoredObjects,
) -> Result<(), StreamError> {
    let wrong = |found, advice: &str| {
        Err(StreamError::Setting {
            found,
            advice: advice.to_owned(),
        })
    };
    let client = client.number();
    let lasts_ns = requests.iter().fold(begin_ns, |sum, request| {
        sum.saturating_add(request.think_ns)
    });
    if lasts_ns > LONGEST_NS {
        return wrong(
            format!("the requests of client {client} lie more than 73 years apart"),
            "look at their times, and at the unit of these",
        );
    }
    let StoredObjects::AsVolume(block) = stored else {
        return Ok(());
    };
    match requests.iter().find(|r| r.bytes > block.get()) {
        Some(request) => wrong(
            format!(
                "client {client} asks for {} bytes of a block of {}",
                request.bytes,
                block.get()
            ),
            "say how large the volume's blocks are, or take its objects for named ones",
        ),
        None => Ok(()),
    }
}

/// Numbers the blocks densely, so that blocks of a region stay together. Regions without requests get no
/// numbers.
fn as_volume(requests: &mut [Request], block_bytes: u32, region_bytes: u64) -> Option<Layout> {
    let region_blocks = (region_bytes / u64::from(block_bytes)).clamp(1, 1 << 31);
    let block = |object: u64| BlockBytes::block(object);
    let asked = requests.iter().map(|r| block(r.object) / region_blocks);
    let mut regions: Vec<u64> = asked.collect();
    regions.sort_unstable();
    regions.dedup();
    let blocks = u32::try_from(regions.len() as u64 * region_blocks).ok()?;
    for request in requests {
        let block = block(request.object);
        let region = regions.binary_search(&(block / region_blocks)).ok()?;
        request.object = region as u64 * region_blocks + block % region_blocks;
    }
    Some(Layout {
        files: 1,
        file_blocks: blocks,
        block_bytes,
        largest_request_bytes: block_bytes,
    })
}

/// Lays objects out one after the other, each at its maximum size. No object lies in two regions.
fn as_objects(requests: &mut [Request], region_bytes: u64) -> Option<Layout> {
    let (mut objects, mut sizes) = (Objects::default(), Vec::<u64>::new());
    for request in &mut *requests {
        let number = objects.number(request.object)? as usize;
        if number == sizes.len() {
            sizes.push(1);
        }
        let blocks = u64::from(request.bytes.div_ceil(BLOCK_BYTES));
        sizes[number] = sizes[number].max(blocks);
    }
    let largest = sizes.iter().copied().max().unwrap_or(1);
    let region_blocks = largest.max(region_bytes / u64::from(BLOCK_BYTES));
    let mut end = 0;
    let place = |blocks: u64| {
        let left = region_blocks - end % region_blocks;
        let begin = if blocks > left { end + left } else { end };
        end = begin + blocks;
        begin
    };
    let places: Vec<u64> = sizes.into_iter().map(place).collect();
    for request in requests {
        request.object = places[objects.number(request.object)? as usize];
    }
    let blocks = end.div_ceil(region_blocks) * region_blocks;
    Some(Layout {
        files: 1,
        file_blocks: u32::try_from(blocks).ok()?,
        block_bytes: BLOCK_BYTES,
        largest_request_bytes: u32::try_from(region_blocks * u64::from(BLOCK_BYTES)).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{StreamRequest, replayed};

    fn asked(
        client: u32,
        at_ns: u64,
        object: u64,
        bytes: u32,
    ) -> Result<StreamRequest, StreamError> {
        Ok(StreamRequest {
            at_ns,
            client: Client::of(0, client).unwrap(),
            request: Request {
                object,
                bytes,
                is_write: false,
                think_ns: 0,
            },
        })
    }

    fn objects(of: &ReplayedClient) -> Vec<u64> {
        of.run(1, 0).map(|r| r.object).collect()
    }

    #[test]
    fn volumes_lose_what_is_never_asked_for_and_keep_neighbours() {
        let block = BlockBytes::new(512).unwrap();
        let volume = |client: u64, block: u64| (client << 44) | block;
        // Regions have four blocks. The first client uses blocks 0 to 3 and 4000 to 4003, the second client 8
        // to 11.
        let stream = [
            asked(0, 50, volume(0, 4001), 512),
            asked(1, 70, volume(1, 9), 512),
            asked(0, 90, volume(0, 2), 100),
            asked(0, 95, volume(0, 4002), 512),
        ];
        let found = replayed(stream.into_iter(), StoredObjects::AsVolume(block), 2048).unwrap();
        let [first, second] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((objects(first), objects(second)), (vec![5, 2, 6], vec![1]));
        assert_eq!((first.begin_ns(), second.begin_ns()), (0, 20));
        assert_eq!(
            (first.layout().file_blocks, second.layout().file_blocks),
            (8, 4)
        );
        assert_eq!((first.client().number(), second.client().number()), (0, 1));
    }

    #[test]
    fn objects_lie_in_the_order_of_their_first_use_and_in_one_region_each() {
        // Regions have four blocks of 512 bytes. Object 7 takes at most two blocks, and 8 two. Object 9 takes
        // three, which no longer fit into the first region. Then 7 is requested again.
        let stream = [
            asked(0, 0, 7, 100),
            asked(0, 0, 8, 1024),
            asked(0, 0, 9, 1025),
            asked(0, 0, 7, 1000),
            asked(0, 0, 10, 0),
        ];
        let found = replayed(stream.into_iter(), StoredObjects::AsObjects, 2048).unwrap();
        assert_eq!(objects(&found[0]), [0, 2, 4, 0, 7]);
        let layout = found[0].layout();
        assert_eq!(
            (layout.file_blocks, layout.largest_request_bytes),
            (8, 2048)
        );
        // If an object is larger than a region, regions get its size.
        let large = [asked(0, 0, 7, 5000), asked(0, 0, 8, 1)];
        let found = replayed(large.into_iter(), StoredObjects::AsObjects, 2048).unwrap();
        assert_eq!(
            (objects(&found[0]), found[0].layout().file_blocks),
            (vec![0, 10], 20)
        );
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let block = BlockBytes::new(512).unwrap();
        let stream = [asked(3, 0, 0, 1), asked(3, 0, 1 << 43, 1)];
        // The requests are in two regions of 2³¹ blocks each, and 2³² blocks cannot be numbered.
        let error =
            replayed(stream.into_iter(), StoredObjects::AsVolume(block), 1 << 40).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("client 3 asks for more than 2^32 blocks")
        );
        let none = replayed(std::iter::empty(), StoredObjects::AsObjects, 1).unwrap();
        assert!(none.is_empty());
    }
}
