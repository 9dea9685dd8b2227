//! A recorded request, with its client and time.

use super::StreamError;
use crate::Request;

/// Client that makes requests; a scenario maps it to a host.
///
/// Its number is the index of its file among those that are read together, times [`Client::OF_A_FILE`], plus
/// its number inside the file. Inside the file, the number is SPC's ASU, or a column's value, or 0 if the
/// format has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Client(u32);

impl Client {
    /// Maximum number of clients of one file, if several files are read.
    pub const OF_A_FILE: u32 = 1 << 12;
    /// Maximum number of files that may be read together.
    pub const FILES: u32 = 1 << 8;

    /// The first client of the first file.
    pub(super) const FIRST: Self = Self(0);

    /// Client with this number in this file, both counted from 0. `None` if a number is too large. The first
    /// file may have as many clients as all files together.
    #[must_use]
    pub fn of(file: u32, within: u32) -> Option<Self> {
        let most = match file {
            0 => Self::FILES * Self::OF_A_FILE,
            _ => Self::OF_A_FILE,
        };
        (file < Self::FILES && within < most).then(|| Self(file * Self::OF_A_FILE + within))
    }

    /// Number of the client, below 2²⁰.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A request of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamRequest {
    /// Time of the request, on the recorder's clock.
    pub at_ns: u64,
    /// Client that made the request.
    pub client: Client,
    /// The request. Its `think_ns` is the time since the same client's previous request. It is 0 for the
    /// first request, and if the clock went back.
    pub request: Request,
}

/// Converts a program's requests into a stream, as recorded on a client on which every answer takes no time.
/// So time passes only while the program computes.
pub fn of_program(
    client: Client,
    requests: impl Iterator<Item = Request>,
) -> impl Iterator<Item = Result<StreamRequest, StreamError>> {
    requests.scan(0_u64, move |at_ns, request| {
        *at_ns = at_ns.saturating_add(request.think_ns);
        Some(Ok(StreamRequest {
            at_ns: *at_ns,
            client,
            request,
        }))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_several_files_have_numbers_of_their_own() {
        let number = |file, within| Client::of(file, within).map(Client::number);
        assert_eq!(number(0, 3), Some(3));
        assert_eq!(number(2, 3), Some(2 * 4096 + 3));
        assert_eq!(number(1, 4096), None);
        assert_eq!(number(0, (1 << 20) - 1), Some((1 << 20) - 1));
        assert_eq!(number(0, 1 << 20), None);
        assert_eq!(number(255, 4095), Some((1 << 20) - 1));
        assert_eq!(number(256, 0), None);
    }

    #[test]
    fn a_programs_time_goes_on_by_what_it_computes() {
        let think = |think_ns| Request {
            think_ns,
            ..Request::default()
        };
        let asked = [think(5), think(0), think(7)].into_iter();
        let at: Vec<u64> = of_program(Client::default(), asked)
            .map(|recorded| recorded.unwrap().at_ns)
            .collect();
        assert_eq!(at, [5, 5, 12]);
    }
}
