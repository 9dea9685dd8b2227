//! Bodies of the recruiter's lease API (`/v1/leases`), as clients and recruiters write and read them.

use super::{Lease, Placement, SLAB_BYTES, whole};
use serde::{Deserialize, Serialize};

/// Maximum length of the list of hosts to avoid.
pub const MOST_AVOIDED: usize = 64;

/// Request for leases of memory; docs/recruiter.md has each field's bounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct LeaseRequest {
    /// Size of each lease; rounded up to whole slabs of 2 MiB.
    #[serde(deserialize_with = "whole::count")]
    #[cfg_attr(feature = "openapi", schema(value_type = i64, minimum = 1, maximum = 1125899906842624_i64))]
    pub bytes: u64,
    /// Key of the client's choice, one for each request: repeating a request with the same key gives the same
    /// leases.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 64))]
    pub key: String,
    /// Number of leases, each on a host of its own: all of them are granted or none.
    #[serde(default = "one_copy", deserialize_with = "whole::count")]
    #[cfg_attr(feature = "openapi", schema(value_type = i64, default = 1, minimum = 1, maximum = 16))]
    pub copies: u32,
    /// Time until the leases end unless they are renewed; a host may grant less.
    #[serde(default = "usual_term_ms", deserialize_with = "whole::number")]
    #[cfg_attr(
        feature = "openapi",
        schema(default = 60000, minimum = 1000, maximum = 86400000)
    )]
    pub term_ms: i64,
    /// Minimum time for which the memory should stay available, with the confidence that the recruiter is
    /// configured for; absent: no minimum.
    #[serde(
        default,
        deserialize_with = "whole::or_none",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 2592000000_i64))]
    pub minimum_duration_ms: Option<i64>,
    /// Placement policy, which chooses the hosts; absent: the recruiter's configured policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<Placement>,
    /// Ids of hosts that get none of these leases: hosts that the client failed to reach a moment ago. An id
    /// that no host has is ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(max_items = 64))]
    pub avoided_host_ids: Vec<String>,
    /// Host of the lease, for requests of that host itself: it uses the pages over a Unix socket of its memory
    /// server. Absent: the recruiter chooses hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(pattern = "^[0-9a-f]{32}$"))]
    pub host_id: Option<String>,
}

impl LeaseRequest {
    /// Returns a request with all other fields at their defaults: one lease, for a minute.
    #[must_use]
    pub fn new(bytes: u64, key: String) -> Self {
        Self {
            bytes,
            key,
            copies: one_copy(),
            term_ms: usual_term_ms(),
            minimum_duration_ms: None,
            placement: None,
            avoided_host_ids: Vec::new(),
            host_id: None,
        }
    }

    /// Size of each lease, rounded up to whole slabs.
    #[must_use]
    pub fn slabs_bytes(&self) -> u64 {
        self.bytes
            .checked_next_multiple_of(SLAB_BYTES)
            .unwrap_or(u64::MAX - u64::MAX % SLAB_BYTES)
    }
}

/// Names a client of leases that is a host itself. A certificate's name contains no colon, so no client of
/// another kind has such a name.
#[must_use]
pub fn host_client(host_id: &str) -> String {
    format!("host:{host_id}")
}

/// Request to renew a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RenewalRequest {
    /// Time from now until the lease ends; a host may grant less.
    #[serde(default = "usual_term_ms", deserialize_with = "whole::number")]
    #[cfg_attr(
        feature = "openapi",
        schema(default = 60000, minimum = 1000, maximum = 86400000)
    )]
    pub term_ms: i64,
}

fn one_copy() -> u32 {
    1
}

fn usual_term_ms() -> i64 {
    60_000
}

/// A lease, and the host that granted it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseView {
    /// The lease itself.
    #[serde(flatten)]
    pub lease: Lease,
    /// Id of the host: the name on that host's certificate.
    pub host_id: String,
    /// Address where the host serves pages, as `HOST:PORT`; absent: the host serves no pages yet. For a lease
    /// of the host itself, the path of a Unix socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// True if the recruiter has a link to the host now; otherwise the lease cannot be renewed or ended
    /// through this recruiter.
    #[serde(default)] // older recruiters left it out
    #[cfg_attr(feature = "openapi", schema(required = true))]
    pub is_reachable: bool,
}

/// List of leases.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = Leases))]
pub struct LeaseList {
    /// Leases of the request; copies are on different hosts.
    pub leases: Vec<LeaseView>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{from_value, json, to_value};

    #[test]
    fn what_a_client_leaves_out_is_as_the_document_says() {
        let least = json!({"bytes": 4096.0, "key": "k"});
        let request: LeaseRequest = from_value(least).unwrap();
        assert_eq!(request, LeaseRequest::new(4096, "k".to_owned()));
        let written = json!({"bytes": 4096, "copies": 1, "key": "k", "term_ms": 60_000});
        assert_eq!(to_value(&request).unwrap(), written);
        let renewal: RenewalRequest = from_value(json!({})).unwrap();
        assert_eq!(renewal.term_ms, 60_000);
        for wrong in [
            json!({"bytes": 1}),
            json!({"bytes": 1, "key": "k", "size": 1}),
            json!({"bytes": 1, "key": "k", "placement": "best"}),
            json!({"bytes": 1, "key": "k", "term_ms": null}),
        ] {
            assert!(
                from_value::<LeaseRequest>(wrong.clone()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn answers_of_older_recruiters_are_read() {
        let older = json!({"leases": [{"lease_id": "a", "generation": 1, "key": "k", "host_id": "h",
            "granted_bytes": 1, "remaining_bytes": 1, "expires_in_ms": 1}]});
        let LeaseList { leases } = from_value(older).unwrap();
        assert_eq!(leases[0].lease.client, "");
        assert_eq!((leases[0].is_reachable, &leases[0].address), (false, &None));
    }

    #[test]
    fn sizes_are_rounded_up_to_whole_slabs() {
        let slabs = |bytes| LeaseRequest::new(bytes, String::new()).slabs_bytes() / SLAB_BYTES;
        assert_eq!([1, SLAB_BYTES, SLAB_BYTES + 1].map(slabs), [1, 1, 2]);
        assert_eq!(slabs(u64::MAX), u64::MAX / SLAB_BYTES);
    }
}
