//! Text of an object store's error.

use std::error::Error;

/// Text of an error, followed by its causes unless the text contains them.
#[must_use]
pub fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}
