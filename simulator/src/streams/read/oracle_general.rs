//! Reads libCacheSim's oracleGeneral: 24 bytes per request, little-endian. The fields are time (u32, s),
//! object (u64), size (u32, bytes), and the number of the next request for the same object. That number is an
//! i64 that counts from 1; without a next request it is -1 or 2⁶³ − 1.

use super::Reading;
use super::clock::Clock;
use super::input::Input;
use crate::Request;
use crate::streams::{Client, StreamError, StreamRequest};
use std::io::{ErrorKind, Read};

/// Size of a request's record, in bytes.
pub(crate) const RECORD_BYTES: usize = 24;
/// Bytes per read, which make whole records.
const BUFFER_BYTES: usize = RECORD_BYTES << 12;
/// Maximum number of requests in any trace. A larger number shows that the file has another format.
const MOST_REQUESTS: i64 = 1 << 48;
const NS_PER_S: u64 = 1_000_000_000;

/// Reader of a file in oracleGeneral.
pub struct OracleGeneral {
    input: Input,
    client: Client,
    clock: Clock,
    buffer: Box<[u8]>,
    /// Position, in the buffer, of the first record that was not returned yet.
    at: usize,
    end: usize,
    /// Offset, in the file, of the record at position `at`.
    offset: u64,
}

impl OracleGeneral {
    pub(super) fn new(input: Input, file: u32) -> Result<Self, StreamError> {
        let client = Client::of(file, 0).ok_or_else(|| super::merge::too_many_files(file))?;
        Ok(Self {
            input,
            client,
            clock: Clock::default(),
            buffer: vec![0; BUFFER_BYTES].into(),
            at: 0,
            end: 0,
            offset: 0,
        })
    }

    /// Refills the used-up buffer; returns false at the end of the file.
    fn fill(&mut self) -> Result<bool, StreamError> {
        (self.at, self.end) = (0, 0);
        while self.end < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(StreamError::io("read", &self.input.path)(error)),
            }
        }
        Ok(self.end > 0)
    }

    #[cold]
    fn wrong(&self, found: String, advice: &'static str) -> StreamError {
        StreamError::Record {
            path: self.input.path.clone(),
            offset: self.offset,
            found,
            advice,
        }
    }
}

impl Reading for OracleGeneral {
    #[inline]
    fn read(&mut self) -> Result<Option<StreamRequest>, StreamError> {
        if self.at == self.end && !self.fill()? {
            return Ok(None);
        }
        let Some(record) = self.buffer[self.at..self.end].first_chunk::<RECORD_BYTES>() else {
            let found = format!("the last {} bytes are no request of 24", self.end - self.at);
            return Err(self.wrong(
                found,
                "copy the file again: it is cut off, or no oracleGeneral",
            ));
        };
        let (time_s, object, bytes, next) = parts(record);
        if !(-1..MOST_REQUESTS).contains(&next) && next != i64::MAX {
            let found = format!("the next request for the object is said to be request {next}");
            return Err(self.wrong(
                found,
                "no trace has that many requests: name the format that the file is in",
            ));
        }
        self.at += RECORD_BYTES;
        self.offset += RECORD_BYTES as u64;
        let request = Request {
            object,
            bytes,
            ..Request::default()
        };
        let at_ns = u64::from(time_s) * NS_PER_S;
        Ok(Some(self.clock.request_at(self.client, at_ns, request)))
    }
}

/// Fields of a record: time, object, size, and number of the object's next request.
#[inline]
fn parts(record: &[u8; RECORD_BYTES]) -> (u32, u64, u32, i64) {
    let [
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
        j,
        k,
        l,
        m,
        n,
        o,
        p,
        q,
        r,
        s,
        t,
        u,
        v,
        w,
        x,
    ] = *record;
    (
        u32::from_le_bytes([a, b, c, d]),
        u64::from_le_bytes([e, f, g, h, i, j, k, l]),
        u32::from_le_bytes([m, n, o, p]),
        i64::from_le_bytes([q, r, s, t, u, v, w, x]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::UntilError;
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Vec<Result<StreamRequest, String>> {
        let reading = OracleGeneral::new(Input::of(bytes), 0).unwrap();
        UntilError::error(reading)
            .map(|read| read.map_err(|error| error.to_string()))
            .collect()
    }

    fn record(time_s: u32, object: u64, bytes: u32, next: i64) -> Vec<u8> {
        let mut record = time_s.to_le_bytes().to_vec();
        record.extend(object.to_le_bytes());
        record.extend(bytes.to_le_bytes());
        record.extend(next.to_le_bytes());
        record
    }

    #[test]
    fn a_record_is_a_request() {
        let mut bytes = record(5, u64::MAX, 512, -1);
        bytes.extend(record(7, 1, 0, i64::MAX));
        let read: Vec<StreamRequest> = read(&bytes).into_iter().map(Result::unwrap).collect();
        let told = |at_s: u64, object, bytes, think_s: u64| StreamRequest {
            at_ns: at_s * NS_PER_S,
            client: Client::default(),
            request: Request {
                object,
                bytes,
                is_write: false,
                think_ns: think_s * NS_PER_S,
            },
        };
        assert_eq!(read, [told(5, u64::MAX, 512, 0), told(7, 1, 0, 2)]);
    }

    #[test]
    fn what_is_cut_off_is_said_and_where() {
        let mut bytes = record(5, 1, 512, -1);
        bytes.extend(&record(6, 1, 512, -1)[..20]);
        let read = read(&bytes);
        assert_eq!(read.len(), 2);
        let error = read[1].as_ref().unwrap_err();
        assert_eq!(
            error,
            "stream byte 24: the last 20 bytes are no request of 24; copy the file again: it is cut off, or no oracleGeneral"
        );
    }

    #[test]
    fn text_is_not_taken_for_requests() {
        let read = read(b"time,obj_id,obj_size\n1,1,512\n2,1,512\n3,2,512\n");
        assert_eq!(read.len(), 1);
        let error = read[0].as_ref().unwrap_err();
        assert!(
            error.starts_with("stream byte 0: the next request for the object is said"),
            "{error}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_requests_until_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let read = read(&bytes);
            let whole = read.iter().filter(|read| read.is_ok()).count();
            prop_assert!(read.iter().take(whole).all(Result::is_ok));
            prop_assert!(read.len() <= whole + 1);
            if read.len() == whole {
                prop_assert_eq!(whole * RECORD_BYTES, bytes.len());
            }
        }

        #[test]
        fn every_record_is_read_as_it_was(
            records in prop::collection::vec((any::<u32>(), any::<u64>(), any::<u32>()), 0..300),
        ) {
            let bytes: Vec<u8> =
                records.iter().flat_map(|(time_s, object, bytes)| record(*time_s, *object, *bytes, -1)).collect();
            let read: Vec<_> = read(&bytes)
                .into_iter()
                .map(|read| {
                    let read = read.unwrap();
                    ((read.at_ns / NS_PER_S) as u32, read.request.object, read.request.bytes)
                })
                .collect();
            prop_assert_eq!(read, records);
        }
    }
}
