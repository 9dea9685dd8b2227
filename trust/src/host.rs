//! Id of a host, which is the same for all programs on the host.

/// Id of a host, computed as a hash of `/etc/machine-id`. The machine id itself must not leave the host
/// (machine-id(5)).
#[must_use]
pub fn host_id(machine_id: &str) -> String {
    let hash = blake3::derive_key("gleaner host id v1", machine_id.trim().as_bytes());
    crate::hex::encode(&hash[..16])
}

/// Id of this host; `None` without a machine id.
#[must_use]
pub fn this_host_id() -> Option<String> {
    let machine_id = std::fs::read_to_string("/etc/machine-id").ok()?;
    (!machine_id.trim().is_empty()).then(|| host_id(&machine_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id of a host must never change, since its traces are stored under the id. The test therefore
    /// compares with a fixed id.
    #[test]
    fn a_name_stays_and_does_not_show_what_it_was_made_of() {
        let id = host_id("3d1219c7c4c5404aaa1f6d2a48adfda4\n");
        assert_eq!(id, host_id("3d1219c7c4c5404aaa1f6d2a48adfda4"));
        assert_eq!(id, "c83e4865d3d0d809fff44f441d720a1a");
    }
}
