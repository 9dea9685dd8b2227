//! `gleaner cache`: replays recorded streams through caches only, without simulating hosts, network or time.

use crate::export::args::{ExportStreams, StreamFormat};
use crate::export::streams::requests;
use crate::tables::{or_dash, percent, plain};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gleaner_policy::eviction::Policy;
use gleaner_schemas::cache_replay::{CACHE_REPLAY_VERSION, CacheCounts, CacheReplay};
use gleaner_schemas::units::Bytes;
use gleaner_simulator::cache::{Cache as Simulated, Capacity, Counts, replay};
use std::io::Write;
use std::path::PathBuf;

/// Replay recorded streams of requests through caches of any sizes, and count what they miss.
///
/// Every cache starts empty and processes the whole stream, in one pass for all caches. Hosts, network and time
/// are not simulated; `gleaner simulate` does that.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  gleaner cache --stream web.oracleGeneral.zst --stream-format oracleGeneral --size 1000,10000
  gleaner cache --stream web.spc --stream-format spc --policy lru,fifo --size 64MiB,1GiB
  gleaner cache --stream a.csv --stream-format csv --size 1GiB --json | jq '.caches[].miss_share'

A size is a number of objects (1000), or of bytes with a unit (1000B, 64MiB). Formats and counts: docs/streams.md.
Exit codes: 0 done, 1 failed (the reason is on standard error), 2 wrong usage.")]
pub(crate) struct Cache {
    /// Recorded stream (repeatable: concurrent streams, one client each); `.zst` is decompressed.
    #[arg(long, value_name = "FILE", required = true)]
    stream: Vec<PathBuf>,
    /// Format of the stream.
    #[arg(long, value_enum)]
    stream_format: StreamFormat,
    /// For csv: the columns, in libCacheSim's notation [default: the columns that `export --to csv` writes].
    #[arg(long, value_name = "PARAMETERS")]
    stream_params: Option<String>,
    /// For spc, blocks and lackey: block size, a power of two from 512 to 2GiB; each block is one object
    /// [default: 4KiB].
    #[arg(long, value_name = "SIZE", value_parser = crate::values::size_bytes)]
    block: Option<i64>,
    /// Eviction policies, comma-separated.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "lru",
        value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)).try_map(|name| name.parse::<Policy>())
    )]
    policy: Vec<Policy>,
    /// Sizes of the caches, comma-separated.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', required = true, value_parser = size)]
    size: Vec<Capacity>,
    /// Print one JSON document, described by `gleaner schema --as cache`.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Cache, output: &mut dyn Write) -> anyhow::Result<()> {
    let stream = requests(&ExportStreams {
        stream: args.stream.clone(),
        stream_format: Some(args.stream_format),
        stream_params: args.stream_params.clone(),
        block: args.block,
    })?;
    let policies = args.policy.iter().copied();
    let of_policy = |policy| {
        let sizes = args.size.iter().copied();
        sizes.map(move |capacity| Simulated { policy, capacity })
    };
    let caches: Vec<Simulated> = policies.flat_map(of_policy).collect();
    let counts = replay(stream, &caches)?;
    let document = CacheReplay {
        cache_replay_version: CACHE_REPLAY_VERSION,
        gleaner_version: env!("CARGO_PKG_VERSION").to_owned(),
        streams: args
            .stream
            .iter()
            .map(|s| s.display().to_string())
            .collect(),
        caches: caches.iter().zip(&counts).map(counted).collect(),
    };
    let text = if args.json {
        format!("{:#}\n", serde_json::to_value(&document)?)
    } else {
        plain(&table(&document))
    };
    Ok(output.write_all(text.as_bytes())?)
}

/// Parses the size of a cache: a number of bytes if the text has a unit, otherwise a number of objects.
fn size(text: &str) -> Result<Capacity, String> {
    if text.contains(char::is_alphabetic) {
        let bytes = crate::values::size_bytes(text)?;
        return u64::try_from(bytes)
            .map(Capacity::Bytes)
            .map_err(|_| format!("{text} is below 0"));
    }
    let objects = text.parse();
    objects
        .map(Capacity::Objects)
        .map_err(|_| format!("{text:?} is no number of objects; bytes have a unit, as 64MiB"))
}

fn counted((cache, counts): (&Simulated, &Counts)) -> CacheCounts {
    let (objects, bytes) = match cache.capacity {
        Capacity::Objects(objects) => (Some(objects), None),
        Capacity::Bytes(bytes) => (None, Some(bytes)),
    };
    let share = |of: u64, all: u64| (all > 0).then(|| of as f64 / all as f64);
    CacheCounts {
        policy: cache.policy.name().to_owned(),
        capacity_objects: objects,
        capacity_bytes: bytes,
        requests_count: counts.requests,
        misses_count: counts.misses,
        miss_share: share(counts.misses, counts.requests),
        bytes: counts.bytes,
        missed_bytes: counts.missed_bytes,
        missed_bytes_share: share(counts.missed_bytes, counts.bytes),
    }
}

fn table(document: &CacheReplay) -> String {
    let mut table = gleaner_terminal::table(
        &[
            "policy",
            "size",
            "requests",
            "misses",
            "missed",
            "bytes",
            "missed bytes",
            "missed",
        ],
        1,
    );
    for cache in &document.caches {
        let objects = cache.capacity_objects.map(|n| format!("{n} objects"));
        let bytes = |bytes: u64| Bytes::from(bytes).to_string();
        let size = objects.or(cache.capacity_bytes.map(bytes));
        table.add_row([
            cache.policy.clone(),
            or_dash(size),
            cache.requests_count.to_string(),
            cache.misses_count.to_string(),
            or_dash(cache.miss_share.map(percent)),
            bytes(cache.bytes),
            bytes(cache.missed_bytes),
            or_dash(cache.missed_bytes_share.map(percent)),
        ]);
    }
    table.trim_fmt() + "\n"
}
