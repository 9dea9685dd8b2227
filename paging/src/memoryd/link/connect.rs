//! Connects to a recruiter as this host's memory server.

use super::LinkError;
use super::identity::Identity;
use crate::entrance::Entrance;
use gleaner_paging::websocket::{self, Bounds, RecruiterConnection};
use gleaner_schemas::lending::MOST_REVOCATIONS_BYTES;
use gleaner_trust::Address;

/// Maximum lengths of messages. The longest message from a recruiter has revocation lists with escaped line
/// ends and the JSON around them; a request has only a few hundred bytes. The largest possible announcement,
/// whose names consist of control characters, has half as many bytes as may wait.
const BOUNDS: Bounds = Bounds {
    received_bytes: MOST_REVOCATIONS_BYTES + MOST_REVOCATIONS_BYTES / 16 + (64 << 10),
    waiting_bytes: 8 << 20,
};

/// Connects to a recruiter. Refuses a recruiter whose certificate is revoked.
pub(super) async fn connect(
    address: &Address,
    host_id: &str,
    identity: &Identity,
    entrance: &Entrance,
) -> Result<RecruiterConnection, LinkError> {
    let tls = match address.is_secret() {
        true => {
            let credentials = identity.now()?.credentials();
            Some(credentials.config_by_lists(entrance.lists())?)
        }
        false => None,
    };
    let path = format!("/v1/hosts/{host_id}/link");
    Ok(websocket::connect(address, &path, tls, BOUNDS).await?)
}
