//! Output of `gleaner cache`: counts of requests and misses, in one JSON document.

use serde::{Deserialize, Serialize};

/// Version of the form of this document. Fields may be added at any time; the version rises if a field is
/// removed, renamed or given another meaning.
pub const CACHE_REPLAY_VERSION: u32 = 1;

/// Result of replaying recorded streams through caches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct CacheReplay {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = CACHE_REPLAY_VERSION)))]
    pub cache_replay_version: u32,
    /// Version of the `gleaner` that counted.
    pub gleaner_version: String,
    /// Paths of the streams, as given on the command line.
    pub streams: Vec<String>,
    /// Every cache: first by policy, then by size, both in the order of the command line.
    pub caches: Vec<CacheCounts>,
}

/// Counts of one cache, from empty to the end of the streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct CacheCounts {
    /// Eviction policy, by the name that `gleaner cache --policy` takes.
    pub policy: String,
    /// Capacity in objects; absent where the cache's size is in bytes.
    pub capacity_objects: Option<u64>,
    /// Capacity in bytes; absent where the cache's size is in objects.
    pub capacity_bytes: Option<u64>,
    /// Number of all requests.
    pub requests_count: u64,
    /// Requests for objects that were not in the cache.
    pub misses_count: u64,
    /// Misses as a share of requests; absent without requests.
    pub miss_share: Option<f64>,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Bytes of requests for objects that were not in the cache.
    pub missed_bytes: u64,
    /// Missed bytes as a share of requested bytes; absent where no bytes were requested.
    pub missed_bytes_share: Option<f64>,
}
