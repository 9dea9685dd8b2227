//! Bodies of HTTP answers as blocks: they stay in memory for hours, so that they have no byte more than they need.

use std::io::Read;
use ureq::Body;
use ureq::http::Response;

/// Size of the buffers of a connection. Hundreds of connections are kept for further requests, and the client's default
/// is 256 KiB for each.
pub(crate) const BUFFER_BYTES: usize = 16 << 10;

/// Body of an answer, in memory of its size.
///
/// # Errors
/// [`ureq::Error::BodyExceedsLimit`] if the body is longer than `most_bytes`, or an error of the connection.
pub(crate) fn body(answer: &mut Response<Body>, most_bytes: u64) -> Result<Vec<u8>, ureq::Error> {
    let stated = answer.body().content_length().unwrap_or(most_bytes);
    let capacity = usize::try_from(stated.min(most_bytes)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(capacity);
    // One byte more shows a body that is too long.
    let body = answer.body_mut().with_config().limit(most_bytes + 1);
    body.reader().read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(ureq::Error::BodyExceedsLimit(most_bytes));
    }
    bytes.shrink_to_fit();
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_has_no_unused_memory_and_no_byte_too_many() {
        let answer = |bytes: usize| Response::new(Body::builder().data(vec![7; bytes]));
        for bytes in [0, 1, 3000, 64 << 10] {
            let found = body(&mut answer(bytes), 64 << 10).unwrap();
            assert_eq!((found.len(), found.capacity()), (bytes, bytes));
        }
        let long = body(&mut answer(101), 100).unwrap_err();
        assert!(matches!(long, ureq::Error::BodyExceedsLimit(_)), "{long}");
    }
}
