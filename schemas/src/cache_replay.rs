//! Counts of `gleaner cache`: one JSON document.

use serde::{Deserialize, Serialize};

/// Version of the form of this document. Fields may be added at any time; one that is taken away, renamed or given another
/// meaning raises it.
pub const CACHE_REPLAY_VERSION: u32 = 1;

/// Recorded streams through caches alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct CacheReplay {
    /// Version of this document's form.
    #[cfg_attr(feature = "json-schema", schemars(extend("const" = CACHE_REPLAY_VERSION)))]
    pub cache_replay_version: u32,
    /// Version of the `gleaner` that counted.
    pub gleaner_version: String,
    /// Paths of the streams, as they were named.
    pub streams: Vec<String>,
    /// Every cache, by policy and size in the order in which they were named.
    pub caches: Vec<CacheCounts>,
}

/// Counts of one cache, from empty to the end of the streams.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
pub struct CacheCounts {
    /// Eviction policy, by the name that `gleaner cache --policy` takes.
    pub policy: String,
    /// Objects that it holds; absent where its size is in bytes.
    pub capacity_objects: Option<u64>,
    /// Bytes that it holds; absent where its size is in objects.
    pub capacity_bytes: Option<u64>,
    /// Number of requests.
    pub requests_count: u64,
    /// Requests for objects that were not in the cache.
    pub misses_count: u64,
    /// Misses among requests; absent where there were none.
    pub miss_share: Option<f64>,
    /// Bytes that were asked for.
    pub bytes: u64,
    /// Bytes of requests for objects that were not in the cache.
    pub missed_bytes: u64,
    /// Missed bytes among those asked for; absent where there were none.
    pub missed_bytes_share: Option<f64>,
}
