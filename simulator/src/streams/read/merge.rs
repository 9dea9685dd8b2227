//! Reads several files as one stream, in order of time.

use super::{Format, Requests, open};
use crate::streams::{Client, StreamError, StreamRequest};
use std::path::PathBuf;

/// Opens files that were recorded concurrently, with one clock; each file has its own clients ([`Client`]).
/// Requests come in order of time, and in the order of the files if their times are equal. A file whose clock
/// goes back keeps its own order. If a format names objects, an object is the same in every file. If a format
/// gives offsets in volumes, each client has its own objects.
///
/// # Errors
/// The errors of [`open`] for a file; more files than [`Client::FILES`].
pub fn open_all(paths: &[PathBuf], format: &Format) -> Result<Requests, StreamError> {
    if let [path] = paths {
        return open(path, format, 0);
    }
    let files = (0_u32..).zip(paths).map(|(file, path)| match file {
        file if file < Client::FILES => open(path, format, file),
        file => Err(too_many_files(file)),
    });
    let files = files.collect::<Result<_, _>>()?;
    Ok(Box::new(Merge::of(files)))
}

pub(super) fn too_many_files(file: u32) -> StreamError {
    StreamError::Setting {
        found: format!("{} files are too many", u64::from(file) + 1),
        advice: format!(
            "read {} together, or put several clients into one file",
            Client::FILES
        ),
    }
}

/// Open files, each with its next request.
struct Merge {
    files: Vec<(StreamRequest, Requests)>,
    /// Error that the iterator returns next; then it ends.
    error: Option<StreamError>,
}

impl Merge {
    fn of(files: Vec<Requests>) -> Self {
        let mut merge = Self {
            files: Vec::with_capacity(files.len()),
            error: None,
        };
        for mut file in files {
            match file.next() {
                Some(Ok(next)) => merge.files.push((next, file)),
                Some(Err(error)) => merge.error = merge.error.or(Some(error)),
                None => {}
            }
        }
        merge
    }
}

impl Iterator for Merge {
    type Item = Result<StreamRequest, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            self.files.clear();
            return Some(Err(error));
        }
        let earliest = self
            .files
            .iter()
            .enumerate()
            .min_by_key(|(_, (next, _))| next.at_ns);
        let (place, _) = earliest?;
        let (next, file) = &mut self.files[place];
        let told = *next;
        match file.next() {
            Some(Ok(recorded)) => *next = recorded,
            Some(Err(error)) => self.error = Some(error),
            None => drop(self.files.remove(place)),
        }
        Some(Ok(told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(number: u32, times: &[u64]) -> Requests {
        let times = times.to_vec();
        Box::new(times.into_iter().map(move |at_ns| {
            Ok(StreamRequest {
                at_ns,
                client: Client::of(number, 0).unwrap(),
                ..StreamRequest::default()
            })
        }))
    }

    fn wrong() -> StreamError {
        too_many_files(0)
    }

    #[test]
    fn the_error_of_one_file_ends_all_after_what_came_before() {
        let torn: Requests = Box::new(file(0, &[1]).chain([Err(wrong())]));
        let read: Vec<bool> = Merge::of(vec![torn, file(1, &[0, 1, 2])])
            .map(|read| read.is_ok())
            .collect();
        assert_eq!(read, [true, true, false]);
        let torn: Requests = Box::new([Err(wrong())].into_iter());
        assert_eq!(Merge::of(vec![file(0, &[0]), torn]).count(), 1);
    }

    proptest! {
        #[test]
        fn all_come_in_the_order_of_time_and_files(
            mut files in prop::collection::vec(prop::collection::vec(0u64..20, 0..20), 0..6),
        ) {
            files.iter_mut().for_each(|times| times.sort_unstable());
            let merge = Merge::of((0..).zip(&files).map(|(number, times)| file(number, times)).collect());
            let read: Vec<(u64, u32)> =
                merge.map(|read| read.unwrap()).map(|read| (read.at_ns, read.client.number() / 4096)).collect();
            let mut expected: Vec<(u64, u32)> =
                (0..).zip(&files).flat_map(|(number, times)| times.iter().map(move |at_ns| (*at_ns, number))).collect();
            expected.sort_unstable();
            prop_assert_eq!(read, expected);
        }
    }
}
