//! An error and its causes as one line.

use std::error::Error;

/// The error's message and those of its causes, the outermost first, separated by `: `. A cause is omitted if the
/// message before it already ends with it: many messages quote the system's error, and also have it as their cause.
#[must_use]
pub fn told(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let said = next.to_string();
        if !text.contains(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        cause = next.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[derive(Debug, thiserror::Error)]
    enum FailedError {
        #[error("cannot read a: {source}")]
        Named { source: io::Error },
        #[error("cannot read b ({source}); restore it")]
        Inside { source: io::Error },
        #[error("cannot read c")]
        Apart { source: io::Error },
    }

    #[test]
    fn what_the_system_said_is_said_once() {
        let source = || io::Error::from_raw_os_error(2);
        let said = source().to_string();
        for (error, expected) in [
            (
                FailedError::Named { source: source() },
                format!("cannot read a: {said}"),
            ),
            (
                FailedError::Inside { source: source() },
                format!("cannot read b ({said}); restore it"),
            ),
            (
                FailedError::Apart { source: source() },
                format!("cannot read c: {said}"),
            ),
        ] {
            assert_eq!(told(&error), expected);
        }
    }
}
