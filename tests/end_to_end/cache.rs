//! `gleaner cache` replays a recorded stream through caches, without simulating hosts.

use crate::gleaner::{gleaner, told};
use std::fs;

/// The stream consists of requests for objects 1 2 1 3 1 2, of 100 bytes each. The expected misses were
/// counted by hand.
#[test]
fn a_stream_worked_by_hand_through_caches_of_two_kinds_of_size() {
    let folder = tempfile::tempdir().unwrap();
    let stream = folder.path().join("a.csv");
    let rows = [1, 2, 1, 3, 1, 2].iter().enumerate();
    let rows: Vec<String> = rows.map(|(at, id)| format!("{at},{id},100")).collect();
    fs::write(&stream, rows.join("\n") + "\n").unwrap();
    let args = [
        "cache",
        "--stream",
        stream.to_str().unwrap(),
        "--stream-format",
        "csv",
        "--stream-params",
        "time-col=1,obj-id-col=2,obj-size-col=3",
        "--policy",
        "lru,fifo,first-in,sieve,s3-fifo",
        "--size",
        "2,200B,1KiB",
    ];
    let document: serde_json::Value =
        serde_json::from_str(&told(&[&args[..], &["--json"]].concat())).unwrap();
    assert_eq!(document["cache_replay_version"], 1);
    let caches = document["caches"].as_array().unwrap();
    let found: Vec<_> = caches
        .iter()
        .map(|c| {
            let number = |key: &str| c[key].as_u64();
            assert_eq!(number("requests_count"), Some(6));
            assert_eq!(number("bytes"), Some(600));
            let misses = number("misses_count").unwrap();
            assert_eq!(number("missed_bytes"), Some(100 * misses));
            assert_eq!(c["miss_share"].as_f64(), Some(misses as f64 / 6.0));
            let size = (number("capacity_objects"), number("capacity_bytes"));
            (c["policy"].as_str().unwrap(), size, misses)
        })
        .collect();
    let sizes = [(Some(2), None), (None, Some(200)), (None, Some(1024))];
    let expected = [
        ("lru", sizes[0], 4), // 4 misses, since 3 evicts 2
        ("lru", sizes[1], 4),
        ("lru", sizes[2], 3),
        ("fifo", sizes[0], 5), // 5 misses, since 3 evicts 1, and 1 evicts 2
        ("fifo", sizes[1], 5),
        ("fifo", sizes[2], 3),
        ("first-in", sizes[0], 3), // 3 misses, since 3 is never stored
        ("first-in", sizes[1], 3),
        ("first-in", sizes[2], 3),
        ("sieve", sizes[0], 4), // 4 misses: 3 evicts 2, since 1 was used
        ("sieve", sizes[1], 4),
        ("sieve", sizes[2], 3),
        ("s3-fifo", sizes[0], 5), // 5 misses: 3 evicts 1, which was used only once; 1 evicts 2
        ("s3-fifo", sizes[1], 5),
        ("s3-fifo", sizes[2], 3),
    ];
    assert_eq!(found, expected);

    let schema: serde_json::Value =
        serde_json::from_str(&told(&["schema", "--as", "cache"])).unwrap();
    let described = |of: &serde_json::Value| -> Vec<String> {
        let properties = of["properties"].as_object().unwrap();
        properties.keys().cloned().collect()
    };
    let printed = |of: &serde_json::Value| -> Vec<String> {
        of.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(described(&schema), printed(&document));
    assert_eq!(
        described(&schema["$defs"]["CacheCounts"]),
        printed(&caches[0])
    );

    let text = told(&args);
    for part in ["policy", "2 objects", "200 B", "1.0 KiB", "66.7 %"] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
    assert_eq!(text.lines().count(), 1 + expected.len());
}

#[test]
fn what_cannot_be_replayed_is_refused() {
    let stream = ["cache", "--stream-format", "csv", "--stream", "no-such.csv"];
    for (more, code, part) in [
        (&["--size", "ten"][..], 2, "ten"),
        (&["--size", "10", "--policy", "best"], 2, "best"),
        (&[], 2, "--size"),
        (&["--size", "10"], 1, "no-such.csv"),
        (&["--size", "10", "--block", "4KiB"], 1, "--block"),
    ] {
        let output = gleaner(&[&stream[..], more].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
    }
}
