//! Tests the hosts' last samples in status and metrics: they survive restarts, and silent hosts show none.

use crate::made::{id, inventory, sample};
use crate::running::Collector;
use gleaner_harness::now_ms;
use gleaner_schemas::rows::SampleRow;
use serde_json::{Value, json};

const MINUTE: i64 = 60_000;

/// Makes sample number `n` of a host whose owner left an hour before its first sample.
fn calm(n: i64) -> SampleRow {
    SampleRow {
        boottime_ms: Some(n * 2 * MINUTE),
        interval_ms: (n > 1).then_some(2 * MINUTE),
        physical_bytes: 1000,
        static_kernel_bytes: Some(10),
        dynamic_kernel_bytes: 80,
        reserve_bytes: Some(10),
        process_bytes: 200,
        file_cache_bytes: 100,
        available_bytes: 600 + n,
        harvestable_bytes: Some(400 + n),
        mem_available_bytes: Some(550 + n),
        owner_idle_ms: Some(60 * MINUTE + n * 2 * MINUTE),
        load5: Some(0.1),
        psi_memory_some_total_us: Some(n * 12_000_000),
        ..SampleRow::default()
    }
}

fn memory(collector: &Collector) -> Value {
    collector.get("/v1/status").1["hosts"][0]["memory"].clone()
}

fn metrics(collector: &Collector) -> Vec<String> {
    let text = collector.get("/metrics").1;
    let lines = text.as_str().unwrap().lines();
    lines
        .filter(|line| line.starts_with("gleaner_host_"))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_last_sample_is_told_and_survives_a_restart_and_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let begin_ms = now_ms() - 10 * MINUTE;
    let time = |n: i64| begin_ms + n * 2 * MINUTE;
    let send = |collector: &Collector, n: i64| {
        let body = sample(&id(1), &id(2), n, time(n), calm(n));
        let (status, answer) = collector.send(&body);
        assert_eq!(status, 200, "{answer}");
    };
    let collector = Collector::start(folder.path(), "");
    for n in 1..=3 {
        send(&collector, n);
    }
    let told = memory(&collector);
    assert_eq!(told["time_ms"], time(3));
    assert_eq!(
        (&told["state"], &told["quota_bytes"]),
        (&json!("in_use"), &json!(0))
    );
    collector.seal();
    send(&collector, 4);
    let told = memory(&collector);
    assert_eq!(told["state"], "idle");
    assert_eq!(told["since_time_ms"], time(1)); // idle since the first sample; nothing is known of the time before
    assert_eq!(
        (
            &told["available_bytes"],
            &told["quota_bytes"],
            &told["idle_quota_bytes"]
        ),
        (&json!(604), &json!(404), &json!(404))
    );
    assert_eq!(told["memory_pressure_share"], 0.1);
    // A repeated batch changes nothing.
    send(&collector, 2);
    send(&collector, 4);
    assert_eq!(memory(&collector), told);
    // The killed collector has the last sample only in its journal. The new collector continues the idle
    // state from the saved state.
    collector.kill();
    let collector = Collector::start(folder.path(), "");
    collector.seal();
    let again = memory(&collector);
    for key in [
        "time_ms",
        "state",
        "since_time_ms",
        "quota_bytes",
        "memory_pressure_share",
    ] {
        assert_eq!(again[key], told[key], "{key}");
    }
    assert_eq!(collector.end(), Some(0));
    let collector = Collector::start(folder.path(), "");
    assert_eq!(memory(&collector), again);
}

#[test]
fn metrics_sum_to_physical_memory_and_leave_out_hosts_that_are_off() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "");
    assert_eq!(collector.send(&inventory(&id(1), &id(2), 1)).0, 200);
    let row = SampleRow {
        owner_idle_ms: Some(20_500),
        ..calm(1)
    };
    assert_eq!(
        collector.send(&sample(&id(1), &id(2), 2, now_ms(), row)).0,
        200
    );
    let of_host = format!("{{host_id=\"{}\",host_name=\"otter\"", id(1));
    let found = metrics(&collector);
    for (name, category, value) in [
        ("physical_bytes", "", "1000.0"),
        ("harvestable_bytes", "", "401.0"),
        ("quota_bytes", "", "0.0"),
        ("owner_idle_seconds", "", "20.5"),
        ("idle", "", "0.0"),
        ("memory_bytes", ",category=\"kernel\"", "100.0"),
        ("memory_bytes", ",category=\"process\"", "200.0"),
        ("memory_bytes", ",category=\"file_cache\"", "100.0"),
        ("memory_bytes", ",category=\"guest\"", "0.0"),
        ("memory_bytes", ",category=\"available\"", "601.0"),
    ] {
        let line = format!("gleaner_host_{name}{of_host}{category}}} {value}");
        assert!(found.contains(&line), "{line}\n{found:#?}");
    }
    assert!(
        !found
            .iter()
            .any(|line| line.contains("memory_pressure_ratio"))
    );

    // The same host is shown after a day without a batch.
    collector.seal();
    assert_eq!(collector.end(), Some(0));
    let file = folder.path().join("data/hosts.json");
    let mut hosts: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    hosts[id(1)]["last_received_time_ms"] = json!(now_ms() - 86_400_000);
    std::fs::write(&file, hosts.to_string()).unwrap();
    let collector = Collector::start(folder.path(), "");
    let found = metrics(&collector).join("\n");
    assert!(found.contains("gleaner_host_last_received_timestamp_seconds"));
    for name in [
        "memory_bytes",
        "physical_bytes",
        "quota_bytes",
        "owner_idle",
        "host_idle",
    ] {
        assert!(!found.contains(name), "{name}\n{found}");
    }
    assert_eq!(memory(&collector)["available_bytes"], 601);

    // An earlier build wrote the file with other keys. The host is still known, but its memory only after its
    // next batch.
    assert_eq!(collector.end(), Some(0));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("received_time_ms", "received_ms")).unwrap();
    let collector = Collector::start(folder.path(), "");
    assert!(
        metrics(&collector)
            .join("\n")
            .contains("gleaner_host_last_received_timestamp_seconds")
    );
    assert!(memory(&collector).is_null());
}
