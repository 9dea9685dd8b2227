//! Decoders of data that arrive over sockets.

use gleaner_dataset::Batch;
use gleaner_dataset::batch::Limits;
use gleaner_recruiter::registry::{HostId, Registry, Settings};
use gleaner_schemas::commons::{CommonsMessage, MemberMessage};
use gleaner_schemas::lending::{
    HostMessage, Lease, LeaseRequest, OwnerCommand, OwnerReply, Quotas, RecruiterMessage, Refusal,
};
use gleaner_schemas::live::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Decodes a batch from a host, as the collector does.
pub(super) fn batch(bytes: &[u8]) {
    let limits = Limits {
        compressed_bytes: 1 << 20,
        content_bytes: 4 << 20,
    };
    if let Ok(batch) = Batch::decode(bytes, &limits) {
        let _ = (batch.rows_count(), batch.memory_bytes());
    }
}

/// Reads the lines of a host's link into a registry, as the recruiter does.
pub(super) fn link(bytes: &[u8]) {
    let settings = Settings {
        announce_every_ms: 10_000,
        client_bytes: Some(1 << 30),
        client_leases: Some(8),
        reserve_share: 0.1,
        confidence: 0.8,
    };
    let mut registry = Registry::new(settings, -10_000);
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let Ok(HostMessage::Announcement(said)) = serde_json::from_slice(line) else {
            continue;
        };
        let now_ms = index as i64 * 1000;
        let host: HostId = said.quota.host_id.as_str().into();
        let _ = registry.announced(&host, index as u64 / 2, *said, now_ms);
        let request = LeaseRequest {
            copies: 2,
            ..LeaseRequest::new(2 << 20, "k".to_owned())
        };
        let _ = registry.plan("a", &request, now_ms);
        registry.finished("a", &request.key);
        for seen in registry.quotas() {
            let _ = seen.at(now_ms);
        }
        let _ = (registry.totals(), registry.hosts_after("", now_ms).len());
        let _ = registry.sweep(now_ms + 60_000);
    }
}

/// Decodes a JSON message of each protocol. If that succeeds, the message can be encoded, and the result can
/// be decoded again.
pub(super) fn messages(bytes: &[u8]) {
    again::<HostMessage>(bytes);
    again::<RecruiterMessage>(bytes);
    again::<Message>(bytes);
    again::<OwnerCommand>(bytes);
    again::<OwnerReply>(bytes);
    again::<Refusal>(bytes);
    again::<Lease>(bytes);
    again::<Quotas>(bytes);
    again::<MemberMessage>(bytes);
    again::<CommonsMessage>(bytes);
    if let Some([changes, again]) = gleaner_commons::peer::fuzz::directory_update(bytes) {
        assert_eq!(changes, again);
    }
    if let Some([messages, again]) = gleaner_commons::peer::fuzz::directory_notices(bytes) {
        assert_eq!(messages, again);
    }
}

fn again<T: Serialize + DeserializeOwned>(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(bytes) else {
        return;
    };
    let written = serde_json::to_vec(&message);
    let read = written.and_then(|text| serde_json::from_slice::<T>(&text));
    assert!(
        read.is_ok(),
        "{}: {:?}",
        std::any::type_name::<T>(),
        read.err()
    );
}

/// Reads all bytes that a server sends on a connection, as the clerk does.
pub(super) fn nbd_client(bytes: &[u8]) {
    let _ = gleaner_paging::nbd::fuzz::client(bytes, gleaner_paging::device::run::count_answers);
}

/// Reads all bytes that a client sends on a connection, as the memory server does.
pub(super) fn nbd_server(bytes: &[u8]) {
    let _ = gleaner_paging::nbd::fuzz::server(bytes);
}
