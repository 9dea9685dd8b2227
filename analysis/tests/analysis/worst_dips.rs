//! A host's deepest dips, the processes that ran in them, and its use of memory, worked by hand.
//!
//! The host has 1 GiB and a sample every 90 s; a gap lies before sample 8.
//!
//! | sample    |  0  |  1  |  2  |  3  |  4  |  5  |  6  |  7  |  8  |  9  | 10  | 11  | 12  |
//! | ---       | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | available | 600 |  90 |  80 |  80 | 500 |  95 | 700 |  70 | 200 |  80 | 400 |  99 | 600 | MiB

use crate::recording::{MIB, NOON, Recording, sample};
use gleaner_schemas::findings::{Findings, Parameters};
use gleaner_schemas::rows::{ProcessRow, SampleRow};

const AVAILABLE: [i64; 13] = [600, 90, 80, 80, 500, 95, 700, 70, 200, 80, 400, 99, 600];

fn second(sample: usize) -> i64 {
    sample as i64 * 90 + if sample >= 7 { 900 } else { 0 }
}

fn found(processes: &[(usize, &str, i64)]) -> Findings {
    let mut r = Recording::new();
    r.host("a", 90);
    for (i, available) in AVAILABLE.into_iter().enumerate() {
        let row = SampleRow {
            // The file cache grows by 1 MiB per sample, taken from the processes' memory.
            file_cache_bytes: i as i64 * MIB,
            process_bytes: (924 - available - i as i64) * MIB,
            ..sample(available)
        };
        r.row("a", 1 + i as i64, second(i), &row);
    }
    for (pid, (at, name, mib)) in processes.iter().enumerate() {
        let row = ProcessRow {
            pid: pid as i64,
            name: (*name).into(),
            anon_bytes: Some(mib * MIB),
            ..ProcessRow::default()
        };
        r.row("a", 1 + *at as i64, second(*at), &row);
    }
    let parameters = Parameters {
        dip_threshold_bytes: vec![MIB],
        dip_threshold_shares: vec![0.1, 0.075, 0.05],
        ..Parameters::default()
    };
    r.analyzed(&parameters).unwrap()
}

#[test]
fn the_three_deepest_of_each_threshold() {
    let f = found(&[]);
    let found: Vec<_> = (f.worst_dips.iter())
        .map(|d| {
            (
                (d.threshold_share, d.threshold_bytes / MIB),
                (d.from_time_ms - NOON) / 1000,
                (d.to_time_ms - NOON) / 1000,
                d.intervals_count,
                (d.min_available_bytes / MIB, (d.min_time_ms - NOON) / 1000),
            )
        })
        .collect();
    let (tenth, less) = ((Some(0.1), 102), (Some(0.075), 76));
    let s = second;
    assert_eq!(
        found,
        [
            (tenth, s(7), s(8), 1, (70, s(7))),
            // As deep as the next dip, and longer. The first of its two lowest samples counts.
            (tenth, s(1), s(4), 3, (80, s(2))),
            (tenth, s(9), s(10), 1, (80, s(9))),
            // The samples with 95 and 99 MiB are dips as well, but only the three deepest are kept.
            (less, s(7), s(8), 1, (70, s(7))),
        ]
    );
    let long = &f.worst_dips[1];
    assert_eq!(long.duration_s, 270.0);
    let mib = |bytes: Option<i64>| bytes.map(|b| b / MIB);
    assert_eq!(mib(long.dynamic_kernel_bytes), Some(60));
    assert_eq!(mib(long.process_bytes), Some(924 - 80 - 2));
    assert_eq!(mib(long.file_cache_bytes), Some(2));
    let usual = |bytes: Option<f64>| bytes.map(|b| b / MIB as f64);
    for dip in &f.worst_dips {
        assert_eq!(usual(dip.usual_dynamic_kernel_bytes), Some(60.0));
        assert_eq!(usual(dip.usual_file_cache_bytes), Some(6.0));
        // 814 is the median of 324, 833, 842, 841, 420, 824, 218, 847, 716, 835, 514, 814, 312.
        assert_eq!(usual(dip.usual_process_bytes), Some(814.0));
    }
    let missing_measures = f.missing_measures.iter().map(|n| n.measure.as_str());
    assert!(missing_measures.into_iter().any(|m| m == "dip_processes"));
}

#[test]
fn the_five_largest_names_of_each_worst_sample() {
    let f = found(&[
        (2, "cc1", 100),
        (2, "ld", 90),
        (2, "cc1", 50),
        (2, "e", 4),
        (2, "d", 4),
        (2, "c", 5),
        (2, "b", 6),
        // These processes are not present at the worst sample of any dip that is kept.
        (3, "cc1", 400),
        (4, "backup", 400),
        (7, "ld", 10),
    ]);
    let found: Vec<_> = (f.dip_processes.iter())
        .map(|p| {
            (
                (p.time_ms - NOON) / 1000,
                p.rank,
                p.name.as_str(),
                p.bytes / MIB,
                p.mean_bytes / MIB as f64,
            )
        })
        .collect();
    let long = second(2);
    assert_eq!(
        found,
        [
            (long, 1, "cc1", 150, 275.0),
            (long, 2, "ld", 90, 50.0),
            (long, 3, "b", 6, 6.0),
            (long, 4, "c", 5, 5.0),
            (long, 5, "d", 4, 4.0),
            // Sample 7 is listed once, though it is the worst sample below two thresholds.
            (second(7), 1, "ld", 10, 50.0),
        ]
    );
    assert!(
        f.missing_measures
            .iter()
            .all(|n| n.measure != "dip_processes")
    );
}

#[test]
fn use_of_memory_of_each_host() {
    let f = found(&[]);
    let of = |category: &str| {
        let mut all = f.memory_by_host.iter();
        all.find(|m| m.host_id == "a" && m.category == category)
            .unwrap()
    };
    let available = of("available");
    assert_eq!(available.samples_count, 13);
    assert_eq!(
        (available.min_bytes, available.max_bytes),
        (70 * MIB, 700 * MIB)
    );
    // Sorted, the samples are 70 80 80 80 90 95 99 200 400 500 600 600 700.
    assert_eq!(available.median_bytes, (99 * MIB) as f64);
    assert_eq!(available.p95_bytes, (700 * MIB) as f64);
    assert!((available.mean_share - 3594.0 / 13.0 / 1024.0).abs() < 1e-9);
    // Used memory is largest at the sample with the least available memory.
    assert_eq!(of("used").max_bytes, (1024 - 70) * MIB);
    assert_eq!(of("kernel").median_bytes, (84 * MIB) as f64);
    assert_eq!(of("process").min_bytes, 218 * MIB);
    assert_eq!(of("file_cache").max_bytes, 12 * MIB);
    // Harvestable memory is MemAvailable less 15 %; it is largest at 700 MiB.
    assert_eq!(of("harvestable").max_bytes, 700 * MIB - 161_061_273);
    // The class contains only this host, so its figures are the same.
    for of_class in f.memory_usage.iter().filter(|u| u.size_class == "all") {
        let own = of(&of_class.category);
        assert_eq!(
            (own.mean_bytes, own.sd_bytes),
            (of_class.mean_bytes, of_class.sd_bytes)
        );
    }
    let alone = Parameters {
        measures: vec!["memory_by_host".into()],
        ..Parameters::default()
    };
    let mut r = Recording::new();
    r.row("a", 1, 0, &sample(100));
    let f = r.analyzed(&alone).unwrap();
    assert_eq!(f.memory_usage, []);
    assert_eq!(
        f.memory_by_host.len(),
        14,
        "what rests on files is left out"
    );
}
