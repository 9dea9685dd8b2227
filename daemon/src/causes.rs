//! An error and its causes as one line.

use std::error::Error;

/// The error's message and its causes', from the outermost on, with `: ` between. A cause that the message before it
/// ends with is left out: many messages name what the system said, and have it as their cause as well.
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
