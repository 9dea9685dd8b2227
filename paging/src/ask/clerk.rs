//! The clerk's status socket, which answers root and the clerk's own user.

use crate::device::run::DeviceStatus;
use serde::Deserialize;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Returns the answer of the clerk at this status socket: one JSON document.
///
/// # Errors
/// No clerk listens there, or the answer does not arrive in time.
pub fn clerk(socket: &Path, patience: Duration) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(patience))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// Returns the clerk's answer twice: parsed, and as the whole document, since a clerk of another version may
/// report more fields.
///
/// # Errors
/// Errors of [`clerk`]; or the answer is not a device's status.
pub fn device(socket: &Path, patience: Duration) -> io::Result<(DeviceStatus, serde_json::Value)> {
    let document: serde_json::Value = serde_json::from_str(&clerk(socket, patience)?)?;
    Ok((DeviceStatus::deserialize(&document)?, document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_clerk_says_less() {
        let said = r#"{"size_bytes": 3, "stored_bytes": 2, "has_disk": true, "counters": {"lost_pages_count": 1},
            "servers": [{"state": "up", "size_bytes": 3, "used_bytes": 2}, {"state": "gone", "size_bytes": 0, "used_bytes": 0}]}"#;
        let device: DeviceStatus = serde_json::from_str(said).unwrap();
        assert_eq!(
            (device.counters.lost_pages_count, device.up().count()),
            (1, 1)
        );
        assert!(serde_json::from_str::<DeviceStatus>("{}").is_err());
    }
}
